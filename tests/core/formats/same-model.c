/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "same-model.h"

#include "model/sequence.h"

#define N_TOKENS 40

RunnelTokenizer *
load_tokenizer (const char *path)
{
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer = runnel_tokenizer_new_from_file (path, &error);

  g_assert_no_error (error);
  return tokenizer;
}

float *
compute_logits (const char *path, gsize *ret_n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = runnel_model_open (path,
      RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", 1, NULL, NULL);
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  gint32 tokens[N_TOKENS];
  float *logits;
  guint n_vocab;

  g_assert_no_error (error);
  n_vocab = runnel_model_get_n_vocab (model);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  sequence = runnel_sequence_new (engine, 0, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_TOKENS; i++)
    tokens[i] = (i * 37 + 5) % n_vocab;
  *ret_n = N_TOKENS * n_vocab;
  logits = g_new (float, *ret_n);
  runnel_sequence_forward (sequence, tokens, N_TOKENS, logits, *ret_n,
      &error);
  g_assert_no_error (error);
  return logits;
}

void
assert_same_logits (const char *path, const char *expected)
{
  gsize n, m;
  g_autofree float *theirs = compute_logits (expected, &n);
  g_autofree float *ours = compute_logits (path, &m);

  g_assert_cmpmem (ours, m * sizeof (float), theirs, n * sizeof (float));
}

static void
assert_same_tokens (RunnelTokenizer *a, RunnelTokenizer *b, const char *text)
{
  gsize n, m;
  g_autofree gint32 *first
      = runnel_tokenizer_encode (a, text, -1, TRUE, &n, NULL);
  g_autofree gint32 *second
      = runnel_tokenizer_encode (b, text, -1, TRUE, &m, NULL);

  g_assert_cmpmem (first, n * sizeof *first, second, m * sizeof *second);
}

static void
assert_same_tokenizer (RunnelTokenizer *a, RunnelTokenizer *b)
{
  const gint32 *stops, *others;
  gsize n, m;

  g_assert_cmpstr (runnel_tokenizer_get_digest (a), ==,
      runnel_tokenizer_get_digest (b));
  g_assert_cmpstr (runnel_tokenizer_get_chat_template (a), ==,
      runnel_tokenizer_get_chat_template (b));
  g_assert_cmpint (runnel_tokenizer_get_bos (a), ==,
      runnel_tokenizer_get_bos (b));
  g_assert_cmpint (runnel_tokenizer_get_add_bos (a), ==,
      runnel_tokenizer_get_add_bos (b));
  g_assert_cmpint (runnel_tokenizer_get_eos (a), ==,
      runnel_tokenizer_get_eos (b));
  stops = runnel_tokenizer_get_stop_tokens (a, &n);
  others = runnel_tokenizer_get_stop_tokens (b, &m);
  g_assert_cmpmem (stops, n * sizeof *stops, others, m * sizeof *others);
  assert_same_tokens (a, b, "the user and<|im_end|> in the<|im_start|>");
  assert_same_tokens (a, b, "e\xcc\x81 nt isin the andand");
}

void
assert_same_model (const char *path, const char *expected)
{
  g_autoptr (RunnelTokenizer) ours = load_tokenizer (path);
  g_autoptr (RunnelTokenizer) theirs = load_tokenizer (expected);

  assert_same_tokenizer (ours, theirs);
  assert_same_logits (path, expected);
}
