/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * SmolLM2-135M-Instruct Q4_1 against llama.cpp and Hugging Face float32:
 * DIR/smollm2_q4_1_greedy.json and DIR/smollm2_q4_1_ppl.json, the model from
 * the environment variable RUNNEL_DEFAULT_MODEL. Greedy ids are compared up to
 * the first step where the references' margin is below 0.5, perplexity within
 * 1 % of float32. The first step's logits are to be within 0.6 of llama.cpp's;
 * where one is not, float32 on the dequantised weights decides, and ours must
 * be the nearer of the two.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

#include "float-twin.h"
#include "formats/json.h"
#include "model/sequence.h"

#define MARGIN 0.5
#define LOGIT_BOUND 0.6

static guint passed, failed, not_run;

static void
report (const char *name, gboolean ok, const char *format, ...)
{
  va_list arguments;

  printf ("  %-34s ", name);
  va_start (arguments, format);
  vprintf (format, arguments);
  va_end (arguments);
  printf (": %s\n", ok ? "ok" : "FAILED");
  *(ok ? &passed : &failed) += 1;
}

static gint32 *
dup_ids (const RunnelJsonNode *array, gsize *n)
{
  gint32 *ids;

  *n = runnel_json_node_size (array);
  ids = g_new (gint32, MAX (*n, 1));
  for (gsize i = 0; i < *n; i++)
    ids[i] = (gint32) runnel_json_node_double (
        runnel_json_node_item (array, i));
  return ids;
}

static gint32
arg_max (const float *logits, gsize n)
{
  gint32 best = 0;

  for (gsize i = 1; i < n; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

static RunnelEngine *
open_engine (const char *path, RunnelKvType kv_type, GError **error)
{
  g_autoptr (RunnelModel) model
      = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, error);
  g_autoptr (RunnelBackend) backend = NULL;

  if (model == NULL)
    return NULL;
  backend = runnel_backend_get ("cpu", 0, NULL, error);
  return runnel_engine_get (model, backend, kv_type, NULL, NULL, NULL, error);
}

static float *
first_logits (RunnelEngine *engine, const gint32 *ids, gsize n,
              GError **error)
{
  gsize n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, error);
  g_autofree float *logits = g_new (float, n_vocab);

  if (!runnel_sequence_prefill (sequence, ids, n, 0, FALSE, NULL, NULL, NULL,
          NULL, error)
      || !runnel_sequence_compute_logits (sequence, logits, n_vocab, error))
    return NULL;
  return g_steal_pointer (&logits);
}

/* Logits of the same prompt by float32 weights and activations. */
static float *
float32_logits (const gint32 *ids, gsize n, GError **error)
{
  g_autofree char *path
      = float_twin_write (g_getenv ("RUNNEL_DEFAULT_MODEL"), error);
  g_autoptr (RunnelEngine) engine = NULL;
  float *logits = NULL;

  if (path == NULL)
    return NULL;
  engine = open_engine (path, RUNNEL_KV_TYPE_F32, error);
  if (engine != NULL)
    logits = first_logits (engine, ids, n, error);
  g_unlink (path);
  return logits;
}

static void
check_top (const char *name, const RunnelJsonNode *top, const float *logits,
           const gint32 *ids, gsize n_ids)
{
  g_autofree float *truth = NULL;
  g_autoptr (GError) error = NULL;
  gboolean ok = TRUE;
  double worst = 0;

  for (gsize i = 0; i < runnel_json_node_size (top); i++) {
    const RunnelJsonNode *entry = runnel_json_node_item (top, i);
    gint64 id = (gint64) runnel_json_node_double (
        runnel_json_node_item (entry, 0));
    double value = runnel_json_node_double (runnel_json_node_item (entry, 1));
    double d = fabs (logits[id] - value);

    if (!(d <= worst))
      worst = d;
    if (d <= LOGIT_BOUND)
      continue;
    if (truth == NULL && error == NULL)
      truth = float32_logits (ids, n_ids, &error);
    ok &= truth != NULL && fabs (logits[id] - truth[id])
        <= fabs (value - truth[id]);
    if (truth != NULL)
      printf ("    id %" G_GINT64_FORMAT ": %.3f, llama.cpp %.3f, float32 "
          "%.3f\n", id, logits[id], value, truth[id]);
  }
  report (name, ok, "top logits within %.3g (bound %.3g, or nearer to "
      "float32)", worst, LOGIT_BOUND);
}

