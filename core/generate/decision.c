/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "decision-private.h"

#include <math.h>

#include "../error.h"
#include "../formats/json.h"
#include "elementary.h"
#include "question-private.h"

struct _RunnelDecision {
  gatomicrefcount references;
  RunnelQuestion *question;
  guint n;
  double *logits;            /* [n] */
  double *probabilities;     /* [n] */
  gboolean can_abstain;
  double abstain;
  double entropy;
  double confidence;
  int choice;                /* -1: abstains */
};

struct _RunnelDecisions {
  gatomicrefcount references;
  GPtrArray *decisions;      /* RunnelDecision */
  RunnelDecisionCost cost;
};

G_DEFINE_BOXED_TYPE (RunnelDecision, runnel_decision, runnel_decision_copy,
                     runnel_decision_free)
G_DEFINE_BOXED_TYPE (RunnelDecisions, runnel_decisions, runnel_decisions_copy,
                     runnel_decisions_free)

/* ---- From logits to probabilities ---------------------------------------- */

static gboolean
check_logits (RunnelQuestion *question,
              const RunnelDecisionScores *scores, double *ret_max,
              GError **error)
{
  guint n = runnel_question_get_n_options (question);
  double max = scores->can_abstain ? scores->abstain_logit : -INFINITY;
  gboolean is_number = !isnan (max) && max < INFINITY;

  for (guint i = 0; i < n && is_number; i++) {
    is_number = !isnan (scores->logits[i]) && scores->logits[i] < INFINITY;
    max = MAX (max, scores->logits[i]);
  }
  *ret_max = max;
  if (is_number && max > -INFINITY)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS,
      "question '%s': the score of an option is not finite; the weights, the "
      "head or the state are damaged", runnel_question_get_id (question));
  return FALSE;
}

/* Sums run in canonical order, so that the order given cannot change a bit. */
static void
soft_max (RunnelDecision *self, const RunnelDecisionScores *scores, double max)
{
  const guint *order = runnel_question_get_order (self->question);
  double sum = 0;

  if (self->can_abstain)
    sum = self->abstain
        = elementary_exp ((scores->abstain_logit - max) / scores->temperature);
  for (guint i = 0; i < self->n; i++) {
    guint option = order[i];

    self->probabilities[option] = elementary_exp
        ((self->logits[option] - max) / scores->temperature);
    sum += self->probabilities[option];
  }
  for (guint i = 0; i < self->n; i++)
    self->probabilities[i] /= sum;
  self->abstain /= sum;
}

static double
plogp (double p)
{
  return p > 0 ? -p * elementary_log (p) : 0;
}

/* Of what can be answered, abstaining included. Confidence is one less the
 * entropy over its largest value. */
static void
measure (RunnelDecision *self)
{
  const guint *order = runnel_question_get_order (self->question);
  double entropy = self->can_abstain ? plogp (self->abstain) : 0;
  double largest = elementary_log (self->n + (self->can_abstain ? 1 : 0));

  for (guint i = 0; i < self->n; i++)
    entropy += plogp (self->probabilities[order[i]]);
  self->entropy = entropy;
  self->confidence = CLAMP (1 - entropy / largest, 0, 1);
}

static void
choose (RunnelDecision *self, gboolean first_wins)
{
  const guint *order = runnel_question_get_order (self->question);
  double best = self->can_abstain ? self->abstain : -1;

  self->choice = -1;
  for (guint i = 0; i < self->n; i++) {
    guint option = first_wins ? i : order[i];

    if (self->probabilities[option] > best) {
      best = self->probabilities[option];
      self->choice = option;
    }
  }
}

RunnelDecision *
runnel_decision_new (RunnelQuestion *question,
                     const RunnelDecisionScores *scores, GError **error)
{
  RunnelDecision *self;
  double max;

  if (!check_logits (question, scores, &max, error))
    return NULL;
  self = g_new0 (RunnelDecision, 1);
  g_atomic_ref_count_init (&self->references);
  self->question = g_object_ref (question);
  self->n = runnel_question_get_n_options (question);
  self->logits = g_memdup2 (scores->logits, self->n * sizeof (double));
  self->probabilities = g_new (double, self->n);
  self->can_abstain = scores->can_abstain;
  soft_max (self, scores, max);
  measure (self);
  choose (self, scores->first_wins);
  return self;
}

/**
 * runnel_decision_copy:
 * @self: a decision
 *
 * Takes a reference: a decision cannot change.
 *
 * Returns: (transfer full): another reference to @self
 *
 * Since: 0.1
 */
RunnelDecision *
runnel_decision_copy (const RunnelDecision *self)
{
  RunnelDecision *shared = (RunnelDecision *) self;

  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&shared->references);
  return shared;
}

