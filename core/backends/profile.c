/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What each op of a backend takes: a table of ops that times those of another
 * and counts the bytes and multiply-adds that they cannot do without. Engines
 * of a backend that is not profiled never see it.
 */
#include "ops.h"

#include <string.h>
#include <time.h>

typedef enum {
  EMBED,
  PROJECT,
  ROPE_APPEND,
  ATTEND,
  PROJECT_ADD,
  MLP,
  OUTPUT,
  FUSE,
  APPEND_CONTEXT,
  N_OPS
} Op;

static const char *const names[N_OPS] = {
  "embed", "project", "rope_append", "attend", "project_add", "mlp", "output",
  "fuse", "append_context"
};

typedef struct {
  guint64 calls;
  guint64 ns;
  guint64 bytes;
  guint64 integer_macs;
  guint64 float_macs;
} Counters;

typedef struct {
  GMutex mutex;                /* guards the counters */
  Counters counters[N_OPS];
} Profile;

/* The table that counts and the one it calls: of the only kind of backend.
 * They outlive every backend, as weights do that were made by them. */
static RunnelOps counting_ops;
static const RunnelOps *inner;

/* A pass that is profiled. Ops are called between begin and end, by one
 * thread at a time; output may be called beside them and needs no rows. */
typedef struct {
  Profile *profile;
  RunnelShape shape;
  guint64 kv_row_bytes;        /* of a key and value of one layer */
  const RunnelPassRows *rows;
} Entry;

static GMutex entries_mutex;   /* guards the table */
static GHashTable *entries;    /* RunnelPass → Entry */

static GQuark
profile_quark (void)
{
  return g_quark_from_static_string ("runnel-profile");
}

static Entry *
find (RunnelPass *pass)
{
  Entry *entry;

  g_mutex_lock (&entries_mutex);
  entry = g_hash_table_lookup (entries, pass);
  g_mutex_unlock (&entries_mutex);
  return entry;
}

static guint64
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (guint64) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What a product with @operand for @n rows reads and computes. */
static void
add_operand (Counters *cost, const RunnelOperand *operand, guint64 n)
{
  guint64 elements, bytes;
  gboolean quantised;

  if (operand == NULL)
    return;
  inner->operand_size (operand, &elements, &bytes, &quantised);
  cost->bytes += bytes;
  *(quantised ? &cost->integer_macs : &cost->float_macs) += elements * n;
}

static void
count (Entry *entry, Op op, guint64 started, const Counters *cost)
{
  guint64 ns = now_ns () - started;
  Counters *counters = &entry->profile->counters[op];

  g_mutex_lock (&entry->profile->mutex);
  counters->calls++;
  counters->ns += ns;
  counters->bytes += cost->bytes;
  counters->integer_macs += cost->integer_macs;
  counters->float_macs += cost->float_macs;
  g_mutex_unlock (&entry->profile->mutex);
}

static RunnelPass *
pass_new (RunnelBackend *backend, const RunnelShape *shape)
{
  Profile *profile = g_object_get_qdata (G_OBJECT (backend),
      profile_quark ());
  RunnelPass *pass = inner->pass_new (backend, shape);
  Entry *entry;

  if (pass == NULL)
    return NULL;
  entry = g_new0 (Entry, 1);
  entry->profile = profile;
  entry->shape = *shape;
  entry->kv_row_bytes = inner->page_bytes (backend, shape)
      / inner->page_rows (backend) / shape->n_layers;
  g_mutex_lock (&entries_mutex);
  if (entries == NULL)
    entries = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_hash_table_insert (entries, pass, entry);
  g_mutex_unlock (&entries_mutex);
  return pass;
}

static void
pass_free (RunnelPass *pass)
{
  if (pass == NULL)
    return;
  g_mutex_lock (&entries_mutex);
  g_hash_table_remove (entries, pass);
  g_mutex_unlock (&entries_mutex);
  inner->pass_free (pass);
}

