/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "decider.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "../formats/decision-head-private.h"
#include "../model/engine-private.h"
#include "../model/model-private.h"
#include "decision-private.h"
#include "elementary.h"
#include "head-rows.h"
#include "label-rows.h"
#include "option-rows.h"
#include "question-private.h"
#include "question-turn.h"

/* What stands for a state that says nothing (Zhao et al., "Calibrate Before
 * Use", ICML 2021). */
#define CONTENT_FREE "N/A"
/* Questions whose token ids and priors are kept. */
#define MAX_PREPARED 64

/* A question, and what of it does not depend on the state. */
typedef struct {
  RunnelQuestionTurn *turn;  /* without a head */
  RunnelHeadPrompt *prompt;  /* with one of the isolated form */
  double *priors;            /* [n], canonical order; NULL: not known yet */
  RunnelStaticOptions *fixed;   /* of the static layout; NULL: not kept */
} Prepared;

struct _RunnelDecider {
  GObject parent_instance;
  RunnelEngine *engine;
  RunnelDecisionHead *head;  /* nullable */
  RunnelDecisionLayout layout;
  gboolean use_prior;
  char **prior_texts;        /* NULL: CONTENT_FREE */
  double length_exponent;
  double temperatures[RUNNEL_QUESTION_TYPE_SCORE + 1];
  GHashTable *prepared;      /* key of a question → Prepared */
};

G_DEFINE_FINAL_TYPE (RunnelDecider, runnel_decider, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_DECIDER (self) && (self)->engine != NULL)

GType
runnel_decision_layout_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_DECISION_LAYOUT_SHOWN, "RUNNEL_DECISION_LAYOUT_SHOWN", "shown" },
    { RUNNEL_DECISION_LAYOUT_HIDDEN, "RUNNEL_DECISION_LAYOUT_HIDDEN",
      "hidden" },
    { RUNNEL_DECISION_LAYOUT_STATIC, "RUNNEL_DECISION_LAYOUT_STATIC",
      "static" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
        g_enum_register_static ("RunnelDecisionLayout", values));
  return type;
}

static void
prepared_free (gpointer data)
{
  Prepared *prepared = data;

  runnel_question_turn_free (prepared->turn);
  runnel_head_prompt_free (prepared->prompt);
  runnel_static_options_free (prepared->fixed);
  g_free (prepared->priors);
  g_free (prepared);
}

static void
runnel_decider_finalize (GObject *object)
{
  RunnelDecider *self = RUNNEL_DECIDER (object);

  g_hash_table_unref (self->prepared);
  g_strfreev (self->prior_texts);
  g_clear_object (&self->head);
  g_clear_object (&self->engine);
  G_OBJECT_CLASS (runnel_decider_parent_class)->finalize (object);
}

static void
runnel_decider_class_init (RunnelDeciderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_decider_finalize;
}

static void
runnel_decider_init (RunnelDecider *self)
{
  self->prepared = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
      prepared_free);
  self->layout = RUNNEL_DECISION_LAYOUT_HIDDEN;
  self->use_prior = TRUE;
  self->length_exponent = 0.5;
  for (guint i = 0; i < G_N_ELEMENTS (self->temperatures); i++)
    self->temperatures[i] = 1;
}

static gboolean
use_head (RunnelDecider *self, RunnelDecisionHead *head, GError **error)
{
  RunnelModel *model = runnel_engine_get_model (self->engine);

  if (head != NULL)
    self->head = g_object_ref (head);
  else if (!runnel_decision_head_find (runnel_model_get_checkpoint (model),
               &self->head, error))
    return FALSE;
  if (self->head == NULL)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (self->temperatures); i++)
    self->temperatures[i] = self->head->temperatures[i];
  return runnel_decision_head_check_fit (self->head,
      runnel_checkpoint_hyperparameters (runnel_model_get_checkpoint (model)),
      runnel_model_get_name (model), error);
}

