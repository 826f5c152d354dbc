/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Reads decision heads. The Decision 2.0 form has the keys and tensors that
 * llama.cpp gives it (conversion/decision2.py), or is the package's own
 * decision_head.safetensors; ours is described in docs/decisions.md.
 */
#include "decision-head-private.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "blocks.h"
#include "safetensors.h"

#define MAX_EMBD 65536
#define MAX_HEAD_DIM 4096
/* In the folder of a Decision 2.0 model. */
#define FILE_IN_FOLDER "decision_head.safetensors"

G_DEFINE_FINAL_TYPE (RunnelDecisionHead, runnel_decision_head, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_DECISION_HEAD (self) && (self)->path != NULL)

GType
runnel_decision_form_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_DECISION_FORM_DECISION2, "RUNNEL_DECISION_FORM_DECISION2",
      "decision2" },
    { RUNNEL_DECISION_FORM_ISOLATED, "RUNNEL_DECISION_FORM_ISOLATED",
      "isolated" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
        g_enum_register_static ("RunnelDecisionForm", values));
  return type;
}

static void
runnel_decision_head_finalize (GObject *object)
{
  RunnelDecisionHead *self = RUNNEL_DECISION_HEAD (object);

  g_free (self->path);
  g_free (self->architecture);
  for (guint i = 0; i < RUNNEL_HEAD_N_TENSORS; i++)
    g_free (*runnel_head_get_values (self, &runnel_head_tensors[i]));
  for (guint i = 0; i <= RUNNEL_HEAD_MAX_LEVELS; i++)
    g_free (self->score_bias[i]);
  G_OBJECT_CLASS (runnel_decision_head_parent_class)->finalize (object);
}

static void
runnel_decision_head_class_init (RunnelDecisionHeadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_decision_head_finalize;
}

static void
runnel_decision_head_init (RunnelDecisionHead *self)
{
  for (guint i = 0; i < RUNNEL_HEAD_N_TYPES; i++)
    self->temperatures[i] = 1;
}

/* ---- Tensors ------------------------------------------------------------- */

/* Where the tensors of a head lie. */
typedef struct {
  const char *path;
  const char *prefix;
  const RunnelGguf *gguf;    /* or */
  const RunnelSafetensors *safetensors;
} Source;

static const RunnelTensor *
find_tensor (const Source *source, const char *name)
{
  g_autofree char *full = g_strconcat (source->prefix, name, NULL);

  return source->gguf ? runnel_gguf_find_tensor (source->gguf, full)
      : runnel_safetensors_find (source->safetensors, full);
}

static gboolean
check_tensor (const Source *source, const char *name,
              const RunnelTensor *tensor, guint rows, guint columns,
              GError **error)
{
  if (tensor == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: the head's tensor '%s%s' is missing", source->path,
        source->prefix, name);
    return FALSE;
  }
  if (tensor->type != RUNNEL_TENSOR_F32 && tensor->type != RUNNEL_TENSOR_F16
      && tensor->type != RUNNEL_TENSOR_BF16) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' of a head is neither F32 nor F16 nor BF16",
        source->path, tensor->name);
    return FALSE;
  }
  if (tensor->dims[0] == columns && tensor->dims[1] == rows
      && tensor->dims[2] == 1 && tensor->dims[3] == 1)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: tensor '%s' is %" G_GUINT64_FORMAT " × %" G_GUINT64_FORMAT
      ", not %u × %u", source->path, tensor->name, tensor->dims[1],
      tensor->dims[0], rows, columns);
  return FALSE;
}

static gboolean
check_finite (const Source *source, const RunnelTensor *tensor,
              const float *values, gsize n, GError **error)
{
  for (gsize i = 0; i < n; i++)
    if (!isfinite (values[i])) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: element %" G_GSIZE_FORMAT " of tensor '%s' is not finite",
          source->path, i, tensor->name);
      return FALSE;
    }
  return TRUE;
}

