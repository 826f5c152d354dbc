/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include <runnel.h>

#include "input.h"
#include "json-output.h"
#include "loading.h"
#include "log-probability.h"
#include "machine.h"
#include "report.h"
#include "token-list.h"
#include "verb.h"

#define DEFAULT_CHUNK 32
#define MAX_CHUNK 512

#define NOT_GIVEN G_MININT

static int context_length, chunk = DEFAULT_CHUNK, skip = NOT_GIVEN;

static const GOptionEntry entries[] = {
  { "context", 'c', 0, G_OPTION_ARG_INT, &context_length,
    "Tokens in a window (default: the model's context)", "N" },
  { "skip", 0, 0, G_OPTION_ARG_INT, &skip,
    "Tokens at the beginning of each window that are not scored (default: the "
    "first one in a single window, half of each in several)", "N" },
  { "chunk", 0, 0, G_OPTION_ARG_INT, &chunk,
    "Tokens computed at once (default: 32); the result is the same", "N" },
  G_OPTION_ENTRY_NULL
};

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
  gint32 *tokens;
  gsize n_tokens;
  gsize window;       /* tokens in one */
  gsize n_windows;
  gsize first;        /* of a window: the first token that is scored */
  /* What comes out. */
  gsize n_scored;
  double sum;         /* of −log p */
  double sum_squares;
} Perplexity;

static gint32 *
read_tokens (RunnelModel *model, const char *path, gsize *n_tokens,
             GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autofree char *text = NULL;
  g_autofree gint32 *tokens = NULL;
  gsize length;

  text = tokenizer ? input_read_file (path, &length, error) : NULL;
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
cut_windows (Perplexity *self, GError **error)
{
  gsize limit = runnel_model_get_context_length (self->model);

  if (context_length < 0 || (gsize) context_length > limit) {
    report_set_usage (error, "--context: %d is not between 1 and the model's "
        "%" G_GSIZE_FORMAT, context_length, limit);
    return FALSE;
  }
  self->window = MIN (self->n_tokens, context_length ? (gsize) context_length
      : limit);
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

static void
score (Perplexity *self, double nll)
{
  self->n_scored++;
  self->sum += nll;
  self->sum_squares += nll * nll;
}

static gboolean
run_window (Perplexity *self, const gint32 *tokens, float *logits,
            GError **error)
{
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (self->engine, 0, error);
  gsize n_vocab = runnel_model_get_n_vocab (self->model);
  gsize done = self->first - 1, end = self->window - 1;

  if (sequence == NULL || (done > 0
          && !runnel_sequence_prefill (sequence, tokens, done, 0, FALSE, NULL,
              NULL, NULL, NULL, error)))
    return FALSE;
  while (done < end) {
    gsize rows = MIN ((gsize) chunk, end - done);

    if (!runnel_sequence_forward (sequence, tokens + done, rows, logits,
            rows * n_vocab, error))
      return FALSE;
    for (gsize i = 0; i < rows; i++)
      score (self, log_sum_exp (logits + i * n_vocab, n_vocab)
          - logits[i * n_vocab + tokens[done + i + 1]]);
    done += rows;
  }
  return TRUE;
}

static gboolean
run_windows (Perplexity *self, GError **error)
{
  gsize n_vocab = runnel_model_get_n_vocab (self->model);
  g_autofree float *logits = g_new (float, chunk * n_vocab);
  RunnelTokenizer *tokenizer
      = runnel_model_get_tokenizer (self->model, error);
  gint32 bos = runnel_tokenizer_get_add_bos (tokenizer)
      ? runnel_tokenizer_get_bos (tokenizer) : -1;

  for (gsize i = 0; i < self->n_windows; i++) {
    g_autofree char *text = g_strdup_printf ("Window %" G_GSIZE_FORMAT " of %"
        G_GSIZE_FORMAT ", perplexity %.4f", i + 1, self->n_windows,
        self->n_scored ? exp (self->sum / self->n_scored) : 0);

    report_progress (text);
    if (bos >= 0)
      self->tokens[i * self->window] = bos;
    if (!run_window (self, self->tokens + i * self->window, logits, error))
      return FALSE;
  }
  report_progress_end ();
  return TRUE;
}

/* Of the mean, as if the tokens were independent. */
static double
get_standard_error (const Perplexity *self)
{
  double n = self->n_scored, mean = self->sum / n;

  return n > 1 ? sqrt (MAX (self->sum_squares / n - mean * mean, 0) / (n - 1))
      : 0;
}

static void
print_json (const Perplexity *self)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  double mean = self->sum / self->n_scored;

  json_begin_object (&json, NULL);
  json_add_double (&json, "perplexity", exp (mean));
  json_add_double (&json, "nll", mean);
  json_add_double (&json, "nll_standard_error", get_standard_error (self));
  json_add_uint (&json, "tokens", self->n_tokens);
  json_add_uint (&json, "scored", self->n_scored);
  json_add_uint (&json, "windows", self->n_windows);
  json_add_uint (&json, "context", self->window);
  json_add_string (&json, "content_id",
      runnel_model_get_content_id (self->model), -1);
  machine_add_json (&json, runnel_engine_get_backend (self->engine));
  json_end_object (&json);
  json_print (&json);
}

static void
print_text (const Perplexity *self)
{
  double mean = self->sum / self->n_scored;
  g_autofree char *machine
      = machine_describe (runnel_engine_get_backend (self->engine));

  printf ("perplexity     %.4f ± %.4f\n", exp (mean),
      exp (mean) * get_standard_error (self));
  printf ("nll            %.6f per token\n", mean);
  printf ("tokens         %" G_GSIZE_FORMAT ", of them %" G_GSIZE_FORMAT
      " scored, in %" G_GSIZE_FORMAT " windows of %" G_GSIZE_FORMAT "\n",
      self->n_tokens, self->n_scored, self->n_windows, self->window);
  printf ("model          %s\n", runnel_model_get_path (self->model));
  printf ("machine        %s\n", machine);
}

static gboolean
measure (Perplexity *self, const Options *options, GError **error)
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
  self->model = loading_open_model (options, error);
  self->tokens = self->model ? read_tokens (self->model,
      options->n_arguments > 0 ? options->arguments[0] : "-",
      &self->n_tokens, error) : NULL;
  if (self->tokens == NULL || !cut_windows (self, error))
    return FALSE;
  self->engine = loading_get_engine (options, self->model, error);
  return self->engine != NULL && run_windows (self, error);
}

static int
run (const Options *options)
{
  Perplexity self = { 0 };
  g_autoptr (GError) error = NULL;
  int status = EXIT_OK;

  if (!measure (&self, options, &error))
    status = report_error (error);
  else if (options->json)
    print_json (&self);
  else
    print_text (&self);
  g_clear_object (&self.engine);
  g_clear_object (&self.model);
  g_free (self.tokens);
  return status;
}

const Verb verb_perplexity = {
  .name = "perplexity",
  .parameters = "[FILE]",
  .summary = "How well a model foretells a text",
  .details = "FILE is a text (default: standard input). One longer than a "
    "window is cut into\nwindows, of each of which the second half is scored, "
    "as llama.cpp does.",
  .uses = USES_MODEL | USES_ENGINE | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