/**
 * runnel_decider_new:
 * @engine: who computes
 * @head: (nullable): what scores options; %NULL: the head in the model's own
 *   file, or, where there is none, the likelihood of their labels
 * @error: return location for a #GError
 *
 * A decider for the states of an engine.
 *
 * Returns: (transfer full): the decider, or %NULL with
 *   %RUNNEL_ERROR_MISMATCH for the head of another model, or an error of the
 *   model's tokenizer or head
 *
 * Since: 0.1
 */
RunnelDecider *
runnel_decider_new (RunnelEngine *engine, RunnelDecisionHead *head,
                    GError **error)
{
  g_autoptr (RunnelDecider) self = NULL;

  g_return_val_if_fail (runnel_engine_is_made (engine), NULL);
  g_return_val_if_fail (head == NULL || RUNNEL_IS_DECISION_HEAD (head), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (runnel_model_get_tokenizer (runnel_engine_get_model (engine), error)
      == NULL)
    return NULL;
  self = g_object_new (RUNNEL_TYPE_DECIDER, NULL);
  self->engine = g_object_ref (engine);
  return use_head (self, head, error) ? g_steal_pointer (&self) : NULL;
}

/**
 * runnel_decider_get_engine:
 * @self: a decider
 *
 * Who computes.
 *
 * Returns: (transfer none): the engine
 *
 * Since: 0.1
 */
RunnelEngine *
runnel_decider_get_engine (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->engine;
}

/**
 * runnel_decider_get_head:
 * @self: a decider
 *
 * What scores options.
 *
 * Returns: (transfer none) (nullable): the head, or %NULL when it is the
 *   likelihood of their labels
 *
 * Since: 0.1
 */
RunnelDecisionHead *
runnel_decider_get_head (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->head;
}

/* ---- Settings ------------------------------------------------------------ */

static void
forget_priors (RunnelDecider *self)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->prepared);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    g_clear_pointer (&((Prepared *) value)->priors, g_free);
}

/**
 * runnel_decider_set_layout:
 * @self: a decider
 * @layout: how options come before a model without a head
 *
 * The default is %RUNNEL_DECISION_LAYOUT_HIDDEN.
 *
 * Since: 0.1
 */
void
runnel_decider_set_layout (RunnelDecider *self, RunnelDecisionLayout layout)
{
  g_return_if_fail (IS_MADE (self));
  if (layout == self->layout)
    return;
  self->layout = layout;
  forget_priors (self);
}

/**
 * runnel_decider_get_layout:
 * @self: a decider
 *
 * How options come before a model without a head.
 *
 * Returns: the layout
 *
 * Since: 0.1
 */
RunnelDecisionLayout
runnel_decider_get_layout (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), RUNNEL_DECISION_LAYOUT_SHOWN);
  return self->layout;
}

/**
 * runnel_decider_set_use_prior:
 * @self: a decider
 * @use_prior: whether to subtract it
 *
 * Without a head, an option's log-likelihood is compared with the one it has
 * behind a state that says nothing: a label that is likely anyhow is no
 * answer. The prior of a question is computed once. The default is %TRUE.
 *
 * Since: 0.1
 */
void
runnel_decider_set_use_prior (RunnelDecider *self, gboolean use_prior)
{
  g_return_if_fail (IS_MADE (self));
  self->use_prior = use_prior;
}

/**
 * runnel_decider_get_use_prior:
 * @self: a decider
 *
 * Whether the prior is subtracted.
 *
 * Returns: %TRUE or %FALSE
 *
 * Since: 0.1
 */
gboolean
runnel_decider_get_use_prior (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), FALSE);
  return self->use_prior;
}

static gboolean
equal_texts (const char *const *a, const char *const *b)
{
  return a == b || (a != NULL && b != NULL && g_strv_equal (a, b));
}

/**
 * runnel_decider_set_prior_texts:
 * @self: a decider
 * @texts: (nullable) (array zero-terminated=1): texts like those that will be
 *   decided about; empty ones are passed over. %NULL: one that says nothing
 *
 * What options score on the average behind @texts becomes their prior. It
 * needs no labels, and knows more of the domain than a text that says nothing:
 * some tens are enough. They are read once for every question.
 *
 * Since: 0.1
 */
