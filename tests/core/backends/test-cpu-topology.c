/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The choice of processors, on trees of files like those of /sys and /proc.
 */
#include <glib.h>
#include <glib/gstdio.h>

#include "backends/cpu/cpu-topology.h"

typedef struct {
  char *root;
  cpu_set_t allowed;
} Machine;

static void
write_file (Machine *machine, const char *text, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static void
write_file (Machine *machine, const char *text, const char *format, ...)
{
  g_autofree char *relative = NULL, *path = NULL, *folder = NULL;
  g_autoptr (GError) error = NULL;
  va_list arguments;

  va_start (arguments, format);
  relative = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  path = g_build_filename (machine->root, relative, NULL);
  folder = g_path_get_dirname (path);
  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
}

static void
set_up (Machine *machine, gconstpointer data)
{
  machine->root = g_dir_make_tmp ("runnel-topology-XXXXXX", NULL);
  g_assert_nonnull (machine->root);
  CPU_ZERO (&machine->allowed);
  for (int cpu = 0; cpu < 9; cpu++)
    CPU_SET (cpu, &machine->allowed);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);

    remove_tree (child);
  }
  g_remove (path);
}

static void
tear_down (Machine *machine, gconstpointer data)
{
  remove_tree (machine->root);
  g_free (machine->root);
}

/* n processors from `first` on, each a core, with a value in a file. */
static void
add_cpus (Machine *machine, int first, int n, const char *file,
          const char *value)
{
  for (int cpu = first; cpu < first + n; cpu++)
    write_file (machine, value, "sys/devices/system/cpu/cpu%d/%s", cpu, file);
}

static void
expect (Machine *machine, unsigned n_threads, gboolean restricted,
        const char *cpus)
{
  RunnelCpuChoice choice;
  g_autoptr (GString) list = g_string_new (NULL);

  runnel_cpu_choose (machine->root, &machine->allowed, &choice);
  for (int cpu = 0; cpu < 16; cpu++)
    if (CPU_ISSET (cpu, &choice.cpus))
      g_string_append_printf (list, "%d", cpu);
  g_assert_cmpuint (choice.n_threads, ==, n_threads);
  g_assert_cmpint (choice.restricted, ==, restricted);
  g_assert_cmpstr (list->str, ==, cpus);
}

/* A phone: one prime, three big, four middle cores. */
static void
test_capacities (Machine *machine, gconstpointer data)
{
  write_file (machine, "0-7\n", "sys/devices/system/cpu/online");
  add_cpus (machine, 0, 4, "cpu_capacity", "512\n");
  add_cpus (machine, 4, 3, "cpu_capacity", "900\n");
  add_cpus (machine, 7, 1, "cpu_capacity", "1024\n");
  expect (machine, 4, TRUE, "4567");
  /* The quota of a container around it. */
  write_file (machine, "0::/app/one\n", "proc/self/cgroup");
  write_file (machine, "max 100000\n", "sys/fs/cgroup/app/one/cpu.max");
  write_file (machine, "250000 100000\n", "sys/fs/cgroup/app/cpu.max");
  expect (machine, 2, TRUE, "4567");
}

static void
test_frequencies (Machine *machine, gconstpointer data)
{
  write_file (machine, "0-7\n", "sys/devices/system/cpu/online");
  add_cpus (machine, 0, 4, "cpufreq/cpuinfo_max_freq", "1800000\n");
  add_cpus (machine, 4, 4, "cpufreq/cpuinfo_max_freq", "2400000\n");
  expect (machine, 8, FALSE, "01234567");
  add_cpus (machine, 0, 4, "cpufreq/cpuinfo_max_freq", "1600000\n");
  expect (machine, 4, TRUE, "4567");
}

/* Two threads a core, numbered as Linux does on x86. */
static void
test_siblings (Machine *machine, gconstpointer data)
{
  write_file (machine, "0-7\n", "sys/devices/system/cpu/online");
  for (int cpu = 0; cpu < 8; cpu++) {
    g_autofree char *list = g_strdup_printf ("%d,%d\n", cpu % 4,
        cpu % 4 + 4);

    write_file (machine, list,
        "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  }
  expect (machine, 4, FALSE, "01234567");
}

static void
test_offline_and_affinity (Machine *machine, gconstpointer data)
{
  write_file (machine, "0-2,5\n", "sys/devices/system/cpu/online");
  expect (machine, 4, FALSE, "0125");
  CPU_CLR (0, &machine->allowed);
  expect (machine, 3, FALSE, "125");
}

static void
test_old_quota (Machine *machine, gconstpointer data)
{
  write_file (machine, "0-7\n", "sys/devices/system/cpu/online");
  write_file (machine, "12:cpuset:/\n4:cpu,cpuacct:/box\n",
      "proc/self/cgroup");
  write_file (machine, "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  write_file (machine, "50000\n", "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us");
  write_file (machine, "100000\n",
      "sys/fs/cgroup/cpu/box/cpu.cfs_period_us");
  expect (machine, 1, FALSE, "01234567");
}

/* No files, or none that make sense. */
static void
test_unknown (Machine *machine, gconstpointer data)
{
  expect (machine, 4, FALSE, "012345678");
  write_file (machine, "nonsense", "sys/devices/system/cpu/online");
  write_file (machine, "::::\n\n0\n", "proc/self/cgroup");
  expect (machine, 4, FALSE, "012345678");
  write_file (machine, "0-7", "sys/devices/system/cpu/online");
  add_cpus (machine, 0, 8, "cpu_capacity", "none");
  expect (machine, 8, FALSE, "01234567");
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run) (Machine *, gconstpointer);
  } tests[] = {
    { "capacities", test_capacities },
    { "frequencies", test_frequencies },
    { "siblings", test_siblings },
    { "offline-and-affinity", test_offline_and_affinity },
    { "old-quota", test_old_quota },
    { "unknown", test_unknown },
  };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++) {
    g_autofree char *path = g_strconcat ("/cpu-topology/", tests[i].name,
        NULL);

    g_test_add (path, Machine, NULL, set_up, tests[i].run, tear_down);
  }
  return g_test_run ();
}