/* A matrix of @rows × @columns, as floats. */
static gboolean
read_tensor (const Source *source, const char *name, guint rows, guint columns,
             float **ret, GError **error)
{
  const RunnelTensor *tensor = find_tensor (source, name);
  gsize n = (gsize) rows * columns;

  if (!check_tensor (source, name, tensor, rows, columns, error))
    return FALSE;
  *ret = g_new (float, n);
  runnel_blocks_dequantize (tensor->type) (*ret, runnel_tensor_data (tensor),
      n);
  return check_finite (source, tensor, *ret, n, error);
}

/* The sizes follow from two tensors; all others are checked against them. */
static gboolean
read_sizes (RunnelDecisionHead *self, const Source *source, GError **error)
{
  const RunnelTensor *norm = find_tensor (source, "candidate_norm.weight");
  const RunnelTensor *key = find_tensor (source, "key.weight");

  if (norm == NULL || key == NULL)
    return check_tensor (source, norm ? "key.weight" : "candidate_norm.weight",
        NULL, 0, 0, error);
  if (norm->dims[0] < 1 || norm->dims[0] > MAX_EMBD || key->dims[1] < 1
      || key->dims[1] > MAX_HEAD_DIM) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: a head of width %" G_GUINT64_FORMAT " over %" G_GUINT64_FORMAT
        " hidden values is over the limits of %d and %d", source->path,
        key->dims[1], norm->dims[0], MAX_HEAD_DIM, MAX_EMBD);
    return FALSE;
  }
  self->n_embd = norm->dims[0];
  self->head_dim = key->dims[1];
  return TRUE;
}

const RunnelHeadTensor runnel_head_tensors[RUNNEL_HEAD_N_TENSORS] = {
#define TENSOR(name, rows, columns, member, ...) \
  { name, RUNNEL_HEAD_SIZE_##rows, RUNNEL_HEAD_SIZE_##columns, \
    G_STRUCT_OFFSET (RunnelDecisionHead, member), __VA_ARGS__ }
  TENSOR ("candidate_norm.weight", ONE, N_EMBD, candidate_norm_weight, FALSE),
  TENSOR ("candidate_norm.bias", ONE, N_EMBD, candidate_norm_bias, FALSE),
  TENSOR ("query_norm.weight", ONE, N_EMBD, query_norm_weight, FALSE),
  TENSOR ("query_norm.bias", ONE, N_EMBD, query_norm_bias, FALSE),
  TENSOR ("key.weight", HEAD_DIM, N_EMBD, key, FALSE),
  TENSOR ("query.weight", HEAD_DIM, N_EMBD, query, FALSE),
  TENSOR ("candidate_mlp.weight", HEAD_DIM, N_EMBD, candidate_mlp, FALSE),
  TENSOR ("candidate_mlp.bias", ONE, HEAD_DIM, candidate_mlp_bias, FALSE),
  TENSOR ("query_mlp.weight", HEAD_DIM, N_EMBD, query_mlp, FALSE),
  TENSOR ("scalar.weight", ONE, HEAD_DIM, scalar, FALSE),
  TENSOR ("null.weight", ONE, N_EMBD, null_weight, TRUE),
  TENSOR ("null.bias", ONE, ONE, null_bias, TRUE),
#undef TENSOR
};

guint
runnel_head_get_size (const RunnelDecisionHead *self, RunnelHeadSize size)
{
  return size == RUNNEL_HEAD_SIZE_ONE ? 1
      : size == RUNNEL_HEAD_SIZE_N_EMBD ? self->n_embd : self->head_dim;
}

