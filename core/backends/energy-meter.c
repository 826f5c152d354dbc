/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Sensors by the Linux kernel's documentation: Documentation/power/powercap
 * (energy_uj counts micro-joules and wraps at max_energy_range_uj),
 * Documentation/ABI/testing/sysfs-class-power (µW, µA, µV) and
 * Documentation/hwmon/sysfs-interface (energyN_input in µJ, powerN_input in
 * µW).
 */
#include "energy-meter.h"

#include "../error.h"
#include "system-text.h"

#define SAMPLE_INTERVAL (50 * G_TIME_SPAN_MILLISECOND)

typedef struct {
  char *path;             /* a counter in µJ, or a power in µW */
  char *current_path;     /* powers by their parts: µA, and path is µV */
  guint64 range;          /* counters: where they wrap; 0: never */
  guint64 last;           /* counters: what was read last */
} Sensor;

struct _RunnelEnergyMeter {
  GObject parent;
  char *source;
  GArray *sensors;        /* of Sensor */
  gboolean is_power;      /* sensors give powers, which are integrated */

  GMutex lock;
  double joules;          /* lock */
  double watts;           /* lock; powers: what was read last */
  gint64 time;            /* lock; powers: when, µs */
  gboolean is_stopping;   /* lock */
  GCond stop;
  GThread *sampler;       /* powers only */
};

G_DEFINE_FINAL_TYPE (RunnelEnergyMeter, runnel_energy_meter, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_ENERGY_METER (self) && (self)->source != NULL)

static void
sensor_clear (gpointer data)
{
  Sensor *sensor = data;

  g_free (sensor->path);
  g_free (sensor->current_path);
}

