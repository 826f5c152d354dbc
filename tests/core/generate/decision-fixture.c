/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "decision-fixture.h"

#include <glib/gstdio.h>
#include <string.h>

void
decision_fixture_set_up (DecisionFixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;

  tiny.context_length = DECISION_CONTEXT;
  path = tiny_model_write (&tiny);
  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  f->engine = decision_get_engine (f->model, 1);
}

void
decision_fixture_tear_down (DecisionFixture *f, gconstpointer data)
{
  g_clear_object (&f->engine);
  g_clear_object (&f->model);
}

RunnelEngine *
decision_get_engine (RunnelModel *model, guint n_threads)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", n_threads, NULL, &error);
  RunnelEngine *engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16,
      NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return engine;
}

RunnelDecider *
decision_make_decider (RunnelEngine *engine, RunnelDecisionHead *head)
{
  g_autoptr (GError) error = NULL;
  RunnelDecider *decider = runnel_decider_new (engine, head, &error);

  g_assert_no_error (error);
  return decider;
}

RunnelDecisionHead *
decision_make_head (const TinyHead *head)
{
  g_autofree char *path = tiny_head_write (head);
  g_autoptr (GError) error = NULL;
  RunnelDecisionHead *opened = runnel_decision_head_open (path, &error);

  g_unlink (path);
  g_assert_no_error (error);
  return opened;
}

GPtrArray *
decision_ask (RunnelQuestionType type, const char *instructions,
              const char *const *options, guint n)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *questions = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (questions, runnel_question_new ("q", type, instructions,
      options, NULL, n, &error));
  g_assert_no_error (error);
  return questions;
}

RunnelSequence *
decision_read (RunnelDecider *decider, const char *text, gboolean use_cache)
{
  g_autoptr (GError) error = NULL;
  RunnelSequence *state = runnel_decider_read (decider, text, -1, use_cache,
      NULL, &error);

  g_assert_no_error (error);
  return state;
}

RunnelDecisions *
decision_decide (RunnelDecider *decider, RunnelSequence *state,
                 GPtrArray *questions)
{
  g_autoptr (GError) error = NULL;
  RunnelDecisions *decisions = runnel_decider_decide (decider, state, -1,
      questions, NULL, &error);

  g_assert_no_error (error);
  return decisions;
}

void
decision_append_slowly (RunnelSequence *sequence, const gint32 *tokens,
                        gsize n)
{
  g_autoptr (GError) error = NULL;

  runnel_sequence_prefill (sequence, tokens, n, 1, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
}

int
decision_find_label (RunnelQuestion *question, const char *label)
{
  for (guint i = 0; i < runnel_question_get_n_options (question); i++)
    if (strcmp (runnel_question_get_label (question, i), label) == 0)
      return i;
  return -1;
}

void
decision_assert_same (RunnelDecision *a, RunnelDecision *b)
{
  RunnelQuestion *question = runnel_decision_get_question (a);
  RunnelQuestion *other = runnel_decision_get_question (b);
  int choice = runnel_decision_get_choice (a);

  for (guint i = 0; i < runnel_question_get_n_options (question); i++) {
    const char *label = runnel_question_get_label (question, i);
    int k = decision_find_label (other, label);
    double p = runnel_decision_get_probability (a, i);
    double q = runnel_decision_get_probability (b, k);

    g_assert_cmpmem (&p, sizeof p, &q, sizeof q);
  }
  g_assert_cmpint (choice < 0, ==, runnel_decision_get_choice (b) < 0);
  if (choice >= 0)
    g_assert_cmpstr (runnel_question_get_label (question, choice), ==,
        runnel_question_get_label (other, runnel_decision_get_choice (b)));
  g_assert_cmpfloat (runnel_decision_get_entropy (a), ==,
      runnel_decision_get_entropy (b));
}
