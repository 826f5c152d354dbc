/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tensors of a checkpoint against the description of its architecture. A
 * tensor that is not in it would change the result without being computed, so
 * it is refused by name.
 */
#include "checkpoint-private.h"

#include <math.h>

#include "../error.h"
#include "decision-head-private.h"

/* As the file calls it; @layer matters only to what belongs to one. */
static char *
name_in_file (RunnelCheckpoint *self, RunnelPart part, guint layer)
{
  if (self->safetensors == NULL)
    return runnel_part_dup_name (part, layer);
  return self->hyperparameters.draft.block_size > 0 ?
      runnel_part_dup_hf_draft_name (part, layer) :
      runnel_part_dup_hf_name (part, layer);
}

/* @name: of the file, for the message. */
static gboolean
check_shape (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const char *name, RunnelPart part, GError **error)
{
  guint n_axes = runnel_part_is_vector (part) ? 1 : 2;
  guint64 dims[2];

  runnel_part_get_dims (part, &self->hyperparameters, dims);
  if (tensor->dims[0] == dims[0] && tensor->dims[1] == dims[1] &&
      tensor->dims[2] == 1 && tensor->dims[3] == 1) {
    if (tensor->n_dims == n_axes)
      return TRUE;
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: tensor '%s' has %u axes; %u are expected", self->path, name,
        tensor->n_dims, n_axes);
    return FALSE;
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: tensor '%s' has %" G_GUINT64_FORMAT " rows of %" G_GUINT64_FORMAT
      "; the model's sizes ask for %" G_GUINT64_FORMAT " of %"
      G_GUINT64_FORMAT "%s", self->path, name,
      tensor->dims[1] * tensor->dims[2] * tensor->dims[3], tensor->dims[0],
      dims[1], dims[0],
      part == RUNNEL_PART_EMBEDDING || part == RUNNEL_PART_OUTPUT ?
      " (rows and tokens of the vocabulary must agree)" : "");
  return FALSE;
}

/* Vectors are used as floats. */
static gboolean
check_vector (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const char *name, RunnelPart part, GError **error)
{
  gboolean divides = part == RUNNEL_PART_ROPE_FACTORS;

  if (runnel_tensor_type_info (tensor->type)->block_elements != 1 ||
      (divides && tensor->type != RUNNEL_TENSOR_F32)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' is of type %s; %s is expected", self->path, name,
        runnel_tensor_type_info (tensor->type)->name,
        divides ? "F32" : "a float type");
    return FALSE;
  }
  if (!divides)
    return TRUE;
  for (guint64 i = 0; i < tensor->dims[0]; i++) {
    float factor;

    runnel_blocks_dequantize (RUNNEL_TENSOR_F32) (&factor,
        runnel_tensor_data (tensor) + 4 * i, 1);
    if (isfinite (factor) && factor >= (float) RUNNEL_MIN_ROPE_FACTOR)
      continue;
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s': factor %" G_GUINT64_FORMAT " is %g; it must be at "
        "least %g", self->path, name, i, factor, RUNNEL_MIN_ROPE_FACTOR);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_tensor (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const RunnelArchitecture *architecture, GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;
  RunnelPart part = 0;
  guint layer = 0;
  gboolean known = runnel_part_find (tensor->name, &part, &layer);
  g_autofree char *name = known ? name_in_file (self, part, layer) :
      g_strdup (tensor->name);

  if (runnel_head_owns_tensor (tensor->name))
    return TRUE;
  if (!known || !runnel_architecture_allows (architecture, hp, part)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' is not supported in architecture '%s'", self->path,
        name, architecture->name);
    return FALSE;
  }
  if (layer >= hp->n_layers) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: tensor '%s' belongs to no layer (there are %u)", self->path,
        name, hp->n_layers);
    return FALSE;
  }
  return check_shape (self, tensor, name, part, error) &&
      (!runnel_part_is_vector (part) ||
          check_vector (self, tensor, name, part, error));
}

static gboolean
check_present (RunnelCheckpoint *self, RunnelPart part, guint layer,
    GError **error)
{
  g_autofree char *gguf_name = runnel_part_dup_name (part, layer);
  g_autofree char *name = NULL;
  const char *reason = NULL;

  if (runnel_checkpoint_tensor (self, gguf_name) != NULL)
    return TRUE;
  name = name_in_file (self, part, layer);
  if (self->safetensors != NULL)
    reason = runnel_safetensors_unusable (self->safetensors, name);
  if (reason != NULL)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' %s", self->path, name, reason);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s' is missing", self->path, name);
  return FALSE;
}

gboolean
runnel_checkpoint_check_tensors (RunnelCheckpoint *self,
    const RunnelArchitecture *architecture, GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;

  for (guint i = 0; i < self->tensors->len; i++)
    if (!check_tensor (self, &g_array_index (self->tensors, RunnelTensor, i),
            architecture, error))
      return FALSE;
  for (guint part = 0; part < RUNNEL_N_PARTS; part++) {
    guint n = part < RUNNEL_N_LAYER_PARTS ? hp->n_layers : 1;

    if (!runnel_architecture_needs (architecture, hp, part))
      continue;
    for (guint layer = 0; layer < n; layer++)
      if (!check_present (self, part, layer, error))
        return FALSE;
  }
  return TRUE;
}
