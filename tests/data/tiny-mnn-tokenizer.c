/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-mnn-tokenizer.h"

#include <string.h>

static void
put (GByteArray *out, const void *data, gsize n)
{
  g_byte_array_append (out, data, n);
}

typedef struct { const char *text; gsize length; } Piece;

static Piece *
list_strings (const RunnelGguf *gguf, const char *key, guint *ret_n)
{
  RunnelGgufArray array;
  const guint8 *at;
  Piece *pieces;

  g_assert_true (runnel_gguf_get_array (gguf, key, RUNNEL_GGUF_STRING, &array,
      NULL));
  pieces = g_new (Piece, array.n);
  at = array.data;
  for (guint64 i = 0; i < array.n; i++)
    at = runnel_gguf_next_string (at, &pieces[i].text, &pieces[i].length);
  *ret_n = array.n;
  return pieces;
}

static void
put_piece (GByteArray *out, const Piece *piece)
{
  guint16 length = piece->length;

  put (out, &length, 2);
  put (out, piece->text, piece->length);
}

static guint32
find_piece (const Piece *pieces, guint n, const char *text, gsize length)
{
  guint i = 0;

  while (i < n && (pieces[i].length != length
                   || memcmp (pieces[i].text, text, length) != 0))
    i++;
  g_assert_cmpuint (i, <, n);
  return i;
}

/* Three control tokens, as tiny-model.h has them, then the others. */
#define N_CONTROLS 3

/* The control tokens stand among the added ones only. */
static void
put_binary (GByteArray *out, const Piece *tokens, guint n,
            const Piece *merges, guint n_merges)
{
  static const guint8 stages[] = { 0, 6, 2, 0, 0, 0, 2, 1, 1, 1 };
  static const guint8 rest[11] = { 0 };   /* no template, ends, flags, ops */
  guint32 counts[] = { n - N_CONTROLS, n_merges, N_CONTROLS };

  put (out, stages, sizeof stages);
  put (out, "", 1);   /* BPE */
  put (out, &counts[0], 4);
  put (out, rest, 2);
  put (out, &counts[1], 4);
  for (guint32 id = N_CONTROLS; id < n; id++) {
    put_piece (out, &tokens[id]);
    put (out, &id, 4);
  }
  for (guint32 rank = n_merges; rank-- > 0;) {
    const char *blank = memchr (merges[rank].text, ' ', merges[rank].length);
    gsize left = blank - merges[rank].text;
    guint32 ids[2] = {
      find_piece (tokens, n, merges[rank].text, left),
      find_piece (tokens, n, blank + 1, merges[rank].length - left - 1),
    };

    put (out, ids, 8);
    put (out, &rank, 4);
  }
  put (out, "", 1);   /* byte-level decoder */
  put (out, &counts[2], 4);
  for (guint32 id = 0; id < N_CONTROLS; id++) {
    put (out, &id, 4);
    put (out, "\1\0\0", 3);
    put_piece (out, &tokens[id]);
  }
  put (out, rest, sizeof rest);
}

static void
put_lines (GByteArray *out, const Piece *pieces, guint n)
{
  for (guint i = 0; i < n; i++) {
    put (out, pieces[i].text, pieces[i].length);
    put (out, "\n", 1);
  }
}

void
tiny_mnn_write_tokenizer (const RunnelGguf *gguf, gboolean text,
                          const char *folder)
{
  guint n, n_merges;
  g_autofree Piece *tokens = list_strings (gguf, "tokenizer.ggml.tokens", &n);
  g_autofree Piece *merges = list_strings (gguf, "tokenizer.ggml.merges",
      &n_merges);
  g_autoptr (GByteArray) out = g_byte_array_new ();
  g_autofree char *head = g_strdup_printf ("430 %d\n3 1 0\n0 1 2 2\n",
      text ? 3 : 4);
  g_autofree char *counts = g_strdup_printf ("%u %u\n", n, n_merges);
  g_autofree char *path = g_build_filename (folder,
      text ? "tokenizer.txt" : "tokenizer.mtok", NULL);

  put (out, head, strlen (head));
  if (text) {
    put (out, counts, strlen (counts));
    put_lines (out, tokens, n);
    put_lines (out, merges, n_merges);
  } else {
    put_binary (out, tokens, n, merges, n_merges);
  }
  g_assert_true (g_file_set_contents (path, (const char *) out->data, out->len,
      NULL));
}
