/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The engine: who asks for what, and the memory it takes. Batches are run in
 * engine-batch.c.
 */
#include "engine-private.h"

#include "../error.h"
#include "engine-batch.h"
#include "forward.h"
#include "model-private.h"

#define DEFAULT_CACHE_BUDGET (G_GUINT64_CONSTANT (64) << 20)

struct _RunnelEngine {
  GObject parent_instance;
  RunnelModel *model;
  RunnelBackend *backend;
  RunnelKvType kv_type;
  RunnelShape shape;
  RunnelWeights *weights;
  RunnelPagePool *pool;
  RunnelPrefixCache *cache;
  RunnelBatcher *batcher;
  RunnelProbe *probe;        /* borrowed; used in a batch */
  GMemoryMonitor *monitor;   /* guarded by registry_mutex, as is the handler */
  gulong monitor_handler;
};

G_DEFINE_FINAL_TYPE (RunnelEngine, runnel_engine, G_TYPE_OBJECT)

gboolean
runnel_engine_is_made (RunnelEngine *self)
{
  return RUNNEL_IS_ENGINE (self) && self->weights != NULL;
}

/* Engines in use, by model, backend and KV type. An engine is made outside
 * the lock, so two callers may race to make one: the first stays. */
static GMutex registry_mutex; /* guards the list */
static GList *registry;       /* GWeakRef */

static void
runnel_engine_finalize (GObject *object)
{
  RunnelEngine *self = RUNNEL_ENGINE (object);

  g_clear_object (&self->monitor);   /* the handler went with dispose */
  runnel_batcher_free (self->batcher);
  runnel_prefix_cache_free (self->cache);
  if (self->pool != NULL)
    runnel_page_pool_unref (self->pool);
  g_clear_pointer (&self->weights, runnel_weights_unref);
  g_clear_object (&self->backend);
  g_clear_object (&self->model);
  G_OBJECT_CLASS (runnel_engine_parent_class)->finalize (object);
}

static void
runnel_engine_class_init (RunnelEngineClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_engine_finalize;
}

static void
runnel_engine_init (RunnelEngine *self)
{
}

static RunnelEngine *
find_unlocked (RunnelModel *model, RunnelBackend *backend,
               RunnelKvType kv_type)
{
  for (GList *l = registry, *next; l != NULL; l = next) {
    RunnelEngine *engine = g_weak_ref_get (l->data);

    next = l->next;
    if (engine == NULL) {
      g_weak_ref_clear (l->data);
      g_free (l->data);
      registry = g_list_delete_link (registry, l);
      continue;
    }
    if (engine->model == model && engine->backend == backend
        && engine->kv_type == kv_type)
      return engine;
    g_object_unref (engine);
  }
  return NULL;
}

static RunnelEngine *
find (RunnelModel *model, RunnelBackend *backend, RunnelKvType kv_type)
{
  RunnelEngine *engine;

  g_mutex_lock (&registry_mutex);
  engine = find_unlocked (model, backend, kv_type);
  g_mutex_unlock (&registry_mutex);
  return engine;
}

/* Registers the engine, or gives the one that somebody else has registered. */
static RunnelEngine *
publish (RunnelEngine *self)
{
  RunnelEngine *other;
  GWeakRef *entry;

  g_mutex_lock (&registry_mutex);
  other = find_unlocked (self->model, self->backend, self->kv_type);
  if (other == NULL) {
    entry = g_new0 (GWeakRef, 1);
    g_weak_ref_init (entry, self);
    registry = g_list_prepend (registry, entry);
  }
  g_mutex_unlock (&registry_mutex);
  if (other == NULL)
    return self;
  g_object_unref (self);
  return other;
}

static void
count_scratch (RunnelEngine *self)
{
  runnel_page_pool_set_other (self->pool, self->weights->bytes
      + runnel_batcher_get_scratch_bytes (self->batcher, 0));
}

