/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "model-private.h"

#include "../formats/decision-head-private.h"
#include "../formats/package.h"

static void
add (GVariantBuilder *builder, const char *key, GVariant *value)
{
  g_variant_builder_add (builder, "{sv}", key, value);
}

static const char *
rope_scaling_name (RunnelRopeScaling scaling)
{
  switch (scaling) {
    case RUNNEL_ROPE_SCALING_LINEAR:
      return "linear";
    case RUNNEL_ROPE_SCALING_YARN:
      return "yarn";
    case RUNNEL_ROPE_SCALING_LLAMA3:
      return "llama3";
    case RUNNEL_ROPE_SCALING_NONE:
      break;
  }
  return "none";
}

static void
add_hyperparameters (GVariantBuilder *builder, const RunnelHyperparameters *hp)
{
  add (builder, "architecture", g_variant_new_string (hp->architecture));
  add (builder, "n_layers", g_variant_new_uint32 (hp->n_layers));
  add (builder, "n_embd", g_variant_new_uint32 (hp->n_embd));
  add (builder, "n_ff", g_variant_new_uint32 (hp->n_ff));
  add (builder, "n_heads", g_variant_new_uint32 (hp->n_heads));
  add (builder, "n_kv_heads", g_variant_new_uint32 (hp->n_kv_heads));
  add (builder, "head_dim", g_variant_new_uint32 (hp->head_dim));
  add (builder, "n_vocab", g_variant_new_uint32 (hp->n_vocab));
  add (builder, "context_length", g_variant_new_uint32 (hp->context_length));
  add (builder, "tied", g_variant_new_boolean (hp->tied));
  add (builder, "norm_epsilon", g_variant_new_double (hp->norm_epsilon));
  add (builder, "rope_base", g_variant_new_double (hp->rope_base));
  add (builder, "rope_dimensions",
      g_variant_new_uint32 (hp->rope_dimensions));
  add (builder, "rope_scaling",
      g_variant_new_string (rope_scaling_name (hp->rope_scaling)));
  if (hp->rope_scaling != RUNNEL_ROPE_SCALING_NONE)
    add (builder, "rope_factor", g_variant_new_double (hp->rope_factor));
}

static GVariant *
describe_draft (const RunnelDraftHyperparameters *draft)
{
  GVariantBuilder builder, taps;

  g_variant_builder_init (&taps, G_VARIANT_TYPE ("au"));
  for (guint i = 0; i < draft->n_taps; i++)
    g_variant_builder_add (&taps, "u", draft->taps[i]);
  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  add (&builder, "block_size", g_variant_new_uint32 (draft->block_size));
  add (&builder, "mask_token", g_variant_new_uint32 (draft->mask_token));
  add (&builder, "n_target_layers",
      g_variant_new_uint32 (draft->n_target_layers));
  add (&builder, "taps", g_variant_builder_end (&taps));
  add (&builder, "conv_taps", g_variant_new_uint32 (draft->conv_taps));
  add (&builder, "selector_rank", g_variant_new_uint32 (draft->selector_rank));
  add (&builder, "selector_top_k",
      g_variant_new_uint32 (draft->selector_top_k));
  add (&builder, "window", g_variant_new_uint32 (draft->window));
  return g_variant_builder_end (&builder);
}

static GVariant *
describe_tensor (const RunnelTensor *tensor)
{
  GVariantBuilder dims;

  g_variant_builder_init (&dims, G_VARIANT_TYPE ("at"));
  for (guint i = 0; i < tensor->n_dims; i++)
    g_variant_builder_add (&dims, "t", tensor->dims[i]);
  return g_variant_new ("(ssatt)", tensor->name,
      runnel_tensor_type_info (tensor->type)->name, &dims,
      (guint64) tensor->bytes);
}

static void
add_tensors (GVariantBuilder *builder, const RunnelCheckpoint *checkpoint)
{
  GVariantBuilder tensors;
  guint64 bytes = 0, n_rounded = 0;
  double max_error = 0;

  g_variant_builder_init (&tensors, G_VARIANT_TYPE ("a(ssatt)"));
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++) {
    const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (checkpoint, i);
    const RunnelMnnRounding *rounding
        = runnel_checkpoint_nth_rounding (checkpoint, i);

    g_variant_builder_add_value (&tensors, describe_tensor (tensor));
    bytes += tensor->bytes;
    if (rounding != NULL) {
      n_rounded += rounding->n_rounded;
      max_error = MAX (max_error, rounding->max_error);
    }
  }
  add (builder, "tensor_bytes", g_variant_new_uint64 (bytes));
  if (n_rounded > 0) {
    add (builder, "n_rounded", g_variant_new_uint64 (n_rounded));
    add (builder, "rounding", g_variant_new_double (max_error));
  }
  add (builder, "tensors", g_variant_builder_end (&tensors));
}