/* Those of the option for none of the options, or all others. */
static gboolean
read_tensors (RunnelDecisionHead *self, const Source *source, gboolean is_null,
              GError **error)
{
  for (guint i = 0; i < RUNNEL_HEAD_N_TENSORS; i++) {
    const RunnelHeadTensor *tensor = &runnel_head_tensors[i];

    if (tensor->is_null == is_null
        && !read_tensor (source, tensor->name,
            runnel_head_get_size (self, tensor->rows),
            runnel_head_get_size (self, tensor->columns),
            runnel_head_get_values (self, tensor), error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Keys ---------------------------------------------------------------- */

static char *
dup_architecture (const RunnelGguf *gguf, GError **error)
{
  const char *text;
  gsize length;

  return runnel_gguf_get_string (gguf, "general.architecture", &text, &length,
      error) ? g_strndup (text, length) : NULL;
}

static char *
make_key (const char *architecture, const char *name)
{
  return g_strconcat (architecture, ".decision.", name, NULL);
}

static gboolean
read_form (RunnelDecisionHead *self, const RunnelGguf *gguf,
           const char *architecture, GError **error)
{
  g_autofree char *key = make_key (architecture, "type");
  g_autoptr (GEnumClass) klass
      = g_type_class_ref (RUNNEL_TYPE_DECISION_FORM);
  g_autofree char *name = NULL;
  const GEnumValue *value;
  const char *text;
  gsize length;

  if (!runnel_gguf_get_string (gguf, key, &text, &length, error))
    return FALSE;
  name = g_strndup (text, length);
  value = g_enum_get_value_by_nick (klass, name);
  if (value == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: key '%s' is '%.40s'; heads of type decision2 and isolated are "
        "known", self->path, key, name);
    return FALSE;
  }
  self->form = value->value;
  return TRUE;
}

static gboolean
check_head_dim (RunnelDecisionHead *self, const RunnelGguf *gguf,
                const char *architecture, GError **error)
{
  g_autofree char *key = make_key (architecture, "head_dim");
  guint64 head_dim;

  if (!runnel_gguf_get_uint (gguf, key, 1, MAX_HEAD_DIM, &head_dim, error))
    return FALSE;
  if (head_dim == self->head_dim)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: key '%s' is %" G_GUINT64_FORMAT ", but the tensors of the head are "
      "%u wide", self->path, key, head_dim, self->head_dim);
  return FALSE;
}

static gboolean
read_tokens (RunnelDecisionHead *self, const RunnelGguf *gguf,
             const char *architecture, GError **error)
{
  g_autofree char *key = make_key (architecture, "tokens");
  RunnelGgufArray array;

  if (!runnel_gguf_get_array (gguf, key, RUNNEL_GGUF_INT32, &array, error)
      || array.n != RUNNEL_HEAD_N_TOKENS) {
    if (error == NULL || *error == NULL)
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: key '%s' is not there, or does not hold the four ids of "
          "question, option, end of option and decide", self->path, key);
    return FALSE;
  }
  for (guint i = 0; i < RUNNEL_HEAD_N_TOKENS; i++) {
    gint32 token;

    memcpy (&token, array.data + i * sizeof token, sizeof token);
    self->tokens[i] = GINT32_FROM_LE (token);
  }
  return TRUE;
}

static gboolean
read_temperatures (RunnelDecisionHead *self, const RunnelGguf *gguf,
                   const char *architecture, GError **error)
{
  static const char *const names[RUNNEL_HEAD_N_TYPES] = {
    "temperature.choice", "temperature.yesno", "temperature.score",
  };

  for (guint i = 0; i < RUNNEL_HEAD_N_TYPES; i++) {
    g_autofree char *key = make_key (architecture, names[i]);

    if (!runnel_gguf_get_double_or (gguf, key, 1, &self->temperatures[i],
            error))
      return FALSE;
    if (!(self->temperatures[i] >= 1e-3 && self->temperatures[i] <= 1e3)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: key '%s' is not between 0.001 and 1000", self->path, key);
      return FALSE;
    }
  }
  return TRUE;
}

/* Offsets for scores of so many levels: all of them, or none. */
static gboolean
read_score_bias (RunnelDecisionHead *self, const RunnelGguf *gguf,
                 const char *architecture, guint levels, GError **error)
{
  for (guint i = 0; i < levels; i++) {
    g_autofree char *name = g_strdup_printf ("score_bias.%u.%u", levels, i);
    g_autofree char *key = make_key (architecture, name);
    double value;

    if (i == 0 && !runnel_gguf_has (gguf, key))
      return TRUE;
    if (i == 0)
      self->score_bias[levels] = g_new0 (float, levels);
    if (!runnel_gguf_get_double (gguf, key, &value, error))
      return FALSE;
    if (!isfinite (value)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: key '%s' is not finite", self->path, key);
      return FALSE;
    }
    self->score_bias[levels][i] = value;
  }
  return TRUE;
}

static gboolean
read_isolated (RunnelDecisionHead *self, const Source *source,
               const char *architecture, GError **error)
{
  g_autofree char *key = make_key (architecture, "null_option");

  return runnel_gguf_get_boolean_or (source->gguf, key, FALSE,
             &self->can_abstain, error)
      && (!self->can_abstain || read_tensors (self, source, TRUE, error))
      && read_tokens (self, source->gguf, architecture, error)
      && read_temperatures (self, source->gguf, architecture, error);
}

static gboolean
read_decision2 (RunnelDecisionHead *self, const RunnelGguf *gguf,
                const char *architecture, GError **error)
{
  for (guint levels = 2; levels <= RUNNEL_HEAD_MAX_LEVELS; levels++)
    if (!read_score_bias (self, gguf, architecture, levels, error))
      return FALSE;
  return TRUE;
}

static gboolean
read_gguf (RunnelDecisionHead *self, GError **error)
{
  g_autoptr (RunnelGguf) gguf
      = runnel_gguf_open (self->path, RUNNEL_LOAD_MODE_MAP, error);
  Source source = { .path = self->path, .gguf = gguf };
  const char *architecture;

  self->architecture = gguf ? dup_architecture (gguf, error) : NULL;
  architecture = self->architecture;
  if (architecture == NULL || !read_form (self, gguf, architecture, error))
    return FALSE;
  source.prefix = runnel_head_get_prefix (self);
  return read_sizes (self, &source, error)
      && read_tensors (self, &source, FALSE, error)
      && check_head_dim (self, gguf, architecture, error)
      && (self->form == RUNNEL_DECISION_FORM_ISOLATED ?
          read_isolated (self, &source, architecture, error) :
          read_decision2 (self, gguf, architecture, error));
}

static gboolean
read_safetensors (RunnelDecisionHead *self, GError **error)
{
  g_autoptr (RunnelSafetensors) safetensors
      = runnel_safetensors_open (self->path, RUNNEL_LOAD_MODE_MAP, error);
  Source source = { self->path, "", NULL, safetensors };

  return safetensors != NULL && read_sizes (self, &source, error)
      && read_tensors (self, &source, FALSE, error);
}

/* ---- Where it is --------------------------------------------------------- */

gboolean
runnel_head_owns_tensor (const char *name)
{
  return g_str_has_prefix (name, "decision.")
      || g_str_has_prefix (name, "decision2.");
}

static gboolean
is_in_gguf (const RunnelGguf *gguf)
{
  g_autofree char *architecture = dup_architecture (gguf, NULL);
  g_autofree char *key
      = architecture ? make_key (architecture, "type") : NULL;

  return key != NULL && runnel_gguf_has (gguf, key);
}

gboolean
runnel_decision_head_find (const RunnelCheckpoint *checkpoint,
                           RunnelDecisionHead **ret, GError **error)
{
  const RunnelGguf *gguf = runnel_checkpoint_gguf (checkpoint);
  const char *folder = runnel_checkpoint_folder (checkpoint);
  g_autofree char *beside
      = folder ? g_build_filename (folder, FILE_IN_FOLDER, NULL) : NULL;
  const char *path = NULL;

  if (gguf != NULL && is_in_gguf (gguf))
    path = runnel_checkpoint_path (checkpoint);
  else if (beside != NULL && g_file_test (beside, G_FILE_TEST_EXISTS))
    path = beside;
  *ret = path ? runnel_decision_head_open (path, error) : NULL;
  return path == NULL || *ret != NULL;
}

gboolean
runnel_decision_head_check_fit (const RunnelDecisionHead *self,
                                const RunnelHyperparameters *hp,
                                const char *name, GError **error)
{
  if (self->n_embd != hp->n_embd) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: the head reads rows of %u values, but those of %s have %u: it is "
        "the head of another model", self->path, self->n_embd, name,
        hp->n_embd);
    return FALSE;
  }
  if (self->form == RUNNEL_DECISION_FORM_DECISION2)
    return TRUE;
  for (guint i = 0; i < RUNNEL_HEAD_N_TOKENS; i++)
    if (self->tokens[i] < 0 || (guint) self->tokens[i] >= hp->n_vocab) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
          "%s: token %d of the head is not in the vocabulary of %s",
          self->path, self->tokens[i], name);
      return FALSE;
    }
  return TRUE;
}

