/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "error.h"
#include "generate/generation.h"

#define CONTEXT 64

/* C22: every length around the limit, under every policy. */
static void
check_fit (RunnelOverflowPolicy policy, guint n_keep, gsize n)
{
  g_autofree gint32 *tokens = g_new (gint32, n + 1);
  g_autofree gint32 *cut = NULL;
  g_autoptr (GError) error = NULL;
  RunnelPromptFit fit = 99;
  gsize n_cut = 99;
  gboolean ok;

  for (gsize i = 0; i < n; i++)
    tokens[i] = (gint32) i;
  ok = runnel_overflow_policy_fit_prompt (policy, n_keep, CONTEXT, tokens, n,
                                          &fit, &cut, &n_cut, &error);
  if (n > CONTEXT && policy == RUNNEL_OVERFLOW_POLICY_ERROR) {
    g_assert_false (ok);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW);
    g_assert_nonnull (strstr (error->message, "n_prompt is"));
    g_assert_nonnull (strstr (error->message, "n_ctx is 64"));
    g_assert_cmpint (fit, ==, 99);
    return;
  }
  g_assert_no_error (error);
  g_assert_true (ok);
  if (n <= CONTEXT) {
    g_assert_cmpint (fit, ==, RUNNEL_PROMPT_FIT_WHOLE);
    g_assert_null (cut);
  } else if (policy == RUNNEL_OVERFLOW_POLICY_STOP) {
    g_assert_cmpint (fit, ==, RUNNEL_PROMPT_FIT_NOTHING);
    g_assert_null (cut);
  } else {
    g_assert_cmpint (fit, ==, RUNNEL_PROMPT_FIT_CUT);
    g_assert_cmpuint (n_cut, <=, CONTEXT * 3 / 4);
    g_assert_cmpuint (n_cut, >, n_keep);
    g_assert_cmpuint (n_cut + CONTEXT / 4, >, CONTEXT * 3 / 4);
    for (gsize i = 0; i < n_cut; i++)
      g_assert_cmpint (cut[i], ==, i < n_keep ? i : n - n_cut + i);
  }
}

static void
test_fit (void)
{
  for (int policy = 0; policy <= RUNNEL_OVERFLOW_POLICY_STOP; policy++)
    for (guint n_keep = 0; n_keep < CONTEXT * 3 / 4; n_keep += 15)
      for (gsize n = 0; n <= 200; n++)
        check_fit ((RunnelOverflowPolicy) policy, n_keep, n);
}

/* As a prompt grows token by token, its cut begins anew only once in a quarter
 * of the context: what the prefix cache holds goes on being its beginning. */
static void
test_growing (void)
{
  gint32 tokens[10 * CONTEXT];
  guint n_beginnings = 0;
  gint32 beginning = 0;

  for (int i = 0; i < 10 * CONTEXT; i++)
    tokens[i] = i;
  for (gsize n = CONTEXT + 1; n <= 10 * CONTEXT; n++) {
    g_autofree gint32 *cut = NULL;
    RunnelPromptFit fit;
    gsize n_cut;

    g_assert_true (runnel_overflow_policy_fit_prompt (
        RUNNEL_OVERFLOW_POLICY_SHIFT, 4, CONTEXT, tokens, n, &fit, &cut,
        &n_cut, NULL));
    n_beginnings += cut[4] != beginning;
    beginning = cut[4];
  }
  g_assert_cmpuint (n_beginnings, ==, 9 * CONTEXT / (CONTEXT / 4));
}

static void
test_keep_too_much (void)
{
  gint32 tokens[70] = { 0 };
  RunnelPromptFit fit;
  gint32 *cut;
  gsize n_cut;

  for (guint context = 0; context <= CONTEXT; context++) {
    g_autoptr (GError) error = NULL;

    g_assert_false (runnel_overflow_policy_fit_prompt (
      RUNNEL_OVERFLOW_POLICY_SHIFT, context - (context + 3) / 4, context,
      tokens, 70, &fit, &cut, &n_cut, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
    g_assert_nonnull (strstr (error->message,
                              context < 2 ? "context length" : "n_keep is"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/overflow-policy/fit", test_fit);
  g_test_add_func ("/overflow-policy/growing", test_growing);
  g_test_add_func ("/overflow-policy/keep-too-much", test_keep_too_much);
  return g_test_run ();
}