static char *
dup_format (const RunnelCheckpoint *checkpoint)
{
  const RunnelGguf *gguf = runnel_checkpoint_gguf (checkpoint);

  if (gguf == NULL)
    return g_strdup (runnel_checkpoint_mnn (checkpoint) ? "MNN"
        : "safetensors");
  return runnel_package_is (gguf) ? g_strdup ("Runnel package")
      : g_strdup_printf ("GGUF %u", runnel_gguf_version (gguf));
}

/* NULL where there is none; one that cannot be read says why. */
static GVariant *
describe_head (RunnelCheckpoint *checkpoint)
{
  g_autoptr (RunnelDecisionHead) head = NULL;
  g_autoptr (GEnumClass) forms = NULL;
  g_autoptr (GError) error = NULL;
  GVariantBuilder builder;
  gboolean good = runnel_decision_head_find (checkpoint, &head, &error);

  if (good && head == NULL)
    return NULL;
  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  if (!good) {
    add (&builder, "error", g_variant_new_take_string (
            g_utf8_make_valid (error->message, -1)));
    return g_variant_builder_end (&builder);
  }
  forms = g_type_class_ref (RUNNEL_TYPE_DECISION_FORM);
  add (&builder, "form", g_variant_new_string (
          g_enum_get_value (forms, head->form)->value_nick));
  add (&builder, "head_dim", g_variant_new_uint32 (head->head_dim));
  add (&builder, "can_abstain", g_variant_new_boolean (head->can_abstain));
  return g_variant_builder_end (&builder);
}

/**
 * runnel_model_describe:
 * @self: a model
 *
 * All that the file says of the model, apart from the vocabulary: a dictionary
 * of name (s), path (s), format (s), content_id (s), n_parameters (t),
 * tensor_bytes (t), the hyperparameters architecture (s), n_layers, n_embd,
 * n_ff, n_heads, n_kv_heads, head_dim, n_vocab, context_length,
 * rope_dimensions (u each), tied (b), norm_epsilon, rope_base, rope_factor (d
 * each; the last one only with scaling), rope_scaling (s: none, linear, yarn,
 * llama3), and tensors (a(ssatt): name by GGUF's convention, type, dimensions
 * with the length of a row first, bytes). Where scales of an MNN package do
 * not fit the half floats they are kept in, n_rounded (t) says how many, and
 * rounding (d) the largest relative error of one. Of a package also package
 * (a{sv}): sha256, license, source_format, generation_config (s each; those
 * that it has), source_files (a(ss): name and SHA-256), and record (a(ssbds):
 * tensor, type in the source, whether nothing was lost, relative error,
 * SHA-256). Of a DFlash draft also draft (a{sv}): block_size (u: slots, the
 * anchor's among them), mask_token (u), n_target_layers (u: 0 where the file
 * does not say), taps (au: layers of the target, from 0), conv_taps,
 * selector_rank, selector_top_k and window (u: 0 where there is none). Of a
 * model with a decision head also decision_head (a{sv}): form (s: decision2,
 * isolated), head_dim (u) and can_abstain (b), or error (s) where it cannot be
 * read. More may come.
 *
 * Returns: (transfer full): a dictionary of the type a{sv}
 *
 * Since: 0.1
 */
GVariant *
runnel_model_describe (RunnelModel *self)
{
  RunnelCheckpoint *checkpoint;
  RunnelGguf *gguf;
  GVariantBuilder builder;
  GVariant *head;
  g_autofree char *format = NULL;

  g_return_val_if_fail (runnel_model_is_made (self), NULL);

  checkpoint = runnel_model_get_checkpoint (self);
  gguf = runnel_checkpoint_gguf (checkpoint);
  format = dup_format (checkpoint);
  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  add (&builder, "name", g_variant_new_take_string (
          g_utf8_make_valid (runnel_model_get_name (self), -1)));
  add (&builder, "path", g_variant_new_take_string (
          g_filename_display_name (runnel_model_get_path (self))));
  add (&builder, "format", g_variant_new_string (format));
  add (&builder, "content_id",
      g_variant_new_string (runnel_model_get_content_id (self)));
  add (&builder, "n_parameters",
      g_variant_new_uint64 (runnel_model_get_n_parameters (self)));
  add_hyperparameters (&builder,
      runnel_checkpoint_hyperparameters (checkpoint));
  if (runnel_checkpoint_hyperparameters (checkpoint)->draft.block_size > 0)
    add (&builder, "draft", describe_draft (
            &runnel_checkpoint_hyperparameters (checkpoint)->draft));
  head = describe_head (checkpoint);
  if (head != NULL)
    add (&builder, "decision_head", head);
  add_tensors (&builder, checkpoint);
  if (gguf != NULL && runnel_package_is (gguf))
    add (&builder, "package", runnel_package_describe (gguf));
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}