static gboolean
read_number (const char *path, guint64 *ret_value)
{
  g_autofree char *text = NULL;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  g_strstrip (text);
  /* Batteries may give what they lose with a sign. */
  return g_ascii_string_to_unsigned (text[0] == '-' ? text + 1 : text, 10, 0,
                                     G_MAXUINT64, ret_value, NULL);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

/* The entries of a folder below sysfs, in order, as paths. */
static GPtrArray *
list_folder (const char *sysfs, const char *name)
{
  g_autofree char *folder = g_build_filename (sysfs, name, NULL);
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *entry;

  while (dir != NULL && (entry = g_dir_read_name (dir)) != NULL)
    g_ptr_array_add (paths, g_build_filename (folder, entry, NULL));
  g_ptr_array_sort (paths, compare_names);
  return paths;
}

static void
add_to_source (GString *source, const char *kind, const char *name)
{
  g_string_append_printf (source, "%s%s %s", source->len > 0 ? ", " : "", kind,
                          name);
}

/* Whole processors: zones "intel-rapl:0", not their parts "intel-rapl:0:1",
 * and not psys, which holds them. */
static void
find_powercap (RunnelEnergyMeter *self, const char *sysfs, GString *source,
               GString *unreadable)
{
  g_autoptr (GPtrArray) zones = list_folder (sysfs, "class/powercap");

  for (guint i = 0; i < zones->len; i++) {
    const char *zone = zones->pdata[i];
    g_autofree char *name = runnel_system_text_read (zone, "name");
    g_autofree char *path = g_build_filename (zone, "energy_uj", NULL);
    g_autofree char *range = g_build_filename (zone, "max_energy_range_uj",
                                               NULL);
    Sensor sensor = { 0 };

    if (name == NULL || !g_str_has_prefix (name, "package"))
      continue;
    if (!read_number (path, &sensor.last)) {
      if (g_file_test (path, G_FILE_TEST_EXISTS) && unreadable->len == 0)
        g_string_assign (unreadable, path);
      continue;
    }
    read_number (range, &sensor.range);
    sensor.path = g_steal_pointer (&path);
    g_array_append_val (self->sensors, sensor);
    add_to_source (source, "powercap", name);
  }
}

static void
find_batteries (RunnelEnergyMeter *self, const char *sysfs, GString *source)
{
  g_autoptr (GPtrArray) supplies = list_folder (sysfs, "class/power_supply");

  for (guint i = 0; i < supplies->len; i++) {
    const char *supply = supplies->pdata[i];
    g_autofree char *type = runnel_system_text_read (supply, "type");
    g_autofree char *status = runnel_system_text_read (supply, "status");
    g_autofree char *power = g_build_filename (supply, "power_now", NULL);
    g_autofree char *current = g_build_filename (supply, "current_now", NULL);
    g_autofree char *voltage = g_build_filename (supply, "voltage_now", NULL);
    g_autofree char *name = g_path_get_basename (supply);
    Sensor sensor = { 0 };
    guint64 ignored;

    if (g_strcmp0 (type, "Battery") != 0
        || g_strcmp0 (status, "Discharging") != 0)
      continue;
    if (read_number (power, &ignored)) {
      sensor.path = g_steal_pointer (&power);
    } else if (read_number (current, &ignored)
               && read_number (voltage, &ignored)) {
      sensor.path = g_steal_pointer (&voltage);
      sensor.current_path = g_steal_pointer (&current);
    } else {
      continue;
    }
    g_array_append_val (self->sensors, sensor);
    add_to_source (source, "battery", name);
  }
  self->is_power = self->sensors->len > 0;
}

/* The first device that counts energy; powers of several devices may hold one
 * another, so they are not added up either. */
static void
find_hwmon (RunnelEnergyMeter *self, const char *sysfs, GString *source)
{
  static const struct {
    const char *file;
    gboolean is_power;
  } inputs[] = {
    { "energy1_input", FALSE },
    { "power1_average", TRUE },
    { "power1_input", TRUE },
  };
  g_autoptr (GPtrArray) devices = list_folder (sysfs, "class/hwmon");

  for (gsize k = 0; k < G_N_ELEMENTS (inputs); k++)
    for (guint i = 0; i < devices->len; i++) {
      const char *device = devices->pdata[i];
      g_autofree char *path = g_build_filename (device, inputs[k].file, NULL);
      g_autofree char *name = runnel_system_text_read (device, "name");
      Sensor sensor = { 0 };

      if (!read_number (path, &sensor.last))
        continue;
      sensor.path = g_steal_pointer (&path);
      g_array_append_val (self->sensors, sensor);
      self->is_power = inputs[k].is_power;
      add_to_source (source, "hwmon", name != NULL ? name : device);
      return;
    }
}

/* µW now, all sensors together. */
static double
read_power (RunnelEnergyMeter *self)
{
  double sum = 0;

  for (guint i = 0; i < self->sensors->len; i++) {
    const Sensor *sensor = &g_array_index (self->sensors, Sensor, i);
    guint64 value, current;

    if (!read_number (sensor->path, &value))
      continue;
    if (sensor->current_path == NULL)
      sum += (double) value;
    else if (read_number (sensor->current_path, &current))
      sum += (double) value * (double) current / 1e6;
  }
  return sum;
}

/* The trapezoid since the last reading. */
static void
integrate_unlocked (RunnelEnergyMeter *self)
{
  const gint64 now = g_get_monotonic_time ();
  const double watts = read_power (self) / 1e6;

  self->joules += (self->watts + watts) / 2 * (double) (now - self->time) / 1e6;
  self->watts = watts;
  self->time = now;
}

static void
count_unlocked (RunnelEnergyMeter *self)
{
  for (guint i = 0; i < self->sensors->len; i++) {
    Sensor *sensor = &g_array_index (self->sensors, Sensor, i);
    guint64 value, used;

    if (!read_number (sensor->path, &value))
      continue;
    if (value >= sensor->last)
      used = value - sensor->last;
    else if (sensor->range >= sensor->last)
      used = sensor->range - sensor->last + value;
    else
      used = 0;           /* it was reset */
    sensor->last = value;
    self->joules += (double) used / 1e6;
  }
}

static gpointer
sample (gpointer data)
{
  RunnelEnergyMeter *self = data;

  g_mutex_lock (&self->lock);
  while (!self->is_stopping)
    if (!g_cond_wait_until (&self->stop, &self->lock,
                            g_get_monotonic_time () + SAMPLE_INTERVAL))
      integrate_unlocked (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}

static void
set_no_sensor (const char *sysfs, const GString *unreadable, GError **error)
{
  if (unreadable->len > 0)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s cannot be read: energy is for root unless its mode is "
                 "changed", unreadable->str);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "no energy sensor: neither a package in %s/class/powercap, "
                 "nor a discharging battery in %s/class/power_supply, nor "
                 "energy or power in %s/class/hwmon", sysfs, sysfs, sysfs);
}