/**
 * runnel_decision_head_open:
 * @path: (type filename): a GGUF file with a head, alone or beside a model, a
 *   decision_head.safetensors of the Decision 2.0 form, or a folder with one
 * @error: return location for a #GError
 *
 * Reads a head. It takes memory of its own; the file may go.
 *
 * Returns: (transfer full): the head, or %NULL with an error that names file
 *   and field
 *
 * Since: 0.1
 */
RunnelDecisionHead *
runnel_decision_head_open (const char *path, GError **error)
{
  g_autoptr (RunnelDecisionHead) self = NULL;
  gboolean ok;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  self = g_object_new (RUNNEL_TYPE_DECISION_HEAD, NULL);
  self->path = g_file_test (path, G_FILE_TEST_IS_DIR) ?
      g_build_filename (path, FILE_IN_FOLDER, NULL) : g_strdup (path);
  ok = g_str_has_suffix (self->path, ".safetensors") ?
      read_safetensors (self, error) : read_gguf (self, error);
  return ok ? g_steal_pointer (&self) : NULL;
}

/**
 * runnel_decision_head_get_path:
 * @self: a head
 *
 * Where it came from.
 *
 * Returns: (transfer none) (type filename): the file
 *
 * Since: 0.1
 */
const char *
runnel_decision_head_get_path (RunnelDecisionHead *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->path;
}

