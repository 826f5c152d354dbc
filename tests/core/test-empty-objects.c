/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Bindings can make an object of a public class without its constructor. Such
 * an object is of no use, but using it is told, and nothing crashes.
 */
#include "runnel.h"

static void
expect_refusals (guint n)
{
  while (n-- > 0)
    g_test_expect_message ("Runnel", G_LOG_LEVEL_CRITICAL, "*assertion '*' failed");
}

static void
test_model (void)
{
  g_autoptr (RunnelModel) model = g_object_new (RUNNEL_TYPE_MODEL, NULL);

  expect_refusals (4);
  g_assert_null (runnel_model_get_path (model));
  g_assert_null (runnel_model_get_tokenizer (model, NULL));
  g_assert_null (runnel_model_describe (model));
  g_assert_cmpuint (runnel_model_get_n_vocab (model), ==, 0);
  g_test_assert_expected_messages ();
}

static void
test_engine (void)
{
  g_autoptr (RunnelEngine) engine = g_object_new (RUNNEL_TYPE_ENGINE, NULL);
  RunnelEngineStats stats;

  expect_refusals (3);
  g_assert_null (runnel_engine_get_model (engine));
  runnel_engine_clear_cache (engine);
  runnel_engine_get_stats (engine, &stats);
  g_test_assert_expected_messages ();
}

static void
test_sequence (void)
{
  g_autoptr (RunnelSequence) sequence
      = g_object_new (RUNNEL_TYPE_SEQUENCE, NULL);
  float logit;

  expect_refusals (4);
  g_assert_null (runnel_sequence_fork (sequence));
  g_assert_cmpuint (runnel_sequence_get_length (sequence), ==, 0);
  g_assert_null (runnel_sequence_serialize (sequence, NULL));
  g_assert_false (runnel_sequence_compute_logits (sequence, &logit, 1, NULL));
  g_test_assert_expected_messages ();
}

static void
test_text (void)
{
  g_autoptr (RunnelTokenizer) tokenizer
      = g_object_new (RUNNEL_TYPE_TOKENIZER, NULL);
  g_autoptr (RunnelDetokenizer) detokenizer
      = g_object_new (RUNNEL_TYPE_DETOKENIZER, NULL);
  g_autoptr (RunnelChatTemplate) template
      = g_object_new (RUNNEL_TYPE_CHAT_TEMPLATE, NULL);
  gsize n;

  expect_refusals (3);
  g_assert_null (runnel_tokenizer_encode (tokenizer, "a", -1, FALSE, &n, NULL));
  g_assert_cmpuint (runnel_tokenizer_get_n_tokens (tokenizer), ==, 0);
  g_assert_null (runnel_detokenizer_flush (detokenizer, TRUE));
  g_test_assert_expected_messages ();
}

static void
test_generation (void)
{
  g_autoptr (RunnelGeneration) generation
      = g_object_new (RUNNEL_TYPE_GENERATION, NULL);
  g_autoptr (RunnelSampler) sampler = g_object_new (RUNNEL_TYPE_SAMPLER, NULL);
  RunnelGenerationStep step;

  expect_refusals (3);
  g_assert_false (runnel_generation_next (generation, &step, NULL));
  runnel_generation_cancel (generation);
  runnel_sampler_accept (sampler, 1);
  g_test_assert_expected_messages ();
}

static void
test_decisions (void)
{
  g_autoptr (RunnelDecider) decider = g_object_new (RUNNEL_TYPE_DECIDER, NULL);
  g_autoptr (RunnelQuestion) question
      = g_object_new (RUNNEL_TYPE_QUESTION, NULL);
  g_autoptr (RunnelCalibration) calibration
      = g_object_new (RUNNEL_TYPE_CALIBRATION, NULL);
  g_autoptr (RunnelEnergyMeter) meter
      = g_object_new (RUNNEL_TYPE_ENERGY_METER, NULL);

  expect_refusals (4);
  g_assert_null (runnel_decider_get_engine (decider));
  g_assert_null (runnel_question_get_id (question));
  g_assert_cmpuint (runnel_calibration_get_n_tokens (calibration), ==, 0);
  g_assert_cmpfloat (runnel_energy_meter_read (meter), ==, 0);
  g_test_assert_expected_messages ();
}

static void
test_drafters (void)
{
  g_autoptr (RunnelDflashDrafter) drafter
      = g_object_new (RUNNEL_TYPE_DFLASH_DRAFTER, NULL);
  g_autoptr (RunnelBackend) backend = runnel_backend_get ("cpu", 1, NULL, NULL);

  expect_refusals (1);
  g_assert_false (runnel_dflash_drafter_load (drafter, backend, 0, NULL, NULL,
      NULL, NULL));
  g_test_assert_expected_messages ();
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/empty-objects/model", test_model);
  g_test_add_func ("/empty-objects/engine", test_engine);
  g_test_add_func ("/empty-objects/sequence", test_sequence);
  g_test_add_func ("/empty-objects/text", test_text);
  g_test_add_func ("/empty-objects/generation", test_generation);
  g_test_add_func ("/empty-objects/decisions", test_decisions);
  g_test_add_func ("/empty-objects/drafters", test_drafters);
  return g_test_run ();
}
