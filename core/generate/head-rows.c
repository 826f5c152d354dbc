/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "head-rows.h"

#include <string.h>

#include "../error.h"
#include "../formats/decision-head-private.h"
#include "../model/engine-private.h"
#include "../model/model-private.h"
#include "head-prompt.h"
#include "head-scores.h"
#include "question-private.h"
#include "question-turn.h"

/* ---- Rows ---------------------------------------------------------------- */

gboolean
runnel_head_rows_check_room (RunnelSequence *base,
                             const RunnelHeadPrompt *prompt,
                             RunnelQuestion *question, guint skipped,
                             GError **error)
{
  guint room = runnel_sequence_get_context_length (base)
      - runnel_sequence_get_length (base);
  guint64 n = (guint64) prompt->before.n + prompt->after.n - skipped;
  guint longest = 0;

  for (guint i = 0; i < prompt->n; i++) {
    n += prompt->options[i].n;
    if (prompt->options[i].n > prompt->options[longest].n)
      longest = i;
  }
  if (n <= room)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
      "question '%s': %" G_GUINT64_FORMAT " tokens, of them %u for the option "
      "'%.40s', are over the %u that the state leaves of the context; shorten "
      "them, ask with fewer options or raise context-length",
      runnel_question_get_id (question), n, prompt->options[longest].n,
      runnel_question_get_label (question,
          runnel_head_prompt_get_order (prompt, question)[longest]), room);
  return FALSE;
}

/* Behind a state: the options as forks, and the deciding token behind them
 * all; @hidden of the options is filled. */
static RunnelSequence *
read_isolated (RunnelOptionRows *rows, RunnelSequence *state,
               const RunnelHeadPrompt *prompt, float *hidden, GError **error)
{
  g_autoptr (RunnelSequence) asked = runnel_sequence_fork (state);

  return runnel_option_rows_append (rows, asked, prompt->before.tokens,
             prompt->before.n, error) ?
      runnel_option_rows_join (rows, asked, prompt->options, prompt->n, hidden,
          error) : NULL;
}

/* Hidden rows of the options, then of the deciding token. */
static gboolean
find_hidden (RunnelDecisionHead *head, RunnelOptionRows *rows,
             RunnelSequence *state, const RunnelHeadPrompt *prompt,
             const RunnelStaticOptions *fixed, float *hidden, GError **error)
{
  g_autoptr (RunnelSequence) decides = fixed ?
      runnel_static_options_read (fixed, rows, state, error)
      : read_isolated (rows, state, prompt, hidden, error);

  if (decides == NULL || !runnel_option_rows_append (rows, decides,
          prompt->after.tokens, prompt->after.n, error))
    return FALSE;
  if (fixed != NULL)
    memcpy (hidden, fixed->hidden,
        (gsize) prompt->n * head->n_embd * sizeof (float));
  runnel_option_rows_copy_hidden (decides,
      hidden + (gsize) prompt->n * head->n_embd);
  return TRUE;
}

/* What comes behind the first @skipped tokens of the prompt, as one run. */
static RunnelTokenRun
concatenate (const RunnelHeadPrompt *prompt, guint skipped)
{
  g_autoptr (GArray) tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  RunnelTokenRun run;

  g_array_append_vals (tokens, prompt->before.tokens + skipped,
      prompt->before.n - skipped);
  for (guint i = 0; i < prompt->n; i++)
    g_array_append_vals (tokens, prompt->options[i].tokens,
        prompt->options[i].n);
  g_array_append_vals (tokens, prompt->after.tokens, prompt->after.n);
  run.n = tokens->len;
  run.tokens = (gint32 *) g_array_free (g_steal_pointer (&tokens), FALSE);
  return run;
}

/* How much of the state is the beginning of the prompt. */
static guint
count_common (RunnelSequence *state, const RunnelTokenRun *before)
{
  gsize n;
  const gint32 *tokens = runnel_sequence_get_tokens (state, &n);
  guint common = 0;

  while (common < n && common < before->n
         && tokens[common] == before->tokens[common])
    common++;
  return common;
}

static gboolean
read_decision2 (RunnelDecisionHead *head, RunnelOptionRows *rows,
                RunnelSequence *state, RunnelQuestion *question,
                const RunnelHeadPrompt *prompt, float *hidden, GError **error)
{
  guint n_embd = head->n_embd;
  guint common = count_common (state, &prompt->before);
  g_autoptr (RunnelSequence) base = runnel_sequence_fork (state);
  g_autofree float *all = NULL;
  RunnelTokenRun run;
  gsize row = prompt->before.n - common;
  gboolean ok;

  if (!runnel_sequence_truncate (base, common, error)
      || !runnel_head_rows_check_room (base, prompt, question, common, error))
    return FALSE;
  run = concatenate (prompt, common);
  all = g_new (float, (gsize) run.n * n_embd);
  ok = runnel_option_rows_append_hidden (rows, base, run.tokens, run.n, all,
      error);
  for (guint i = 0; ok && i < prompt->n; i++) {
    row += prompt->options[i].n;
    memcpy (hidden + (gsize) i * n_embd, all + (row - 1) * n_embd,
        n_embd * sizeof (float));
  }
  if (ok)
    memcpy (hidden + (gsize) prompt->n * n_embd,
        all + (gsize) (run.n - 1) * n_embd, n_embd * sizeof (float));
  runnel_token_run_clear (&run);
  return ok;
}

