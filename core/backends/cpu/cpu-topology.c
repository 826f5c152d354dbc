/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Processors are compared by cpu_capacity, or where that is missing by their
 * highest frequency. Those with at least 70 % of the best are taken: the prime
 * and the big cores of a phone belong together, the small ones would be waited
 * for in every loop.
 */
#include "cpu-topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CPUS CPU_SETSIZE
#define PATH_BYTES 4096
#define LIST_BYTES 4096
#define UNKNOWN_MACHINE_THREADS 4

/* The first line of a file below root, without its newline. */
static bool
read_line (const char *root, const char *path, char *line, size_t size)
{
  char name[PATH_BYTES];
  FILE *file;
  bool ok;

  if (snprintf (name, sizeof name, "%s%s", root, path) >= (int) sizeof name)
    return false;
  file = fopen (name, "re");
  if (file == NULL)
    return false;
  ok = fgets (line, size, file) != NULL;
  fclose (file);
  if (ok)
    line[strcspn (line, "\n")] = '\0';
  return ok;
}

/* A list such as "0-3,8,10-11". */
static bool
parse_list (const char *text, cpu_set_t *set)
{
  CPU_ZERO (set);
  while (*text != '\0') {
    char *end;
    unsigned long first = strtoul (text, &end, 10), last = first;

    if (end == text)
      return false;
    if (*end == '-') {
      text = end + 1;
      last = strtoul (text, &end, 10);
      if (end == text)
        return false;
    }
    for (unsigned long cpu = first; cpu <= last && cpu < MAX_CPUS; cpu++)
      CPU_SET (cpu, set);
    if (*end != ',' && *end != '\0')
      return false;
    text = *end == ',' ? end + 1 : end;
  }
  return true;
}

static bool
read_cpu_line (const char *root, unsigned cpu, const char *name, char *line,
               size_t size)
{
  char path[128];

  snprintf (path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, name);
  return read_line (root, path, line, size);
}

/* ---- Speed --------------------------------------------------------------- */

/* Fills the speeds of all processors of the set, or none. */
static bool
read_speeds (const char *root, const cpu_set_t *set, const char *name,
             unsigned long *speeds)
{
  for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
    char line[64];

    if (!CPU_ISSET (cpu, set))
      continue;
    if (!read_cpu_line (root, cpu, name, line, sizeof line))
      return false;
    speeds[cpu] = strtoul (line, NULL, 10);
    if (speeds[cpu] == 0)
      return false;
  }
  return true;
}

/* Leaves the slow processors out of the set; whether there were any. */
static bool
keep_fast (const char *root, cpu_set_t *set)
{
  unsigned long speeds[MAX_CPUS], best = 0;
  bool restricted = false;

  if (!read_speeds (root, set, "cpu_capacity", speeds)
      && !read_speeds (root, set, "cpufreq/cpuinfo_max_freq", speeds))
    return false;
  for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
    if (CPU_ISSET (cpu, set) && speeds[cpu] > best)
      best = speeds[cpu];
  for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
    if (CPU_ISSET (cpu, set) && speeds[cpu] < best / 10 * 7) {
      CPU_CLR (cpu, set);
      restricted = true;
    }
  return restricted;
}

/* Processors of one core share its arithmetic: a second thread there gains
 * nothing. Without siblings' lists every processor is a core. */
static unsigned
count_cores (const char *root, const cpu_set_t *set)
{
  cpu_set_t counted;
  unsigned n = 0;

  CPU_ZERO (&counted);
  for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
    char line[LIST_BYTES];
    cpu_set_t siblings;

    if (!CPU_ISSET (cpu, set) || CPU_ISSET (cpu, &counted))
      continue;
    n++;
    if (read_cpu_line (root, cpu, "topology/thread_siblings_list", line,
            sizeof line) && parse_list (line, &siblings))
      CPU_OR (&counted, &counted, &siblings);
  }
  return n;
}

/* ---- The container's quota ----------------------------------------------- */

static void
limit_to (unsigned long quota, unsigned long period, unsigned *n)
{
  unsigned long whole = period > 0 ? quota / period : *n;

  if (whole < *n)
    *n = whole > 0 ? whole : 1;
}

