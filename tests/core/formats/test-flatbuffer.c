/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "error.h"
#include "flat-writer.h"
#include "formats/flatbuffer.h"

/* A table with a number, a text, a vector and a table with a number. */
static GByteArray *
write_example (gsize *slots)
{
  FlatField fields[] = {
    { 0, 'i', -7 }, { 2, 'f', 0.5 }, { 3, 'o' }, { 4, 'o' }, { 6, 'o' },
    { 7, 'b', -1 }, { 8, 'o' }, { 9, 'o' },
  };
  FlatField inner[] = { { 1, 'i', 42 } };
  gint64 longs[] = { G_GINT64_CONSTANT (-5000000000), 6 };
  gint32 ints[] = { 1, -2, 3 };
  float floats[] = { 1.5f, -2.25f };
  GByteArray *out = flat_new ();

  flat_table (out, 0, fields, G_N_ELEMENTS (fields));
  flat_string (out, fields[2].slot, "gr\xc3\xbc\xc3\x9f");
  flat_int32s (out, fields[3].slot, ints, 3);
  flat_table (out, fields[4].slot, inner, 1);
  flat_int64s (out, fields[6].slot, longs, 2);
  flat_floats (out, fields[7].slot, floats, 2);
  for (guint i = 0; i < G_N_ELEMENTS (fields) && slots != NULL; i++)
    slots[i] = fields[i].slot;
  return out;
}

static void
test_values (void)
{
  g_autoptr (GByteArray) file = write_example (NULL);
  RunnelFlatbuffer buffer;
  RunnelFlatTable root, inner, absent;
  RunnelFlatVector ints, longs, floats;

  runnel_flatbuffer_init (&buffer, file->data, file->len, "example");
  root = runnel_flatbuffer_root (&buffer);
  g_assert_cmpint (runnel_flat_table_int32 (&root, 0, 9), ==, -7);
  g_assert_cmpint (runnel_flat_table_int32 (&root, 1, 9), ==, 9);
  g_assert_cmpint (runnel_flat_table_int32 (&root, 60000, 9), ==, 9);
  g_assert_cmpint (runnel_flat_table_int8 (&root, 7, 9), ==, -1);
  g_assert_cmpfloat (runnel_flat_table_float (&root, 2, 9), ==, 0.5);
  g_assert_cmpfloat (runnel_flat_table_float (&root, 5, 9), ==, 9);
  g_assert_cmpstr (runnel_flat_table_string (&root, 3), ==,
      "gr\xc3\xbc\xc3\x9f");
  g_assert_cmpstr (runnel_flat_table_string (&root, 5), ==, "");
  ints = runnel_flat_table_vector (&root, 4, 4, 3);
  g_assert_cmpuint (ints.n, ==, 3);
  g_assert_cmpint (runnel_flat_vector_int32 (&ints, 1), ==, -2);
  longs = runnel_flat_table_vector (&root, 8, 8, 3);
  g_assert_cmpuint (longs.n, ==, 2);
  g_assert_cmpint (runnel_flat_vector_int64 (&longs, 0), ==,
      G_GINT64_CONSTANT (-5000000000));
  floats = runnel_flat_table_vector (&root, 9, 4, 3);
  g_assert_cmpfloat (runnel_flat_vector_float (&floats, 1), ==, -2.25);
  inner = runnel_flat_table_table (&root, 6);
  g_assert_cmpint (runnel_flat_table_int32 (&inner, 1, 9), ==, 42);
  absent = runnel_flat_table_table (&root, 5);
  g_assert_true (runnel_flat_table_is_empty (&absent));
  g_assert_cmpint (runnel_flat_table_int32 (&absent, 0, 9), ==, 9);
  g_assert_cmpuint (runnel_flat_table_vector (&absent, 0, 4, 3).n, ==, 0);
  g_assert_true (runnel_flatbuffer_check (&buffer, NULL));
  runnel_flatbuffer_clear (&buffer);
}

static void
assert_fault (RunnelFlatbuffer *buffer, int code, const char *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_flatbuffer_check (buffer, &error));
  g_assert_error (error, RUNNEL_ERROR, code);
  g_assert_true (g_str_has_prefix (error->message, "example: "));
  g_assert_nonnull (strstr (error->message, message));
}

static void
put_uint32 (GByteArray *file, gsize at, guint32 value)
{
  value = GUINT32_TO_LE (value);
  memcpy (file->data + at, &value, 4);
}

