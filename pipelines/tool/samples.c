/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "samples.h"

void
samples_init (Samples *self)
{
  self->values = g_array_new (FALSE, FALSE, sizeof (double));
}

void
samples_clear (Samples *self)
{
  g_clear_pointer (&self->values, g_array_unref);
}

void
samples_add (Samples *self, double value)
{
  g_array_append_val (self->values, value);
}

guint
samples_count (const Samples *self)
{
  return self->values->len;
}

static int
compare (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Of the sorted values; a position between two is their mean. */
static double
at_position (const Samples *self, double fraction)
{
  g_autoptr (GArray) sorted = g_array_copy (self->values);
  double position;
  guint below;

  if (sorted->len == 0)
    return 0;
  g_array_sort (sorted, compare);
  position = fraction * (sorted->len - 1);
  below = (guint) position;
  if (below == position)
    return g_array_index (sorted, double, below);
  return (g_array_index (sorted, double, below)
      + g_array_index (sorted, double, below + 1)) / 2;
}

double
samples_median (const Samples *self)
{
  return at_position (self, 0.5);
}

double
samples_min (const Samples *self)
{
  return at_position (self, 0);
}

double
samples_max (const Samples *self)
{
  return at_position (self, 1);
}

void
samples_add_json (const Samples *self, JsonOutput *json)
{
  json_add_double (json, "median", samples_median (self));
  json_add_double (json, "min", samples_min (self));
  json_add_double (json, "max", samples_max (self));
  json_begin_array (json, "samples");
  for (guint i = 0; i < self->values->len; i++)
    json_add_double (json, NULL, g_array_index (self->values, double, i));
  json_end_array (json);
}
