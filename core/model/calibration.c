/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "calibration-private.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "architecture.h"
#include "engine-private.h"
#include "model-private.h"
#include "sequence.h"

#define WINDOW 512            /* tokens that are read as a text of their own */

struct _RunnelCalibration {
  GObject parent_instance;
  RunnelEngine *engine;
  guint n_layers;
  gboolean tied;              /* the embedding is the output matrix too */
  RunnelMoments *moments;     /* [layers][inputs], then that of the output */
  float *output_norm;         /* [n_embd] */
  guint64 n_tokens;
  float *rows;                /* [WINDOW][widest input] */
  guint known;                /* index of what the feedback is made of */
  RunnelFeedback feedback;
};

G_DEFINE_FINAL_TYPE (RunnelCalibration, runnel_calibration, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_CALIBRATION (self) && (self)->engine != NULL)

static guint
count_moments (const RunnelCalibration *self)
{
  return self->n_layers * RUNNEL_N_INPUTS + 1;
}

static void
runnel_calibration_finalize (GObject *object)
{
  RunnelCalibration *self = RUNNEL_CALIBRATION (object);

  for (guint i = 0; i < count_moments (self) && self->moments != NULL; i++)
    runnel_moments_clear (&self->moments[i]);
  g_free (self->moments);
  g_free (self->output_norm);
  g_free (self->rows);
  runnel_feedback_clear (&self->feedback);
  g_clear_object (&self->engine);
  G_OBJECT_CLASS (runnel_calibration_parent_class)->finalize (object);
}

static void
runnel_calibration_class_init (RunnelCalibrationClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_calibration_finalize;
}

static void
runnel_calibration_init (RunnelCalibration *self)
{
}

/* ---- Looking ------------------------------------------------------------- */

static guint
get_columns (const RunnelShape *shape, RunnelInput input)
{
  switch (input) {
    case RUNNEL_INPUT_O: return shape->n_heads * shape->head_dim;
    case RUNNEL_INPUT_DOWN: return shape->n_ff;
    default: return shape->n_embd;
  }
}

/* What the output matrix reads: the norm of the hidden rows. */
static void
read_output_input (RunnelCalibration *self, RunnelPass *pass, guint row,
                   float *values)
{
  const RunnelShape *shape = runnel_engine_get_shape (self->engine);
  double squares = 0;
  float factor;

  runnel_backend_ops (runnel_engine_get_backend (self->engine))
      ->read_hidden (pass, row, values);
  for (guint i = 0; i < shape->n_embd; i++)
    squares += (double) values[i] * values[i];
  factor = (float) (1 / sqrt (squares / shape->n_embd + shape->norm_epsilon));
  for (guint i = 0; i < shape->n_embd; i++)
    values[i] *= factor * self->output_norm[i];
}

static void
look (gpointer user_data, RunnelPass *pass, guint n_rows, guint layer,
      RunnelInput input)
{
  RunnelCalibration *self = user_data;
  const RunnelOps *ops
      = runnel_backend_ops (runnel_engine_get_backend (self->engine));
  RunnelMoments *moments = &self->moments[layer * RUNNEL_N_INPUTS + input];

  for (guint row = 0; row < n_rows; row++)
    ops->read_input (pass, input, row,
        self->rows + (gsize) row * moments->columns);
  runnel_moments_add (moments, self->rows, n_rows);
  if (input != RUNNEL_INPUT_DOWN || layer + 1 < self->n_layers)
    return;
  moments++;
  for (guint row = 0; row < n_rows; row++)
    read_output_input (self, pass, row,
        self->rows + (gsize) row * moments->columns);
  runnel_moments_add (moments, self->rows, n_rows);
}

/* ---- Reading a text ------------------------------------------------------ */

static void
allocate (RunnelCalibration *self)
{
  const RunnelShape *shape = runnel_engine_get_shape (self->engine);
  guint widest = 0;

  self->n_layers = shape->n_layers;
  self->tied = runnel_checkpoint_tensor (runnel_model_get_checkpoint (
          runnel_engine_get_model (self->engine)), "output.weight") == NULL;
  self->moments = g_new0 (RunnelMoments, count_moments (self));
  for (guint i = 0; i < count_moments (self); i++) {
    guint columns = i + 1 < count_moments (self)
        ? get_columns (shape, i % RUNNEL_N_INPUTS) : shape->n_embd;

    runnel_moments_init (&self->moments[i], columns);
    widest = MAX (widest, columns);
  }
  self->rows = g_new (float, (gsize) (WINDOW + 3) * widest);
  self->known = G_MAXUINT;
}

/**
 * runnel_calibration_new:
 * @engine: who reads; nobody else shall use it while a text is fed
 * @error: return location for an error
 *
 * Begins a calibration of the engine's model.
 *
 * Returns: (transfer full) (nullable): a calibration that has read nothing,
 *   or %NULL with #RUNNEL_ERROR_UNSUPPORTED when the engine's backend does not
 *   let its inputs be seen
 *
 * Since: 0.1
 */
RunnelCalibration *
runnel_calibration_new (RunnelEngine *engine, GError **error)
{
  RunnelCalibration *self;
  const RunnelTensor *norm;

  g_return_val_if_fail (runnel_engine_is_made (engine), NULL);

  if (runnel_backend_ops (runnel_engine_get_backend (engine))->read_input
      == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "the backend '%s' cannot calibrate; use the CPU for it",
        runnel_backend_get_name (runnel_engine_get_backend (engine)));
    return NULL;
  }
  self = g_object_new (RUNNEL_TYPE_CALIBRATION, NULL);
  self->engine = g_object_ref (engine);
  allocate (self);
  norm = runnel_checkpoint_tensor (
      runnel_model_get_checkpoint (runnel_engine_get_model (engine)),
      "output_norm.weight");
  self->output_norm = g_new (float, norm->dims[0]);
  runnel_tensor_type_dequantize_row (norm->type, runnel_tensor_data (norm),
      norm->dims[0], 0, self->output_norm);
  return self;
}

