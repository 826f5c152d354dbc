/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "error.h"
#include "generate/generation.h"

static void
check_refused (const RunnelGenerationParams *params, const char *field,
               RunnelError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_generation_params_check (params, 10, &error));
  g_assert_error (error, RUNNEL_ERROR, code);
  g_assert_nonnull (strstr (error->message, field));
}

static void
test_check (void)
{
  g_autoptr (RunnelGenerationParams) p = runnel_generation_params_new ();

  g_assert_true (runnel_generation_params_check (p, 10, NULL));
  p->max_tokens = -2; /* C21 */
  check_refused (p, "max_tokens", RUNNEL_ERROR_INVALID_ARGUMENT);
  p->max_tokens = 0;
  g_assert_true (runnel_generation_params_check (p, 10, NULL));
  p->prompt_length = -2;
  check_refused (p, "prompt_length", RUNNEL_ERROR_INVALID_ARGUMENT);
  p->prompt_length = 0;
  p->n_top_logprobs = RUNNEL_MAX_TOP_LOGPROBS + 1;
  check_refused (p, "n_top_logprobs", RUNNEL_ERROR_INVALID_ARGUMENT);
  p->n_top_logprobs = RUNNEL_MAX_TOP_LOGPROBS;
  p->sampler->top_p = 2;
  check_refused (p, "top_p", RUNNEL_ERROR_INVALID_ARGUMENT);
  p->sampler->top_p = 1;
  p->stop_tokens = g_new (gint32, 1);
  p->n_stop_tokens = 1;
  p->stop_tokens[0] = 10;
  check_refused (p, "stop_tokens[0]", RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_true (runnel_generation_params_check (p, 0, NULL));
  p->stop_tokens[0] = 9;
  g_assert_true (runnel_generation_params_check (p, 10, NULL));
}

static void
test_stops (void)
{
  g_autoptr (RunnelGenerationParams) p = runnel_generation_params_new ();

  p->stops = g_strdupv ((char *[]){ "a", "", NULL });
  check_refused (p, "stop string 1", RUNNEL_ERROR_INVALID_ARGUMENT);
  g_strfreev (p->stops);
  p->stops = g_strdupv ((char *[]){ "\xc3", NULL });
  check_refused (p, "UTF-8", RUNNEL_ERROR_INVALID_ARGUMENT);
  g_strfreev (p->stops);
  p->stops = g_new0 (char *, RUNNEL_MAX_STOPS + 2);
  for (int i = 0; i < RUNNEL_MAX_STOPS; i++)
    p->stops[i] = g_strdup ("s");
  g_assert_true (runnel_generation_params_check (p, 10, NULL));
  p->stops[RUNNEL_MAX_STOPS] = g_strdup ("s");
  check_refused (p, "17", RUNNEL_ERROR_LIMIT);
}

static void
test_copy (void)
{
  g_autoptr (RunnelGenerationParams) p = runnel_generation_params_new ();
  g_autoptr (RunnelGenerationParams) copy = NULL;

  p->stops = g_strdupv ((char *[]){ "one", "two", NULL });
  p->stop_tokens = g_new (gint32, 1);
  p->stop_tokens[0] = 7;
  p->n_stop_tokens = 1;
  runnel_sampler_params_set_biases (p->sampler,
                                    &(RunnelLogitBias){ 3, -1 }, 1);
  copy = runnel_generation_params_copy (p);
  g_clear_pointer (&p, runnel_generation_params_free);
  g_assert_cmpstr (copy->stops[1], ==, "two");
  g_assert_cmpint (copy->stop_tokens[0], ==, 7);
  g_assert_cmpint (copy->sampler->biases[0].token, ==, 3);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/generation-params/check", test_check);
  g_test_add_func ("/generation-params/stops", test_stops);
  g_test_add_func ("/generation-params/copy", test_copy);
  return g_test_run ();
}