void
runnel_decider_set_prior_texts (RunnelDecider *self, const char *const *texts)
{
  g_autoptr (GStrvBuilder) builder = NULL;
  g_auto (GStrv) kept = NULL;

  g_return_if_fail (IS_MADE (self));

  if (texts != NULL) {
    builder = g_strv_builder_new ();
    for (; *texts != NULL; texts++)
      if (**texts != '\0')
        g_strv_builder_add (builder, *texts);
    kept = g_strv_builder_end (builder);
    if (kept[0] == NULL)
      g_clear_pointer (&kept, g_strfreev);
  }
  if (equal_texts ((const char *const *) kept,
          (const char *const *) self->prior_texts))
    return;
  g_strfreev (self->prior_texts);
  self->prior_texts = g_steal_pointer (&kept);
  forget_priors (self);
}

/**
 * runnel_decider_get_prior_texts:
 * @self: a decider
 *
 * What tells how likely an option is anyhow.
 *
 * Returns: (transfer none) (nullable) (array zero-terminated=1): the texts, or
 *   %NULL when it is one that says nothing
 *
 * Since: 0.1
 */
const char *const *
runnel_decider_get_prior_texts (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return (const char *const *) self->prior_texts;
}

/**
 * runnel_decider_set_length_exponent:
 * @self: a decider
 * @exponent: 0 to 2
 *
 * Without a head, a log-likelihood is divided by the label's number of tokens
 * to the power of @exponent: 0 takes the sum, 1 the mean of a token.
 * The default is 0.5.
 *
 * Since: 0.1
 */
void
runnel_decider_set_length_exponent (RunnelDecider *self, double exponent)
{
  g_return_if_fail (IS_MADE (self));
  g_return_if_fail (exponent >= 0 && exponent <= 2);
  self->length_exponent = exponent;
}

/**
 * runnel_decider_get_length_exponent:
 * @self: a decider
 *
 * How the length of a label counts.
 *
 * Returns: 0 to 2
 *
 * Since: 0.1
 */
double
runnel_decider_get_length_exponent (RunnelDecider *self)
{
  g_return_val_if_fail (IS_MADE (self), 1);
  return self->length_exponent;
}

/**
 * runnel_decider_set_temperature:
 * @self: a decider
 * @type: of which questions
 * @temperature: above 0
 *
 * What scores are divided by before the softmax. The default is the head's,
 * or 1.
 *
 * Since: 0.1
 */
void
runnel_decider_set_temperature (RunnelDecider *self, RunnelQuestionType type,
                                double temperature)
{
  g_return_if_fail (IS_MADE (self));
  g_return_if_fail (type <= RUNNEL_QUESTION_TYPE_SCORE);
  g_return_if_fail (temperature > 0 && isfinite (temperature));
  self->temperatures[type] = temperature;
}

/**
 * runnel_decider_get_temperature:
 * @self: a decider
 * @type: of which questions
 *
 * What scores are divided by before the softmax.
 *
 * Returns: the temperature
 *
 * Since: 0.1
 */
double
runnel_decider_get_temperature (RunnelDecider *self, RunnelQuestionType type)
{
  g_return_val_if_fail (IS_MADE (self), 1);
  g_return_val_if_fail (type <= RUNNEL_QUESTION_TYPE_SCORE, 1);
  return self->temperatures[type];
}

/* ---- Preparing ----------------------------------------------------------- */

static Prepared *
prepare (RunnelDecider *self, RunnelQuestion *question, GError **error)
{
  g_autofree char *key = runnel_question_make_key (question);
  Prepared *prepared = g_hash_table_lookup (self->prepared, key);
  RunnelModel *model = runnel_engine_get_model (self->engine);
  RunnelQuestionTurn *turn = NULL;
  RunnelHeadPrompt *prompt = NULL;

  if (prepared != NULL)
    return prepared;
  if (self->head != NULL)
    prompt = runnel_head_prompt_new_isolated (self->head, model, question,
        error);
  else
    turn = runnel_question_turn_new (model, question, error);
  if (turn == NULL && prompt == NULL)
    return NULL;
  if (g_hash_table_size (self->prepared) >= MAX_PREPARED)
    g_hash_table_remove_all (self->prepared);
  prepared = g_new0 (Prepared, 1);
  prepared->turn = turn;
  prepared->prompt = prompt;
  g_hash_table_insert (self->prepared, g_steal_pointer (&key), prepared);
  return prepared;
}

