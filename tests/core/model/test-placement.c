/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Where weights live: the choice over a proc and sys of our own, and that it
 * changes no bit.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>

#include "model/engine.h"
#include "model/placement.h"
#include "model/sequence.h"
#include "tiny-model.h"

#define MB G_GUINT64_CONSTANT (1000000)

typedef struct {
  char *root;
} Fixture;

static void
put (Fixture *f, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (f->root, name, NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
set_up (Fixture *f, gconstpointer data)
{
  f->root = g_dir_make_tmp ("runnel-root-XXXXXX", NULL);
  g_assert_nonnull (f->root);
  put (f, "proc/meminfo", "MemTotal:       4000000 kB\n"
      "MemAvailable:   1000000 kB\n");
  put (f, "sys/kernel/mm/transparent_hugepage/enabled",
      "always [madvise] never\n");
}

static void
remove_file (Fixture *f, const char *name)
{
  g_autofree char *path = g_build_filename (f->root, name, NULL);

  g_remove (path);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  static const char *const names[] = {
    "proc/meminfo", "proc", "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage", "sys/kernel/mm", "sys/kernel",
    "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current",
    "sys/fs/cgroup", "sys/fs", "sys",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    remove_file (f, names[i]);
  g_rmdir (f->root);
  g_free (f->root);
}

static void
check (Fixture *f, RunnelLoadMode mode, gboolean shared, guint64 bytes,
       gboolean copy, const char *reason)
{
  RunnelPlacement placement = { 0 };

  runnel_placement_decide (&placement, mode, shared, bytes, f->root);
  g_assert_cmpint (placement.copy, ==, copy);
  g_assert_nonnull (strstr (placement.reason, reason));
  runnel_placement_clear (&placement);
}

static void
test_modes (Fixture *f, gconstpointer data)
{
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 170 * MB, TRUE, "170 of 1024 MB");
  check (f, RUNNEL_LOAD_MODE_AUTO, TRUE, 170 * MB, FALSE, "another process");
  check (f, RUNNEL_LOAD_MODE_MAP, FALSE, 170 * MB, FALSE, "load-mode=map");
  check (f, RUNNEL_LOAD_MODE_READ, FALSE, 170 * MB, FALSE, "load-mode=read");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 0, FALSE, "repacked");
}

static void
test_memory (Fixture *f, gconstpointer data)
{
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 512 * MB, TRUE, "copied");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 513 * MB, FALSE, "half of the 1024");
  put (f, "sys/fs/cgroup/memory.max", "max\n");
  put (f, "sys/fs/cgroup/memory.current", "100000000\n");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 512 * MB, TRUE, "copied");
  put (f, "sys/fs/cgroup/memory.max", "300000000\n");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 100 * MB, TRUE, "100 of 200 MB");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, 101 * MB, FALSE, "half of the 200");
  put (f, "sys/fs/cgroup/memory.current", "400000000\n");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, MB, FALSE, "half of the 0");
  remove_file (f, "proc/meminfo");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, MB, FALSE, "half of the 0");
}

static void
test_huge_pages (Fixture *f, gconstpointer data)
{
  put (f, "sys/kernel/mm/transparent_hugepage/enabled",
      "[always] madvise never\n");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, MB, TRUE, "copied");
  put (f, "sys/kernel/mm/transparent_hugepage/enabled",
      "always madvise [never]\n");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, MB, FALSE, "no transparent");
  remove_file (f, "sys/kernel/mm/transparent_hugepage/enabled");
  check (f, RUNNEL_LOAD_MODE_AUTO, FALSE, MB, FALSE, "no transparent");
}

/* The logits after three tokens. */
static float *
forward (const char *path, RunnelLoadMode mode, gsize *ret_n)
{
  static const gint32 tokens[] = { 5, 260, 17 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = runnel_model_open (path, mode, &error);
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  float *logits;

  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  sequence = runnel_sequence_new (engine, 0, &error);
  g_assert_no_error (error);
  *ret_n = G_N_ELEMENTS (tokens) * runnel_model_get_n_vocab (model);
  logits = g_new (float, *ret_n);
  runnel_sequence_forward (sequence, tokens, G_N_ELEMENTS (tokens), logits,
      *ret_n, &error);
  g_assert_no_error (error);
  return logits;
}

/* Floats are used as they are in the file. */
static void
test_same_bits (Fixture *f, gconstpointer data)
{
  static const RunnelTensorType types[] = { RUNNEL_TENSOR_Q4_K,
    RUNNEL_TENSOR_Q6_K, RUNNEL_TENSOR_F16, RUNNEL_TENSOR_Q4_1 };

  for (gsize i = 0; i < G_N_ELEMENTS (types); i++) {
    TinyModel tiny = TINY_MODEL_DEFAULT;
    g_autofree char *path = NULL;
    g_autofree float *expected = NULL;
    gsize n, n_expected;

    tiny.type = types[i];
    tiny.n_embd = 256;
    path = tiny_model_write (&tiny);
    expected = forward (path, RUNNEL_LOAD_MODE_MAP, &n_expected);
    for (RunnelLoadMode mode = RUNNEL_LOAD_MODE_AUTO;
        mode <= RUNNEL_LOAD_MODE_READ; mode++) {
      g_autofree float *logits = forward (path, mode, &n);

      g_assert_cmpmem (logits, n * sizeof (float), expected,
          n_expected * sizeof (float));
    }
    g_unlink (path);
  }
}

int
main (int argc, char *argv[])
{
  static const struct {
    const char *path;
    void (*test) (Fixture *f, gconstpointer data);
  } tests[] = {
    { "/placement/modes", test_modes },
    { "/placement/memory", test_memory },
    { "/placement/huge-pages", test_huge_pages },
    { "/placement/same-bits", test_same_bits },
  };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].test,
        tear_down);
  return g_test_run ();
}
