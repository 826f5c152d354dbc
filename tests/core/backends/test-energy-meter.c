/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The energy meter over a sysfs of our own.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>

#include "backends/energy-meter.h"
#include "error.h"

typedef struct {
  char *sysfs;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->sysfs = g_dir_make_tmp ("runnel-sysfs-XXXXXX", NULL);
  g_assert_nonnull (fixture->sysfs);
}

static void
remove_tree (GFile *file)
{
  g_autoptr (GFileEnumerator) children = g_file_enumerate_children (file,
      "standard::name", G_FILE_QUERY_INFO_NOFOLLOW_SYMLINKS, NULL, NULL);
  GFile *child;

  while (children != NULL
         && g_file_enumerator_iterate (children, NULL, &child, NULL, NULL)
         && child != NULL)
    remove_tree (child);
  g_file_delete (file, NULL, NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GFile) file = g_file_new_for_path (fixture->sysfs);

  remove_tree (file);
  g_free (fixture->sysfs);
}

static void
put (Fixture *fixture, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (fixture->sysfs, "class", name,
                                            NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
put_package (Fixture *fixture, const char *zone, const char *name,
             const char *energy)
{
  static const char *const files[] = { "name", "energy_uj",
                                       "max_energy_range_uj" };
  const char *const texts[] = { name, energy, "1000000000\n" };

  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree char *path = g_strdup_printf ("powercap/%s/%s", zone, files[i]);

    put (fixture, path, texts[i]);
  }
}

static RunnelEnergyMeter *
make_meter (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  RunnelEnergyMeter *meter = runnel_energy_meter_new (fixture->sysfs, &error);

  g_assert_no_error (error);
  return meter;
}

static void
test_none (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  put (fixture, "power_supply/BAT0/type", "Battery\n");
  put (fixture, "power_supply/BAT0/status", "Charging\n");
  put (fixture, "power_supply/BAT0/power_now", "2000000\n");
  put (fixture, "hwmon/hwmon0/temp1_input", "40000\n");
  g_assert_null (runnel_energy_meter_new (fixture->sysfs, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "class/powercap"));
  g_assert_nonnull (strstr (error->message, fixture->sysfs));
}

/* The root of a container reads every file: here it is a folder. */
static void
test_unreadable (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  put (fixture, "powercap/intel-rapl:0/name", "package-0\n");
  put (fixture, "powercap/intel-rapl:0/energy_uj/file", "");
  g_assert_null (runnel_energy_meter_new (fixture->sysfs, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "intel-rapl:0/energy_uj cannot"));
}

/* Two processors are added up; their cores and the platform are not counted
 * again; one of the counters wraps. */
static void
test_powercap (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelEnergyMeter) meter = NULL;

  put_package (fixture, "intel-rapl:0", "package-0\n", "999000000\n");
  put_package (fixture, "intel-rapl:0:0", "core\n", "5\n");
  put_package (fixture, "intel-rapl:1", "package-1\n", "100\n");
  put_package (fixture, "intel-rapl:2", "psys\n", "7\n");
  meter = make_meter (fixture);
  g_assert_cmpstr (runnel_energy_meter_get_source (meter), ==,
                   "powercap package-0, powercap package-1");
  g_assert_cmpfloat (runnel_energy_meter_read (meter), ==, 0);
  put_package (fixture, "intel-rapl:0", "package-0\n", "2000000\n");
  put_package (fixture, "intel-rapl:0:0", "core\n", "900000005\n");
  put_package (fixture, "intel-rapl:1", "package-1\n", "500100\n");
  put_package (fixture, "intel-rapl:2", "psys\n", "900000007\n");
  g_assert_cmpfloat_with_epsilon (runnel_energy_meter_read (meter), 3.5,
                                  1e-9);
  /* What was read stays when a counter goes. */
  put (fixture, "powercap/intel-rapl:0/energy_uj", "nonsense");
  g_assert_cmpfloat_with_epsilon (runnel_energy_meter_read (meter), 3.5,
                                  1e-9);
}

/* Watts for a while: no less than the time says, and no more. */
static void
check_power (Fixture *fixture, const char *source, double watts)
{
  const gint64 before = g_get_monotonic_time ();
  g_autoptr (RunnelEnergyMeter) meter = make_meter (fixture);
  const gint64 made = g_get_monotonic_time ();
  double joules, most, least;

  g_assert_cmpstr (runnel_energy_meter_get_source (meter), ==, source);
  g_usleep (120 * 1000);
  least = (double) (g_get_monotonic_time () - made) / 1e6 * watts;
  joules = runnel_energy_meter_read (meter);
  most = (double) (g_get_monotonic_time () - before) / 1e6 * watts;
  g_assert_cmpfloat (joules, >=, least * 0.999);
  g_assert_cmpfloat (joules, <=, most * 1.001);
}

static void
test_battery (Fixture *fixture, gconstpointer data)
{
  put (fixture, "power_supply/AC/type", "Mains\n");
  put (fixture, "power_supply/BAT0/type", "Battery\n");
  put (fixture, "power_supply/BAT0/status", "Discharging\n");
  put (fixture, "power_supply/BAT0/current_now", "-500000\n");
  put (fixture, "power_supply/BAT0/voltage_now", "4000000\n");
  check_power (fixture, "battery BAT0", 2);
  put (fixture, "power_supply/BAT0/power_now", "3000000\n");
  check_power (fixture, "battery BAT0", 3);
}

static void
test_hwmon (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelEnergyMeter) meter = NULL;

  put (fixture, "hwmon/hwmon0/name", "board\n");
  put (fixture, "hwmon/hwmon0/power1_input", "5000000\n");
  check_power (fixture, "hwmon board", 5);
  put (fixture, "hwmon/hwmon1/name", "cpu\n");
  put (fixture, "hwmon/hwmon1/energy1_input", "1000000\n");
  meter = make_meter (fixture);
  put (fixture, "hwmon/hwmon1/energy1_input", "4000000\n");
  g_assert_cmpstr (runnel_energy_meter_get_source (meter), ==, "hwmon cpu");
  g_assert_cmpfloat_with_epsilon (runnel_energy_meter_read (meter), 3, 1e-9);
}

int
main (int argc, char *argv[])
{
  static const struct {
    const char *path;
    void (*test) (Fixture *fixture, gconstpointer data);
  } tests[] = {
    { "/energy-meter/none", test_none },
    { "/energy-meter/unreadable", test_unreadable },
    { "/energy-meter/powercap", test_powercap },
    { "/energy-meter/battery", test_battery },
    { "/energy-meter/hwmon", test_hwmon },
  };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].test,
                tear_down);
  return g_test_run ();
}