/**
 * runnel_decision_free:
 * @self: (transfer full) (nullable): a decision
 *
 * Releases a reference.
 *
 * Since: 0.1
 */
void
runnel_decision_free (RunnelDecision *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->references))
    return;
  g_object_unref (self->question);
  g_free (self->logits);
  g_free (self->probabilities);
  g_free (self);
}

/**
 * runnel_decision_get_question:
 * @self: a decision
 *
 * What was asked.
 *
 * Returns: (transfer none): the question
 *
 * Since: 0.1
 */
RunnelQuestion *
runnel_decision_get_question (const RunnelDecision *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->question;
}

/**
 * runnel_decision_get_choice:
 * @self: a decision
 *
 * The most probable option. Of equal ones it is the first by the bytes of
 * their labels (with a Decision 2.0 head, the first given).
 *
 * Returns: its index as the options were given, or −1 when to abstain is at
 *   least as probable as every option
 *
 * Since: 0.1
 */
int
runnel_decision_get_choice (const RunnelDecision *self)
{
  g_return_val_if_fail (self != NULL, -1);
  return self->choice;
}

/**
 * runnel_decision_get_probability:
 * @self: a decision
 * @i: which option, as they were given
 *
 * How probable an option is. With the abstain mass, if there is one, the
 * probabilities sum to 1.
 *
 * Returns: 0 to 1
 *
 * Since: 0.1
 */
double
runnel_decision_get_probability (const RunnelDecision *self, guint i)
{
  g_return_val_if_fail (self != NULL && i < self->n, 0);
  return self->probabilities[i];
}

/**
 * runnel_decision_get_logit:
 * @self: a decision
 * @i: which option, as they were given
 *
 * An option's score before temperature and softmax.
 *
 * Returns: the score; −infinity for what cannot be
 *
 * Since: 0.1
 */
double
runnel_decision_get_logit (const RunnelDecision *self, guint i)
{
  g_return_val_if_fail (self != NULL && i < self->n, 0);
  return self->logits[i];
}

/**
 * runnel_decision_get_level:
 * @self: a decision
 *
 * The expected index of an option, of what is left when abstaining is left
 * out: of a score the expected level.
 *
 * Returns: 0 to the number of options less one
 *
 * Since: 0.1
 */
double
runnel_decision_get_level (const RunnelDecision *self)
{
  const guint *order;
  double sum = 0, mass = 0;

  g_return_val_if_fail (self != NULL, 0);
  order = runnel_question_get_order (self->question);
  for (guint i = 0; i < self->n; i++) {
    sum += order[i] * self->probabilities[order[i]];
    mass += self->probabilities[order[i]];
  }
  return mass > 0 ? sum / mass : 0;
}

/**
 * runnel_decision_get_confidence:
 * @self: a decision
 *
 * One less the entropy over the largest entropy there could be.
 *
 * Returns: 0 (all is equally probable) to 1 (all but one is impossible)
 *
 * Since: 0.1
 */
double
runnel_decision_get_confidence (const RunnelDecision *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->confidence;
}

/**
 * runnel_decision_get_entropy:
 * @self: a decision
 *
 * The entropy of the probabilities, the abstain mass among them.
 *
 * Returns: nats
 *
 * Since: 0.1
 */
double
runnel_decision_get_entropy (const RunnelDecision *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->entropy;
}

/**
 * runnel_decision_get_abstain:
 * @self: a decision
 *
 * How probable it is that none of the options is right, where a head says.
 *
 * Returns: 0 to 1, or NaN when nobody says
 *
 * Since: 0.1
 */
double
runnel_decision_get_abstain (const RunnelDecision *self)
{
  g_return_val_if_fail (self != NULL, NAN);
  return self->can_abstain ? self->abstain : NAN;
}

/* ---- Several ------------------------------------------------------------- */

RunnelDecisions *
runnel_decisions_new (GPtrArray *decisions, const RunnelDecisionCost *cost)
{
  RunnelDecisions *self = g_new0 (RunnelDecisions, 1);

  g_atomic_ref_count_init (&self->references);
  self->decisions = decisions;
  self->cost = *cost;
  return self;
}

/**
 * runnel_decisions_copy:
 * @self: decisions
 *
 * Takes a reference: decisions cannot change.
 *
 * Returns: (transfer full): another reference to @self
 *
 * Since: 0.1
 */
RunnelDecisions *
runnel_decisions_copy (const RunnelDecisions *self)
{
  RunnelDecisions *shared = (RunnelDecisions *) self;

  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&shared->references);
  return shared;
}

/**
 * runnel_decisions_free:
 * @self: (transfer full) (nullable): decisions
 *
 * Releases a reference.
 *
 * Since: 0.1
 */
