/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "model-private.h"

#include "../error.h"
#include "../formats/package.h"
#include "../text/tokenizer-private.h"

/* How often a waiting loader looks whether it is cancelled, in µs. */
#define CANCEL_INTERVAL (20 * G_TIME_SPAN_MILLISECOND)

struct _RunnelModel {
  GObject parent_instance;
  RunnelCheckpoint *checkpoint;
  char *name;
  guint64 n_parameters;

  GMutex mutex;              /* guards what is made later, below */
  RunnelTokenizer *tokenizer;
  RunnelChatTemplate *chat_template;

  GMutex verify_mutex;       /* held while it is verified */
  gboolean verified;         /* under verify_mutex */

  GMutex weights_mutex;      /* guards what is below */
  GCond weights_made;        /* or given up */
  gboolean making_weights;   /* somebody does, without the mutex */
  GHashTable *weights;       /* name of a backend → RunnelWeights, some of
                                them perhaps not loaded to the end */
};

G_DEFINE_FINAL_TYPE (RunnelModel, runnel_model, G_TYPE_OBJECT)

gboolean
runnel_model_is_made (RunnelModel *self)
{
  return RUNNEL_IS_MODEL (self) && self->checkpoint != NULL;
}

static void
runnel_model_finalize (GObject *object)
{
  RunnelModel *self = RUNNEL_MODEL (object);

  g_hash_table_unref (self->weights);
  g_clear_object (&self->chat_template);
  g_clear_object (&self->tokenizer);
  g_clear_pointer (&self->checkpoint, runnel_checkpoint_unref);
  g_free (self->name);
  g_mutex_clear (&self->mutex);
  g_mutex_clear (&self->verify_mutex);
  g_mutex_clear (&self->weights_mutex);
  g_cond_clear (&self->weights_made);
  G_OBJECT_CLASS (runnel_model_parent_class)->finalize (object);
}

static void
runnel_model_class_init (RunnelModelClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_model_finalize;
}

static void
runnel_model_init (RunnelModel *self)
{
  g_mutex_init (&self->mutex);
  g_mutex_init (&self->verify_mutex);
  g_mutex_init (&self->weights_mutex);
  g_cond_init (&self->weights_made);
  self->weights = g_hash_table_new_full (g_str_hash, g_str_equal, NULL,
      (GDestroyNotify) runnel_weights_unref);
}

static char *
dup_name (RunnelCheckpoint *checkpoint)
{
  RunnelGguf *gguf = runnel_checkpoint_gguf (checkpoint);
  const RunnelMnnPackage *mnn = runnel_checkpoint_mnn (checkpoint);
  char *name = NULL;

  if (gguf != NULL)
    runnel_gguf_dup_string_or_null (gguf, "general.name", &name, NULL);
  if (name == NULL)
    name = g_path_get_basename (mnn != NULL ? runnel_mnn_package_folder (mnn)
        : runnel_checkpoint_path (checkpoint));
  return name;
}

static guint64
count_parameters (RunnelCheckpoint *checkpoint)
{
  guint64 n = 0;

  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++) {
    const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (checkpoint, i);

    n += tensor->dims[0] * tensor->dims[1] * tensor->dims[2]
        * tensor->dims[3];
  }
  return n;
}

/**
 * runnel_model_open:
 * @path: (type filename): a GGUF file, a Hugging Face folder or a .safetensors
 *   file in one, or the folder of an MNN package
 * @mode: how it comes into memory
 * @error: return location for a #GError
 *
 * Opens a model: reads and checks its header, hyperparameters and the shape of
 * every tensor. Takes milliseconds; weights are not touched.
 *
 * Returns: (transfer full): the model, or %NULL with an error that names the
 *   file and what is wrong with it
 *
 * Since: 0.1
 */
RunnelModel *
runnel_model_open (const char *path, RunnelLoadMode mode, GError **error)
{
  g_autoptr (RunnelCheckpoint) checkpoint = NULL;
  RunnelModel *self;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  checkpoint = runnel_checkpoint_open (path, mode, error);
  if (checkpoint == NULL)
    return NULL;
  self = g_object_new (RUNNEL_TYPE_MODEL, NULL);
  self->name = dup_name (checkpoint);
  self->n_parameters = count_parameters (checkpoint);
  self->checkpoint = g_steal_pointer (&checkpoint);
  return self;
}

