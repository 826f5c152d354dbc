/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scored-text.h"

#include "input.h"
#include "report.h"
#include "token-list.h"

#define DEFAULT_CHUNK 32
#define MAX_CHUNK 512

#define NOT_GIVEN G_MININT

static int context, chunk = DEFAULT_CHUNK, skip = NOT_GIVEN;

const GOptionEntry scored_text_entries[] = {
  { "context", 'c', 0, G_OPTION_ARG_INT, &context,
    "Tokens in a window (default: the model's context)", "N" },
  { "skip", 0, 0, G_OPTION_ARG_INT, &skip,
    "Tokens at the beginning of each window that are not scored (default: the "
    "first one in a single window, half of each in several)", "N" },
  { "chunk", 0, 0, G_OPTION_ARG_INT, &chunk,
    "Tokens computed at once (default: 32); the result is the same", "N" },
  G_OPTION_ENTRY_NULL
};

static gint32 *
read_tokens (RunnelTokenizer *tokenizer, const char *path, gsize *n_tokens,
             GError **error)
{
  g_autofree char *text = NULL;
  g_autofree gint32 *tokens = NULL;
  gsize length;

  text = input_read_file (path, &length, error);
  tokens = text ? runnel_tokenizer_encode (tokenizer, text, length, FALSE,
      n_tokens, error) : NULL;
  if (text != NULL && tokens == NULL)
    g_prefix_error (error, "%s: ", path);
  if (tokens == NULL || !runnel_tokenizer_get_add_bos (tokenizer)
      || runnel_tokenizer_get_bos (tokenizer) < 0)
    return g_steal_pointer (&tokens);
  return token_list_prepend (g_steal_pointer (&tokens), n_tokens,
      runnel_tokenizer_get_bos (tokenizer));
}

/* llama.cpp's way: whole windows that do not overlap, a rest is left out, each
 * begins a text of its own, and its first half is context only. A text that
 * fits into one window is scored from its second token on. */
static gboolean
cut_windows (ScoredText *self, gsize limit, GError **error)
{
  if (context < 0 || (gsize) context > limit) {
    report_set_usage (error, "--context: %d is not between 1 and the model's "
        "%" G_GSIZE_FORMAT, context, limit);
    return FALSE;
  }
  self->window = MIN (self->n_tokens, context ? (gsize) context : limit);
  if (self->window < 2) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "%" G_GSIZE_FORMAT " tokens are too few to tell one from those before "
        "it; two are the least", self->window);
    return FALSE;
  }
  self->n_windows = self->n_tokens / self->window;
  self->first = skip != NOT_GIVEN ? MAX (skip, 1)
      : self->n_windows == 1 ? 1 : MIN (self->window / 2 + 1, self->window - 1);
  if (self->first >= self->window) {
    report_set_usage (error, "--skip: %d leaves nothing of a window of %"
        G_GSIZE_FORMAT " tokens", skip, self->window);
    return FALSE;
  }
  return TRUE;
}

gboolean
scored_text_read (ScoredText *self, RunnelModel *model, guint context_length,
                  const char *path, GError **error)
{
  if (chunk < 1 || chunk > MAX_CHUNK) {
    report_set_usage (error, "--chunk: %d is not between 1 and %d", chunk,
        MAX_CHUNK);
    return FALSE;
  }
  if (skip < 0 && skip != NOT_GIVEN) {
    report_set_usage (error, "--skip: %d is less than nothing", skip);
    return FALSE;
  }
  self->tokenizer = runnel_model_get_tokenizer (model, error);
  self->tokens = self->tokenizer ? read_tokens (self->tokenizer, path,
      &self->n_tokens, error) : NULL;
  return self->tokens != NULL && cut_windows (self, context_length, error);
}

void
scored_text_clear (ScoredText *self)
{
  g_clear_pointer (&self->tokens, g_free);
}

/* ---- Reading ------------------------------------------------------------- */

typedef struct {
  gsize n_vocab;
  RunnelSequence *sequence;
  float *logits;      /* of a chunk */
} Reader;

static void
clear_reader (Reader *self)
{
  g_clear_object (&self->sequence);
  g_clear_pointer (&self->logits, g_free);
}

static gboolean
begin_window (Reader *self, RunnelEngine *engine, const gint32 *tokens,
              gsize n_tokens, GError **error)
{
  g_clear_object (&self->sequence);
  self->sequence = runnel_sequence_new (engine, 0, error);
  return self->sequence != NULL && (n_tokens == 0
      || runnel_sequence_prefill (self->sequence, tokens, n_tokens, 0, FALSE,
          NULL, NULL, NULL, NULL, error));
}

/* Rows of a window from token @done of the text on. */
static gboolean
read_rows (const ScoredText *self, Reader *readers, guint n_readers,
           gsize done, gsize n_rows, ScoredTextFunc func, gpointer user_data,
           GError **error)
{
  const float *logits[SCORED_TEXT_MAX_ENGINES];

  for (guint e = 0; e < n_readers; e++)
    if (!runnel_sequence_forward (readers[e].sequence, self->tokens + done,
            n_rows, readers[e].logits, n_rows * readers[e].n_vocab, error))
      return FALSE;
  for (gsize i = 0; i < n_rows; i++) {
    for (guint e = 0; e < n_readers; e++)
      logits[e] = readers[e].logits + i * readers[e].n_vocab;
    func (self, done + i + 1, logits, user_data);
  }
  return TRUE;
}

static gboolean
read_window (ScoredText *self, gsize start, RunnelEngine *const *engines,
             Reader *readers, guint n_readers, ScoredTextFunc func,
             gpointer user_data, GError **error)
{
  gsize done = start + self->first - 1, end = start + self->window - 1;

  if (runnel_tokenizer_get_add_bos (self->tokenizer)
      && runnel_tokenizer_get_bos (self->tokenizer) >= 0)
    self->tokens[start] = runnel_tokenizer_get_bos (self->tokenizer);
  for (guint e = 0; e < n_readers; e++)
    if (!begin_window (&readers[e], engines[e], self->tokens + start,
            done - start, error))
      return FALSE;
  for (; done < end; done += MIN ((gsize) chunk, end - done))
    if (!read_rows (self, readers, n_readers, done,
            MIN ((gsize) chunk, end - done), func, user_data, error))
      return FALSE;
  return TRUE;
}

gboolean
scored_text_run (ScoredText *self, RunnelEngine *const *engines,
                 guint n_engines, ScoredTextFunc func, gpointer user_data,
                 GError **error)
{
  Reader readers[SCORED_TEXT_MAX_ENGINES] = { 0 };
  gboolean good = TRUE;

  g_return_val_if_fail (n_engines <= SCORED_TEXT_MAX_ENGINES, FALSE);
  for (guint e = 0; e < n_engines; e++) {
    readers[e].n_vocab
        = runnel_model_get_n_vocab (runnel_engine_get_model (engines[e]));
    readers[e].logits = g_new (float, chunk * readers[e].n_vocab);
  }
  for (gsize i = 0; i < self->n_windows && good; i++) {
    g_autofree char *text = g_strdup_printf ("Window %" G_GSIZE_FORMAT " of %"
        G_GSIZE_FORMAT, i + 1, self->n_windows);

    report_progress (text);
    good = read_window (self, i * self->window, engines, readers, n_engines,
        func, user_data, error);
  }
  report_progress_end ();
  for (guint e = 0; e < n_engines; e++)
    clear_reader (&readers[e]);
  return good;
}
