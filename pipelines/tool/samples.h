/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Repeated measurements of one thing. */
#pragma once

#include "json-output.h"

G_BEGIN_DECLS

typedef struct {
  GArray *values;   /* doubles, in the order they were made */
} Samples;

void samples_init (Samples *self);
void samples_clear (Samples *self);
void samples_add (Samples *self, double value);
guint samples_count (const Samples *self);
/* 0 when there are none. */
double samples_median (const Samples *self);
double samples_min (const Samples *self);
double samples_max (const Samples *self);
/* The members median, min, max and samples. */
void samples_add_json (const Samples *self, JsonOutput *json);

G_END_DECLS
