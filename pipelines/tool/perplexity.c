/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include <runnel.h>

#include "json-output.h"
#include "loading.h"
#include "log-probability.h"
#include "machine.h"
#include "report.h"
#include "scored-text.h"
#include "verb.h"

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
  ScoredText text;
  /* What comes out. */
  gsize n_scored;
  double sum;         /* of −log p */
  double sum_squares;
} Perplexity;

static void
score (const ScoredText *text, gsize position, const float *const *logits,
       gpointer user_data)
{
  Perplexity *self = user_data;
  gsize n_vocab = runnel_model_get_n_vocab (self->model);
  double nll = log_sum_exp (logits[0], n_vocab)
      - logits[0][text->tokens[position]];

  self->n_scored++;
  self->sum += nll;
  self->sum_squares += nll * nll;
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
  json_add_uint (&json, "tokens", self->text.n_tokens);
  json_add_uint (&json, "scored", self->n_scored);
  json_add_uint (&json, "windows", self->text.n_windows);
  json_add_uint (&json, "context", self->text.window);
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
      self->text.n_tokens, self->n_scored, self->text.n_windows, self->text.window);
  printf ("model          %s\n", runnel_model_get_path (self->model));
  printf ("machine        %s\n", machine);
}

static gboolean
measure (Perplexity *self, const Options *options, GError **error)
{
  self->model = loading_open_model (options, error);
  if (self->model == NULL
      || !scored_text_read (&self->text, self->model,
          runnel_model_get_context_length (self->model),
          options->n_arguments > 0 ? options->arguments[0] : "-", error))
    return FALSE;
  self->engine = loading_get_engine (options, self->model, error);
  return self->engine != NULL
      && scored_text_run (&self->text, &self->engine, 1, score, self, error);
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
  scored_text_clear (&self.text);
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
  .entries = scored_text_entries,
  .run = run,
};
