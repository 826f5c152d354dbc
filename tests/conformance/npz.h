/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Reads NumPy's .npz files, compressed or not.
 */
#pragma once

#include <glib.h>

typedef struct _Npz Npz;

typedef struct {
  char *name;                /* without ".npy" */
  char type;                 /* 'f': float, 'i': gint32 */
  guint n_dims;
  gsize dims[4];
  gsize n;                   /* elements */
  const guint8 *data;        /* unaligned */
} NpzArray;

Npz *npz_open (const char *path, GError **error);
void npz_free (Npz *npz);
const NpzArray *npz_find (Npz *npz, const char *name);
gsize npz_n_arrays (Npz *npz);
const NpzArray *npz_nth (Npz *npz, gsize i);
/* A copy, aligned. */
float *npz_dup_floats (const NpzArray *array);
gint32 *npz_dup_ints (const NpzArray *array);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Npz, npz_free)