/* The first fault is kept, and what is asked for after it is absent. */
static void
test_faults (void)
{
  g_autoptr (GByteArray) file = NULL;
  gsize slots[8];
  RunnelFlatbuffer buffer;
  RunnelFlatTable root;

  file = write_example (slots);
  put_uint32 (file, slots[2], file->len);
  runnel_flatbuffer_init (&buffer, file->data, file->len, "example");
  root = runnel_flatbuffer_root (&buffer);
  g_assert_cmpstr (runnel_flat_table_string (&root, 3), ==, "");
  g_assert_cmpint (runnel_flat_table_int32 (&root, 0, 9), ==, 9);
  assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "leads out of the file");

  /* The vector's count stands right behind the string's end. */
  g_assert_cmpuint (runnel_flat_table_vector (&root, 4, 4, 2).n, ==, 0);
  assert_fault (&buffer, RUNNEL_ERROR_LIMIT, "3 elements; at most 2");
  g_assert_cmpuint (runnel_flat_table_vector (&root, 4, 4096, 3).n, ==, 0);
  assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "of 3 elements does not lie");
  g_assert_cmpstr (runnel_flat_table_string (&root, 8), ==, "");
  assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "no UTF-8 that ends with");

  runnel_flatbuffer_init (&buffer, file->data, 3, "example");
  root = runnel_flatbuffer_root (&buffer);
  g_assert_true (runnel_flat_table_is_empty (&root));
  assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "has 3 bytes");
  runnel_flatbuffer_init (&buffer, file->data, 40, "example");
  root = runnel_flatbuffer_root (&buffer);
  assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "does not lie inside");
  runnel_flatbuffer_clear (&buffer);
}

/* Tables within tables, as deep as is allowed and one more. */
static void
test_depth (void)
{
  for (guint extra = 0; extra < 2; extra++) {
    g_autoptr (GByteArray) file = flat_new ();
    RunnelFlatbuffer buffer;
    RunnelFlatTable table;
    gsize slot = 0;

    for (guint i = 0; i < RUNNEL_FLATBUFFER_MAX_DEPTH + extra; i++) {
      FlatField fields[] = { { 0, 'o' } };

      flat_table (file, slot, fields, 1);
      slot = fields[0].slot;
    }
    runnel_flatbuffer_init (&buffer, file->data, file->len, "example");
    table = runnel_flatbuffer_root (&buffer);
    for (guint i = 1; i < RUNNEL_FLATBUFFER_MAX_DEPTH + extra; i++)
      table = runnel_flat_table_table (&table, 0);
    if (extra)
      assert_fault (&buffer, RUNNEL_ERROR_MALFORMED, "deeper than 16");
    else
      g_assert_true (runnel_flatbuffer_check (&buffer, NULL));
    runnel_flatbuffer_clear (&buffer);
  }
}

/* Nothing that is read of an altered file lies outside of it. */
static void
test_altered (void)
{
  for (guint i = 0; i < 50000; i++) {
    g_autoptr (GByteArray) file = write_example (NULL);
    g_autofree guint8 *copy = NULL;
    RunnelFlatbuffer buffer;
    RunnelFlatTable root, inner;
    RunnelFlatVector vector;
    gsize size = file->len;

    for (guint k = 0; k < 1 + i % 3; k++)
      file->data[g_test_rand_int_range (0, size)] =
          i % 2 ? g_test_rand_int () : 0xff;
    if (i % 4 == 0)
      size = g_test_rand_int_range (0, size);
    copy = g_memdup2 (file->data, size);   /* for the sanitizers */
    runnel_flatbuffer_init (&buffer, copy, size, "example");
    root = runnel_flatbuffer_root (&buffer);
    inner = runnel_flat_table_table (&root, 6);
    runnel_flat_table_int32 (&inner, 1, 0);
    runnel_flat_table_string (&root, 3);
    vector = runnel_flat_table_vector (&root, 8, 8, 1000);
    for (gsize k = 0; k < vector.n; k++)
      runnel_flat_vector_int64 (&vector, k);
    vector = runnel_flat_table_vector (&root, 4, 4, 1000);
    for (gsize k = 0; k < vector.n; k++) {
      inner = runnel_flat_vector_table (&vector, k);
      runnel_flat_table_float (&inner, k, 0);
    }
    runnel_flatbuffer_clear (&buffer);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/flatbuffer/values", test_values);
  g_test_add_func ("/flatbuffer/faults", test_faults);
  g_test_add_func ("/flatbuffer/depth", test_depth);
  g_test_add_func ("/flatbuffer/altered", test_altered);
  return g_test_run ();
}
