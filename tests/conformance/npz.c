/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "npz.h"

#include <gio/gio.h>
#include <string.h>

#define LOCAL_HEADER 0x04034b50
#define LOCAL_HEADER_BYTES 30
#define DEFLATED 8
#define MAX_MEMBER (64 << 20)

struct _Npz {
  char *data;
  gsize size;
  GArray *arrays;
  GPtrArray *inflated;       /* memory of members that were compressed */
};

static guint32
read_u32 (const guint8 *at)
{
  return at[0] | at[1] << 8 | at[2] << 16 | (guint32) at[3] << 24;
}

static guint16
read_u16 (const guint8 *at)
{
  return at[0] | at[1] << 8;
}

static gboolean
parse_shape (const char *header, NpzArray *array)
{
  const char *at = strstr (header, "'shape': (");

  array->n = 1;
  if (at == NULL)
    return FALSE;
  at += strlen ("'shape': (");
  while (*at != ')' && *at != '\0' && array->n_dims < 4) {
    char *end;

    array->dims[array->n_dims] = g_ascii_strtoull (at, &end, 10);
    array->n *= array->dims[array->n_dims++];
    at = end + strspn (end, ", ");
  }
  return *at == ')';
}

/* One .npy member: magic, version 1, header length, header, data. */
static gboolean
parse_member (Npz *npz, const guint8 *name, gsize name_length,
              const guint8 *data, gsize size)
{
  NpzArray array = { 0 };
  g_autofree char *header = NULL;
  gsize length;

  if (size < 10 || memcmp (data, "\x93NUMPY\x01", 7) != 0)
    return FALSE;
  length = read_u16 (data + 8);
  if (size < 10 + length)
    return FALSE;
  header = g_strndup ((const char *) data + 10, length);
  if (strstr (header, "'fortran_order': False") == NULL
      || !parse_shape (header, &array))
    return FALSE;
  array.type = strstr (header, "'<f4'") != NULL ? 'f'
      : strstr (header, "'<i4'") != NULL ? 'i' : 0;
  if (array.type == 0 || size - 10 - length != array.n * 4)
    return FALSE;
  array.data = data + 10 + length;
  array.name = g_strndup ((const char *) name,
      name_length - strlen (".npy"));
  g_array_append_val (npz->arrays, array);
  return TRUE;
}

/* NULL when it is not @size bytes. */
static const guint8 *
inflate (Npz *npz, const guint8 *from, gsize n, gsize size)
{
  g_autoptr (GZlibDecompressor) zlib
      = g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_RAW);
  guint8 *to = size <= MAX_MEMBER ? g_malloc (MAX (size, 1)) : NULL;
  gsize read, written;

  if (to == NULL)
    return NULL;
  g_ptr_array_add (npz->inflated, to);
  return g_converter_convert (G_CONVERTER (zlib), from, n, to, size,
      G_CONVERTER_INPUT_AT_END, &read, &written, NULL)
          == G_CONVERTER_FINISHED && written == size ? to : NULL;
}

static void
clear_array (gpointer array)
{
  g_free (((NpzArray *) array)->name);
}

Npz *
npz_open (const char *path, GError **error)
{
  g_autoptr (Npz) npz = g_new0 (Npz, 1);
  const guint8 *data;
  gsize at = 0;

  npz->arrays = g_array_new (FALSE, FALSE, sizeof (NpzArray));
  g_array_set_clear_func (npz->arrays, clear_array);
  npz->inflated = g_ptr_array_new_with_free_func (g_free);
  if (!g_file_get_contents (path, &npz->data, &npz->size, error))
    return NULL;
  data = (const guint8 *) npz->data;
  while (at + LOCAL_HEADER_BYTES <= npz->size
      && read_u32 (data + at) == LOCAL_HEADER) {
    gsize name = at + LOCAL_HEADER_BYTES;
    gsize name_length = read_u16 (data + at + 26);
    gsize body = name + name_length + read_u16 (data + at + 28);
    gsize size = read_u32 (data + at + 18);
    gsize full = read_u32 (data + at + 22);
    const guint8 *member = NULL;

    /* numpy writes the sizes of large members into a zip64 field. */
    if (size == G_MAXUINT32 && body <= npz->size) {
      full = read_u32 (data + name + name_length + 4);
      size = read_u32 (data + name + name_length + 4 + 8);
    }
    if (body + size <= npz->size)
      member = read_u16 (data + at + 8) == DEFLATED
          ? inflate (npz, data + body, size, full) : data + body;
    if (member == NULL || !parse_member (npz, data + name, name_length,
            member, full)) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
          "%s: byte %" G_GSIZE_FORMAT " is no .npy member", path, at);
      return NULL;
    }
    at = body + size;
  }
  return g_steal_pointer (&npz);
}

void
npz_free (Npz *npz)
{
  g_array_unref (npz->arrays);
  g_ptr_array_unref (npz->inflated);
  g_free (npz->data);
  g_free (npz);
}

gsize
npz_n_arrays (Npz *npz)
{
  return npz->arrays->len;
}

const NpzArray *
npz_nth (Npz *npz, gsize i)
{
  return &g_array_index (npz->arrays, NpzArray, i);
}

const NpzArray *
npz_find (Npz *npz, const char *name)
{
  for (gsize i = 0; i < npz_n_arrays (npz); i++)
    if (g_str_equal (npz_nth (npz, i)->name, name))
      return npz_nth (npz, i);
  return NULL;
}

float *
npz_dup_floats (const NpzArray *array)
{
  return array->type == 'f' ? g_memdup2 (array->data, array->n * 4) : NULL;
}

gint32 *
npz_dup_ints (const NpzArray *array)
{
  return array->type == 'i' ? g_memdup2 (array->data, array->n * 4) : NULL;
}
