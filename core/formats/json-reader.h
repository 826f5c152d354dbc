/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Single values of a JSON file of settings, with messages that name the file
 * and the key. null counts as absent.
 */
#pragma once

#include "../error-private.h"
#include "json.h"

G_BEGIN_DECLS

typedef struct {
  RunnelJson *json;
  const RunnelJsonNode *root;
  GError **error;
} RunnelJsonReader;

/* FALSE in sight of the compiler, which then sees what is initialised. */
#define runnel_json_reader_fail(self, code, ...) \
  (runnel_set_error_about ((self)->error, code, \
      runnel_json_name ((self)->json), __VA_ARGS__), FALSE)

const RunnelJsonNode *runnel_json_find (const RunnelJsonNode *object,
                                        const char *key);
gboolean runnel_json_is_number (const RunnelJsonNode *node);

/* Of the root, from 1 to @max. */
gboolean runnel_json_get_uint (RunnelJsonReader *self, const char *key,
                               gint64 max, guint *ret);
gboolean runnel_json_get_uint_or (RunnelJsonReader *self,
                                  const RunnelJsonNode *object,
                                  const char *key, gint64 max, guint fallback,
                                  guint *ret);
gboolean runnel_json_get_double_or (RunnelJsonReader *self,
                                    const RunnelJsonNode *object,
                                    const char *key, double fallback,
                                    double *ret);
gboolean runnel_json_get_boolean_or (RunnelJsonReader *self,
                                     const RunnelJsonNode *object,
                                     const char *key, gboolean fallback,
                                     gboolean *ret);
/* Borrowed, NULL when absent. */
gboolean runnel_json_get_string_or_null (RunnelJsonReader *self,
                                         const RunnelJsonNode *object,
                                         const char *key, const char **ret);

G_END_DECLS
