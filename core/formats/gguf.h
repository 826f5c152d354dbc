/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "tensor.h"

G_BEGIN_DECLS

/* A GGUF file, version 2 or 3, little endian, checked as a whole when opened:
 * every count, length, offset and type. Source: the GGUF specification of the
 * ggml project. Data of the tensors is not touched. */
typedef struct _RunnelGguf RunnelGguf;

typedef enum {
  RUNNEL_GGUF_UINT8 = 0, RUNNEL_GGUF_INT8 = 1, RUNNEL_GGUF_UINT16 = 2,
  RUNNEL_GGUF_INT16 = 3, RUNNEL_GGUF_UINT32 = 4, RUNNEL_GGUF_INT32 = 5,
  RUNNEL_GGUF_FLOAT32 = 6, RUNNEL_GGUF_BOOL = 7, RUNNEL_GGUF_STRING = 8,
  RUNNEL_GGUF_ARRAY = 9, RUNNEL_GGUF_UINT64 = 10, RUNNEL_GGUF_INT64 = 11,
  RUNNEL_GGUF_FLOAT64 = 12,
} RunnelGgufType;

RunnelGguf *runnel_gguf_open (const char *path, RunnelLoadMode mode,
                              GError **error);
RunnelGguf *runnel_gguf_new (RunnelMapping *mapping, GError **error);
void runnel_gguf_free (RunnelGguf *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelGguf, runnel_gguf_free)

const char *runnel_gguf_name (const RunnelGguf *self);
guint runnel_gguf_version (const RunnelGguf *self);
/* The bytes before the tensor data: what the content id hashes. */
gsize runnel_gguf_header_size (const RunnelGguf *self);
/* Where the data of tensors begins. */
gsize runnel_gguf_data_offset (const RunnelGguf *self);
RunnelMapping *runnel_gguf_mapping (const RunnelGguf *self);

gsize runnel_gguf_n_keys (const RunnelGguf *self);
const char *runnel_gguf_key (const RunnelGguf *self, gsize i);
gboolean runnel_gguf_has (const RunnelGguf *self, const char *key);
/* Of a key that is there. */
RunnelGgufType runnel_gguf_type (const RunnelGguf *self, const char *key);
/* The bytes of its value in the file, arrays with their element type and
 * length. */
const guint8 *runnel_gguf_raw_value (const RunnelGguf *self, const char *key,
                                     RunnelGgufType *ret_type,
                                     gsize *ret_size);

/* Typed reading. The value is converted between integer types when it fits.
 * Each returns FALSE with an error that names file and key when the key has
 * another type or does not fit [min, max]; when the key is absent they give
 * FALSE with an error, or, with an _or suffix, TRUE and the fallback. */
gboolean runnel_gguf_get_uint (const RunnelGguf *self, const char *key,
                               guint64 min, guint64 max, guint64 *ret,
                               GError **error);
gboolean runnel_gguf_get_uint_or (const RunnelGguf *self, const char *key,
                                  guint64 min, guint64 max, guint64 fallback,
                                  guint64 *ret, GError **error);
/* A number below @n; −1 when the key is absent. */
gboolean runnel_gguf_get_index (const RunnelGguf *self, const char *key,
                                guint32 n, gint32 *ret, GError **error);
gboolean runnel_gguf_get_double_or (const RunnelGguf *self, const char *key,
                                    double fallback, double *ret,
                                    GError **error);
gboolean runnel_gguf_get_double (const RunnelGguf *self, const char *key,
                                 double *ret, GError **error);
gboolean runnel_gguf_get_boolean_or (const RunnelGguf *self, const char *key,
                                     gboolean fallback, gboolean *ret,
                                     GError **error);
/* Borrowed; not NUL-terminated in the file, so with a length. */
gboolean runnel_gguf_get_string (const RunnelGguf *self, const char *key,
                                 const char **ret, gsize *ret_length,
                                 GError **error);
/* A copy, NUL-terminated, or NULL when absent; error only for wrong type. */
gboolean runnel_gguf_dup_string_or_null (const RunnelGguf *self,
                                         const char *key, char **ret,
                                         GError **error);

