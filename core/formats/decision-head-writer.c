/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Writes decision heads, into a file of their own or into a model's: the keys
 * and tensors that decision-head.c reads.
 */
#include "decision-head-private.h"

/* Of a head that was in no GGUF file: nothing but the prefix of its keys. */
#define NO_ARCHITECTURE "decision"

static void
add_double (RunnelGgufWriter *writer, const char *architecture,
            const char *name, double value)
{
  g_autofree char *key
      = g_strconcat (architecture, ".decision.", name, NULL);

  if (value == (float) value)
    runnel_gguf_writer_add_float32 (writer, key, value);
  else
    runnel_gguf_writer_add_float64 (writer, key, value);
}

static void
write_isolated_keys (const RunnelDecisionHead *self, RunnelGgufWriter *writer,
                     const char *architecture)
{
  static const char *const temperatures[RUNNEL_HEAD_N_TYPES] = {
    "temperature.choice", "temperature.yesno", "temperature.score",
  };
  g_autofree char *tokens
      = g_strconcat (architecture, ".decision.tokens", NULL);
  g_autofree char *null_option
      = g_strconcat (architecture, ".decision.null_option", NULL);

  runnel_gguf_writer_add_int32s (writer, tokens, self->tokens,
      RUNNEL_HEAD_N_TOKENS);
  runnel_gguf_writer_add_boolean (writer, null_option, self->can_abstain);
  for (guint i = 0; i < RUNNEL_HEAD_N_TYPES; i++)
    add_double (writer, architecture, temperatures[i], self->temperatures[i]);
}

static void
write_decision2_keys (const RunnelDecisionHead *self, RunnelGgufWriter *writer,
                      const char *architecture)
{
  for (guint levels = 2; levels <= RUNNEL_HEAD_MAX_LEVELS; levels++)
    for (guint i = 0; self->score_bias[levels] != NULL && i < levels; i++) {
      g_autofree char *name = g_strdup_printf ("score_bias.%u.%u", levels, i);

      add_double (writer, architecture, name, self->score_bias[levels][i]);
    }
}

void
runnel_decision_head_write_keys (const RunnelDecisionHead *self,
                                 RunnelGgufWriter *writer,
                                 const char *architecture)
{
  g_autoptr (GEnumClass) forms
      = g_type_class_ref (RUNNEL_TYPE_DECISION_FORM);
  g_autofree char *type = g_strconcat (architecture, ".decision.type", NULL);
  g_autofree char *head_dim
      = g_strconcat (architecture, ".decision.head_dim", NULL);

  runnel_gguf_writer_add_string (writer, type,
      g_enum_get_value (forms, self->form)->value_nick, -1);
  runnel_gguf_writer_add_uint32 (writer, head_dim, self->head_dim);
  if (self->form == RUNNEL_DECISION_FORM_ISOLATED)
    write_isolated_keys (self, writer, architecture);
  else
    write_decision2_keys (self, writer, architecture);
}

static void
clear_tensor (gpointer data)
{
  RunnelTensor *tensor = data;

  g_free ((char *) tensor->name);
  runnel_mapping_unref (tensor->mapping);
}

GArray *
runnel_decision_head_make_tensors (RunnelDecisionHead *self)
{
  GArray *tensors = g_array_new (FALSE, FALSE, sizeof (RunnelTensor));

  g_array_set_clear_func (tensors, clear_tensor);
  for (guint i = 0; i < RUNNEL_HEAD_N_TENSORS; i++) {
    const RunnelHeadTensor *part = &runnel_head_tensors[i];
    guint64 rows = runnel_head_get_size (self, part->rows);
    guint64 columns = runnel_head_get_size (self, part->columns);
    const float *values = *runnel_head_get_values (self, part);
    RunnelTensor tensor = {
      .type = RUNNEL_TENSOR_F32,
      .n_dims = part->rows == RUNNEL_HEAD_SIZE_ONE
          && part->columns != RUNNEL_HEAD_SIZE_HEAD_DIM ? 1 : 2,
      .dims = { columns, rows, 1, 1 },
      .bytes = rows * columns * sizeof (float),
    };
    g_autoptr (GBytes) bytes = NULL;

    if (values == NULL)
      continue;
    bytes = g_bytes_new (values, tensor.bytes);
    tensor.name = g_strconcat (runnel_head_get_prefix (self), part->name,
        NULL);
    tensor.mapping = runnel_mapping_new_from_bytes (bytes, self->path);
    g_array_append_val (tensors, tensor);
  }
  return tensors;
}

/**
 * runnel_decision_head_save:
 * @self: a head
 * @path: (type filename): where it goes; a file that is there is replaced
 * @error: return location for a #GError
 *
 * Writes a GGUF file that holds the head and nothing else, with its tensors as
 * F32, to be kept beside a model.
 *
 * Returns: %TRUE, or %FALSE with an error of writing; then @path is as it was
 *
 * Since: 0.1
 */
gboolean
runnel_decision_head_save (RunnelDecisionHead *self, const char *path,
                           GError **error)
{
  g_autoptr (RunnelGgufWriter) writer = NULL;
  g_autoptr (GArray) tensors = NULL;
  const char *architecture;

  g_return_val_if_fail (RUNNEL_IS_DECISION_HEAD (self), FALSE);
  g_return_val_if_fail (self->path != NULL && path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  writer = runnel_gguf_writer_new ();
  architecture = self->architecture ? self->architecture : NO_ARCHITECTURE;
  runnel_gguf_writer_add_string (writer, "general.architecture", architecture,
      -1);
  runnel_decision_head_write_keys (self, writer, architecture);
  tensors = runnel_decision_head_make_tensors (self);
  for (guint i = 0; i < tensors->len; i++) {
    const RunnelTensor *tensor = &g_array_index (tensors, RunnelTensor, i);
    g_autoptr (GBytes) data
        = g_bytes_new (runnel_tensor_data (tensor), tensor->bytes);

    runnel_gguf_writer_add_tensor (writer, tensor->name, tensor->type,
        tensor->dims, tensor->n_dims, data);
  }
  return runnel_gguf_writer_save (writer, path, error);
}