/**
 * runnel_energy_meter_new:
 * @sysfs: (nullable): where sysfs is mounted, or %NULL for `/sys`
 * @error: return location
 *
 * Finds a sensor and begins to measure.
 *
 * Returns: (transfer full): a meter at 0 J, or %NULL with
 *   %RUNNEL_ERROR_UNSUPPORTED when there is no sensor that may be read
 *
 * Since: 0.1
 */
RunnelEnergyMeter *
runnel_energy_meter_new (const char *sysfs, GError **error)
{
  g_autoptr (RunnelEnergyMeter) self
      = g_object_new (RUNNEL_TYPE_ENERGY_METER, NULL);
  g_autoptr (GString) source = g_string_new (NULL);
  g_autoptr (GString) unreadable = g_string_new (NULL);

  if (sysfs == NULL)
    sysfs = "/sys";
  find_powercap (self, sysfs, source, unreadable);
  if (self->sensors->len == 0)
    find_batteries (self, sysfs, source);
  if (self->sensors->len == 0)
    find_hwmon (self, sysfs, source);
  if (self->sensors->len == 0) {
    set_no_sensor (sysfs, unreadable, error);
    return NULL;
  }
  self->source = g_strdup (source->str);
  if (self->is_power) {
    self->watts = read_power (self) / 1e6;
    self->time = g_get_monotonic_time ();
    self->sampler = g_thread_new ("energy-meter", sample, self);
  }
  return g_steal_pointer (&self);
}

/**
 * runnel_energy_meter_get_source:
 * @self: a meter
 *
 * What it reads, for people: "powercap package-0", "battery BAT0".
 *
 * Returns: (transfer none): kind and name of each sensor
 *
 * Since: 0.1
 */
const char *
runnel_energy_meter_get_source (RunnelEnergyMeter *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->source;
}

/**
 * runnel_energy_meter_read:
 * @self: a meter
 *
 * A counter that wraps is followed as long as it is read once in each of its
 * rounds; powers are sampled 20 times a second.
 *
 * Returns: joules since the meter was made
 *
 * Since: 0.1
 */
double
runnel_energy_meter_read (RunnelEnergyMeter *self)
{
  double joules;

  g_return_val_if_fail (IS_MADE (self), 0);
  g_mutex_lock (&self->lock);
  if (self->is_power)
    integrate_unlocked (self);
  else
    count_unlocked (self);
  joules = self->joules;
  g_mutex_unlock (&self->lock);
  return joules;
}

static void
runnel_energy_meter_finalize (GObject *object)
{
  RunnelEnergyMeter *self = RUNNEL_ENERGY_METER (object);

  if (self->sampler != NULL) {
    g_mutex_lock (&self->lock);
    self->is_stopping = TRUE;
    g_cond_signal (&self->stop);
    g_mutex_unlock (&self->lock);
    g_thread_join (self->sampler);
  }
  g_free (self->source);
  g_array_unref (self->sensors);
  g_cond_clear (&self->stop);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (runnel_energy_meter_parent_class)->finalize (object);
}

static void
runnel_energy_meter_class_init (RunnelEnergyMeterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_energy_meter_finalize;
}

static void
runnel_energy_meter_init (RunnelEnergyMeter *self)
{
  self->sensors = g_array_new (FALSE, FALSE, sizeof (Sensor));
  g_array_set_clear_func (self->sensors, sensor_clear);
  g_mutex_init (&self->lock);
  g_cond_init (&self->stop);
}