/**
 * runnel_model_get_path:
 * @self: a model
 *
 * Where it was opened.
 *
 * Returns: (type filename): the path
 *
 * Since: 0.1
 */
const char *
runnel_model_get_path (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  return runnel_checkpoint_path (self->checkpoint);
}

/**
 * runnel_model_get_name:
 * @self: a model
 *
 * What the file calls it, or else the file's name.
 *
 * Returns: a name for people
 *
 * Since: 0.1
 */
const char *
runnel_model_get_name (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  return self->name;
}

/**
 * runnel_model_get_content_id:
 * @self: a model
 *
 * A hash of the file's header and of the first and last 4 KiB of every tensor.
 * Saved states carry it, and fit a model that has the same.
 *
 * Returns: hexadecimal digits
 *
 * Since: 0.1
 */
const char *
runnel_model_get_content_id (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  return runnel_checkpoint_content_id (self->checkpoint);
}

/**
 * runnel_model_get_architecture:
 * @self: a model
 *
 * The family of its architecture.
 *
 * Returns: a name such as "llama" or "qwen3"
 *
 * Since: 0.1
 */
const char *
runnel_model_get_architecture (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  return runnel_checkpoint_hyperparameters (self->checkpoint)->architecture;
}

/**
 * runnel_model_get_n_vocab:
 * @self: a model
 *
 * How many tokens it has logits for.
 *
 * Returns: rows of the output matrix
 *
 * Since: 0.1
 */
guint
runnel_model_get_n_vocab (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), 0);
  return runnel_checkpoint_hyperparameters (self->checkpoint)->n_vocab;
}

/**
 * runnel_model_get_n_layers:
 * @self: a model
 *
 * Its depth.
 *
 * Returns: the number of layers
 *
 * Since: 0.1
 */
guint
runnel_model_get_n_layers (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), 0);
  return runnel_checkpoint_hyperparameters (self->checkpoint)->n_layers;
}

/**
 * runnel_model_get_n_embd:
 * @self: a model
 *
 * The width of its residual stream.
 *
 * Returns: floats in a hidden row
 *
 * Since: 0.1
 */
guint
runnel_model_get_n_embd (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), 0);
  return runnel_checkpoint_hyperparameters (self->checkpoint)->n_embd;
}

/**
 * runnel_model_get_context_length:
 * @self: a model
 *
 * The length it was trained for: the most a sequence may hold.
 *
 * Returns: tokens
 *
 * Since: 0.1
 */
guint
runnel_model_get_context_length (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), 0);
  return runnel_checkpoint_hyperparameters (self->checkpoint)->context_length;
}

/**
 * runnel_model_get_n_parameters:
 * @self: a model
 *
 * The number of weights in the file.
 *
 * Returns: elements of all tensors
 *
 * Since: 0.1
 */
guint64
runnel_model_get_n_parameters (RunnelModel *self)
{
  g_return_val_if_fail (runnel_model_is_made (self), 0);
  return self->n_parameters;
}

/**
 * runnel_model_verify:
 * @self: a model
 * @progress: (nullable) (scope call): told how far it is
 * @user_data: for @progress
 * @cancellable: (nullable): stops it
 * @error: return location for a #GError
 *
 * Compares all of what was opened with the digests that a package holds, once:
 * what has been found good is not read again.
 *
 * Returns: %TRUE when all agree; else %FALSE with an error like that of
 *   runnel_verify_file (); a model that is no package has no digests and
 *   gives %RUNNEL_ERROR_UNSUPPORTED
 *
 * Since: 0.1
 */
gboolean
runnel_model_verify (RunnelModel *self, RunnelProgressFunc progress,
                     gpointer user_data, GCancellable *cancellable,
                     GError **error)
{
  g_autoptr (GMutexLocker) locker = NULL;
  RunnelGguf *gguf;

  g_return_val_if_fail (runnel_model_is_made (self), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  locker = g_mutex_locker_new (&self->verify_mutex);
  gguf = runnel_checkpoint_gguf (self->checkpoint);
  if (gguf != NULL) {
    self->verified = self->verified || runnel_package_verify (gguf, FALSE,
        progress, user_data, cancellable, error);
    return self->verified;
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: has no digests to verify; packages have (see 'runnel convert')",
      runnel_model_get_path (self));
  return FALSE;
}

static gboolean
ensure_tokenizer_unlocked (RunnelModel *self, GError **error)
{
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  guint n_vocab = runnel_model_get_n_vocab (self);

  if (self->tokenizer != NULL)
    return TRUE;
  tokenizer = runnel_tokenizer_new_from_checkpoint (self->checkpoint, error);
  if (tokenizer == NULL)
    return FALSE;
  if (runnel_tokenizer_get_n_tokens (tokenizer) > n_vocab) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: the tokenizer has %u tokens, but the embedding only %u rows",
        runnel_model_get_path (self),
        runnel_tokenizer_get_n_tokens (tokenizer), n_vocab);
    return FALSE;
  }
  self->tokenizer = g_steal_pointer (&tokenizer);
  return TRUE;
}