/* Makes room for the options of @prepared, if they are to be kept at all. */
static gboolean
make_room (RunnelDecider *self, Prepared *prepared)
{
  guint64 budget = runnel_engine_get_cache_budget (self->engine);
  guint64 own = runnel_sequence_get_kv_bytes (prepared->fixed->sequence);
  guint64 others = 0;
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->prepared);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (value != prepared && ((Prepared *) value)->fixed != NULL)
      others += runnel_sequence_get_kv_bytes
          (((Prepared *) value)->fixed->sequence);
  if (own > budget)
    return FALSE;
  g_hash_table_iter_init (&iter, self->prepared);
  while (others + own > budget
         && g_hash_table_iter_next (&iter, NULL, &value)) {
    Prepared *other = value;

    if (other == prepared || other->fixed == NULL)
      continue;
    others -= runnel_sequence_get_kv_bytes (other->fixed->sequence);
    g_clear_pointer (&other->fixed, runnel_static_options_free);
  }
  return TRUE;
}

/* The options of the static layout, for states of @context_length. */
static gboolean
ensure_static (Prepared *prepared, RunnelOptionRows *rows,
               guint context_length, GError **error)
{
  static const RunnelTokenRun none = { NULL };
  const RunnelHeadPrompt *prompt = prepared->prompt;
  const RunnelQuestionTurn *turn = prepared->turn;

  if (prepared->fixed != NULL
      && runnel_sequence_get_context_length (prepared->fixed->sequence)
      == context_length)
    return TRUE;
  g_clear_pointer (&prepared->fixed, runnel_static_options_free);
  prepared->fixed = prompt != NULL ?
      runnel_static_options_new (rows, context_length, &prompt->before,
          prompt->options, prompt->n, &none, error) :
      runnel_static_options_new (rows, context_length, &turn->before,
          turn->shown, turn->n, &turn->closes, error);
  return prepared->fixed != NULL;
}

/* ---- Without a head ------------------------------------------------------ */

/* What the labels score behind @text, added to @sums. */
static gboolean
add_prior (RunnelDecider *self, Prepared *prepared, const char *text,
           RunnelOptionRows *rows, double *scores, double *sums,
           GError **error)
{
  g_autoptr (RunnelSequence) state = runnel_decider_read (self, text, -1,
      FALSE, rows->cancellable, error);

  if (state == NULL || !runnel_label_rows_score (self->layout, rows, state,
          prepared->turn, prepared->fixed, scores, error))
    return FALSE;
  rows->rows += runnel_sequence_get_length (state);
  for (guint i = 0; i < prepared->turn->n; i++)
    sums[i] += scores[i];
  return TRUE;
}

/* The mean over the texts. */
static gboolean
find_priors (RunnelDecider *self, Prepared *prepared, GCancellable *cancellable,
             RunnelDecisionCost *cost, GError **error)
{
  static const char *const content_free[] = { CONTENT_FREE, NULL };
  const char *const *texts = self->prior_texts ?
      (const char *const *) self->prior_texts : content_free;
  RunnelOptionRows rows = { .engine = self->engine,
    .cancellable = cancellable };
  guint n = prepared->turn->n, n_texts = g_strv_length ((char **) texts);
  g_autofree double *priors = NULL, *scores = NULL;

  if (prepared->priors != NULL)
    return TRUE;
  priors = g_new0 (double, n);
  scores = g_new (double, n);
  for (guint i = 0; i < n_texts; i++)
    if (!add_prior (self, prepared, texts[i], &rows, scores, priors, error))
      return FALSE;
  for (guint i = 0; i < n; i++)
    priors[i] /= n_texts;
  cost->prior_rows += rows.rows;
  prepared->priors = g_steal_pointer (&priors);
  return TRUE;
}

/* n to the power of the length exponent. */
static double
get_length (RunnelDecider *self, guint n)
{
  return elementary_exp (self->length_exponent * elementary_log (n));
}

