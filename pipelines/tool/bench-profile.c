/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bench-profile.h"

#include <stdio.h>

#include "json-output.h"

void
bench_limits_init (BenchLimits *self)
{
  samples_init (&self->bytes);
  samples_init (&self->integer_macs);
  samples_init (&self->float_macs);
}

void
bench_limits_clear (BenchLimits *self)
{
  samples_clear (&self->bytes);
  samples_clear (&self->integer_macs);
  samples_clear (&self->float_macs);
}

void
bench_limits_measure (BenchLimits *self, RunnelBackend *backend)
{
  double bytes, integer_macs, float_macs;

  runnel_backend_measure_limits (backend, &bytes, &integer_macs, &float_macs);
  samples_add (&self->bytes, bytes);
  samples_add (&self->integer_macs, integer_macs);
  samples_add (&self->float_macs, float_macs);
}

void
bench_limits_print (const BenchLimits *self)
{
  printf ("limits         %.1f GB/s of memory, %.1f GMAC/s of 8-bit integers, "
      "%.1f GMAC/s of floats, measured beside\n",
      samples_median (&self->bytes) * 1e-9,
      samples_median (&self->integer_macs) * 1e-9,
      samples_median (&self->float_macs) * 1e-9);
}

static void
add_limit_json (JsonOutput *json, const char *key, const Samples *samples)
{
  json_begin_object (json, key);
  samples_add_json (samples, json);
  json_end_object (json);
}

void
bench_limits_add_json (const BenchLimits *self, JsonOutput *json)
{
  json_begin_object (json, "limits_per_second");
  add_limit_json (json, "bytes", &self->bytes);
  add_limit_json (json, "integer_macs", &self->integer_macs);
  add_limit_json (json, "float_macs", &self->float_macs);
  json_end_object (json);
}

void
bench_profile_add (BenchProfile *self, RunnelBackend *backend, double seconds)
{
  g_autoptr (GVariant) taken = runnel_backend_take_profile (backend);
  gsize n = g_variant_n_children (taken);

  self->n_ops = MIN (n, BENCH_MAX_OPS);
  self->seconds += seconds;
  for (guint i = 0; i < self->n_ops; i++) {
    BenchOp *op = &self->ops[i], more;
    const char *name;

    g_variant_get_child (taken, i, "(&sttttt)", &name, &more.calls, &more.ns,
        &more.bytes, &more.integer_macs, &more.float_macs);
    g_strlcpy (op->name, name, sizeof op->name);
    op->calls += more.calls;
    op->ns += more.ns;
    op->bytes += more.bytes;
    op->integer_macs += more.integer_macs;
    op->float_macs += more.float_macs;
  }
}

typedef struct {
  double bytes, integer_macs, float_macs;
} Shares;

/* Of what the machine could have done in the time. */
static Shares
get_shares (const BenchProfile *self, const BenchLimits *limits)
{
  Shares shares = { 0 };

  for (guint i = 0; i < self->n_ops; i++) {
    shares.bytes += self->ops[i].bytes;
    shares.integer_macs += self->ops[i].integer_macs;
    shares.float_macs += self->ops[i].float_macs;
  }
  shares.bytes /= samples_median (&limits->bytes) * self->seconds;
  shares.integer_macs /= samples_median (&limits->integer_macs)
      * self->seconds;
  shares.float_macs /= samples_median (&limits->float_macs) * self->seconds;
  return shares;
}

void
bench_profile_print_roofline (const BenchProfile *self,
                              const BenchCase *bench_case,
                              const BenchLimits *limits)
{
  Shares shares = get_shares (self, limits);

  printf ("roofline       %-10s depth %-5u %3.0f %% of memory, %3.0f %% of "
      "integers, %3.0f %% of floats\n", bench_case->name, bench_case->depth,
      100 * shares.bytes, 100 * shares.integer_macs, 100 * shares.float_macs);
}

void
bench_profile_print_ops (const BenchProfile *self,
                         const BenchCase *bench_case, gboolean first)
{
  double outside = self->seconds * 1e9;

  if (first) {
    printf ("\n%-10s %6s", "% of time", "depth");
    for (guint i = 0; i < self->n_ops; i++)
      if (self->ops[i].calls > 0)
        printf (" %11s", self->ops[i].name);
    printf (" %8s\n", "outside");
  }
  printf ("%-10s %6u", bench_case->name, bench_case->depth);
  for (guint i = 0; i < self->n_ops; i++) {
    if (self->ops[i].calls == 0)       /* those of drafts, without one */
      continue;
    printf (" %11.1f", self->ops[i].ns / self->seconds * 1e-7);
    outside -= self->ops[i].ns;
  }
  printf (" %8.1f\n", outside / self->seconds * 1e-7);
}

void
bench_profile_add_json (const BenchProfile *self, const BenchLimits *limits,
                        gboolean with_ops, JsonOutput *json)
{
  Shares shares = get_shares (self, limits);

  json_begin_object (json, "share_of_limits");
  json_add_double (json, "bytes", shares.bytes);
  json_add_double (json, "integer_macs", shares.integer_macs);
  json_add_double (json, "float_macs", shares.float_macs);
  json_end_object (json);
  if (!with_ops)
    return;
  json_add_double (json, "profile_seconds", self->seconds);
  json_begin_array (json, "profile");
  for (guint i = 0; i < self->n_ops; i++) {
    const BenchOp *op = &self->ops[i];

    if (op->calls == 0)
      continue;
    json_begin_object (json, NULL);
    json_add_string (json, "op", op->name, -1);
    json_add_double (json, "share", op->ns / self->seconds * 1e-9);
    json_add_uint (json, "calls", op->calls);
    json_add_uint (json, "ns", op->ns);
    json_add_uint (json, "bytes", op->bytes);
    json_add_uint (json, "integer_macs", op->integer_macs);
    json_add_uint (json, "float_macs", op->float_macs);
    json_end_object (json);
  }
  json_end_array (json);
}
