/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "weights.h"

#include "../error.h"

/* A part of a layer by its number: RunnelLayer's members are pointers in the
 * order of RunnelPart. */
static RunnelOperand **
layer_part (RunnelLayer *layer, RunnelPart part)
{
  RunnelOperand **parts[RUNNEL_N_LAYER_PARTS] = {
    [RUNNEL_PART_ATTN_NORM] = &layer->attn_norm,
    [RUNNEL_PART_Q] = &layer->q,
    [RUNNEL_PART_K] = &layer->k,
    [RUNNEL_PART_V] = &layer->v,
    [RUNNEL_PART_O] = &layer->o,
    [RUNNEL_PART_Q_BIAS] = &layer->q_bias,
    [RUNNEL_PART_K_BIAS] = &layer->k_bias,
    [RUNNEL_PART_V_BIAS] = &layer->v_bias,
    [RUNNEL_PART_Q_NORM] = &layer->q_norm,
    [RUNNEL_PART_K_NORM] = &layer->k_norm,
    [RUNNEL_PART_FFN_NORM] = &layer->ffn_norm,
    [RUNNEL_PART_GATE] = &layer->gate,
    [RUNNEL_PART_UP] = &layer->up,
    [RUNNEL_PART_DOWN] = &layer->down,
    [RUNNEL_PART_ATTN_CONV_BASE] = &layer->attn_conv_base,
    [RUNNEL_PART_ATTN_CONV] = &layer->attn_conv,
    [RUNNEL_PART_FFN_CONV_BASE] = &layer->ffn_conv_base,
    [RUNNEL_PART_FFN_CONV] = &layer->ffn_conv,
  };

  return parts[part];
}

/* Where the operand of a part goes; NULL for the rope factors, which the
 * rotation takes in. */
static RunnelOperand **
find_place (RunnelWeights *self, RunnelPart part, guint layer)
{
  switch (part) {
    case RUNNEL_PART_EMBEDDING:
      return &self->embedding;
    case RUNNEL_PART_OUTPUT_NORM:
      return &self->output_norm;
    case RUNNEL_PART_OUTPUT:
      return &self->output;
    case RUNNEL_PART_ROPE_FACTORS:
      return NULL;
    case RUNNEL_PART_FUSION:
      return &self->fusion;
    case RUNNEL_PART_CONTEXT_NORM:
      return &self->context_norm;
    case RUNNEL_PART_SELECTOR:
      return &self->selector;
    case RUNNEL_PART_PREDECESSORS:
      return &self->predecessors;
    case RUNNEL_PART_SUCCESSORS:
      return &self->successors;
    default:
      return layer_part (&self->layers[layer], part);
  }
}

typedef struct {
  const RunnelTensor *tensor;
  RunnelOperand **place;
} Item;

/* The checkpoint's tensors and their places, the largest first: the output
 * matrix's pages come and go before the rest is there, so the peak of
 * resident memory is low. */
static GArray *
list_items (RunnelWeights *self)
{
  GArray *items = g_array_new (FALSE, FALSE, sizeof (Item));

  for (guint part = RUNNEL_N_PARTS; part-- > 0;) {
    guint n = part < RUNNEL_N_LAYER_PARTS ? self->hp.n_layers : 1;

    for (guint layer = 0; layer < n; layer++) {
      g_autofree char *name = runnel_part_dup_name (part, layer);
      Item item = {
        runnel_checkpoint_tensor (self->checkpoint, name),
        find_place (self, part, layer),
      };

      if (item.tensor != NULL && item.place != NULL)
        g_array_append_val (items, item);
    }
  }
  return items;
}

/* By the bytes of tensors that can be used in the file, and whether others
 * use it. */
static gboolean
choose_placement (RunnelWeights *self, RunnelBackend *backend, GError **error)
{
  guint64 in_place = 0;
  gboolean shared = FALSE;

  for (guint i = 0; i < self->items->len; i++) {
    const RunnelTensor *tensor = g_array_index (self->items, Item, i).tensor;
    gsize bytes;

    if (!self->ops->operand_bytes (backend, tensor, FALSE, &bytes, error))
      return FALSE;
    if (bytes == 0)
      in_place += tensor->bytes;
    shared = shared || runnel_mapping_is_shared (tensor->mapping);
  }
  runnel_placement_decide (&self->placement,
      runnel_checkpoint_load_mode (self->checkpoint), shared, in_place, "");
  g_debug ("%s: weights %s", runnel_checkpoint_path (self->checkpoint),
      self->placement.reason);
  return TRUE;
}

