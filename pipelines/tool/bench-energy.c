/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bench-energy.h"

#include <stdio.h>

#include "bench-cases.h"
#include "report.h"

/* The inference that the card of MNN-Pocket-0.3B speaks of: at most a ten
 * thousandth of a battery. */
#define PROMPT_TOKENS 256
#define REPLY_TOKENS 64
#define CARD_SHARE 1e-4

#define IDLE_TIME G_USEC_PER_SEC

void
bench_energy_init (BenchEnergy *self)
{
  *self = (BenchEnergy) { .battery_mah = 5000, .battery_volts = 3.85 };
  samples_init (&self->joules);
  samples_init (&self->seconds);
}

void
bench_energy_clear (BenchEnergy *self)
{
  g_clear_pointer (&self->unavailable, g_free);
  g_clear_pointer (&self->source, g_free);
  samples_clear (&self->joules);
  samples_clear (&self->seconds);
}

static double
battery_joules (const BenchEnergy *self)
{
  return self->battery_mah * 3.6 * self->battery_volts;
}

gboolean
bench_energy_measure (BenchEnergy *self, RunnelEngine *engine, guint64 seed,
                      guint repeats, GError **error)
{
  g_autoptr (GError) no_sensor = NULL;
  g_autoptr (RunnelEnergyMeter) meter
      = runnel_energy_meter_new (self->sysfs, &no_sensor);
  g_autoptr (BenchCase) inference
      = bench_case_new (BENCH_INFERENCE, REPLY_TOKENS, PROMPT_TOKENS);

  if (meter == NULL) {
    self->unavailable = g_strdup (no_sensor->message);
    return TRUE;
  }
  self->source = g_strdup (runnel_energy_meter_get_source (meter));
  report_progress ("Measuring the machine at rest");
  g_usleep (IDLE_TIME);
  self->idle_watts = runnel_energy_meter_read (meter)
      / (IDLE_TIME / (double) G_USEC_PER_SEC);
  if (!bench_case_prepare (inference, engine, NULL, seed, error))
    return FALSE;
  for (guint i = 0; i <= repeats; i++) {
    double before = runnel_energy_meter_read (meter);
    gint64 started = g_get_monotonic_time ();

    report_progress ("Measuring the energy of an inference");
    if (!bench_case_run (inference, engine, seed, i == 0, error))
      return FALSE;
    if (i == 0)
      continue;
    samples_add (&self->seconds, (g_get_monotonic_time () - started) / 1e6);
    samples_add (&self->joules, runnel_energy_meter_read (meter) - before);
  }
  return TRUE;
}

void
bench_energy_print (const BenchEnergy *self)
{
  double joules = samples_median (&self->joules);
  double share = joules / battery_joules (self);

  if (self->unavailable != NULL) {
    printf ("energy         not measured: %s\n", self->unavailable);
    return;
  }
  printf ("energy         %.3f J an inference (%.3f – %.3f; %u tokens in, %u "
      "out), %.4f J a token\n"
      "               the whole machine by %s; %.2f W at rest\n"
      "               %.3g of a battery of %.0f mAh at %.2f V: %.2f × the "
      "1/10,000 of the card\n",
      joules, samples_min (&self->joules), samples_max (&self->joules),
      PROMPT_TOKENS, REPLY_TOKENS, joules / (PROMPT_TOKENS + REPLY_TOKENS),
      self->source, self->idle_watts, share, self->battery_mah,
      self->battery_volts, share / CARD_SHARE);
}

void
bench_energy_add_json (const BenchEnergy *self, JsonOutput *json)
{
  double joules = samples_median (&self->joules);

  json_begin_object (json, "energy");
  if (self->unavailable != NULL) {
    json_add_string (json, "unavailable", self->unavailable, -1);
    json_end_object (json);
    return;
  }
  json_add_string (json, "source", self->source, -1);
  json_add_uint (json, "prompt_tokens", PROMPT_TOKENS);
  json_add_uint (json, "completion_tokens", REPLY_TOKENS);
  json_begin_object (json, "joules");
  samples_add_json (&self->joules, json);
  json_end_object (json);
  json_begin_object (json, "seconds");
  samples_add_json (&self->seconds, json);
  json_end_object (json);
  json_add_double (json, "joules_per_token",
      joules / (PROMPT_TOKENS + REPLY_TOKENS));
  json_add_double (json, "idle_watts", self->idle_watts);
  json_add_double (json, "battery_joules", battery_joules (self));
  json_add_double (json, "battery_share", joules / battery_joules (self));
  json_add_double (json, "by_card", joules / battery_joules (self)
      / CARD_SHARE);
  json_end_object (json);
}