/* Without a batcher when memory is short. */
static RunnelEngine *
make (RunnelModel *model, RunnelBackend *backend, RunnelKvType kv_type,
      RunnelWeights *weights)
{
  const RunnelOps *ops = runnel_backend_ops (backend);
  RunnelEngine *self = g_object_new (RUNNEL_TYPE_ENGINE, NULL);

  self->model = g_object_ref (model);
  self->backend = g_object_ref (backend);
  self->kv_type = kv_type;
  self->weights = weights;
  self->shape = runnel_forward_shape (&weights->hp, kv_type);
  self->pool = runnel_page_pool_new (ops->page_rows (backend),
      ops->page_bytes (backend, &self->shape));
  if (self->pool == NULL)
    return self;
  if (weights->placement.huge_pages)
    runnel_page_pool_use_huge_pages (self->pool);
  self->cache = runnel_prefix_cache_new (self->pool, self->shape.n_embd,
      DEFAULT_CACHE_BUDGET);
  self->batcher = runnel_batcher_new (self);
  if (self->batcher != NULL)
    count_scratch (self);
  return self;
}

static gboolean
check_whole (RunnelModel *model, GError **error)
{
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (model));

  if (hp->draft.block_size == 0)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: is a draft, which guesses for another model and says nothing alone; "
      "give it to that model as its draft", runnel_model_get_path (model));
  return FALSE;
}

/**
 * runnel_engine_get:
 * @model: what to run
 * @backend: who computes
 * @kv_type: type of keys and values
 * @progress: (nullable) (scope call) (closure user_data): told how far
 *   loading has come
 * @user_data: for @progress
 * @cancellable: (nullable): stops loading
 * @error: return location for a #GError
 *
 * The engine of this model, backend and KV type: an existing one at once, or
 * one made now, which reads and packs the weights and takes time.
 *
 * Returns: (transfer full): the engine, or %NULL with
 *   %RUNNEL_ERROR_UNSUPPORTED for a tensor type without a kernel,
 *   %RUNNEL_ERROR_NOT_ENOUGH_MEMORY, %RUNNEL_ERROR_LIMIT or
 *   %RUNNEL_ERROR_CANCELLED
 *
 * Since: 0.1
 */
RunnelEngine *
runnel_engine_get (RunnelModel *model, RunnelBackend *backend,
                   RunnelKvType kv_type, RunnelProgressFunc progress,
                   gpointer user_data, GCancellable *cancellable,
                   GError **error)
{
  return runnel_engine_get_within (model, backend, kv_type, 0, progress,
      user_data, cancellable, error);
}

/**
 * runnel_engine_get_within:
 * @model: what to run
 * @backend: who computes
 * @kv_type: type of keys and values
 * @max_memory: bytes that the weights may take; 0 is no limit
 * @progress: (nullable) (scope call) (closure user_data): told how far
 *   loading has come
 * @user_data: for @progress
 * @cancellable: (nullable): stops loading
 * @error: return location for a #GError
 *
 * As runnel_engine_get(), but refuses weights over @max_memory before memory
 * is taken for them. Afterwards the limit of all is that of
 * runnel_engine_set_max_memory().
 *
 * Returns: (transfer full): the engine, or %NULL with an error as of
 *   runnel_engine_get()
 *
 * Since: 0.1
 */
RunnelEngine *
runnel_engine_get_within (RunnelModel *model, RunnelBackend *backend,
                          RunnelKvType kv_type, guint64 max_memory,
                          RunnelProgressFunc progress, gpointer user_data,
                          GCancellable *cancellable, GError **error)
{
  RunnelWeights *weights;
  RunnelEngine *engine;

  g_return_val_if_fail (runnel_model_is_made (model), NULL);
  g_return_val_if_fail (RUNNEL_IS_BACKEND (backend), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  engine = find (model, backend, kv_type);
  if (engine != NULL)
    return engine;
  if (!check_whole (model, error))
    return NULL;
  weights = runnel_model_ref_weights (model, backend, max_memory, progress,
      user_data, cancellable, error);
  if (weights == NULL)
    return NULL;
  engine = make (model, backend, kv_type, weights);
  if (engine->batcher == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "%s: no memory for the scratch of a forward pass",
        runnel_model_get_path (model));
    g_object_unref (engine);
    return NULL;
  }
  return publish (engine);
}

