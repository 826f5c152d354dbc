/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Questions as JSON: what is accepted has labels to be shown, in an order that
 * is the same for all who give them.
 */
#include <stdint.h>
#include <string.h>

#include "error.h"
#include "generate/question-private.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static const char *const seeds[] = {
  "{\"questions\":{\"intent\":{\"type\":\"choice\",\"instructions\":\"What?\","
  "\"criteria\":{\"delivery\":\"not come\",\"payment\":null}},"
  "\"urgent\":{\"type\":\"yesno\",\"instructions\":\"Now?\","
  "\"criteria\":{\"yes\":\"today\",\"no\":\"later\"}},"
  "\"tone\":{\"type\":\"score\",\"instructions\":\"How?\","
  "\"criteria\":[\"cold\",\"warm\",\"hot\"]}}}",
  "{\"questions\":{\"q\":{\"type\":\"noul\",\"instructions\":\"\\u00e9?\"}}}",
  "{\"questions\":{\"q\":{\"instructions\":\"x\",\"criteria\":"
  "[\"a\",\"a\"]}}}",
  "{\"questions\":{\"q\":{\"instructions\":\"x\",\"criteria\":[\"\"]}}}",
};

static void
check (RunnelQuestion *question)
{
  guint n = runnel_question_get_n_options (question);
  const guint *order = runnel_question_get_order (question);
  g_autofree char *key = runnel_question_make_key (question);

  g_assert_cmpuint (n, >=, 2);
  g_assert_cmpuint (n, <=, 255);
  g_assert_cmpuint (strlen (key), >, 0);
  for (guint i = 0; i < n; i++) {
    const char *label = runnel_question_get_label (question, i);

    g_assert_cmpuint (order[i], <, n);
    g_assert_true (*label != '\0' && g_utf8_validate (label, -1, NULL));
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) questions
      = runnel_question_parse_json ((const char *) data, size, "fuzz", &error);

  g_assert_true ((questions == NULL) == (error != NULL));
  for (guint i = 0; questions != NULL && i < questions->len; i++)
    check (questions->pdata[i]);
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  if (i >= G_N_ELEMENTS (seeds))
    return NULL;
  *size = strlen (seeds[i]);
  return (const uint8_t *) seeds[i];
}
