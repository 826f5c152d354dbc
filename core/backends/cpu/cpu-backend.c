/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "cpu-backend.h"

#include "../../error.h"
#include "cpu-topology.h"
#include "self-check.h"

#define MAX_DEFAULT_THREADS 4
#define MAX_DEFAULT_PREFILL_THREADS 8

struct _RunnelCpuBackend {
  RunnelBackend parent_instance;
  guint n_threads;           /* for a few rows: decode */
  guint n_prefill_threads;   /* for many */
  const RunnelKernels *kernels;
  RunnelTeam *team;
};

G_DEFINE_FINAL_TYPE (RunnelCpuBackend, runnel_cpu_backend, RUNNEL_TYPE_BACKEND)

/* Backends in use. */
static GMutex registry_mutex;  /* guards the list */
static GList *registry;        /* GWeakRef */

static guint
get_n_threads (RunnelBackend *backend)
{
  return RUNNEL_CPU_BACKEND (backend)->n_threads;
}

static guint
get_n_prefill_threads (RunnelBackend *backend)
{
  return RUNNEL_CPU_BACKEND (backend)->n_prefill_threads;
}

static const char *
get_kernels (RunnelBackend *backend)
{
  return RUNNEL_CPU_BACKEND (backend)->kernels->name;
}

static void
runnel_cpu_backend_finalize (GObject *object)
{
  RunnelCpuBackend *self = RUNNEL_CPU_BACKEND (object);

  runnel_team_free (self->team);
  G_OBJECT_CLASS (runnel_cpu_backend_parent_class)->finalize (object);
}

static void
runnel_cpu_backend_class_init (RunnelCpuBackendClass *klass)
{
  RunnelBackendClass *backend = RUNNEL_BACKEND_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = runnel_cpu_backend_finalize;
  backend->name = "cpu";
  backend->ops = &runnel_cpu_ops;
  backend->get_n_threads = get_n_threads;
  backend->get_n_prefill_threads = get_n_prefill_threads;
  backend->get_kernels = get_kernels;
}

static void
runnel_cpu_backend_init (RunnelCpuBackend *self)
{
}

/* Fills what is 0 by the machine: decode is bound by memory, which a few
 * threads fill, and seldom gains from more. */
static void
choose_threads (const RunnelCpuChoice *choice, guint *n_threads,
                guint *n_prefill_threads)
{
  if (*n_prefill_threads == 0)
    *n_prefill_threads = *n_threads > 0 ? *n_threads
        : MIN (choice->n_threads, MAX_DEFAULT_PREFILL_THREADS);
  if (*n_threads == 0)
    *n_threads = MIN (choice->n_threads, MAX_DEFAULT_THREADS);
}

static RunnelBackend *
find_unlocked (guint n_threads, guint n_prefill_threads,
               const RunnelKernels *kernels)
{
  for (GList *l = registry; l != NULL; l = l->next) {
    GWeakRef *entry = l->data;
    RunnelCpuBackend *other = g_weak_ref_get (entry);

    if (other == NULL)
      continue;
    if (other->n_threads == n_threads
        && other->n_prefill_threads == n_prefill_threads
        && other->kernels == kernels)
      return RUNNEL_BACKEND (other);
    g_object_unref (other);
  }
  return NULL;
}

static void
register_unlocked (RunnelCpuBackend *self)
{
  GWeakRef *entry;

  for (GList *l = registry, *next; l != NULL; l = next) {
    g_autoptr (GObject) other = g_weak_ref_get (l->data);

    next = l->next;
    if (other != NULL)
      continue;
    g_weak_ref_clear (l->data);
    g_free (l->data);
    registry = g_list_delete_link (registry, l);
  }
  entry = g_new0 (GWeakRef, 1);
  g_weak_ref_init (entry, self);
  registry = g_list_prepend (registry, entry);
}

static RunnelBackend *
new_unlocked (guint n_threads, guint n_prefill_threads,
              const RunnelCpuChoice *choice, const RunnelKernels *kernels,
              GError **error)
{
  guint most = MAX (n_threads, n_prefill_threads);
  gboolean fits = most <= (guint) CPU_COUNT (&choice->cpus);
  g_autoptr (RunnelCpuBackend) self = NULL;

  self = g_object_new (RUNNEL_TYPE_CPU_BACKEND, NULL);
  self->n_threads = n_threads;
  self->n_prefill_threads = n_prefill_threads;
  self->kernels = kernels;
  self->team = runnel_team_new (most,
      choice->restricted && fits ? &choice->cpus : NULL);
  if (self->team == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "cannot start %u threads; ask for fewer by 'threads'", most);
    return NULL;
  }
  register_unlocked (self);
  return RUNNEL_BACKEND (g_steal_pointer (&self));
}

/* A level whose bits are wrong on this machine is not used; says so once. */
static const RunnelKernels *
check_kernels (const RunnelKernels *wanted)
{
  static gsize warned;
  const char *fault;
  const RunnelKernels *sound = runnel_kernels_sound (wanted, &fault);

  if (fault != NULL && g_once_init_enter (&warned)) {
    g_warning ("kernels: on this machine %s of level '%s' differs from the "
        "scalar kernels; level '%s' is used instead", fault, wanted->name,
        sound->name);
    g_once_init_leave (&warned, 1);
  }
  return sound;
}

/* Of the machine, for this process. */
static RunnelCpuChoice
choose_cpus (void)
{
  RunnelCpuChoice choice;
  cpu_set_t allowed;

  if (sched_getaffinity (0, sizeof allowed, &allowed) != 0) {
    CPU_ZERO (&allowed);
    for (guint i = 0; i < g_get_num_processors (); i++)
      CPU_SET (i, &allowed);
  }
  runnel_cpu_choose ("", &allowed, &choice);
  return choice;
}

RunnelBackend *
runnel_cpu_backend_get (guint n_threads, guint n_prefill_threads,
                        const char *kernels, GError **error)
{
  RunnelCpuChoice choice = choose_cpus ();
  const RunnelKernels *table;
  RunnelBackend *self;

  if (MAX (n_threads, n_prefill_threads) > RUNNEL_TEAM_MAX_THREADS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "%s: %u is more than %u", n_threads > RUNNEL_TEAM_MAX_THREADS
        ? "threads" : "prefill-threads", MAX (n_threads, n_prefill_threads),
        RUNNEL_TEAM_MAX_THREADS);
    return NULL;
  }
  table = runnel_kernels_by_name (kernels != NULL ? kernels : "auto");
  if (table == NULL) {
    g_autofree char *names = g_strjoinv (", ",
        (char **) runnel_kernels_names ());

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "kernels: this machine has no level '%s'; it has %s", kernels, names);
    return NULL;
  }
  table = check_kernels (table);
  choose_threads (&choice, &n_threads, &n_prefill_threads);
  g_mutex_lock (&registry_mutex);
  self = find_unlocked (n_threads, n_prefill_threads, table);
  if (self == NULL)
    self = new_unlocked (n_threads, n_prefill_threads, &choice, table, error);
  g_mutex_unlock (&registry_mutex);
  return self;
}

const RunnelKernels *
runnel_cpu_backend_table (RunnelBackend *self)
{
  return RUNNEL_CPU_BACKEND (self)->kernels;
}

RunnelTeam *
runnel_cpu_backend_team (RunnelBackend *self)
{
  return RUNNEL_CPU_BACKEND (self)->team;
}
