/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the parts of the GGUF reader share: gguf.c checks and indexes a file,
 * gguf-values.c reads its values.
 */
#pragma once

#include "gguf.h"

G_BEGIN_DECLS

typedef struct {
  const char *key;
  RunnelGgufType type;
  const guint8 *value;      /* strings: at their length */
  RunnelGgufArray array;
} RunnelGgufEntry;

struct _RunnelGguf {
  RunnelMapping *mapping;
  guint version;
  gsize header_size;
  gsize alignment;
  GStringChunk *names;
  GArray *entries;          /* RunnelGgufEntry */
  GHashTable *by_key;       /* key → index + 1 */
  GArray *tensors;          /* RunnelTensor */
  GHashTable *by_name;      /* name → index + 1 */
};

/* By number. */
typedef struct {
  const char *name;
  guint8 bytes;             /* 0 for strings and arrays */
} RunnelGgufTypeInfo;

#define RUNNEL_GGUF_N_TYPES (RUNNEL_GGUF_FLOAT64 + 1)
extern const RunnelGgufTypeInfo runnel_gguf_types[RUNNEL_GGUF_N_TYPES];

G_END_DECLS
