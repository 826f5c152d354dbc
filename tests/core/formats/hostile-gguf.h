/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * GGUF files made byte by byte: a good one, and those every reader has been
 * attacked with. For the unit test, and the seeds of the fuzz target.
 */
#pragma once

#include <glib.h>
#include <string.h>

#include "error.h"
#include "formats/gguf.h"

#define U64(x) G_GUINT64_CONSTANT (x)

/* One argument per letter: m magic and version 3 (no argument), 1 4 8 a
 * number of so many bytes (8: guint64), s a length and a string, r a string
 * raw, p zeros up to a multiple of 32 (no argument), z so many zeros. */
static inline GBytes *
make_gguf (const char *format, ...)
{
  GByteArray *out = g_byte_array_new ();
  va_list args;

  va_start (args, format);
  for (const char *f = format; *f != '\0'; f++) {
    const char *text = NULL;
    gsize zeros = 0, n = *f == 's' ? 8 : *f == 'm' ? 4 : 0;
    guint64 number = 3;

    if (g_ascii_isdigit (*f)) {
      n = *f - '0';
      number = n == 8 ? va_arg (args, guint64) : va_arg (args, guint);
    } else if (*f == 's' || *f == 'r') {
      text = va_arg (args, const char *);
      number = strlen (text);
    } else if (*f == 'm') {
      g_byte_array_append (out, (const guint8 *) "GGUF", 4);
    } else if (*f == 'z') {
      zeros = va_arg (args, guint);
    } else if (*f == 'p') {
      zeros = (32 - out->len % 32) % 32;
    }
    for (gsize i = 0; i < n; i++) {
      guint8 byte = number >> 8 * i;

      g_byte_array_append (out, &byte, 1);
    }
    if (text != NULL)
      g_byte_array_append (out, (const guint8 *) text, strlen (text));
    if (zeros > 0) {
      g_byte_array_set_size (out, out->len + zeros);
      memset (out->data + out->len - zeros, 0, zeros);
    }
  }
  va_end (args);
  return g_byte_array_free_to_bytes (out);
}

/* Two tensors, one value of many types. */
static inline GBytes *
make_good_gguf (void)
{
  return make_gguf ("m88" "s4s" "s44" "s44" "s41" "s48" "s448ss" "s4484"
      "s4" "88" "48" "s4" "8" "48" "pzz", U64 (2), U64 (7),
      "general.architecture", RUNNEL_GGUF_STRING, "llama",
      "llama.block_count", RUNNEL_GGUF_UINT32, 2,
      "epsilon", RUNNEL_GGUF_FLOAT32, 0x3f000000,
      "flag", RUNNEL_GGUF_BOOL, 1,
      "big", RUNNEL_GGUF_INT64, (guint64) -5,
      "tokens", RUNNEL_GGUF_ARRAY, RUNNEL_GGUF_STRING, U64 (2), "a", "",
      "ids", RUNNEL_GGUF_ARRAY, RUNNEL_GGUF_INT32, U64 (1), 7,
      "a.weight", 2, U64 (4), U64 (2), RUNNEL_TENSOR_F32, U64 (0),
      "b.weight", 1, U64 (32), RUNNEL_TENSOR_Q8_0, U64 (32), 32, 34);
}

typedef struct {
  const char *name;
  RunnelError code;
  const char *message;    /* a part of it */
  GBytes *bytes;
} HostileGguf;

static inline GBytes *
make_nested_gguf (guint depth)
{
  GByteArray *out = g_bytes_unref_to_array (make_gguf ("m88s4", U64 (0),
      U64 (1), "deep", RUNNEL_GGUF_ARRAY));

  for (guint i = 0; i < depth; i++) {
    g_autoptr (GBytes) one = make_gguf ("48", i + 1 < depth ?
        RUNNEL_GGUF_ARRAY : RUNNEL_GGUF_UINT8, U64 (1));

    g_byte_array_append (out, g_bytes_get_data (one, NULL), 12);
  }
  g_byte_array_append (out, (const guint8 *) "", 1);
  return g_byte_array_free_to_bytes (out);
}

