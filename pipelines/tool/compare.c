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

#define N_WORST 5

/* A token that both foretold. */
typedef struct {
  gsize position;
  double kl;
  double nll[2];
  gint32 top[2];
} Token;

typedef struct {
  RunnelModel *models[2];
  RunnelEngine *engines[2];
  ScoredText text;
  GArray *tokens;     /* Token */
} Comparison;

typedef struct {
  double mean, standard_error;
} Mean;

/* ---- Measuring ----------------------------------------------------------- */

static gint32
find_top (const float *logits, gsize n)
{
  gsize top = 0;

  for (gsize i = 1; i < n; i++)
    if (logits[i] > logits[top])
      top = i;
  return (gint32) top;
}

/* Of the second distribution from the first: Σ p (ln p − ln q). */
static double
get_divergence (const float *const *logits, const double sums[2], gsize n)
{
  double kl = 0;

  for (gsize i = 0; i < n; i++) {
    double p = logits[0][i] - sums[0], q = logits[1][i] - sums[1];

    kl += exp (p) * (p - q);
  }
  return MAX (kl, 0);
}

static void
score (const ScoredText *text, gsize position, const float *const *logits,
       gpointer user_data)
{
  Comparison *self = user_data;
  gsize n = runnel_model_get_n_vocab (self->models[0]);
  Token token = { .position = position };
  double sums[2];

  for (guint m = 0; m < 2; m++) {
    sums[m] = log_sum_exp (logits[m], n);
    token.nll[m] = sums[m] - logits[m][text->tokens[position]];
    token.top[m] = find_top (logits[m], n);
  }
  token.kl = get_divergence (logits, sums, n);
  g_array_append_val (self->tokens, token);
}

static gboolean
open_models (Comparison *self, const Options *options, GError **error)
{
  RunnelTokenizer *tokenizers[2];

  for (guint m = 0; m < 2; m++) {
    Options chosen = *options;

    chosen.model = options->arguments[m];
    self->models[m] = loading_open_model (&chosen, error);
    tokenizers[m] = self->models[m]
        ? runnel_model_get_tokenizer (self->models[m], error) : NULL;
    if (tokenizers[m] == NULL)
      return FALSE;
  }
  if (g_str_equal (runnel_tokenizer_get_digest (tokenizers[0]),
          runnel_tokenizer_get_digest (tokenizers[1]))
      && runnel_model_get_n_vocab (self->models[0])
          == runnel_model_get_n_vocab (self->models[1]))
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s and %s have different vocabularies, so their probabilities cannot "
      "be compared", options->arguments[0], options->arguments[1]);
  return FALSE;
}

static gboolean
measure (Comparison *self, const Options *options, GError **error)
{
  if (options->n_arguments < 2) {
    report_set_usage (error, "two models are needed, A and B");
    return FALSE;
  }
  if (!open_models (self, options, error)
      || !scored_text_read (&self->text, self->models[0],
          MIN (runnel_model_get_context_length (self->models[0]),
              runnel_model_get_context_length (self->models[1])),
          options->n_arguments > 2 ? options->arguments[2] : "-", error))
    return FALSE;
  for (guint m = 0; m < 2; m++) {
    self->engines[m] = loading_get_engine (options, self->models[m], error);
    if (self->engines[m] == NULL)
      return FALSE;
  }
  return scored_text_run (&self->text, self->engines, 2, score, self, error);
}

/* ---- Numbers from it ----------------------------------------------------- */

typedef double (*TokenValue) (const Token *token);

static double get_kl (const Token *token) { return token->kl; }
static double get_nll_a (const Token *token) { return token->nll[0]; }
static double get_nll_b (const Token *token) { return token->nll[1]; }

static double
get_nll_change (const Token *token)
{
  return token->nll[1] - token->nll[0];
}

static double
get_agreement (const Token *token)
{
  return token->top[0] == token->top[1];
}

