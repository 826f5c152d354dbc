/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What a typical inference costs in energy, against a reference battery. */
#pragma once

#include <runnel.h>

#include "samples.h"

G_BEGIN_DECLS

typedef struct {
  /* given */
  const char *sysfs;      /* NULL: /sys */
  double battery_mah;
  double battery_volts;
  /* found */
  char *unavailable;      /* why nothing was measured, or NULL */
  char *source;
  double idle_watts;      /* before the first inference */
  Samples joules;         /* of an inference, everything the sensor sees */
  Samples seconds;
} BenchEnergy;

void bench_energy_init (BenchEnergy *self);
void bench_energy_clear (BenchEnergy *self);
/* Where there is no sensor it notes why, and that is no failure. */
gboolean bench_energy_measure (BenchEnergy *self, RunnelEngine *engine,
                               guint64 seed, guint repeats, GError **error);
void bench_energy_print (const BenchEnergy *self);
/* The member "energy". */
void bench_energy_add_json (const BenchEnergy *self, JsonOutput *json);

G_END_DECLS
