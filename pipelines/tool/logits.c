/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <runnel.h>

#include "json-output.h"
#include "loading.h"
#include "log-probability.h"
#include "report.h"
#include "token-list.h"
#include "verb.h"

#define ROWS_AT_ONCE 16

static char *ids_text;
static gboolean all_rows;
static int n_top;

static const GOptionEntry entries[] = {
  { "ids", 'i', 0, G_OPTION_ARG_STRING, &ids_text,
    "Token ids, with commas or spaces between them", "N,…" },
  { "all", 'a', 0, G_OPTION_ARG_NONE, &all_rows,
    "After every token instead of the last one", NULL },
  { "top", 0, 0, G_OPTION_ARG_INT, &n_top,
    "Only this many of the largest, with their tokens", "N" },
  G_OPTION_ENTRY_NULL
};

static gint32 *
get_tokens (const Options *options, RunnelModel *model, gsize *n_tokens,
            GError **error)
{
  guint n_vocab = runnel_model_get_n_vocab (model);
  g_autofree gint32 *tokens = NULL;

  if ((ids_text == NULL) == (options->n_arguments == 0)) {
    report_set_usage (error, "either --ids or a text is needed");
    return NULL;
  }
  if (ids_text != NULL) {
    tokens = token_list_parse (ids_text, strlen (ids_text), "--ids", n_vocab,
        n_tokens, error);
  } else {
    RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);

    tokens = tokenizer ? runnel_tokenizer_encode (tokenizer,
        options->arguments[0], -1, FALSE, n_tokens, error) : NULL;
  }
  if (tokens != NULL && *n_tokens == 0) {
    report_set_usage (error, "there is no token to begin with");
    return NULL;
  }
  return g_steal_pointer (&tokens);
}

/* The @n largest, largest first, the lower id on ties. */
static void
find_top (const float *logits, gsize n_vocab, gint32 *top, gsize n)
{
  gsize n_found = 0;

  for (gsize i = 0; i < n_vocab; i++) {
    gsize at;

    if (n_found == n && logits[i] <= logits[top[n - 1]])
      continue;
    if (n_found < n)
      n_found++;
    for (at = n_found - 1; at > 0 && logits[top[at - 1]] < logits[i]; at--)
      top[at] = top[at - 1];
    top[at] = (gint32) i;
  }
}

static void
add_top (JsonOutput *json, const char *key, RunnelTokenizer *tokenizer,
         const float *logits, gsize n_vocab)
{
  gsize n = MIN ((gsize) n_top, n_vocab);
  g_autofree gint32 *top = g_new0 (gint32, n);
  double sum = log_sum_exp (logits, n_vocab);

  find_top (logits, n_vocab, top, n);
  json_begin_array (json, key);
  for (gsize i = 0; i < n; i++) {
    gsize size = 0;
    const guint8 *piece
        = runnel_tokenizer_get_piece (tokenizer, top[i], &size);

    json_begin_object (json, NULL);
    json_add_int (json, "id", top[i]);
    json_add_string (json, "piece", (const char *) piece, size);
    json_add_float (json, "logit", logits[top[i]]);
    json_add_double (json, "logprob", logits[top[i]] - sum);
    json_end_object (json);
  }
  json_end_array (json);
}

static void
add_row (JsonOutput *json, const char *key, RunnelTokenizer *tokenizer,
         const float *logits, gsize n_vocab)
{
  if (n_top > 0) {
    add_top (json, key, tokenizer, logits, n_vocab);
    return;
  }
  json_begin_array (json, key);
  for (gsize i = 0; i < n_vocab; i++)
    json_add_float (json, NULL, logits[i]);
  json_end_array (json);
}

static gboolean
add_all_rows (JsonOutput *json, RunnelTokenizer *tokenizer,
              RunnelSequence *sequence, const gint32 *tokens, gsize n_tokens,
              gsize n_vocab, GError **error)
{
  g_autofree float *logits = g_new (float, ROWS_AT_ONCE * n_vocab);

  json_begin_array (json, n_top > 0 ? "top" : "logits");
  for (gsize done = 0; done < n_tokens; done += ROWS_AT_ONCE) {
    gsize n = MIN (ROWS_AT_ONCE, n_tokens - done);

    if (!runnel_sequence_forward (sequence, tokens + done, n, logits,
            n * n_vocab, error))
      return FALSE;
    for (gsize i = 0; i < n; i++)
      add_row (json, NULL, tokenizer, logits + i * n_vocab, n_vocab);
  }
  json_end_array (json);
  return TRUE;
}

static gboolean
add_last_row (JsonOutput *json, RunnelTokenizer *tokenizer,
              RunnelSequence *sequence, const gint32 *tokens, gsize n_tokens,
              gsize n_vocab, GError **error)
{
  g_autofree float *logits = g_new (float, n_vocab);

  if (!runnel_sequence_prefill (sequence, tokens, n_tokens, 0, FALSE, NULL,
          NULL, NULL, NULL, error)
      || !runnel_sequence_compute_logits (sequence, logits, n_vocab, error))
    return FALSE;
  add_row (json, n_top > 0 ? "top" : "logits", tokenizer, logits, n_vocab);
  return TRUE;
}

static gboolean
print_logits (const Options *options, GError **error)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  g_autoptr (RunnelModel) model = loading_open_model (options, error);
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  g_autofree gint32 *tokens = NULL;
  RunnelTokenizer *tokenizer = NULL;
  gsize n_tokens, n_vocab;

  tokens = model ? get_tokens (options, model, &n_tokens, error) : NULL;
  tokenizer = tokens ? runnel_model_get_tokenizer (model, error) : NULL;
  engine = tokenizer ? loading_get_engine (options, model, error) : NULL;
  sequence = engine ? runnel_sequence_new (engine, 0, error) : NULL;
  if (sequence == NULL)
    return FALSE;
  n_vocab = runnel_model_get_n_vocab (model);
  json_begin_object (&json, NULL);
  json_add_string (&json, "content_id", runnel_model_get_content_id (model),
      -1);
  json_add_uint (&json, "n_vocab", n_vocab);
  json_add_tokens (&json, "ids", tokens, n_tokens);
  if (!(all_rows ? add_all_rows : add_last_row) (&json, tokenizer, sequence,
          tokens, n_tokens, n_vocab, error))
    return FALSE;
  json_end_object (&json);
  json_print (&json);
  return TRUE;
}

static int
run (const Options *options)
{
  g_autoptr (GError) error = NULL;

  if (n_top < 0)
    report_set_usage (&error, "--top: %d is less than nothing", n_top);
  return error == NULL && print_logits (options, &error) ? EXIT_OK
      : report_error (error);
}

const Verb verb_logits = {
  .name = "logits",
  .parameters = "[TEXT]",
  .summary = "What a model makes of token ids, as JSON",
  .details = "One JSON object: the ids and, for the token that follows them, "
    "a logit for each\nid of the vocabulary; or a row of them after every "
    "token.\n\n"
    "  runnel logits --ids 1,2,3 --top 5",
  .uses = USES_MODEL | USES_ENGINE | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