/**
 * runnel_model_get_tokenizer:
 * @self: a model
 * @error: return location for a #GError
 *
 * Its tokenizer, made on the first call (tens of milliseconds), then shared.
 *
 * Returns: (transfer none): the tokenizer, or %NULL with an error
 *
 * Since: 0.1
 */
RunnelTokenizer *
runnel_model_get_tokenizer (RunnelModel *self, GError **error)
{
  g_autoptr (GMutexLocker) locker = NULL;

  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  locker = g_mutex_locker_new (&self->mutex);
  return ensure_tokenizer_unlocked (self, error) ? self->tokenizer : NULL;
}

/**
 * runnel_model_get_chat_template:
 * @self: a model
 * @error: return location for a #GError
 *
 * The model's own chat template, parsed on the first call, then shared.
 *
 * Returns: (transfer none): the template, or %NULL with an error when the
 *   model has none or it cannot be parsed
 *
 * Since: 0.1
 */
RunnelChatTemplate *
runnel_model_get_chat_template (RunnelModel *self, GError **error)
{
  g_autoptr (GMutexLocker) locker = NULL;
  const char *source;

  g_return_val_if_fail (runnel_model_is_made (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  locker = g_mutex_locker_new (&self->mutex);
  if (self->chat_template != NULL)
    return self->chat_template;
  if (!ensure_tokenizer_unlocked (self, error))
    return NULL;
  source = runnel_tokenizer_get_chat_template (self->tokenizer);
  if (source == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE,
        "%s: the model has no chat template; name one by 'template'",
        runnel_model_get_path (self));
    return NULL;
  }
  self->chat_template = runnel_chat_template_new (source, -1,
      runnel_model_get_path (self), error);
  return self->chat_template;
}

RunnelCheckpoint *
runnel_model_get_checkpoint (RunnelModel *self)
{
  return self->checkpoint;
}

/* Waits while somebody else makes weights; FALSE when cancelled. */
static gboolean
wait_for_weights_unlocked (RunnelModel *self, GCancellable *cancellable,
                           GError **error)
{
  while (self->making_weights) {
    if (g_cancellable_is_cancelled (cancellable)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
          "%s: loading was cancelled", runnel_model_get_path (self));
      return FALSE;
    }
    g_cond_wait_until (&self->weights_made, &self->weights_mutex,
        g_get_monotonic_time () + CANCEL_INTERVAL);
  }
  return TRUE;
}

RunnelWeights *
runnel_model_ref_weights (RunnelModel *self, RunnelBackend *backend,
                          guint64 max_memory, RunnelProgressFunc progress,
                          gpointer user_data, GCancellable *cancellable,
                          GError **error)
{
  g_autoptr (GMutexLocker) locker
      = g_mutex_locker_new (&self->weights_mutex);
  const char *name = runnel_backend_get_name (backend);
  RunnelWeights *weights;
  gboolean loaded;

  if (!wait_for_weights_unlocked (self, cancellable, error))
    return NULL;
  weights = g_hash_table_lookup (self->weights, name);
  if (weights == NULL) {
    weights = runnel_weights_new (self->checkpoint, backend, max_memory, error);
    if (weights == NULL)
      return NULL;
    g_hash_table_insert (self->weights, (gpointer) name, weights);
  }
  if (runnel_weights_is_loaded (weights))
    return runnel_weights_ref (weights);

  self->making_weights = TRUE;
  g_mutex_unlock (&self->weights_mutex);
  loaded = runnel_weights_load (weights, backend, progress, user_data,
      cancellable, error);
  g_mutex_lock (&self->weights_mutex);
  self->making_weights = FALSE;
  g_cond_broadcast (&self->weights_made);
  return loaded ? runnel_weights_ref (weights) : NULL;
}
