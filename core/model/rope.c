/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "rope.h"

#include "../backends/cpu/kernels.h"

#define TWO_PI 6.283185307179586

/* Llama 3: long wavelengths are stretched, short ones kept, those between
 * blended. Source: the reference code that Meta published with Llama 3.1. */
static double
scale_llama3 (const RunnelHyperparameters *hp, double frequency)
{
  double wavelength = TWO_PI / frequency;
  double low = hp->rope_original_context / hp->rope_low_freq_factor;
  double high = hp->rope_original_context / hp->rope_high_freq_factor;
  double blend;

  if (wavelength < high)
    return frequency;
  if (wavelength > low)
    return frequency / hp->rope_factor;
  blend = (hp->rope_original_context / wavelength - hp->rope_low_freq_factor)
      / (hp->rope_high_freq_factor - hp->rope_low_freq_factor);
  return (1 - blend) * (frequency / hp->rope_factor) + blend * frequency;
}

/* The pair that turns `rotations` times over the original context. */
static double
yarn_pair (const RunnelHyperparameters *hp, double rotations)
{
  return hp->rope_dimensions
      * runnel_log (hp->rope_original_context / (rotations * TWO_PI))
      / (2 * runnel_log (hp->rope_base));
}

static double
scale_yarn (const RunnelHyperparameters *hp, guint pair, double frequency)
{
  double fast = hp->rope_beta_fast > 0 ? hp->rope_beta_fast : 32;
  double slow = hp->rope_beta_slow > 0 ? hp->rope_beta_slow : 1;
  double last = hp->rope_dimensions - 1;
  double low = CLAMP (yarn_pair (hp, fast), 0, last);
  double high = CLAMP (yarn_pair (hp, slow), 0, last);
  double ramp;

  /* Down and up to integers. */
  low = (guint) low;
  high = (guint) high + ((guint) high < high);
  ramp = (pair - low) / MAX (high - low, 0.001);
  ramp = CLAMP (ramp, 0, 1);
  return frequency / hp->rope_factor * ramp + frequency * (1 - ramp);
}

static float
get_attention_factor (const RunnelHyperparameters *hp)
{
  if (hp->rope_scaling != RUNNEL_ROPE_SCALING_YARN)
    return 1;
  if (hp->rope_attention_factor > 0)
    return hp->rope_attention_factor;
  return hp->rope_factor > 1 ? 0.1 * runnel_log (hp->rope_factor) + 1 : 1;
}

void
runnel_rope_init (RunnelRope *self, const RunnelHyperparameters *hp,
                  const float *factors)
{
  self->half = hp->rope_dimensions / 2;
  self->frequencies = g_new (double, self->half);
  self->attention_factor = get_attention_factor (hp);
  for (guint i = 0; i < self->half; i++) {
    double frequency = runnel_pow (hp->rope_base,
        -2.0 * i / hp->rope_dimensions);

    switch (hp->rope_scaling) {
      case RUNNEL_ROPE_SCALING_NONE:
        break;
      case RUNNEL_ROPE_SCALING_LINEAR:
        frequency /= hp->rope_factor;
        break;
      case RUNNEL_ROPE_SCALING_YARN:
        frequency = scale_yarn (hp, i, frequency);
        break;
      case RUNNEL_ROPE_SCALING_LLAMA3:
        frequency = scale_llama3 (hp, frequency);
        break;
    }
    self->frequencies[i]
        = factors != NULL ? frequency / factors[i] : frequency;
  }
}

void
runnel_rope_clear (RunnelRope *self)
{
  g_clear_pointer (&self->frequencies, g_free);
}

void
runnel_rope_turn (const RunnelRope *self, gint64 positions, float *cos,
                  float *sin)
{
  for (guint i = 0; i < self->half; i++) {
    double c, s;

    runnel_sin_cos (positions * self->frequencies[i], &s, &c);
    cos[i] = (float) c;
    sin[i] = (float) s;
  }
}

void
runnel_rope_angles (const RunnelRope *self, gint64 position, float *cos,
                    float *sin)
{
  runnel_rope_turn (self, position, cos, sin);
  for (guint i = 0; i < self->half; i++) {
    cos[i] *= self->attention_factor;
    sin[i] *= self->attention_factor;
  }
}