/**
 * runnel_engine_get_model:
 * @self: an engine
 *
 * What it runs.
 *
 * Returns: (transfer none): the model
 *
 * Since: 0.1
 */
RunnelModel *
runnel_engine_get_model (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), NULL);
  return self->model;
}

/**
 * runnel_engine_get_backend:
 * @self: an engine
 *
 * Who computes.
 *
 * Returns: (transfer none): the backend
 *
 * Since: 0.1
 */
RunnelBackend *
runnel_engine_get_backend (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), NULL);
  return self->backend;
}

/**
 * runnel_engine_get_kv_type:
 * @self: an engine
 *
 * The type of its keys and values.
 *
 * Returns: the type
 *
 * Since: 0.1
 */
RunnelKvType
runnel_engine_get_kv_type (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), RUNNEL_KV_TYPE_F16);
  return self->kv_type;
}

/**
 * runnel_engine_set_max_memory:
 * @self: an engine
 * @bytes: the limit; 0 is none
 *
 * Limits the bytes that the engine takes: the weights, packed or mapped in
 * place, the scratch of forward passes, the pages of keys and values of
 * sequences, the prefix cache and states in flight, each page once, and all of
 * that once more for draft models beside it. Beyond it
 * cached histories go first, then operations fail with
 * %RUNNEL_ERROR_NOT_ENOUGH_MEMORY before memory is taken.
 *
 * Since: 0.1
 */
void
runnel_engine_set_max_memory (RunnelEngine *self, guint64 bytes)
{
  g_return_if_fail (runnel_engine_is_made (self));
  runnel_page_pool_set_limit (self->pool, bytes);
}

/**
 * runnel_engine_get_max_memory:
 * @self: an engine
 *
 * The limit of runnel_engine_set_max_memory().
 *
 * Returns: bytes; 0 is no limit
 *
 * Since: 0.1
 */
guint64
runnel_engine_get_max_memory (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), 0);
  return runnel_page_pool_limit (self->pool);
}

/**
 * runnel_engine_set_cache_budget:
 * @self: an engine
 * @bytes: what the prefix cache may keep; 0 turns it off and empties it
 *
 * Limits the pages that the prefix cache keeps alive. The default is 64 MiB.
 *
 * Since: 0.1
 */
void
runnel_engine_set_cache_budget (RunnelEngine *self, guint64 bytes)
{
  g_return_if_fail (runnel_engine_is_made (self));
  runnel_prefix_cache_set_budget (self->cache, bytes);
}

/**
 * runnel_engine_get_cache_budget:
 * @self: an engine
 *
 * The budget of runnel_engine_set_cache_budget().
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
runnel_engine_get_cache_budget (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), 0);
  return runnel_prefix_cache_budget (self->cache);
}

/**
 * runnel_engine_clear_cache:
 * @self: an engine
 *
 * Empties the prefix cache.
 *
 * Since: 0.1
 */
void
runnel_engine_clear_cache (RunnelEngine *self)
{
  g_return_if_fail (runnel_engine_is_made (self));
  runnel_prefix_cache_clear (self->cache);
}

/**
 * runnel_engine_get_stats:
 * @self: an engine
 * @ret_stats: (out caller-allocates): the counters
 *
 * What was computed since the engine was made, and what memory it takes now.
 *
 * Since: 0.1
 */