/* One tensor of one to three dimensions, after its name. */
#define ONE_TENSOR "m88s4"
#define NO_KEYS U64 (1), U64 (0)

static inline HostileGguf *
make_hostile_gguf (gsize *n)
{
  const HostileGguf cases[] = {
    /* files under 100 bytes */
    { "zero dimensions", RUNNEL_ERROR_MALFORMED, "'t': dimension 0 is 0",
      make_gguf (ONE_TENSOR "8848", NO_KEYS, "t", 2, U64 (0), U64 (0), 0,
          U64 (0)) },
    { "a zero dimension", RUNNEL_ERROR_MALFORMED, "'t.weight': dimension 1",
      make_gguf (ONE_TENSOR "8848", NO_KEYS, "t.weight", 2, U64 (4), U64 (0),
          0, U64 (0)) },
    { "empty key", RUNNEL_ERROR_MALFORMED, "a key at byte 24 is empty",
      make_gguf ("m88s41", U64 (0), U64 (1), "", RUNNEL_GGUF_UINT8, 0) },
    { "key longer than the file", RUNNEL_ERROR_TRUNCATED,
      "truncated at byte 32", make_gguf ("m888", U64 (0), U64 (1),
          U64 (0xffffffffffff)) },
    { "key longer than allowed", RUNNEL_ERROR_LIMIT, "limit is 65535",
      make_gguf ("m888z", U64 (0), U64 (1), U64 (0xffffffffffff), 16) },
    { "string of 2^64 - 1 bytes", RUNNEL_ERROR_LIMIT,
      "the value of 'k' at byte 37 claims 18446744073709551615",
      make_gguf ("m88s48", U64 (0), U64 (1), "k", RUNNEL_GGUF_STRING,
          G_MAXUINT64) },
    { "empty file", RUNNEL_ERROR_TRUNCATED, "truncated at byte 0",
      make_gguf ("r", "") },
    { "three bytes", RUNNEL_ERROR_TRUNCATED, "truncated at byte 3",
      make_gguf ("r", "GGU") },
    { "magic only", RUNNEL_ERROR_TRUNCATED, "truncated at byte 4",
      make_gguf ("r", "GGUF") },
    { "another format", RUNNEL_ERROR_MALFORMED, "is not a GGUF file",
      make_gguf ("r", "GGML....") },
    { "version 0", RUNNEL_ERROR_UNSUPPORTED, "version 0",
      make_gguf ("r488", "GGUF", 0, U64 (0), U64 (0)) },
    { "version 1", RUNNEL_ERROR_UNSUPPORTED, "version 1",
      make_gguf ("r488", "GGUF", 1, U64 (0), U64 (0)) },
    { "version 4", RUNNEL_ERROR_UNSUPPORTED, "version 4",
      make_gguf ("r488", "GGUF", 4, U64 (0), U64 (0)) },
    { "big-endian version", RUNNEL_ERROR_UNSUPPORTED, "big-endian",
      make_gguf ("r488", "GGUF", 0x03000000, U64 (0), U64 (0)) },
    { "big-endian magic", RUNNEL_ERROR_UNSUPPORTED, "big-endian",
      make_gguf ("r488", "FUGG", 3, U64 (0), U64 (0)) },
    { "no dimension", RUNNEL_ERROR_LIMIT, "'t' has 0 dimensions",
      make_gguf (ONE_TENSOR "848", NO_KEYS, "t", 0, U64 (1), 0, U64 (0)) },
    { "five dimensions", RUNNEL_ERROR_LIMIT, "'t' has 5 dimensions",
      make_gguf (ONE_TENSOR "8888848", NO_KEYS, "t", 5, U64 (1), U64 (1),
          U64 (1), U64 (1), U64 (1), 0, U64 (0)) },
    { "2^32 - 1 dimensions", RUNNEL_ERROR_LIMIT, "4294967295 dimensions",
      make_gguf (ONE_TENSOR "848", NO_KEYS, "t", G_MAXUINT32, U64 (1), 0,
          U64 (0)) },
    { "value type 13", RUNNEL_ERROR_MALFORMED, "'k': unknown value type 13",
      make_gguf ("m88s48", U64 (0), U64 (1), "k", 13, U64 (0)) },
    { "value type 255", RUNNEL_ERROR_MALFORMED, "'k': unknown value type 255",
      make_gguf ("m88s48", U64 (0), U64 (1), "k", 255, U64 (0)) },
    { "element type 255", RUNNEL_ERROR_MALFORMED, "unknown value type 255",
      make_gguf ("m88s448", U64 (0), U64 (1), "k", RUNNEL_GGUF_ARRAY, 255,
          U64 (0)) },
    { "arrays 10,000 deep", RUNNEL_ERROR_LIMIT, "'deep': arrays nested",
      make_nested_gguf (10000) },
    { "bool of 2", RUNNEL_ERROR_MALFORMED, "'k': 2 is no boolean",
      make_gguf ("m88s41", U64 (0), U64 (1), "k", RUNNEL_GGUF_BOOL, 2) },
    { "bool of 2 in an array", RUNNEL_ERROR_MALFORMED, "'k': 2 is no boolean",
      make_gguf ("m88s44811", U64 (0), U64 (1), "k", RUNNEL_GGUF_ARRAY,
          RUNNEL_GGUF_BOOL, U64 (2), 1, 2) },
    { "key that is not UTF-8", RUNNEL_ERROR_MALFORMED, "is not UTF-8",
      make_gguf ("m88s41", U64 (0), U64 (1), "\xff", RUNNEL_GGUF_UINT8, 0) },

    /* products and counts that wrap */
    { "elements wrap to 4", RUNNEL_ERROR_LIMIT, "'t': the number of its ele",
      make_gguf (ONE_TENSOR "88848", NO_KEYS, "t", 3, U64 (4194305),
          U64 (4194305), U64 (211106198978564), 0, U64 (0)) },
    { "elements wrap to 0", RUNNEL_ERROR_LIMIT, "'t': the number of its ele",
      make_gguf (ONE_TENSOR "8848", NO_KEYS, "t", 2, U64 (4294967296),
          U64 (4294967296), 0, U64 (0)) },
    { "bytes wrap to 0", RUNNEL_ERROR_LIMIT, "'t': the number of its bytes",
      make_gguf (ONE_TENSOR "848", NO_KEYS, "t", 1, U64 (4611686018427387904),
          0, U64 (0)) },
    { "two of 2^62 bytes", RUNNEL_ERROR_LIMIT, "tensor 'b': offset",
      make_gguf ("m88" "s4848" "s4848" "p", U64 (2), U64 (0),
          "a", 1, U64 (1152921504606846976), 0, U64 (0),
          "b", 1, U64 (1152921504606846976), 0, U64 (4611686018427387904)) },
    { "end wraps", RUNNEL_ERROR_LIMIT, "'t': offset",
      make_gguf (ONE_TENSOR "848p", NO_KEYS, "t", 1, U64 (8), 0,
          U64 (0xffffffffffffffe0)) },
    { "2^60 tensors", RUNNEL_ERROR_LIMIT, "the number of tensors is",
      make_gguf ("m88", U64 (1) << 60, U64 (0)) },
    { "2^63 keys", RUNNEL_ERROR_LIMIT, "the number of keys is",
      make_gguf ("m88", U64 (0), U64 (1) << 63) },
    { "more tensors than bytes", RUNNEL_ERROR_TRUNCATED,
      "1000000 tensors do not fit", make_gguf ("m88", U64 (1000000), U64 (0)) },
    { "array of 2^61", RUNNEL_ERROR_LIMIT, "'k': an array of 23058430092",
      make_gguf ("m88s448z", U64 (0), U64 (1), "k", RUNNEL_GGUF_ARRAY,
          RUNNEL_GGUF_UINT64, U64 (1) << 61, 64) },
    { "array longer than the file", RUNNEL_ERROR_TRUNCATED, "the array of 'k'",
      make_gguf ("m88s448z", U64 (0), U64 (1), "k", RUNNEL_GGUF_ARRAY,
          RUNNEL_GGUF_STRING, U64 (9), 64) },
    { "key twice", RUNNEL_ERROR_MALFORMED, "key 'k' occurs twice",
      make_gguf ("m88s41s41", U64 (0), U64 (2), "k", RUNNEL_GGUF_UINT8, 0,
          "k", RUNNEL_GGUF_UINT8, 0) },
    { "tensor twice", RUNNEL_ERROR_MALFORMED, "tensor 't' occurs twice",
      make_gguf ("m88s4848s4848pz", U64 (2), U64 (0), "t", 1, U64 (8), 0,
          U64 (0), "t", 1, U64 (8), 0, U64 (32), 64) },
    { "tensor type 255", RUNNEL_ERROR_UNSUPPORTED, "'t': type 255",
      make_gguf (ONE_TENSOR "848", NO_KEYS, "t", 1, U64 (8), 255, U64 (0)) },
    { "tensor type that was removed", RUNNEL_ERROR_UNSUPPORTED, "'t': type 4",
      make_gguf (ONE_TENSOR "848", NO_KEYS, "t", 1, U64 (32), 4, U64 (0)) },
    { "row of half a block", RUNNEL_ERROR_MALFORMED, "whole Q4_K blocks of 256",
      make_gguf (ONE_TENSOR "8848pz", NO_KEYS, "t", 2, U64 (128), U64 (2),
          RUNNEL_TENSOR_Q4_K, U64 (0), 144) },
    { "offset off the alignment", RUNNEL_ERROR_MALFORMED, "alignment 32",
      make_gguf (ONE_TENSOR "848pz", NO_KEYS, "t", 1, U64 (8), 0, U64 (8),
          64) },
    { "tensors overlap", RUNNEL_ERROR_MALFORMED, "'a' and 'b' overlap",
      make_gguf ("m88s4848s4848pz", U64 (2), U64 (0), "a", 1, U64 (16), 0,
          U64 (0), "b", 1, U64 (8), 0, U64 (32), 96) },
    { "data beyond the file", RUNNEL_ERROR_TRUNCATED, "the data of 't'",
      make_gguf (ONE_TENSOR "848pz", NO_KEYS, "t", 1, U64 (8), 0, U64 (0),
          31) },
    { "tensor name of 65 bytes", RUNNEL_ERROR_LIMIT, "the limit is 64",
      make_gguf (ONE_TENSOR "848pz", NO_KEYS, "01234567890123456789012345678"
          "901234567890123456789012345678901234", 1, U64 (8), 0, U64 (0),
          32) },
    { "alignment of 0", RUNNEL_ERROR_LIMIT, "'general.alignment' is 0",
      make_gguf ("m88s44", U64 (0), U64 (1), "general.alignment",
          RUNNEL_GGUF_UINT32, 0) },
    { "alignment of 24", RUNNEL_ERROR_MALFORMED, "24 is not a power of two",
      make_gguf ("m88s44", U64 (0), U64 (1), "general.alignment",
          RUNNEL_GGUF_UINT32, 24) },
    { "alignment that is text", RUNNEL_ERROR_MALFORMED, "is of type string",
      make_gguf ("m88s4s", U64 (0), U64 (1), "general.alignment",
          RUNNEL_GGUF_STRING, "32") },
  };

  *n = G_N_ELEMENTS (cases);
  return g_memdup2 (cases, sizeof cases);
}
