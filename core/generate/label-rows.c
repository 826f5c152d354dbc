/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "label-rows.h"

#include "../error.h"
#include "question-private.h"

gboolean
runnel_label_rows_check_room (RunnelDecisionLayout layout,
                              RunnelSequence *state, RunnelQuestion *question,
                              const RunnelQuestionTurn *turn, GError **error)
{
  const guint *order = runnel_question_get_order (question);
  guint64 room = runnel_sequence_get_context_length (state)
      - runnel_sequence_get_length (state);
  guint64 shown = turn->before.n;
  guint longest = 0;

  /* Before the state there may be one token more, that begins the text. */
  shown += layout == RUNNEL_DECISION_LAYOUT_STATIC ?
      turn->closes.n + turn->replies.n + 1 : turn->after.n;
  for (guint i = 0; i < turn->n; i++) {
    if (layout != RUNNEL_DECISION_LAYOUT_HIDDEN)
      shown += turn->shown[i].n;
    if (turn->labels[i].n > turn->labels[longest].n)
      longest = i;
  }
  if (shown + turn->labels[longest].n <= room)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
      "question '%s': instructions and options of %" G_GUINT64_FORMAT
      " tokens and the longest option, '%.40s', of %u are over the %"
      G_GUINT64_FORMAT " that the state leaves of the context; shorten them, "
      "ask with fewer options or raise context-length",
      runnel_question_get_id (question), shown,
      runnel_question_get_label (question, order[longest]),
      turn->labels[longest].n, room);
  return FALSE;
}

/* The sequence behind which a label is a reply. */
static RunnelSequence *
ask (RunnelDecisionLayout layout, RunnelOptionRows *rows,
     RunnelSequence *state, const RunnelQuestionTurn *turn, GError **error)
{
  g_autoptr (RunnelSequence) asked = runnel_sequence_fork (state);
  g_autoptr (RunnelSequence) decides = NULL;

  if (!runnel_option_rows_append (rows, asked, turn->before.tokens,
          turn->before.n, error))
    return NULL;
  decides = layout == RUNNEL_DECISION_LAYOUT_SHOWN ?
      runnel_option_rows_join (rows, asked, turn->shown, turn->n, NULL, error)
      : g_object_ref (asked);
  return decides != NULL
      && runnel_option_rows_append (rows, decides, turn->after.tokens,
             turn->after.n, error) ? g_steal_pointer (&decides) : NULL;
}

gboolean
runnel_label_rows_score (RunnelDecisionLayout layout, RunnelOptionRows *rows,
                         RunnelSequence *state, const RunnelQuestionTurn *turn,
                         const RunnelStaticOptions *fixed,
                         double *log_likelihoods, GError **error)
{
  g_autoptr (RunnelSequence) decides = fixed ?
      runnel_static_options_read (fixed, rows, state, error)
      : ask (layout, rows, state, turn, error);

  if (decides == NULL
      || (fixed != NULL && !runnel_option_rows_append (rows, decides,
              turn->replies.tokens, turn->replies.n, error)))
    return FALSE;
  return runnel_option_rows_score (rows, decides, turn->labels, turn->n,
      log_likelihoods, error);
}