void
runnel_engine_get_stats (RunnelEngine *self, RunnelEngineStats *ret_stats)
{
  g_return_if_fail (runnel_engine_is_made (self));
  g_return_if_fail (ret_stats != NULL);
  runnel_batcher_get_stats (self->batcher, ret_stats);
  ret_stats->kv_bytes = runnel_page_pool_bytes (self->pool);
  ret_stats->kv_bytes_peak = runnel_page_pool_peak (self->pool);
  ret_stats->cache_bytes = runnel_prefix_cache_bytes (self->cache);
  ret_stats->weight_bytes = self->weights->bytes;
  ret_stats->scratch_bytes = runnel_page_pool_other (self->pool)
      - self->weights->bytes;
  ret_stats->draft_bytes = runnel_page_pool_charged (self->pool);
}

/**
 * runnel_engine_get_placement:
 * @self: an engine
 *
 * Where the weights live and why, for people: "used in the file: …", "copied
 * into huge pages: …".
 *
 * Returns: (transfer none): a phrase
 *
 * Since: 0.1
 */
const char *
runnel_engine_get_placement (RunnelEngine *self)
{
  g_return_val_if_fail (runnel_engine_is_made (self), NULL);
  return self->weights->placement.reason;
}

RunnelParticipant *
runnel_engine_join (RunnelEngine *self)
{
  return runnel_batcher_join (self->batcher);
}

void
runnel_engine_leave (RunnelEngine *self, RunnelParticipant *participant)
{
  runnel_batcher_leave (self->batcher, participant);
}

gboolean
runnel_engine_forward (RunnelEngine *self, RunnelBatchItem *items,
                       guint n_items, RunnelParticipant *participant,
                       GError **error)
{
  return runnel_batcher_submit (self->batcher, items, n_items, participant,
      NULL, error);
}

gboolean
runnel_engine_forward_cancellable (RunnelEngine *self, RunnelBatchItem *items,
                                   guint n_items, GCancellable *cancellable,
                                   GError **error)
{
  return runnel_batcher_submit (self->batcher, items, n_items, NULL,
      cancellable, error);
}

void
runnel_engine_cache_sequence (RunnelEngine *self, RunnelSequence *sequence)
{
  runnel_prefix_cache_insert (self->cache,
      runnel_sequence_get_history (sequence),
      runnel_sequence_get_drafts (sequence));
}

void
runnel_engine_set_probe (RunnelEngine *self, RunnelProbe *probe)
{
  self->probe = probe;
}

RunnelProbe *
runnel_engine_get_probe (RunnelEngine *self)
{
  return self->probe;
}

const RunnelWeights *
runnel_engine_get_weights (RunnelEngine *self)
{
  return self->weights;
}

const RunnelShape *
runnel_engine_get_shape (RunnelEngine *self)
{
  return &self->shape;
}

RunnelPagePool *
runnel_engine_get_pool (RunnelEngine *self)
{
  return self->pool;
}

RunnelPrefixCache *
runnel_engine_get_cache (RunnelEngine *self)
{
  return self->cache;
}

void
runnel_engine_count_cached_rows (RunnelEngine *self, guint64 n)
{
  runnel_batcher_count_cached_rows (self->batcher, n);
}

static void
set_no_room (RunnelEngine *self, const char *what, guint64 need,
             GError **error)
{
  guint64 taken = runnel_page_pool_bytes (self->pool);
  guint64 drafts = runnel_page_pool_charged (self->pool);
  guint64 limit = runnel_page_pool_limit (self->pool);
  guint64 other = runnel_page_pool_other (self->pool);

  if (limit == 0)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "the system has no memory for %s (%" G_GUINT64_FORMAT " bytes beside %"
        G_GUINT64_FORMAT "); shorten the context", what, need,
        other + drafts + taken);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "%s take %" G_GUINT64_FORMAT " bytes, but of max-memory %"
        G_GUINT64_FORMAT " the weights take %" G_GSIZE_FORMAT ", scratch %"
        G_GUINT64_FORMAT ", drafts %" G_GUINT64_FORMAT " and other keys and "
        "values %" G_GUINT64_FORMAT "; raise max-memory, shorten the context "
        "or use kv-type=int8", what, need, limit, self->weights->bytes,
        other - self->weights->bytes, drafts, taken);
}

