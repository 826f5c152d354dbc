/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * safetensors files made by hand, good and bad, for the unit test and as seeds
 * of the fuzz target.
 */
#pragma once

#include <glib.h>
#include <string.h>

#include "error.h"

/* The header and @n_data zeros; a length of -1 is the header's own. */
static inline GBytes *
make_safetensors (const char *header, gint64 length, gsize n_data)
{
  GByteArray *out = g_byte_array_new ();
  gsize n = strlen (header), size = 8 + n + n_data;
  guint64 claimed = GUINT64_TO_LE (length < 0 ? n : (guint64) length);

  g_byte_array_set_size (out, size);
  memset (out->data, 0, size);
  memcpy (out->data, &claimed, 8);
  memcpy (out->data + 8, header, n);
  return g_byte_array_free_to_bytes (out);
}

/* Two of our types, one that is not, a scalar, and padding by blanks. */
#define GOOD_SAFETENSORS \
  "{\"__metadata__\":{\"format\":\"pt\"}," \
  "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}," \
  "\"ids\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[24,40]}," \
  "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[40,44]}," \
  "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[44,52]}} "
#define GOOD_SAFETENSORS_DATA 52

typedef struct {
  const char *header;
  gint64 length;
  gsize n_data;
  RunnelError code;
  const char *message;    /* a part of it */
} HostileSafetensors;

#define T(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
  ",\"data_offsets\":" offsets "}"

static const HostileSafetensors hostile_safetensors[] = {
  { "", 0, 0, RUNNEL_ERROR_MALFORMED, "does not begin with '{'" },
  { "{}", 3, 0, RUNNEL_ERROR_TRUNCATED, "truncated at byte 10" },
  { "{}", 100000001, 0, RUNNEL_ERROR_LIMIT, "claims 100000001 bytes" },
  { "{}", G_MAXINT64, 0, RUNNEL_ERROR_LIMIT, "limit is 100000000" },
  { " {}", -1, 0, RUNNEL_ERROR_MALFORMED, "does not begin with '{'" },
  { "[]", -1, 0, RUNNEL_ERROR_MALFORMED, "does not begin with '{'" },
  { "{", -1, 0, RUNNEL_ERROR_TRUNCATED, "header: line 1, column 2" },
  { "{}", -1, 1, RUNNEL_ERROR_MALFORMED, "the last 1 bytes belong to no" },
  { "{\"a\":1}", -1, 0, RUNNEL_ERROR_MALFORMED, "'a' is described by no obj" },
  { "{\"\":{}}", -1, 0, RUNNEL_ERROR_MALFORMED, "is empty or holds a NUL" },
  { "{\"a\\u0000b\":{}}", -1, 0, RUNNEL_ERROR_MALFORMED, "holds a NUL" },
  { "{\"a\":{}}", -1, 0, RUNNEL_ERROR_MALFORMED, "'a': 'dtype' is no str" },
  { "{\"a\":{\"dtype\":\"F32\"}}", -1, 0, RUNNEL_ERROR_MALFORMED,
    "'a': 'shape' is no array" },
  { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", -1, 4,
    RUNNEL_ERROR_MALFORMED, "'a': 'data_offsets' is no pair" },
  { "{" T ("a", "F32", "[-1]", "[0,4]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': axis 0 of 'shape' is no size" },
  { "{" T ("a", "F32", "[1.0]", "[0,4]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': axis 0 of 'shape' is no size" },
  { "{" T ("a", "F32", "[18446744073709551617]", "[0,4]") "}", -1, 4,
    RUNNEL_ERROR_MALFORMED, "'a': axis 0 of 'shape' is no size" },
  { "{" T ("a", "F32", "[4194305,4194305,211106198978564]", "[0,16]") "}", -1,
    16, RUNNEL_ERROR_LIMIT, "'a': the number of its elements overflows" },
  { "{" T ("a", "F32", "[4611686018427387905]", "[0,4]") "}", -1, 4,
    RUNNEL_ERROR_MALFORMED, "'a': 4 bytes of data for 4611686018427387905" },
  { "{" T ("a", "F32", "[1]", "[0]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': 'data_offsets' is no pair" },
  { "{" T ("a", "F32", "[1]", "[4,0]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': 'data_offsets' is no pair" },
  { "{" T ("a", "F32", "[1]", "[-4,0]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': 'data_offsets' is no pair" },
  { "{" T ("a", "F32", "[2]", "[0,8]") "}", -1, 4, RUNNEL_ERROR_TRUNCATED,
    "in the data of 'a'" },
  { "{" T ("a", "F32", "[1]", "[9223372036854775804,9223372036854775807]")
    "}", -1, 4, RUNNEL_ERROR_TRUNCATED, "in the data of 'a'" },
  { "{" T ("a", "F32", "[1]", "[0,8]") "}", -1, 8, RUNNEL_ERROR_MALFORMED,
    "'a': 8 bytes of data for 1 elements of type F32" },
  { "{" T ("a", "I64", "[1]", "[0,4]") "}", -1, 4, RUNNEL_ERROR_MALFORMED,
    "'a': 4 bytes of data for 1 elements of type I64" },
  { "{" T ("a", "F32", "[2]", "[0,8]") "," T ("b", "F32", "[2]", "[4,12]")
    "}", -1, 12, RUNNEL_ERROR_MALFORMED, "'b': its data overlap" },
  { "{" T ("a", "F32", "[2]", "[0,8]") "," T ("b", "F32", "[2]", "[0,8]")
    "}", -1, 8, RUNNEL_ERROR_MALFORMED, "its data overlap" },
  { "{" T ("a", "F32", "[1]", "[0,4]") "," T ("b", "F32", "[1]", "[8,12]")
    "}", -1, 12, RUNNEL_ERROR_MALFORMED, "a hole lies before its data" },
};