/* Arrays, read in place. */
typedef struct {
  RunnelGgufType type;    /* of the elements */
  guint64 n;
  const guint8 *data;     /* first element; strings are length-prefixed */
  const guint8 *end;
} RunnelGgufArray;
/* FALSE with an error when the key is no array of @element; FALSE *without*
 * one when it is absent (see runnel_gguf_has). */
gboolean runnel_gguf_get_array (const RunnelGguf *self, const char *key,
                                RunnelGgufType element, RunnelGgufArray *ret,
                                GError **error);
/* Walks an array of strings: start with the array's data; returns the next
 * position. Lengths were checked when the file was opened. */
const guint8 *runnel_gguf_next_string (const guint8 *at, const char **text,
                                       gsize *length);

gsize runnel_gguf_n_tensors (const RunnelGguf *self);
const RunnelTensor *runnel_gguf_tensor (const RunnelGguf *self, gsize i);
const RunnelTensor *runnel_gguf_find_tensor (const RunnelGguf *self,
                                             const char *name);

/* Writing: collect, then write to a temporary file that is renamed. */
typedef struct _RunnelGgufWriter RunnelGgufWriter;

RunnelGgufWriter *runnel_gguf_writer_new (void);
void runnel_gguf_writer_free (RunnelGgufWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelGgufWriter, runnel_gguf_writer_free)
void runnel_gguf_writer_add_uint32 (RunnelGgufWriter *self,
                                    const char *key, guint32 v);
void runnel_gguf_writer_add_float32 (RunnelGgufWriter *self,
                                    const char *key, float v);
void runnel_gguf_writer_add_float64 (RunnelGgufWriter *self,
                                    const char *key, double v);
void runnel_gguf_writer_add_boolean (RunnelGgufWriter *self,
                                    const char *key, gboolean v);
void runnel_gguf_writer_add_string (RunnelGgufWriter *self, const char *key,
                                    const char *text, gssize length);
void runnel_gguf_writer_add_strings (RunnelGgufWriter *self, const char *key,
                                     const char *const *texts,
                                     const gsize *lengths, gsize n);
void runnel_gguf_writer_add_int32s (RunnelGgufWriter *self, const char *key,
                                    const gint32 *values, gsize n);
void runnel_gguf_writer_add_uint8s (RunnelGgufWriter *self, const char *key,
                                    const guint8 *values, gsize n);
void runnel_gguf_writer_add_uint16s (RunnelGgufWriter *self, const char *key,
                                     const guint16 *values, gsize n);
void runnel_gguf_writer_add_uint32s (RunnelGgufWriter *self, const char *key,
                                     const guint32 *values, gsize n);
void runnel_gguf_writer_add_float32s (RunnelGgufWriter *self, const char *key,
                                      const float *values, gsize n);
/* @values are 0 or 1. */
void runnel_gguf_writer_add_booleans (RunnelGgufWriter *self, const char *key,
                                      const guint8 *values, gsize n);
/* A value as runnel_gguf_raw_value () gives it. */
void runnel_gguf_writer_add_raw (RunnelGgufWriter *self, const char *key,
                                 RunnelGgufType type, const guint8 *value,
                                 gsize size);
/* @data is held until the file is written; dims as in RunnelTensor. */
void runnel_gguf_writer_add_tensor (RunnelGgufWriter *self, const char *name,
                                    RunnelTensorType type, const guint64 *dims,
                                    guint n_dims, GBytes *data);
/* The same with data that is made when it is written, so that no more than one
 * such tensor is in memory: @produce gives @bytes bytes, or NULL with an
 * error. */
typedef GBytes *(*RunnelGgufProduce) (gpointer user_data, GError **error);
void runnel_gguf_writer_add_produced (RunnelGgufWriter *self,
                                      const char *name, RunnelTensorType type,
                                      const guint64 *dims, guint n_dims,
                                      gsize bytes, RunnelGgufProduce produce,
                                      gpointer user_data);
/* The header alone, up to its last byte, for somebody who writes the data:
 * offsets of @tensors count from the start of the data section. */
GByteArray *runnel_gguf_writer_make_header (RunnelGgufWriter *self,
                                            const RunnelTensor *tensors,
                                            guint n_tensors);
gboolean runnel_gguf_writer_save (RunnelGgufWriter *self, const char *path,
                                  GError **error);

G_END_DECLS