/* cpu.max of version 2: "250000 100000" or "max 100000". */
static void
limit_by_group (const char *root, const char *group, unsigned *n)
{
  char path[PATH_BYTES], line[64];
  unsigned long quota, period;

  snprintf (path, sizeof path, "/sys/fs/cgroup%.3000s/cpu.max", group);
  if (read_line (root, path, line, sizeof line)
      && sscanf (line, "%lu %lu", &quota, &period) == 2)
    limit_to (quota, period, n);
}

/* The two files of version 1, where −1 is no quota. */
static void
limit_by_old_group (const char *root, const char *group, unsigned *n)
{
  char path[PATH_BYTES], quota[64], period[64];

  snprintf (path, sizeof path,
      "/sys/fs/cgroup/cpu%.3000s/cpu.cfs_quota_us", group);
  if (!read_line (root, path, quota, sizeof quota) || quota[0] == '-')
    return;
  snprintf (path, sizeof path,
      "/sys/fs/cgroup/cpu%.3000s/cpu.cfs_period_us", group);
  if (read_line (root, path, period, sizeof period))
    limit_to (strtoul (quota, NULL, 10), strtoul (period, NULL, 10), n);
}

/* A quota holds for everything below its group, so the process's group and
 * all around it count. */
static void
limit_by_groups (const char *root, char *group, bool old, unsigned *n)
{
  for (;;) {
    char *slash = strrchr (group, '/');

    if (old)
      limit_by_old_group (root, group, n);
    else
      limit_by_group (root, group, n);
    if (slash == NULL)
      return;
    *slash = '\0';
  }
}

/* Whether "cpu" is in a list such as "cpu,cpuacct". */
static bool
has_cpu_controller (const char *list, size_t length)
{
  for (const char *end = list + length; list < end;) {
    size_t n = strcspn (list, ",:");

    if (n == 3 && strncmp (list, "cpu", 3) == 0)
      return true;
    list += n + 1;
  }
  return false;
}

/* Lines of /proc/self/cgroup are ID:CONTROLLERS:GROUP; version 2 has the id 0
 * and no controllers. */
static void
limit_by_quota (const char *root, unsigned *n)
{
  char name[PATH_BYTES], line[PATH_BYTES];
  FILE *file;

  snprintf (name, sizeof name, "%.4000s/proc/self/cgroup", root);
  file = fopen (name, "re");
  if (file == NULL)
    return;
  while (fgets (line, sizeof line, file) != NULL) {
    char *controllers = strchr (line, ':'), *group;

    if (controllers == NULL || (group = strchr (++controllers, ':')) == NULL)
      continue;
    group[strcspn (group, "\n")] = '\0';
    if (group == controllers && strncmp (line, "0:", 2) == 0)
      limit_by_groups (root, group + 1, false, n);
    else if (has_cpu_controller (controllers, group - controllers))
      limit_by_groups (root, group + 1, true, n);
  }
  fclose (file);
}

/* ---- The choice ---------------------------------------------------------- */

void
runnel_cpu_choose (const char *root, const cpu_set_t *allowed,
                   RunnelCpuChoice *ret_choice)
{
  RunnelCpuChoice choice = { .cpus = *allowed };
  char line[LIST_BYTES];
  cpu_set_t online;

  if (read_line (root, "/sys/devices/system/cpu/online", line, sizeof line)
      && parse_list (line, &online)) {
    CPU_AND (&choice.cpus, allowed, &online);
    if (CPU_COUNT (&choice.cpus) == 0)
      choice.cpus = *allowed;
    choice.restricted = keep_fast (root, &choice.cpus);
    choice.n_threads = count_cores (root, &choice.cpus);
  } else {
    choice.n_threads = CPU_COUNT (allowed);
    if (choice.n_threads > UNKNOWN_MACHINE_THREADS)
      choice.n_threads = UNKNOWN_MACHINE_THREADS;
  }
  if (choice.n_threads == 0)
    choice.n_threads = 1;
  limit_by_quota (root, &choice.n_threads);
  *ret_choice = choice;
}