static void
check_prompt (RunnelEngine *engine, const RunnelJsonNode *prompt)
{
  gsize n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autofree float *logits = g_new (float, n_vocab);
  g_autofree float *first = NULL;
  g_autoptr (GError) error = NULL;
  const RunnelJsonNode *margins
      = runnel_json_node_member (prompt, "margins");
  gsize n_ids, n_greedy, step;
  g_autofree gint32 *ids
      = dup_ids (runnel_json_node_member (prompt, "ids"), &n_ids);
  g_autofree gint32 *greedy
      = dup_ids (runnel_json_node_member (prompt, "greedy"), &n_greedy);
  g_autofree char *name = g_strdup_printf ("\"%.28s\"",
      runnel_json_node_string (runnel_json_node_member (prompt, "prompt"),
          NULL));

  first = first_logits (engine, ids, n_ids, &error);
  if (first == NULL || !runnel_sequence_prefill (sequence, ids, n_ids, 0,
          FALSE, NULL, NULL, NULL, NULL, &error)) {
    report (name, FALSE, "%s", error->message);
    return;
  }
  check_top (name, runnel_json_node_member (prompt, "top10"), first, ids,
      n_ids);
  memcpy (logits, first, n_vocab * sizeof (float));
  for (step = 0; step < n_greedy; step++) {
    gint32 token = arg_max (logits, n_vocab);

    if (runnel_json_node_double (runnel_json_node_item (margins, step))
        < MARGIN)
      break;
    if (token != greedy[step]) {
      report (name, FALSE, "step %" G_GSIZE_FORMAT ": %d, reference %d", step,
          token, greedy[step]);
      return;
    }
    if (!runnel_sequence_forward (sequence, &token, 1, logits, n_vocab,
            &error)) {
      report (name, FALSE, "%s", error->message);
      return;
    }
  }
  /* Where the references disagree at once there is nothing to compare. */
  if (step > 0)
    report (name, TRUE, "%" G_GSIZE_FORMAT " greedy ids equal", step);
}

static double
log_probability (const float *logits, gsize n, gint32 token)
{
  double max = logits[arg_max (logits, n)], sum = 0;

  for (gsize i = 0; i < n; i++)
    sum += exp (logits[i] - max);
  return logits[token] - max - log (sum);
}

static void
check_perplexity (RunnelEngine *engine, const RunnelJsonNode *reference)
{
  gsize n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autofree float *logits = g_new (float, 16 * n_vocab);
  g_autoptr (GError) error = NULL;
  double expected = runnel_json_node_double (
      runnel_json_node_member (reference, "hf_f32_dequantised_ppl"));
  double nll = 0, perplexity;
  gsize n, done = 0;
  g_autofree gint32 *ids
      = dup_ids (runnel_json_node_member (reference, "ids"), &n);

  while (done < n) {
    gsize rows = MIN (16, n - done);

    if (!runnel_sequence_forward (sequence, ids + done, rows, logits,
            rows * n_vocab, &error)) {
      report ("perplexity", FALSE, "%s", error->message);
      return;
    }
    for (gsize i = 0; i < rows && done + i + 1 < n; i++)
      nll -= log_probability (logits + i * n_vocab, n_vocab,
          ids[done + i + 1]);
    done += rows;
  }
  perplexity = exp (nll / (n - 1));
  report ("perplexity", fabs (perplexity / expected - 1) <= 0.01,
      "%.4f, float32 %.4f (%+.2f %%)", perplexity, expected,
      100 * (perplexity / expected - 1));
}

static RunnelJson *
load (const char *dir, const char *file)
{
  g_autofree char *path = g_build_filename (dir, file, NULL);
  g_autoptr (GError) error = NULL;
  RunnelJson *json = runnel_json_load (path, &error);

  if (json == NULL) {
    printf ("  %-34s not run: %s\n", file, error->message);
    not_run++;
  }
  return json;
}

int
main (int argc, char **argv)
{
  g_autoptr (RunnelJson) greedy = NULL;
  g_autoptr (RunnelJson) perplexity = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (GError) error = NULL;

  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  if (g_getenv ("RUNNEL_DEFAULT_MODEL") == NULL) {
    printf ("  not run: RUNNEL_DEFAULT_MODEL is not set\n");
    not_run++;
  } else {
    engine = open_engine (g_getenv ("RUNNEL_DEFAULT_MODEL"),
        RUNNEL_KV_TYPE_F16, &error);
  }
  if (error != NULL)
    report ("model", FALSE, "%s", error->message);
  if (engine != NULL) {
    greedy = load (argv[1], "smollm2_q4_1_greedy.json");
    perplexity = load (argv[1], "smollm2_q4_1_ppl.json");
  }
  if (greedy != NULL) {
    const RunnelJsonNode *prompts = runnel_json_node_member (
        runnel_json_root (greedy), "prompts");

    for (gsize i = 0; i < runnel_json_node_size (prompts); i++)
      check_prompt (engine, runnel_json_node_item (prompts, i));
  }
  if (perplexity != NULL)
    check_perplexity (engine, runnel_json_root (perplexity));
  printf ("conformance smollm2: %u passed, %u failed, %u not run\n", passed,
      failed, not_run);
  return failed > 0;
}