static gboolean
begin (RunnelPass *pass, const RunnelPassRows *rows)
{
  Entry *entry = find (pass);

  if (!inner->begin (pass, rows))
    return FALSE;
  entry->rows = rows;
  return TRUE;
}

static void
embed (RunnelPass *pass, const RunnelOperand *embedding)
{
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();

  inner->embed (pass, embedding);
  count (entry, EMBED, started, &cost);
}

static void
project (RunnelPass *pass, const RunnelLayer *layer)
{
  const RunnelOperand *parts[] = { layer->q, layer->k, layer->v,
    layer->attn_conv };
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();

  inner->project (pass, layer);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    add_operand (&cost, parts[i], entry->rows->n_rows);
  count (entry, PROJECT, started, &cost);
}

static void
rope_append (RunnelPass *pass, const RunnelLayer *layer, guint layer_index)
{
  Entry *entry = find (pass);
  Counters cost = { .bytes = entry->kv_row_bytes * entry->rows->n_rows };
  guint64 started = now_ns ();

  inner->rope_append (pass, layer, layer_index);
  count (entry, ROPE_APPEND, started, &cost);
}

static void
attend (RunnelPass *pass, const RunnelLayer *layer, guint layer_index)
{
  Entry *entry = find (pass);
  const RunnelPassRows *rows = entry->rows;
  Counters cost = { 0 };
  guint64 started = now_ns (), seen = 0;

  inner->attend (pass, layer, layer_index);
  for (guint i = 0; i < rows->n_sequences; i++) {
    const RunnelPassSequence *sequence = &rows->sequences[i];
    guint64 n = sequence->n_rows, first = sequence->first_key;

    cost.bytes += (first + n) * entry->kv_row_bytes;
    seen += n * first + n * (n + 1) / 2;
  }
  cost.float_macs = 2 * seen * entry->shape.n_heads * entry->shape.head_dim;
  count (entry, ATTEND, started, &cost);
}

static void
project_add (RunnelPass *pass, const RunnelLayer *layer)
{
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();

  inner->project_add (pass, layer);
  add_operand (&cost, layer->o, entry->rows->n_rows);
  count (entry, PROJECT_ADD, started, &cost);
}

static void
mlp (RunnelPass *pass, const RunnelLayer *layer)
{
  const RunnelOperand *parts[] = { layer->gate, layer->up, layer->down,
    layer->ffn_conv };
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();

  inner->mlp (pass, layer);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    add_operand (&cost, parts[i], entry->rows->n_rows);
  count (entry, MLP, started, &cost);
}

static guint
output (RunnelPass *pass, const RunnelOperand *norm,
        const RunnelOperand *matrix, const float *const *hidden,
        float *const *logits, guint n_rows)
{
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();
  guint done = inner->output (pass, norm, matrix, hidden,
      logits, n_rows);

  add_operand (&cost, matrix, n_rows);
  count (entry, OUTPUT, started, &cost);
  return done;
}

static void
fuse (RunnelPass *pass, const RunnelOperand *matrix, const float *input)
{
  Entry *entry = find (pass);
  Counters cost = { 0 };
  guint64 started = now_ns ();

  inner->fuse (pass, matrix, input);
  add_operand (&cost, matrix, entry->rows->n_rows);
  count (entry, FUSE, started, &cost);
}

static void
append_context (RunnelPass *pass, const RunnelOperand *norm,
                const RunnelLayer *layer, guint layer_index)
{
  const RunnelOperand *parts[] = { layer->k, layer->v };
  Entry *entry = find (pass);
  Counters cost = { .bytes = entry->kv_row_bytes * entry->rows->n_rows };
  guint64 started = now_ns ();

  inner->append_context (pass, norm, layer, layer_index);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    add_operand (&cost, parts[i], entry->rows->n_rows);
  count (entry, APPEND_CONTEXT, started, &cost);
}