static gboolean
decide_by_labels (RunnelDecider *self, RunnelOptionRows *rows,
                  RunnelSequence *state, RunnelQuestion *question,
                  Prepared *prepared, RunnelDecisionCost *cost,
                  double *logits, GError **error)
{
  const guint *order = runnel_question_get_order (question);
  g_autofree double *scores = NULL;

  if (!runnel_label_rows_check_room (self->layout, state, question,
          prepared->turn, error)
      || (self->layout == RUNNEL_DECISION_LAYOUT_STATIC
          && !ensure_static (prepared, rows,
              runnel_sequence_get_context_length (state), error))
      || (self->use_prior && !find_priors (self, prepared, rows->cancellable,
              cost, error)))
    return FALSE;
  scores = g_new (double, prepared->turn->n);
  if (!runnel_label_rows_score (self->layout, rows, state, prepared->turn,
          prepared->fixed, scores, error))
    return FALSE;
  for (guint i = 0; i < prepared->turn->n; i++) {
    double prior = self->use_prior ? prepared->priors[i] : 0;

    logits[order[i]] = (scores[i] - prior)
        / get_length (self, prepared->turn->labels[i].n);
  }
  return TRUE;
}

/* ---- Deciding ------------------------------------------------------------ */

/**
 * runnel_decider_read:
 * @self: a decider
 * @text: UTF-8: what questions will be asked about
 * @length: its length in bytes; −1: to the NUL
 * @use_cache: look into the prefix cache, and keep the state there
 * @cancellable: (nullable): looked at before each chunk
 * @error: return location for a #GError
 *
 * Reads a text into a state: as a turn of the user, by the model's chat
 * template, or as it is where there is none. With a head, as the head's form
 * wants it.
 *
 * Returns: (transfer full): the state, or %NULL with %RUNNEL_ERROR_MALFORMED
 *   (no UTF-8) or an error of the tokenizer, the template or
 *   runnel_sequence_prefill()
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_decider_read (RunnelDecider *self, const char *text, gssize length,
                     gboolean use_cache, GCancellable *cancellable,
                     GError **error)
{
  g_autoptr (RunnelSequence) state = NULL;
  RunnelTokenRun run = { NULL };
  RunnelModel *model;
  const char *bad;
  gboolean ok;

  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (text != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!g_utf8_validate (text, length, &bad)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "the text is not UTF-8, or holds NUL, at byte %" G_GSIZE_FORMAT,
        (gsize) (bad - text));
    return NULL;
  }
  model = runnel_engine_get_model (self->engine);
  if (!(self->head ? runnel_head_rows_read (self->head, model, text, length,
              &run, error) : runnel_question_turn_read (model, text, length,
              &run, error)))
    return NULL;
  state = runnel_sequence_new (self->engine, 0, error);
  ok = state != NULL && runnel_sequence_prefill (state, run.tokens, run.n, 0,
      use_cache, NULL, NULL, cancellable, NULL, error);
  runnel_token_run_clear (&run);
  return ok ? g_steal_pointer (&state) : NULL;
}

/* With a head of the isolated form, or without one. */
static gboolean
decide_prepared (RunnelDecider *self, RunnelOptionRows *rows,
                 RunnelSequence *state, RunnelQuestion *question,
                 RunnelDecisionCost *cost, RunnelDecisionScores *scores,
                 double *logits, GError **error)
{
  Prepared *prepared = prepare (self, question, error);
  gboolean is_static = self->layout == RUNNEL_DECISION_LAYOUT_STATIC, ok;

  if (prepared == NULL)
    return FALSE;
  /* Those of another layout are not in the way. */
  if (!is_static)
    g_clear_pointer (&prepared->fixed, runnel_static_options_free);
  if (self->head == NULL)
    ok = decide_by_labels (self, rows, state, question, prepared, cost, logits,
        error);
  else
    ok = runnel_head_rows_check_room (state, prepared->prompt, question, 0,
            error)
        && (!is_static || ensure_static (prepared, rows,
                runnel_sequence_get_context_length (state), error))
        && runnel_head_rows_score_isolated (self->head, rows, state, question,
            prepared->prompt, prepared->fixed, logits,
            &scores->abstain_logit, error);
  if (prepared->fixed != NULL && !make_room (self, prepared))
    g_clear_pointer (&prepared->fixed, runnel_static_options_free);
  return ok;
}