void
runnel_decisions_free (RunnelDecisions *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->references))
    return;
  g_ptr_array_unref (self->decisions);
  g_free (self);
}

/**
 * runnel_decisions_get_n:
 * @self: decisions
 *
 * How many there are: as many as there were questions.
 *
 * Returns: their number
 *
 * Since: 0.1
 */
guint
runnel_decisions_get_n (const RunnelDecisions *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->decisions->len;
}

/**
 * runnel_decisions_get:
 * @self: decisions
 * @i: which of them
 *
 * The answer to a question, in the order of the questions.
 *
 * Returns: (transfer none): the decision
 *
 * Since: 0.1
 */
RunnelDecision *
runnel_decisions_get (const RunnelDecisions *self, guint i)
{
  g_return_val_if_fail (self != NULL && i < self->decisions->len, NULL);
  return self->decisions->pdata[i];
}

/**
 * runnel_decisions_get_cost:
 * @self: decisions
 * @ret_cost: (out caller-allocates): what they cost
 *
 * Rows and time.
 *
 * Since: 0.1
 */
void
runnel_decisions_get_cost (const RunnelDecisions *self,
                           RunnelDecisionCost *ret_cost)
{
  g_return_if_fail (self != NULL && ret_cost != NULL);
  *ret_cost = self->cost;
}

/* ---- JSON ---------------------------------------------------------------- */

static void
append_member (GString *out, const char *name, double value)
{
  g_string_append_printf (out, ",\"%s\":", name);
  if (isfinite (value))
    runnel_json_append_double (out, value);
  else
    g_string_append (out, "null");
}

static void
append_label (GString *out, RunnelQuestion *question, int i)
{
  if (i < 0)
    g_string_append (out, "null");
  else
    runnel_json_append_string (out, runnel_question_get_label (question, i),
        -1);
}

/* P (yes) of what is left when abstaining is left out. */
static double
get_yes (const RunnelDecision *self)
{
  double mass = self->probabilities[0] + self->probabilities[1];

  return mass > 0 ? self->probabilities[0] / mass : 0;
}

static void
append_answer (GString *out, const RunnelDecision *self)
{
  RunnelQuestionType type
      = runnel_question_get_question_type (self->question);

  switch (type) {
    case RUNNEL_QUESTION_TYPE_CHOICE:
      g_string_append (out, "{\"type\":\"choice\"");
      break;
    case RUNNEL_QUESTION_TYPE_YESNO:
      g_string_append (out, "{\"type\":\"yesno\"");
      append_member (out, "yesno", get_yes (self));
      break;
    case RUNNEL_QUESTION_TYPE_SCORE:
      g_string_append (out, "{\"type\":\"score\"");
      append_member (out, "score", runnel_decision_get_level (self));
      break;
  }
  g_string_append (out, ",\"choice\":");
  append_label (out, self->question, self->choice);
  g_string_append (out, ",\"probabilities\":{");
  for (guint i = 0; i < self->n; i++) {
    if (i > 0)
      g_string_append_c (out, ',');
    append_label (out, self->question, i);
    g_string_append_c (out, ':');
    runnel_json_append_double (out, self->probabilities[i]);
  }
  g_string_append_c (out, '}');
  append_member (out, "confidence", self->confidence);
  append_member (out, "entropy", self->entropy);
  append_member (out, "abstain", runnel_decision_get_abstain (self));
  g_string_append_c (out, '}');
}

/**
 * runnel_decisions_to_json:
 * @self: decisions
 *
 * Writes the answers by the ids of their questions, and what they cost, on one
 * line: docs/decisions.md.
 *
 * Returns: (transfer full): JSON
 *
 * Since: 0.1
 */
char *
runnel_decisions_to_json (const RunnelDecisions *self)
{
  GString *out;

  g_return_val_if_fail (self != NULL, NULL);
  out = g_string_new ("{\"answers\":{");
  for (guint i = 0; i < self->decisions->len; i++) {
    const RunnelDecision *decision = self->decisions->pdata[i];

    if (i > 0)
      g_string_append_c (out, ',');
    runnel_json_append_string (out,
        runnel_question_get_id (decision->question), -1);
    g_string_append_c (out, ':');
    append_answer (out, decision);
  }
  g_string_append_printf (out, "},\"usage\":{\"state_tokens\":%"
      G_GUINT64_FORMAT ",\"rows\":%" G_GUINT64_FORMAT ",\"logits_rows\":%"
      G_GUINT64_FORMAT ",\"prior_rows\":%" G_GUINT64_FORMAT "}",
      self->cost.state_tokens, self->cost.rows, self->cost.logits_rows,
      self->cost.prior_rows);
  append_member (out, "seconds", self->cost.duration / 1e9);
  g_string_append_c (out, '}');
  return g_string_free (out, FALSE);
}
