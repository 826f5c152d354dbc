/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Reads answers back: docs/decisions.md.
 */
#include "decision.h"

#include <string.h>

#include "../error.h"
#include "../formats/json.h"

static gboolean
fail (GError **error, const char *text, const char *name)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED, text, name);
  return FALSE;
}

/* The answer to a question, the first one for NULL. */
static const RunnelJsonNode *
find_answer (const RunnelJson *json, const char *id, GError **error)
{
  const RunnelJsonNode *answers
      = runnel_json_node_member (runnel_json_root (json), "answers");
  const RunnelJsonNode *answer = NULL;

  if (answers == NULL || runnel_json_node_kind (answers) != RUNNEL_JSON_OBJECT
      || runnel_json_node_size (answers) == 0) {
    fail (error, "decisions: there are no %s", "answers");
    return NULL;
  }
  answer = id ? runnel_json_node_member (answers, id)
      : runnel_json_node_value (answers, 0);
  if (answer == NULL)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "decisions: there is no answer to the question '%s'", id);
  return answer;
}

/**
 * runnel_decisions_sum_json:
 * @json: answers as runnel_decisions_to_json() writes them
 * @length: its length in bytes; −1: to the NUL
 * @question: (nullable): the id of a question; %NULL: the first
 * @labels: (array zero-terminated=1): options of it
 * @ret_sum: (out): their probabilities, added
 * @error: return location for a #GError
 *
 * How probable it is that the answer is one of some options.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_MALFORMED for what is no JSON of
 *   answers, or %RUNNEL_ERROR_INVALID_ARGUMENT for a question or an option
 *   that is not in it
 *
 * Since: 0.1
 */
gboolean
runnel_decisions_sum_json (const char *json, gssize length,
                           const char *question, const char *const *labels,
                           double *ret_sum, GError **error)
{
  g_autoptr (RunnelJson) document = NULL;
  const RunnelJsonNode *answer, *probabilities;
  double sum = 0;

  g_return_val_if_fail (json != NULL && labels != NULL, FALSE);
  g_return_val_if_fail (ret_sum != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  document = runnel_json_parse (json, length < 0 ? strlen (json) : length,
      "decisions", error);
  answer = document ? find_answer (document, question, error) : NULL;
  if (answer == NULL)
    return FALSE;
  probabilities = runnel_json_node_member (answer, "probabilities");
  if (probabilities == NULL)
    return fail (error, "decisions: an answer has no %s", "probabilities");
  for (; *labels != NULL; labels++) {
    const RunnelJsonNode *p
        = runnel_json_node_member (probabilities, *labels);

    if (p == NULL) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
          "decisions: '%s' is none of the options", *labels);
      return FALSE;
    }
    if (runnel_json_node_kind (p) != RUNNEL_JSON_INTEGER
        && runnel_json_node_kind (p) != RUNNEL_JSON_FLOAT)
      return fail (error, "decisions: the probability of '%s' is no number",
          *labels);
    sum += runnel_json_node_double (p);
  }
  *ret_sum = sum;
  return TRUE;
}