/**
 * runnel_decision_head_get_form:
 * @self: a head
 *
 * How it wants its prompt.
 *
 * Returns: the form
 *
 * Since: 0.1
 */
RunnelDecisionForm
runnel_decision_head_get_form (RunnelDecisionHead *self)
{
  g_return_val_if_fail (IS_MADE (self),
      RUNNEL_DECISION_FORM_DECISION2);
  return self->form;
}

/**
 * runnel_decision_head_get_n_embd:
 * @self: a head
 *
 * The width of the hidden rows that it reads: that of its model.
 *
 * Returns: values of a row
 *
 * Since: 0.1
 */
guint
runnel_decision_head_get_n_embd (RunnelDecisionHead *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);
  return self->n_embd;
}

/**
 * runnel_decision_head_get_head_dim:
 * @self: a head
 *
 * Its own width.
 *
 * Returns: values
 *
 * Since: 0.1
 */
guint
runnel_decision_head_get_head_dim (RunnelDecisionHead *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);
  return self->head_dim;
}

/**
 * runnel_decision_head_get_temperature:
 * @self: a head
 * @type: of which questions
 *
 * What its logits are divided by before the softmax.
 *
 * Returns: above 0
 *
 * Since: 0.1
 */
double
runnel_decision_head_get_temperature (RunnelDecisionHead *self,
                                      RunnelQuestionType type)
{
  g_return_val_if_fail (IS_MADE (self), 1);
  g_return_val_if_fail (type < RUNNEL_HEAD_N_TYPES, 1);
  return self->temperatures[type];
}

/**
 * runnel_decision_head_get_can_abstain:
 * @self: a head
 *
 * Whether it has an option for none of the options.
 *
 * Returns: %TRUE or %FALSE
 *
 * Since: 0.1
 */
gboolean
runnel_decision_head_get_can_abstain (RunnelDecisionHead *self)
{
  g_return_val_if_fail (IS_MADE (self), FALSE);
  return self->can_abstain;
}