/* ---- From rows to logits ------------------------------------------------- */

/* The text of a state that runnel_head_rows_read () or a pipeline made. */
static char *
get_text (RunnelSequence *state, GError **error)
{
  RunnelModel *model
      = runnel_engine_get_model (runnel_sequence_get_engine (state));
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  gsize n, length;
  const gint32 *tokens = runnel_sequence_get_tokens (state, &n);
  g_autoptr (GBytes) bytes = tokenizer ?
      runnel_tokenizer_decode (tokenizer, tokens, n, FALSE, error) : NULL;
  const char *text;

  if (bytes == NULL)
    return NULL;
  text = g_bytes_get_data (bytes, &length);
  if (length > 0 && !g_utf8_validate_len (text, length, NULL)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "the tokens of the state are no UTF-8 text, which a head of the "
        "Decision 2.0 form needs");
    return NULL;
  }
  if (length >= strlen (RUNNEL_DECISION2_CONTEXT)
      && g_str_has_prefix (text, RUNNEL_DECISION2_CONTEXT)) {
    text += strlen (RUNNEL_DECISION2_CONTEXT);
    length -= strlen (RUNNEL_DECISION2_CONTEXT);
  }
  return g_strndup (text, length);
}

static void
compute_logits (RunnelDecisionHead *head, RunnelModel *model,
                RunnelQuestion *question, const RunnelHeadPrompt *prompt,
                float *hidden, double *logits, double *ret_null)
{
  const guint *order = runnel_head_prompt_get_order (prompt, question);
  guint n = prompt->n;
  RunnelCheckpoint *checkpoint = runnel_model_get_checkpoint (model);
  const RunnelTensor *norm
      = runnel_checkpoint_tensor (checkpoint, "output_norm.weight");
  double epsilon
      = runnel_checkpoint_hyperparameters (checkpoint)->norm_epsilon;
  g_autofree float *weight = g_new (float, head->n_embd);
  g_autofree double *scores = g_new (double, n);
  const float *bias = NULL;

  runnel_tensor_type_dequantize_row (norm->type, runnel_tensor_data (norm),
      head->n_embd, 0, weight);
  runnel_head_norm (weight, head->n_embd, epsilon, hidden, n + 1);
  runnel_head_scores (head, hidden, n,
      hidden + (gsize) n * head->n_embd, scores, ret_null);
  if (runnel_question_get_question_type (question)
      == RUNNEL_QUESTION_TYPE_SCORE)
    bias = head->score_bias[n];
  for (guint i = 0; i < n; i++)
    logits[order[i]] = scores[i] + (bias ? bias[order[i]] : 0);
}

gboolean
runnel_head_rows_score_isolated (RunnelDecisionHead *head,
                                 RunnelOptionRows *rows, RunnelSequence *state,
                                 RunnelQuestion *question,
                                 const RunnelHeadPrompt *prompt,
                                 const RunnelStaticOptions *fixed,
                                 double *logits, double *ret_null,
                                 GError **error)
{
  g_autofree float *hidden
      = g_new (float, (gsize) (prompt->n + 1) * head->n_embd);

  if (!find_hidden (head, rows, state, prompt, fixed, hidden, error))
    return FALSE;
  compute_logits (head, runnel_engine_get_model (rows->engine), question,
      prompt, hidden, logits, ret_null);
  return TRUE;
}

gboolean
runnel_head_rows_score_decision2 (RunnelDecisionHead *head,
                                  RunnelOptionRows *rows,
                                  RunnelSequence *state,
                                  RunnelQuestion *question, double *logits,
                                  GError **error)
{
  RunnelModel *model = runnel_engine_get_model (rows->engine);
  g_autofree char *text = get_text (state, error);
  g_autoptr (RunnelHeadPrompt) prompt = text ?
      runnel_head_prompt_new_decision2 (model, question, text, error) : NULL;
  g_autofree float *hidden = NULL;

  if (prompt == NULL)
    return FALSE;
  hidden = g_new (float, (gsize) (prompt->n + 1) * head->n_embd);
  if (!read_decision2 (head, rows, state, question, prompt, hidden, error))
    return FALSE;
  compute_logits (head, model, question, prompt, hidden, logits, NULL);
  return TRUE;
}

gboolean
runnel_head_rows_read (RunnelDecisionHead *head, RunnelModel *model,
                       const char *text, gssize length,
                       RunnelTokenRun *ret_run, GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autofree char *copy = g_strndup (text,
      length < 0 ? strlen (text) : (gsize) length);
  g_autofree char *whole
      = g_strconcat (RUNNEL_DECISION2_CONTEXT, copy, NULL);
  gsize n = 0;

  if (tokenizer == NULL)
    return FALSE;
  ret_run->tokens = runnel_tokenizer_encode (tokenizer,
      head->form == RUNNEL_DECISION_FORM_DECISION2 ? whole : copy, -1, FALSE,
      &n, error);
  ret_run->n = n;
  return ret_run->tokens != NULL;
}