/* With the standard error as if the tokens were independent. */
static Mean
get_mean (const Comparison *self, TokenValue value)
{
  const double n = self->tokens->len;
  double sum = 0, squares = 0;
  Mean result = { 0 };

  for (guint i = 0; i < self->tokens->len; i++)
    sum += value (&g_array_index (self->tokens, Token, i));
  result.mean = sum / n;
  for (guint i = 0; i < self->tokens->len; i++) {
    double miss = value (&g_array_index (self->tokens, Token, i))
        - result.mean;

    squares += miss * miss;
  }
  if (n > 1)
    result.standard_error = sqrt (squares / (n - 1) / n);
  return result;
}

static int
compare_kl (gconstpointer a, gconstpointer b)
{
  const Token *first = a, *second = b;

  if (first->kl != second->kl)
    return first->kl < second->kl ? 1 : -1;
  return first->position < second->position ? -1 : 1;
}

/* Of tokens that are sorted, largest first: what @part of them is below. */
static double
get_quantile (GArray *sorted, double part)
{
  return g_array_index (sorted, Token,
      (guint) ((1 - part) * (sorted->len - 1) + 0.5)).kl;
}

static GArray *
sort_tokens (const Comparison *self)
{
  GArray *sorted = g_array_copy (self->tokens);

  g_array_sort (sorted, compare_kl);
  return sorted;
}

static char *
dup_piece (const Comparison *self, gint32 token)
{
  gsize size;
  const guint8 *piece
      = runnel_tokenizer_get_piece (self->text.tokenizer, token, &size);
  g_autofree char *valid = g_utf8_make_valid ((const char *) piece, size);

  return report_make_plain (valid);
}

/* ---- Printing ------------------------------------------------------------ */

static void
add_mean (JsonOutput *json, const char *key, Mean mean)
{
  json_begin_object (json, key);
  json_add_double (json, "mean", mean.mean);
  json_add_double (json, "standard_error", mean.standard_error);
  json_end_object (json);
}

static void
add_worst (JsonOutput *json, const Comparison *self, GArray *sorted)
{
  json_begin_array (json, "worst");
  for (guint i = 0; i < MIN (sorted->len, N_WORST); i++) {
    const Token *token = &g_array_index (sorted, Token, i);

    json_begin_object (json, NULL);
    json_add_uint (json, "position", token->position);
    json_add_int (json, "token", self->text.tokens[token->position]);
    json_add_double (json, "kl", token->kl);
    json_add_double (json, "nll_a", token->nll[0]);
    json_add_double (json, "nll_b", token->nll[1]);
    json_add_int (json, "top_a", token->top[0]);
    json_add_int (json, "top_b", token->top[1]);
    json_end_object (json);
  }
  json_end_array (json);
}

static void
print_json (const Comparison *self, GArray *sorted)
{
  static const char *const names[] = { "a", "b" };
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  for (guint m = 0; m < 2; m++) {
    Mean nll = get_mean (self, m == 0 ? get_nll_a : get_nll_b);

    json_begin_object (&json, names[m]);
    json_add_string (&json, "path", runnel_model_get_path (self->models[m]),
        -1);
    json_add_string (&json, "content_id",
        runnel_model_get_content_id (self->models[m]), -1);
    json_add_double (&json, "perplexity", exp (nll.mean));
    add_mean (&json, "nll", nll);
    json_end_object (&json);
  }
  add_mean (&json, "nll_change", get_mean (self, get_nll_change));
  add_mean (&json, "kl", get_mean (self, get_kl));
  json_add_double (&json, "kl_median", get_quantile (sorted, 0.5));
  json_add_double (&json, "kl_99", get_quantile (sorted, 0.99));
  json_add_double (&json, "kl_max", get_quantile (sorted, 1));
  add_mean (&json, "top_1_agreement", get_mean (self, get_agreement));
  add_worst (&json, self, sorted);
  json_add_uint (&json, "tokens", self->text.n_tokens);
  json_add_uint (&json, "scored", self->tokens->len);
  json_add_uint (&json, "windows", self->text.n_windows);
  json_add_uint (&json, "context", self->text.window);
  machine_add_json (&json, runnel_engine_get_backend (self->engines[0]));
  json_end_object (&json);
  json_print (&json);
}

