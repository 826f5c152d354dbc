/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 *   bench-tokenizer MODEL [TEXT-FILE]
 *
 * How fast a tokenizer loads, encodes and decodes, on one core: the median
 * and the spread of five runs. MODEL is what RunnelTokenizer reads. Without a
 * text, prose is made up from the vocabulary's own words.
 */
#include <stdio.h>
#include <string.h>

#include "runnel.h"

#define RUNS 5
#define SEED 1
#define PROSE_BYTES (8 << 20)

typedef struct {
  const char *path;
  RunnelTokenizer *tokenizer;
  const char *text;
  gsize length;
  gint32 *ids;
  gsize n_ids;
} Bench;

static void
print_machine (void)
{
  g_autofree char *info = NULL;
  const char *model = NULL;

  if (g_file_get_contents ("/proc/cpuinfo", &info, NULL, NULL))
    model = strstr (info, "model name");
  if (model != NULL && strchr (model, ':') != NULL)
    printf ("machine: %.*s, %u processors\n",
            (int) strcspn (strchr (model, ':') + 2, "\n"),
            strchr (model, ':') + 2, g_get_num_processors ());
  else
    printf ("machine: %u processors\n", g_get_num_processors ());
}

/* Tokens that are a blank and small letters, in the order of their ids, which
 * is roughly that of their frequency. */
static GPtrArray *
collect_words (RunnelTokenizer *tokenizer)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < runnel_tokenizer_get_n_tokens (tokenizer); i++) {
    gsize length, at = 1;
    const guint8 *piece = runnel_tokenizer_get_piece (tokenizer, i, &length);

    if (length < 2 || length > 16 || piece[0] != ' ')
      continue;
    while (at < length && g_ascii_islower (piece[at]))
      at++;
    if (at == length)
      g_ptr_array_add (words, g_strndup ((const char *) piece, length));
  }
  return words;
}

/* Word k comes with a probability like 1/k (Zipf); every twelfth word is a
 * name that no vocabulary has; a comma or a full stop after every eighth. */
static char *
make_prose (RunnelTokenizer *tokenizer, gsize *ret_length)
{
  g_autoptr (GPtrArray) words = collect_words (tokenizer);
  g_autoptr (GRand) random = g_rand_new_with_seed (SEED);
  GString *out = g_string_sized_new (PROSE_BYTES + 64);

  while (out->len < PROSE_BYTES) {
    double k = words->len > 0
        ? g_rand_double (random) * g_rand_double (random) : 0;

    if (words->len == 0 || g_rand_int_range (random, 0, 12) == 0) {
      g_string_append_c (out, ' ');
      g_string_append_c (out, g_rand_int_range (random, 'A', 'Z' + 1));
      for (int i = g_rand_int_range (random, 3, 9); i > 0; i--)
        g_string_append_c (out, g_rand_int_range (random, 'a', 'z' + 1));
    } else {
      k = k * k * words->len;
      g_string_append (out, g_ptr_array_index (words, (guint) k));
    }
    if (g_rand_int_range (random, 0, 8) == 0)
      g_string_append (out, g_rand_boolean (random) ? "," : ".");
  }
  *ret_length = out->len;
  return g_string_free (out, FALSE);
}

static void
run_load (Bench *bench)
{
  g_autoptr (RunnelTokenizer) tokenizer =
      runnel_tokenizer_new_from_file (bench->path, NULL);

  g_assert_nonnull (tokenizer);
}

static void
run_encode (Bench *bench)
{
  g_free (bench->ids);
  bench->ids = runnel_tokenizer_encode (bench->tokenizer, bench->text,
                                        bench->length, TRUE, &bench->n_ids,
                                        NULL);
  g_assert_nonnull (bench->ids);
}

static void
run_detokenize (Bench *bench)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (bench->tokenizer, TRUE);
  g_autoptr (GString) out = g_string_sized_new (bench->length + 16);

  for (gsize i = 0; i < bench->n_ids; i++)
    if (!runnel_detokenizer_push_to (detokenizer, bench->ids[i], out, NULL))
      g_assert_not_reached ();
}

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  const gint64 *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

static void
measure (Bench *bench, const char *what, void (*run) (Bench *), gsize bytes)
{
  gint64 times[RUNS];

  for (guint i = 0; i < RUNS; i++) {
    gint64 start = g_get_monotonic_time ();

    run (bench);
    times[i] = MAX (1, g_get_monotonic_time () - start);
  }
  qsort (times, RUNS, sizeof times[0], compare_times);
  printf ("%-11s median %9.3f ms, %.3f to %.3f", what,
          times[RUNS / 2] / 1000.0, times[0] / 1000.0,
          times[RUNS - 1] / 1000.0);
  if (bytes > 0)
    printf (", %.1f MB/s", (double) bytes / times[RUNS / 2]);
  printf ("\n");
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  g_autofree char *text = NULL;
  Bench bench = { NULL };

  if (argc < 2 || argc > 3) {
    fprintf (stderr, "usage: %s MODEL [TEXT-FILE]\n", argv[0]);
    return 2;
  }
  bench.path = argv[1];
  bench.tokenizer = tokenizer =
      runnel_tokenizer_new_from_file (argv[1], &error);
  if (tokenizer != NULL && argc < 3)
    text = make_prose (tokenizer, &bench.length);
  else if (tokenizer != NULL)
    g_file_get_contents (argv[2], &text, &bench.length, &error);
  if (error != NULL) {
    fprintf (stderr, "%s: %s\n", argv[0], error->message);
    return 1;
  }
  bench.text = text;
  print_machine ();
  run_encode (&bench);
  printf ("text: %s, seed %d, %" G_GSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT
          " tokens of a vocabulary of %u\n", argc > 2 ? argv[2] : "made up",
          SEED, bench.length, bench.n_ids,
          runnel_tokenizer_get_n_tokens (tokenizer));
  measure (&bench, "load", run_load, 0);
  measure (&bench, "encode", run_encode, bench.length);
  measure (&bench, "detokenize", run_detokenize, bench.length);
  g_free (bench.ids);
  return 0;
}
