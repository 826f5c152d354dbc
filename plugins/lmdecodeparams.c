/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmdecodeparams.h"

#include "elements.h"

#include <math.h>

#define FLAGS (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS \
               | GST_PARAM_MUTABLE_PLAYING)

static void
install_drawing (GObjectClass *klass, const RunnelSamplerParams *defaults)
{
  const double penalty = RUNNEL_SAMPLER_MAX_PENALTY;

  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_TEMPERATURE,
      g_param_spec_double ("temperature", "Temperature",
          "Divides the logits: below 1 sharper, above 1 flatter, 0 always "
          "takes the most probable token", 0, RUNNEL_SAMPLER_MAX_TEMPERATURE,
          defaults->temperature, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_TOP_K,
      g_param_spec_uint ("top-k", "Top k",
          "Draw from this many of the most probable tokens (0: all)",
          0, G_MAXINT, defaults->top_k, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_TOP_P,
      g_param_spec_double ("top-p", "Top p",
          "Draw from the smallest set of tokens that together have this "
          "probability (1: all, 0: one)", 0, 1, defaults->top_p, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_MIN_P,
      g_param_spec_double ("min-p", "Min p",
          "Drop tokens less probable than this times the most probable one "
          "(0: none)", 0, 1, defaults->min_p, FLAGS));
  g_object_class_install_property (klass,
      GST_LM_DECODE_PARAM_REPETITION_PENALTY,
      g_param_spec_double ("repetition-penalty", "Repetition penalty",
          "Makes tokens of prompt and reply less probable: divides positive "
          "and multiplies negative logits (1: off)", 0.01, penalty,
          defaults->repetition_penalty, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_PRESENCE_PENALTY,
      g_param_spec_double ("presence-penalty", "Presence penalty",
          "Subtracted once from the logit of every token in the reply",
          -penalty, penalty, defaults->presence_penalty, FLAGS));
  g_object_class_install_property (klass,
      GST_LM_DECODE_PARAM_FREQUENCY_PENALTY,
      g_param_spec_double ("frequency-penalty", "Frequency penalty",
          "Subtracted from a token's logit for each time it is in the reply",
          -penalty, penalty, defaults->frequency_penalty, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_PENALTY_WINDOW,
      g_param_spec_uint ("penalty-window", "Penalty window",
          "How many of the last tokens the penalties look at (0: all)",
          0, G_MAXINT, defaults->penalty_window, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_SEED,
      g_param_spec_uint64 ("seed", "Seed",
          "Of the noise that draws tokens: the same seed gives the same reply",
          0, G_MAXUINT64, defaults->seed, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_LOGIT_BIAS,
      g_param_spec_boxed ("logit-bias", "Logit bias",
          "Added to the logits of single tokens, by id; -inf bans a token: "
          "\"bias,198=-5.0,2=(double)-inf\"", GST_TYPE_STRUCTURE, FLAGS));
}

static void
install_ending (GObjectClass *klass, const RunnelGenerationParams *defaults)
{
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_MAX_TOKENS,
      g_param_spec_int ("max-tokens", "Max tokens",
          "End a reply after this many tokens (-1: at a stop or the end of "
          "the context)", -1, G_MAXINT, defaults->max_tokens, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_STOP,
      gst_param_spec_array ("stop", "Stop strings",
          "End a reply before any of these strings, at most 16: "
          "<\"one\",\"another one\">",
          g_param_spec_string ("string", "String", "A stop string", NULL,
              G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS), FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_STOP_TOKENS,
      gst_param_spec_array ("stop-tokens", "Stop tokens",
          "End a reply at these token ids, besides those of the model: <1,2>",
          g_param_spec_int ("token", "Token", "A token id", 0, G_MAXINT, 0,
              G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS), FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_IGNORE_EOS,
      g_param_spec_boolean ("ignore-eos", "Ignore end tokens",
          "Do not end a reply at the stop tokens of the model",
          defaults->ignore_eos, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_TOP_LOGPROBS,
      g_param_spec_uint ("top-logprobs", "Top logprobs",
          "How many alternatives, with their log probabilities, go with each "
          "token", 0, RUNNEL_MAX_TOP_LOGPROBS, defaults->n_top_logprobs,
          FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_OVERFLOW_POLICY,
      g_param_spec_enum ("overflow-policy", "Overflow policy",
          "What happens when a reply fills the context: shift drops the oldest "
          "tokens after n-keep, a quarter of the context or more, and goes on; "
          "the others end it with finish reason length",
          RUNNEL_TYPE_OVERFLOW_POLICY, defaults->overflow_policy, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_N_KEEP,
      g_param_spec_uint ("n-keep", "Tokens to keep",
          "Tokens at the beginning that overflow-policy=shift never drops",
          0, G_MAXINT, defaults->n_keep, FLAGS));
}

static void
install_drafting (GObjectClass *klass, const RunnelGenerationParams *defaults)
{
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_ACCEPTANCE,
      g_param_spec_enum ("acceptance", "Acceptance",
          "When a drafter's guess is kept: equality gives the reply that there "
          "is without drafters, rejection one of the same distribution",
          RUNNEL_TYPE_ACCEPTANCE, defaults->acceptance, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_DRAFT_CHOICE,
      g_param_spec_enum ("draft-choice", "Draft choice",
          "Which of several drafters is listened to: the first that has a "
          "guess, or the one with the longest", RUNNEL_TYPE_DRAFT_CHOICE,
          defaults->draft_choice, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_DRAFT_MAX,
      g_param_spec_uint ("draft-max", "Longest draft",
          "Verify at most this many guesses at once (0: do not draft)", 0,
          RUNNEL_MAX_DRAFT, defaults->max_draft, FLAGS));
  g_object_class_install_property (klass, GST_LM_DECODE_PARAM_DRAFT_ADAPTIVE,
      g_param_spec_boolean ("draft-adaptive", "Adaptive drafts",
          "Verify as many guesses as pay on this machine and text, and none "
          "where drafting is slower", defaults->adaptive_drafts, FLAGS));
}

void
gst_lm_decode_params_install (GObjectClass *klass)
{
  g_autoptr (RunnelGenerationParams) defaults =
      runnel_generation_params_new ();

  install_ending (klass, defaults);
  install_drawing (klass, defaults->sampler);
  install_drafting (klass, defaults);
}

/* Token ids are the names of the fields. */
static gboolean
parse_bias (const GstStructure *bias, const char *name, RunnelLogitBias *ret,
            GError **error)
{
  const GValue *value = gst_structure_get_value (bias, name);
  g_auto (GValue) number = G_VALUE_INIT;
  guint64 token;

  if (!g_ascii_string_to_unsigned (name, 10, 0, G_MAXINT32, &token, NULL)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "logit-bias: the field '%s' is named by no token id; fields are such "
        "as 198=-5.0", name);
    return FALSE;
  }
  g_value_init (&number, G_TYPE_FLOAT);
  if (!g_value_transform (value, &number)
      || !(g_value_get_float (&number) < INFINITY)) {
    g_autofree char *text = gst_value_serialize (value);

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "logit-bias: token %s has the bias '%s', it must be a number or "
        "(double)-inf", name, text ? text : "");
    return FALSE;
  }
  ret->token = (gint32) token;
  ret->bias = g_value_get_float (&number);
  return TRUE;
}

gboolean
gst_lm_decode_params_set_bias (RunnelGenerationParams *params,
                               const GstStructure *bias, GError **error)
{
  gint n = bias ? gst_structure_n_fields (bias) : 0;
  g_autofree RunnelLogitBias *biases = g_new (RunnelLogitBias, MAX (n, 1));

  for (gint i = 0; i < n; i++)
    if (!parse_bias (bias, gst_structure_nth_field_name (bias, i), &biases[i],
            error))
      return FALSE;
  runnel_sampler_params_set_biases (params->sampler, biases, n);
  return TRUE;
}

static void
set_stops (RunnelGenerationParams *params, const GValue *array)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; i < gst_value_array_get_size (array); i++) {
    const char *stop =
        g_value_get_string (gst_value_array_get_value (array, i));

    g_strv_builder_add (builder, stop ? stop : "");
  }
  g_strfreev (params->stops);
  params->stops = g_strv_builder_end (builder);
}

static void
get_stops (const RunnelGenerationParams *params, GValue *array)
{
  for (guint i = 0; params->stops && params->stops[i]; i++) {
    GValue stop = G_VALUE_INIT;

    g_value_init (&stop, G_TYPE_STRING);
    g_value_set_string (&stop, params->stops[i]);
    gst_value_array_append_and_take_value (array, &stop);
  }
}

static void
set_stop_tokens (RunnelGenerationParams *params, const GValue *array)
{
  guint n = gst_value_array_get_size (array);

  g_free (params->stop_tokens);
  params->stop_tokens = g_new (gint32, MAX (n, 1));
  params->n_stop_tokens = n;
  for (guint i = 0; i < n; i++)
    params->stop_tokens[i] =
        g_value_get_int (gst_value_array_get_value (array, i));
}

static void
get_stop_tokens (const RunnelGenerationParams *params, GValue *array)
{
  for (gsize i = 0; i < params->n_stop_tokens; i++) {
    GValue token = G_VALUE_INIT;

    g_value_init (&token, G_TYPE_INT);
    g_value_set_int (&token, params->stop_tokens[i]);
    gst_value_array_append_and_take_value (array, &token);
  }
}

/* Flat switches over the parameters. */
void
gst_lm_decode_params_set (RunnelGenerationParams *params, guint id,
                          const GValue *value)
{
  RunnelSamplerParams *sampler = params->sampler;

  switch (id) {
    case GST_LM_DECODE_PARAM_MAX_TOKENS:
      params->max_tokens = g_value_get_int (value);
      break;
    case GST_LM_DECODE_PARAM_TEMPERATURE:
      sampler->temperature = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_TOP_K:
      sampler->top_k = g_value_get_uint (value);
      break;
    case GST_LM_DECODE_PARAM_TOP_P:
      sampler->top_p = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_MIN_P:
      sampler->min_p = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_REPETITION_PENALTY:
      sampler->repetition_penalty = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_PRESENCE_PENALTY:
      sampler->presence_penalty = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_FREQUENCY_PENALTY:
      sampler->frequency_penalty = g_value_get_double (value);
      break;
    case GST_LM_DECODE_PARAM_PENALTY_WINDOW:
      sampler->penalty_window = g_value_get_uint (value);
      break;
    case GST_LM_DECODE_PARAM_SEED:
      sampler->seed = g_value_get_uint64 (value);
      break;
    case GST_LM_DECODE_PARAM_STOP:
      set_stops (params, value);
      break;
    case GST_LM_DECODE_PARAM_STOP_TOKENS:
      set_stop_tokens (params, value);
      break;
    case GST_LM_DECODE_PARAM_IGNORE_EOS:
      params->ignore_eos = g_value_get_boolean (value);
      break;
    case GST_LM_DECODE_PARAM_TOP_LOGPROBS:
      params->n_top_logprobs = g_value_get_uint (value);
      break;
    case GST_LM_DECODE_PARAM_OVERFLOW_POLICY:
      params->overflow_policy = g_value_get_enum (value);
      break;
    case GST_LM_DECODE_PARAM_N_KEEP:
      params->n_keep = g_value_get_uint (value);
      break;
    case GST_LM_DECODE_PARAM_ACCEPTANCE:
      params->acceptance = g_value_get_enum (value);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_CHOICE:
      params->draft_choice = g_value_get_enum (value);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_MAX:
      params->max_draft = g_value_get_uint (value);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_ADAPTIVE:
      params->adaptive_drafts = g_value_get_boolean (value);
      break;
    default:
      g_return_if_reached ();
  }
}

void
gst_lm_decode_params_get (const RunnelGenerationParams *params, guint id,
                          GValue *value)
{
  const RunnelSamplerParams *sampler = params->sampler;

  switch (id) {
    case GST_LM_DECODE_PARAM_MAX_TOKENS:
      g_value_set_int (value, params->max_tokens);
      break;
    case GST_LM_DECODE_PARAM_TEMPERATURE:
      g_value_set_double (value, sampler->temperature);
      break;
    case GST_LM_DECODE_PARAM_TOP_K:
      g_value_set_uint (value, sampler->top_k);
      break;
    case GST_LM_DECODE_PARAM_TOP_P:
      g_value_set_double (value, sampler->top_p);
      break;
    case GST_LM_DECODE_PARAM_MIN_P:
      g_value_set_double (value, sampler->min_p);
      break;
    case GST_LM_DECODE_PARAM_REPETITION_PENALTY:
      g_value_set_double (value, sampler->repetition_penalty);
      break;
    case GST_LM_DECODE_PARAM_PRESENCE_PENALTY:
      g_value_set_double (value, sampler->presence_penalty);
      break;
    case GST_LM_DECODE_PARAM_FREQUENCY_PENALTY:
      g_value_set_double (value, sampler->frequency_penalty);
      break;
    case GST_LM_DECODE_PARAM_PENALTY_WINDOW:
      g_value_set_uint (value, sampler->penalty_window);
      break;
    case GST_LM_DECODE_PARAM_SEED:
      g_value_set_uint64 (value, sampler->seed);
      break;
    case GST_LM_DECODE_PARAM_STOP:
      get_stops (params, value);
      break;
    case GST_LM_DECODE_PARAM_STOP_TOKENS:
      get_stop_tokens (params, value);
      break;
    case GST_LM_DECODE_PARAM_IGNORE_EOS:
      g_value_set_boolean (value, params->ignore_eos);
      break;
    case GST_LM_DECODE_PARAM_TOP_LOGPROBS:
      g_value_set_uint (value, params->n_top_logprobs);
      break;
    case GST_LM_DECODE_PARAM_OVERFLOW_POLICY:
      g_value_set_enum (value, params->overflow_policy);
      break;
    case GST_LM_DECODE_PARAM_N_KEEP:
      g_value_set_uint (value, params->n_keep);
      break;
    case GST_LM_DECODE_PARAM_ACCEPTANCE:
      g_value_set_enum (value, params->acceptance);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_CHOICE:
      g_value_set_enum (value, params->draft_choice);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_MAX:
      g_value_set_uint (value, params->max_draft);
      break;
    case GST_LM_DECODE_PARAM_DRAFT_ADAPTIVE:
      g_value_set_boolean (value, params->adaptive_drafts);
      break;
    default:
      g_return_if_reached ();
  }
}

/* lmdecode ends a request's way, so it is the one to say that nobody has taken
 * an override: a misspelled name would otherwise be lost without a word. */
static gboolean
check_known (const char *name, GstElement *element, GError **error)
{
  const GType types[] = {
    G_OBJECT_TYPE (element), gst_lm_chat_get_type (),
    gst_lm_tokenize_get_type (), gst_lm_lookup_get_type (),
    gst_lm_prefill_get_type (), gst_lm_detokenize_get_type (),
  };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (GTypeClass) klass = g_type_class_ref (types[i]);

    if (g_object_class_find_property (G_OBJECT_CLASS (klass), name))
      return TRUE;
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "override '%s': no element has a property of this name", name);
  return FALSE;
}

gboolean
gst_lm_decode_params_override (RunnelGenerationParams *params,
                               GstElement *element,
                               const GstLmRequestMeta *meta, GError **error)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (element);
  gint n = meta->overrides ? gst_structure_n_fields (meta->overrides) : 0;

  for (gint i = 0; i < n; i++) {
    const char *name = gst_structure_nth_field_name (meta->overrides, i);
    GParamSpec *spec = g_object_class_find_property (klass, name);
    g_auto (GValue) value = G_VALUE_INIT;

    if (!check_known (name, element, error))
      return FALSE;
    if (!spec || spec->owner_type != G_OBJECT_TYPE (element)
        || spec->param_id >= GST_LM_DECODE_N_PARAMS)
      continue;
    if (!gst_lm_request_meta_get_parameter (meta, G_OBJECT (element),
            spec->name, &value, error))
      return FALSE;
    if (spec->param_id != GST_LM_DECODE_PARAM_LOGIT_BIAS)
      gst_lm_decode_params_set (params, spec->param_id, &value);
    else if (!gst_lm_decode_params_set_bias (params,
            g_value_get_boxed (&value), error))
      return FALSE;
  }
  return TRUE;
}