static void
profile_free (Profile *self)
{
  g_mutex_clear (&self->mutex);
  g_free (self);
}

static Profile *
profile_new (const RunnelOps *ops)
{
  static gsize once;
  Profile *self = g_new0 (Profile, 1);

  g_mutex_init (&self->mutex);
  if (!g_once_init_enter (&once))
    return self;
  inner = ops;
  counting_ops = *ops;
  counting_ops.pass_new = pass_new;
  counting_ops.pass_free = pass_free;
  counting_ops.begin = begin;
  counting_ops.embed = embed;
  counting_ops.project = project;
  counting_ops.rope_append = rope_append;
  counting_ops.attend = attend;
  counting_ops.project_add = project_add;
  counting_ops.mlp = mlp;
  counting_ops.output = output;
  counting_ops.fuse = fuse;
  counting_ops.append_context = append_context;
  g_once_init_leave (&once, 1);
  return self;
}

static Profile *
get_profile (RunnelBackend *backend)
{
  return g_object_get_qdata (G_OBJECT (backend), profile_quark ());
}

const RunnelOps *
runnel_backend_ops (RunnelBackend *self)
{
  return get_profile (self) != NULL ? &counting_ops
      : RUNNEL_BACKEND_GET_CLASS (self)->ops;
}

/**
 * runnel_backend_start_profile:
 * @self: a backend
 *
 * From now on, engines made of this backend count what each operation of the
 * forward pass takes. Must be called before them, once; it lasts as long as
 * the backend.
 *
 * Since: 0.1
 */
void
runnel_backend_start_profile (RunnelBackend *self)
{
  g_return_if_fail (RUNNEL_IS_BACKEND (self));
  if (get_profile (self) == NULL)
    g_object_set_qdata_full (G_OBJECT (self), profile_quark (),
        profile_new (RUNNEL_BACKEND_GET_CLASS (self)->ops),
        (GDestroyNotify) profile_free);
}

/**
 * runnel_backend_take_profile:
 * @self: a backend whose profile was started
 *
 * What the operations took since the last call.
 *
 * Returns: (transfer full): of type a(sttttt), for each operation: its name,
 *   calls, nanoseconds, bytes of weights, keys and values that it had to read
 *   or write, multiply-adds of 8-bit integers, multiply-adds of floats
 *
 * Since: 0.1
 */
GVariant *
runnel_backend_take_profile (RunnelBackend *self)
{
  Profile *profile;
  GVariantBuilder builder;

  g_return_val_if_fail (RUNNEL_IS_BACKEND (self), NULL);
  profile = get_profile (self);
  g_return_val_if_fail (profile != NULL, NULL);
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(sttttt)"));
  g_mutex_lock (&profile->mutex);
  for (guint i = 0; i < N_OPS; i++) {
    const Counters *c = &profile->counters[i];

    g_variant_builder_add (&builder, "(sttttt)", names[i], c->calls, c->ns,
        c->bytes, c->integer_macs, c->float_macs);
  }
  memset (profile->counters, 0, sizeof profile->counters);
  g_mutex_unlock (&profile->mutex);
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

/**
 * runnel_backend_measure_limits:
 * @self: a backend
 * @bytes: (out): bytes a second that its threads read from memory together
 * @integer_macs: (out): multiply-adds of 8-bit integers a second, of the best
 *   instructions of the kernels in use and without memory
 * @float_macs: (out): multiply-adds of floats a second
 *
 * Measures what the machine could do at best, for a few hundred milliseconds:
 * the speeds to judge an engine's by.
 *
 * Since: 0.1
 */
void
runnel_backend_measure_limits (RunnelBackend *self, double *bytes,
                               double *integer_macs, double *float_macs)
{
  g_return_if_fail (RUNNEL_IS_BACKEND (self));
  RUNNEL_BACKEND_GET_CLASS (self)->ops->measure_limits (self, bytes,
      integer_macs, float_macs);
}