static gboolean
read_window (RunnelCalibration *self, const gint32 *tokens, gsize n_tokens,
             GCancellable *cancellable, GError **error)
{
  RunnelProbe probe = { .look = look, .user_data = self };
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (self->engine, n_tokens, error);
  gboolean good;

  if (sequence == NULL)
    return FALSE;
  runnel_engine_set_probe (self->engine, &probe);
  good = runnel_sequence_prefill (sequence, tokens, n_tokens, WINDOW, FALSE,
      NULL, NULL, cancellable, NULL, error);
  runnel_engine_set_probe (self->engine, NULL);
  if (good)
    self->n_tokens += n_tokens;
  return good;
}

/**
 * runnel_calibration_feed:
 * @self: a calibration
 * @tokens: (array length=n_tokens): a text as the model will meet it
 * @n_tokens: number of tokens; 2,000 are few, 20,000 many
 * @progress: (scope call) (nullable): called with the part that is read
 * @user_data: for @progress
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Lets the model read a text, in windows of 512 tokens that know nothing of
 * each other, and looks at what its matrices are given. May be called with
 * several texts.
 *
 * Returns: %FALSE with an error when it was cancelled or a token is none of
 *   the model's
 *
 * Since: 0.1
 */
gboolean
runnel_calibration_feed (RunnelCalibration *self, const gint32 *tokens,
                         gsize n_tokens, RunnelProgressFunc progress,
                         gpointer user_data, GCancellable *cancellable,
                         GError **error)
{
  gsize window;

  g_return_val_if_fail (IS_MADE (self), FALSE);
  g_return_val_if_fail (tokens != NULL || n_tokens == 0, FALSE);

  window = MIN (WINDOW, runnel_model_get_context_length (
          runnel_engine_get_model (self->engine)));
  self->known = G_MAXUINT;
  for (gsize done = 0; done < n_tokens; done += window) {
    if (progress != NULL)
      progress ((double) done / n_tokens, user_data);
    if (!read_window (self, tokens + done, MIN (window, n_tokens - done),
            cancellable, error))
      return FALSE;
  }
  return TRUE;
}

/**
 * runnel_calibration_get_n_tokens:
 * @self: a calibration
 *
 * What it has been fed, in all.
 *
 * Returns: how many tokens it has read
 *
 * Since: 0.1
 */
guint64
runnel_calibration_get_n_tokens (RunnelCalibration *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);

  return self->n_tokens;
}

/* ---- What a quantiser wants to know -------------------------------------- */

static gboolean
find_moments (const RunnelCalibration *self, const char *tensor,
              guint *ret_index)
{
  RunnelPart part;
  guint layer;
  RunnelInput input;

  if (!runnel_part_find (tensor, &part, &layer))
    return FALSE;
  switch (part) {
    case RUNNEL_PART_Q: case RUNNEL_PART_K: case RUNNEL_PART_V:
      input = RUNNEL_INPUT_QKV;
      break;
    case RUNNEL_PART_O:
      input = RUNNEL_INPUT_O;
      break;
    case RUNNEL_PART_GATE: case RUNNEL_PART_UP:
      input = RUNNEL_INPUT_GATE_UP;
      break;
    case RUNNEL_PART_DOWN:
      input = RUNNEL_INPUT_DOWN;
      break;
    case RUNNEL_PART_EMBEDDING: case RUNNEL_PART_OUTPUT:
      /* Rows that are only looked up are given nothing. */
      *ret_index = count_moments (self) - 1;
      return part == RUNNEL_PART_OUTPUT || self->tied;
    default:
      return FALSE;
  }
  *ret_index = layer * RUNNEL_N_INPUTS + input;
  return layer < self->n_layers;
}

/**
 * runnel_calibration_dup_importance:
 * @self: a calibration
 * @tensor: the name of a matrix by GGUF's convention
 * @n_columns: (out): the number of values
 *
 * How much an error in a column of a matrix weighs: the mean square of what is
 * multiplied by it, which other programs call an importance matrix.
 *
 * Returns: (transfer full) (nullable) (array length=n_columns): a value for
 *   each column, or %NULL when nothing is known of the tensor
 *
 * Since: 0.1
 */
float *
runnel_calibration_dup_importance (RunnelCalibration *self, const char *tensor,
                                   gsize *n_columns)
{
  guint index;
  float *importance;

  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (tensor != NULL && n_columns != NULL, NULL);

  *n_columns = 0;
  if (self->n_tokens == 0 || !find_moments (self, tensor, &index))
    return NULL;
  *n_columns = self->moments[index].columns;
  importance = g_new (float, *n_columns);
  for (guint c = 0; c < *n_columns; c++)
    importance[c] = runnel_moments_get_square (&self->moments[index], c)
        / self->n_tokens;
  return importance;
}

const RunnelFeedback *
runnel_calibration_get_feedback (RunnelCalibration *self, const char *tensor,
                                 guint64 n_columns)
{
  guint index;

  if (self->n_tokens == 0 || !find_moments (self, tensor, &index)
      || self->moments[index].columns != n_columns)
    return NULL;
  if (index != self->known) {
    runnel_moments_make_feedback (&self->moments[index], &self->feedback);
    self->known = index;
  }
  return &self->feedback;
}
