/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "head-prompt.h"

#include <string.h>

#include "../formats/decision-head-private.h"
#include "../formats/json.h"
#include "question-private.h"

void
runnel_head_prompt_free (RunnelHeadPrompt *self)
{
  if (self == NULL)
    return;
  runnel_token_run_clear (&self->before);
  runnel_token_run_clear (&self->after);
  for (guint i = 0; i < self->n; i++)
    runnel_token_run_clear (&self->options[i]);
  g_free (self->options);
  g_free (self->order);
  g_free (self);
}

static RunnelHeadPrompt *
new_prompt (RunnelQuestion *question)
{
  RunnelHeadPrompt *self = g_new0 (RunnelHeadPrompt, 1);

  self->n = runnel_question_get_n_options (question);
  self->options = g_new0 (RunnelTokenRun, self->n);
  return self;
}

const guint *
runnel_head_prompt_get_order (const RunnelHeadPrompt *self,
                              RunnelQuestion *question)
{
  return self->order ? self->order : runnel_question_get_order (question);
}

/* @text between two tokens; -1 is none. */
static gboolean
encode (RunnelTokenizer *tokenizer, gint32 begin, const char *text, gint32 end,
        RunnelTokenRun *ret_run, GError **error)
{
  gsize n = 0;
  g_autofree gint32 *tokens = runnel_tokenizer_encode (tokenizer, text, -1,
      FALSE, &n, error);

  if (tokens == NULL)
    return FALSE;
  ret_run->tokens = g_new (gint32, n + 2);
  if (begin >= 0)
    ret_run->tokens[ret_run->n++] = begin;
  memcpy (ret_run->tokens + ret_run->n, tokens, n * sizeof *tokens);
  ret_run->n += n;
  if (end >= 0)
    ret_run->tokens[ret_run->n++] = end;
  return TRUE;
}

/* ---- Our own form -------------------------------------------------------- */

RunnelHeadPrompt *
runnel_head_prompt_new_isolated (RunnelDecisionHead *head, RunnelModel *model,
                                 RunnelQuestion *question, GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  const guint *order = runnel_question_get_order (question);
  g_autoptr (RunnelHeadPrompt) self = NULL;

  if (tokenizer == NULL)
    return NULL;
  self = new_prompt (question);
  if (!encode (tokenizer, head->tokens[RUNNEL_HEAD_TOKEN_QUESTION],
          runnel_question_get_instructions (question), -1, &self->before,
          error)
      || !encode (tokenizer, head->tokens[RUNNEL_HEAD_TOKEN_DECIDE], "", -1,
          &self->after, error))
    return NULL;
  for (guint i = 0; i < self->n; i++) {
    const char *description
        = runnel_question_get_description (question, order[i]);
    g_autofree char *text = g_strconcat (
        runnel_question_get_label (question, order[i]),
        description ? ": " : NULL, description, NULL);

    if (!encode (tokenizer, head->tokens[RUNNEL_HEAD_TOKEN_OPTION], text,
            head->tokens[RUNNEL_HEAD_TOKEN_OPTION_END], &self->options[i],
            error))
      return NULL;
  }
  return g_steal_pointer (&self);
}

/* ---- Decision 2.0 -------------------------------------------------------- */

/* Facts of the prompt "decision2-segmented-options-global-query-v1" of the
 * vLLM Semantic Router: every segment is tokenized for itself, an option is
 * JSON with sorted keys and no blanks. */
#define SUFFIX \
  "\n\nSelect the single option best supported by the context and " \
  "instructions.\nDecision:"

static const char *
get_type_name (RunnelQuestion *question)
{
  switch (runnel_question_get_question_type (question)) {
    case RUNNEL_QUESTION_TYPE_YESNO:
      return "noul";
    case RUNNEL_QUESTION_TYPE_SCORE:
      return "score";
    default:
      return "choice";
  }
}

/* The options as that runtime has them: levels go by their number. */
static void
append_option (GString *out, RunnelQuestion *question, guint i)
{
  const char *label = runnel_question_get_label (question, i);
  const char *description = runnel_question_get_description (question, i);
  g_autofree char *level = g_strdup_printf ("%u", i);

  switch (runnel_question_get_question_type (question)) {
    case RUNNEL_QUESTION_TYPE_YESNO:
      if (description == NULL)
        description = i == 0 ? "Yes" : "No";
      label = i == 0 ? "true" : "false";
      break;
    case RUNNEL_QUESTION_TYPE_SCORE:
      description = label;
      label = level;
      break;
    default:
      break;
  }
  g_string_append (out, "\n<option>\n{\"description\":");
  if (description != NULL)
    runnel_json_append_string (out, description, -1);
  else
    g_string_append (out, "null");
  g_string_append (out, ",\"key\":");
  runnel_json_append_string (out, label, -1);
  g_string_append (out, "}\n</option>");
}

RunnelHeadPrompt *
runnel_head_prompt_new_decision2 (RunnelModel *model, RunnelQuestion *question,
                                  const char *state, GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autofree char *before = g_strconcat (RUNNEL_DECISION2_CONTEXT, state,
      "\n\nTask type: ", get_type_name (question), "\nQuestion:\n",
      runnel_question_get_instructions (question), "\nOptions:", NULL);
  g_autoptr (RunnelHeadPrompt) self = NULL;

  if (tokenizer == NULL)
    return NULL;
  self = new_prompt (question);
  self->order = g_new (guint, self->n);
  if (!encode (tokenizer, -1, before, -1, &self->before, error)
      || !encode (tokenizer, -1, SUFFIX, -1, &self->after, error))
    return NULL;
  for (guint i = 0; i < self->n; i++) {
    g_autoptr (GString) text = g_string_new (NULL);

    /* There no stands before yes. */
    self->order[i] = runnel_question_get_question_type (question)
        == RUNNEL_QUESTION_TYPE_YESNO ? 1 - i : i;
    append_option (text, question, self->order[i]);
    if (!encode (tokenizer, -1, text->str, -1, &self->options[i], error))
      return NULL;
  }
  return g_steal_pointer (&self);
}