static void
print_worst (const Comparison *self, GArray *sorted)
{
  printf ("\nlargest        KL      position  token           A's guess       "
      "B's guess\n");
  for (guint i = 0; i < MIN (sorted->len, N_WORST); i++) {
    const Token *token = &g_array_index (sorted, Token, i);
    g_autofree char *piece
        = dup_piece (self, self->text.tokens[token->position]);
    g_autofree char *a = dup_piece (self, token->top[0]);
    g_autofree char *b = dup_piece (self, token->top[1]);

    printf ("          %9.4f  %9" G_GSIZE_FORMAT "  %-14s  %-14s  %s\n",
        token->kl, token->position, piece, a, b);
  }
}

static void
print_text (const Comparison *self, GArray *sorted)
{
  g_autofree char *machine
      = machine_describe (runnel_engine_get_backend (self->engines[0]));
  const Mean a = get_mean (self, get_nll_a), b = get_mean (self, get_nll_b);
  const Mean change = get_mean (self, get_nll_change);
  const Mean kl = get_mean (self, get_kl);
  const Mean agreement = get_mean (self, get_agreement);

  printf ("perplexity A   %.4f ± %.4f  %s\n", exp (a.mean),
      exp (a.mean) * a.standard_error,
      runnel_model_get_path (self->models[0]));
  printf ("perplexity B   %.4f ± %.4f  %s\n", exp (b.mean),
      exp (b.mean) * b.standard_error,
      runnel_model_get_path (self->models[1]));
  printf ("ratio B / A    %.5f ± %.5f\n", exp (change.mean),
      exp (change.mean) * change.standard_error);
  printf ("KL (A || B)    %.6f ± %.6f per token; median %.6f, 99 %% %.6f, "
      "largest %.6f\n", kl.mean, kl.standard_error,
      get_quantile (sorted, 0.5), get_quantile (sorted, 0.99),
      get_quantile (sorted, 1));
  printf ("same guess     %.3f ± %.3f %% of the tokens\n",
      100 * agreement.mean, 100 * agreement.standard_error);
  printf ("tokens         %" G_GSIZE_FORMAT ", of them %u scored, in %"
      G_GSIZE_FORMAT " windows of %" G_GSIZE_FORMAT "\n",
      self->text.n_tokens, self->tokens->len, self->text.n_windows,
      self->text.window);
  printf ("machine        %s\n", machine);
  print_worst (self, sorted);
}

static int
run (const Options *options)
{
  Comparison self = { .tokens = g_array_new (FALSE, FALSE, sizeof (Token)) };
  g_autoptr (GError) error = NULL;
  int status = EXIT_OK;

  if (!measure (&self, options, &error)) {
    status = report_error (error);
  } else {
    g_autoptr (GArray) sorted = sort_tokens (&self);

    if (options->json)
      print_json (&self, sorted);
    else
      print_text (&self, sorted);
  }
  for (guint m = 0; m < 2; m++) {
    g_clear_object (&self.engines[m]);
    g_clear_object (&self.models[m]);
  }
  scored_text_clear (&self.text);
  g_array_unref (self.tokens);
  return status;
}

const Verb verb_compare = {
  .name = "compare",
  .parameters = "A B [FILE]",
  .summary = "What a model loses against another",
  .details = "A is the model that is right, B one that was made of it; FILE is "
    "a text (default:\nstandard input). KL is how far B's probabilities are "
    "from A's. Windows are cut as\n'runnel perplexity' does.",
  .uses = USES_ENGINE | USES_JSON,
  .max_arguments = 3,
  .entries = scored_text_entries,
  .run = run,
};