static gboolean
make_store (RunnelWeights *self, RunnelBackend *backend, guint64 max_memory,
            GError **error)
{
  gsize total = 0;

  for (guint i = 0; i < self->items->len; i++) {
    const RunnelTensor *tensor = g_array_index (self->items, Item, i).tensor;
    gsize bytes;

    if (!self->ops->operand_bytes (backend, tensor,
            self->placement.copy, &bytes, error))
      return FALSE;
    if (!g_size_checked_add (&total, total, bytes)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
          "%s: the weights are larger than memory",
          runnel_checkpoint_path (self->checkpoint));
      return FALSE;
    }
    self->bytes += bytes > 0 ? bytes : tensor->bytes;
  }
  if (max_memory > 0 && self->bytes > max_memory) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "%s: the weights take %" G_GSIZE_FORMAT " bytes, more than max-memory %"
        G_GUINT64_FORMAT "; raise max-memory or use a smaller model",
        runnel_checkpoint_path (self->checkpoint), self->bytes, max_memory);
    return FALSE;
  }
  self->store = self->ops->store_new (backend, total, error);
  return self->store != NULL;
}

static void
init_rope (RunnelWeights *self)
{
  g_autofree char *name = runnel_part_dup_name (RUNNEL_PART_ROPE_FACTORS, 0);
  const RunnelTensor *tensor
      = runnel_checkpoint_tensor (self->checkpoint, name);
  g_autofree float *factors = NULL;   /* F32, as the checkpoint has seen */

  if (tensor != NULL)
    factors = g_memdup2 (runnel_tensor_data (tensor), tensor->bytes);
  runnel_rope_init (&self->rope, &self->hp, factors);
}

RunnelWeights *
runnel_weights_new (RunnelCheckpoint *checkpoint, RunnelBackend *backend,
                    guint64 max_memory, GError **error)
{
  g_autoptr (RunnelWeights) self = g_new0 (RunnelWeights, 1);

  g_atomic_ref_count_init (&self->references);
  self->ops = runnel_backend_ops (backend);
  self->checkpoint = runnel_checkpoint_ref (checkpoint);
  self->hp = *runnel_checkpoint_hyperparameters (checkpoint);
  self->layers = g_new0 (RunnelLayer, self->hp.n_layers);
  for (guint i = 0; i < self->hp.n_layers; i++)
    self->layers[i].window
        = self->hp.draft.sliding[i] ? self->hp.draft.window : 0;
  init_rope (self);
  self->items = list_items (self);
  if (!choose_placement (self, backend, error)
      || !make_store (self, backend, max_memory, error))
    return NULL;
  return g_steal_pointer (&self);
}

gboolean
runnel_weights_is_loaded (const RunnelWeights *self)
{
  return self->n_made == self->items->len;
}

gboolean
runnel_weights_load (RunnelWeights *self, RunnelBackend *backend,
                     RunnelProgressFunc progress, gpointer user_data,
                     GCancellable *cancellable, GError **error)
{
  gsize total = 0, done = 0;

  for (guint i = 0; i < self->items->len; i++)
    total += g_array_index (self->items, Item, i).tensor->bytes;
  for (guint i = 0; i < self->items->len; i++) {
    Item *item = &g_array_index (self->items, Item, i);

    done += item->tensor->bytes;
    if (i < self->n_made)
      continue;
    if (g_cancellable_is_cancelled (cancellable)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
          "%s: loading was cancelled",
          runnel_checkpoint_path (self->checkpoint));
      return FALSE;
    }
    *item->place = self->ops->operand_new (backend, self->store,
        item->tensor, self->placement.copy);
    self->n_made++;
    if (progress != NULL)
      progress ((double) done / total, user_data);
  }
  if (self->output == NULL)
    self->output = self->embedding;
  return TRUE;
}

RunnelWeights *
runnel_weights_ref (RunnelWeights *self)
{
  g_atomic_ref_count_inc (&self->references);
  return self;
}

void
runnel_weights_unref (RunnelWeights *self)
{
  if (!g_atomic_ref_count_dec (&self->references))
    return;
  for (guint layer = 0; layer < self->hp.n_layers; layer++)
    for (guint part = 0; part < RUNNEL_N_LAYER_PARTS; part++)
      self->ops->operand_free (*layer_part (&self->layers[layer], part));
  if (self->output != self->embedding)
    self->ops->operand_free (self->output);
  self->ops->operand_free (self->embedding);
  self->ops->operand_free (self->output_norm);
  self->ops->operand_free (self->fusion);
  self->ops->operand_free (self->context_norm);
  self->ops->operand_free (self->selector);
  self->ops->operand_free (self->predecessors);
  self->ops->operand_free (self->successors);
  if (self->store != NULL)
    self->ops->store_free (self->store);
  runnel_placement_clear (&self->placement);
  runnel_rope_clear (&self->rope);
  g_array_unref (self->items);
  g_free (self->layers);
  runnel_checkpoint_unref (self->checkpoint);
  g_free (self);
}
