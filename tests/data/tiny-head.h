/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Decision heads of random weights for the default tiny model, good ones and
 * bad ones.
 */
#pragma once

#include <glib.h>

#include "formats/decision-head.h"

#define TINY_HEAD_WIDTH 64   /* of the model */
#define TINY_HEAD_DIM 16

/* What is to be wrong with a file. */
typedef struct {
  RunnelDecisionForm form;
  const char *left_out;      /* a tensor or key; or NULL */
  const char *type;          /* instead of the form's name; or NULL */
  guint head_dim;            /* instead of TINY_HEAD_DIM; or 0 */
  const char *not_finite;    /* a tensor; or NULL */
  gint32 decide;             /* instead of a token; or 0 */
  guint score_levels;        /* with offsets; or 0 */
} TinyHead;

/* @n values of the generator of head-reference.py. */
float *tiny_head_draw (guint32 *state, gsize n, double scale);
/* Past the values of a head. */
void tiny_head_skip (guint32 *state);
/* Writes the head into a fresh file in the system's folder for temporary
 * files and returns its path; the caller removes it. Aborts on failure. */
char *tiny_head_write (const TinyHead *head);