/* A fork of the state without what only begins a reply. */
static RunnelSequence *
fork_state (RunnelDecider *self, RunnelSequence *state, int n_state,
            GError **error)
{
  g_autoptr (RunnelSequence) fork = NULL;

  if (runnel_sequence_get_engine (state) != self->engine) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "the state is of another engine than the decider");
    return NULL;
  }
  fork = runnel_sequence_fork (state);
  if (n_state >= 0 && !runnel_sequence_truncate (fork, n_state, error))
    return NULL;
  return g_steal_pointer (&fork);
}

static RunnelDecision *
decide (RunnelDecider *self, RunnelOptionRows *rows, RunnelSequence *state,
        RunnelQuestion *question, RunnelDecisionCost *cost,
        GError **error)
{
  g_autofree double *logits
      = g_new (double, runnel_question_get_n_options (question));
  RunnelQuestionType type = runnel_question_get_question_type (question);
  RunnelDecisionScores scores = {
    .logits = logits,
    .temperature = self->temperatures[type],
  };
  gboolean ok;

  if (self->head != NULL)
    scores.can_abstain = self->head->can_abstain;
  if (self->head != NULL
      && self->head->form == RUNNEL_DECISION_FORM_DECISION2) {
    scores.first_wins = TRUE;
    ok = runnel_head_rows_score_decision2 (self->head, rows, state, question,
        logits, error);
  } else {
    ok = decide_prepared (self, rows, state, question, cost, &scores, logits,
        error);
  }
  if (!ok)
    return NULL;
  return runnel_decision_new (question, &scores, error);
}

/**
 * runnel_decider_decide:
 * @self: a decider
 * @state: what the questions are about; it does not change
 * @n_state: how many tokens of it count: those before the beginning of a
 *   reply; −1: all
 * @questions: (element-type RunnelQuestion): 1 to 256 questions; none sees
 *   another
 * @cancellable: (nullable): looked at before each batch
 * @error: return location for a #GError
 *
 * Answers questions about one state.
 *
 * Returns: (transfer full): the decisions, or %NULL with
 *   %RUNNEL_ERROR_CONTEXT_OVERFLOW, %RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
 *   %RUNNEL_ERROR_BAD_LOGITS, %RUNNEL_ERROR_CANCELLED,
 *   %RUNNEL_ERROR_MISMATCH or %RUNNEL_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
RunnelDecisions *
runnel_decider_decide (RunnelDecider *self, RunnelSequence *state, int n_state,
                       GPtrArray *questions, GCancellable *cancellable,
                       GError **error)
{
  RunnelOptionRows rows = { .cancellable = cancellable };
  RunnelDecisionCost cost = { 0 };
  g_autoptr (RunnelSequence) fork = NULL;
  g_autoptr (GPtrArray) decisions = NULL;
  gint64 started = g_get_monotonic_time ();

  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (runnel_sequence_is_made (state), NULL);
  g_return_val_if_fail (questions != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (questions->len < 1 || questions->len > RUNNEL_MAX_QUESTIONS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%u questions; give 1 to %d", questions->len, RUNNEL_MAX_QUESTIONS);
    return NULL;
  }
  fork = fork_state (self, state, n_state, error);
  if (fork == NULL)
    return NULL;
  rows.engine = self->engine;
  decisions = g_ptr_array_new_with_free_func
      ((GDestroyNotify) runnel_decision_free);
  for (guint i = 0; i < questions->len; i++) {
    RunnelDecision *decision = decide (self, &rows, fork,
        questions->pdata[i], &cost, error);

    if (decision == NULL)
      return NULL;
    g_ptr_array_add (decisions, decision);
  }
  cost.state_tokens = runnel_sequence_get_length (fork);
  cost.rows = rows.rows;
  cost.logits_rows = rows.logits_rows;
  cost.duration = (g_get_monotonic_time () - started) * 1000;
  return runnel_decisions_new (g_steal_pointer (&decisions), &cost);
}