gboolean
runnel_engine_reserve (RunnelEngine *self, RunnelHistory *history, guint n,
                       GError **error)
{
  guint page_rows = runnel_page_pool_rows (history->pool);
  g_autofree char *what = NULL;

  do {
    if (runnel_history_reserve (history, n))
      return TRUE;
  } while (runnel_prefix_cache_evict (self->cache));
  what = g_strdup_printf ("keys and values of %u more tokens", n);
  set_no_room (self, what, ((guint64) n + page_rows - 1) / page_rows
      * runnel_page_pool_page_bytes (history->pool), error);
  return FALSE;
}

gboolean
runnel_engine_charge (RunnelEngine *self, RunnelPagePool *pool, guint64 bytes,
                      const char *what, GError **error)
{
  do {
    if (runnel_page_pool_charge (pool, bytes))
      return TRUE;
  } while (runnel_prefix_cache_evict (self->cache));
  set_no_room (self, what, bytes, error);
  return FALSE;
}

gboolean
runnel_engine_reserve_scratch (RunnelEngine *self, gsize bytes, GError **error)
{
  guint64 limit = runnel_page_pool_limit (self->pool);
  guint64 other = self->weights->bytes + bytes;

  if (other > runnel_page_pool_other (self->pool))
    while (limit != 0 && other + runnel_page_pool_bytes (self->pool)
        + runnel_page_pool_charged (self->pool) > limit)
      if (!runnel_prefix_cache_evict (self->cache)) {
        set_no_room (self, "the rows of a batch", bytes, error);
        return FALSE;
      }
  runnel_page_pool_set_other (self->pool, other);
  return TRUE;
}

/* ---- Memory that can be had again ---------------------------------------- */

/**
 * runnel_engine_trim_memory:
 * @self: an engine
 *
 * Gives back what only makes things faster: the prefix cache and the scratch
 * of forward passes. Work goes on; what was cached is computed again.
 *
 * Since: 0.1
 */
void
runnel_engine_trim_memory (RunnelEngine *self)
{
  g_return_if_fail (runnel_engine_is_made (self));
  runnel_prefix_cache_clear (self->cache);
  runnel_batcher_trim (self->batcher);
  count_scratch (self);
}

static void
on_low_memory (GMemoryMonitor *monitor, GMemoryMonitorWarningLevel level,
               RunnelEngine *self)
{
  g_debug ("%s: low memory (level %d): caches are dropped",
      runnel_model_get_path (self->model), level);
  if (level >= G_MEMORY_MONITOR_WARNING_LEVEL_MEDIUM)
    runnel_engine_trim_memory (self);
  else
    runnel_prefix_cache_clear (self->cache);
}

/**
 * runnel_engine_follow_memory_monitor:
 * @self: an engine
 * @monitor: who warns of low memory, in the thread that runs its main context
 *
 * Drops the prefix cache whenever @monitor warns, and from the medium level on
 * does all of runnel_engine_trim_memory(). Following the same one again
 * changes nothing; a second one replaces it.
 *
 * Since: 0.1
 */
void
runnel_engine_follow_memory_monitor (RunnelEngine *self,
                                     GMemoryMonitor *monitor)
{
  g_return_if_fail (runnel_engine_is_made (self));
  g_return_if_fail (G_IS_MEMORY_MONITOR (monitor));

  g_mutex_lock (&registry_mutex);
  if (self->monitor != monitor) {
    if (self->monitor != NULL)
      g_signal_handler_disconnect (self->monitor, self->monitor_handler);
    g_set_object (&self->monitor, monitor);
    self->monitor_handler = g_signal_connect_object (monitor,
        "low-memory-warning", G_CALLBACK (on_low_memory), self, 0);
  }
  g_mutex_unlock (&registry_mutex);
}
