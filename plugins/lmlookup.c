/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmlookup
 * @title: lmlookup
 * @see_also: lmprefill, lmdecode
 *
 * Attaches the lookup drafter to requests: where the last tokens stood in the
 * prompt or the reply before, it proposes what followed them there, and
 * lmdecode verifies that in one pass. It needs no model, and replies stay the
 * same; those that repeat parts of the prompt (rewriting, quoting, extraction)
 * come faster. It stands before lmprefill, tokens pass unchanged.
 *
 * A request may bring its own values in its meta's overrides, named as the
 * properties.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt \
 *       text="Repeat this line twice: the quick brown fox jumps." \
 *     ! lmchat ! lmtokenize model=$MODEL ! lmlookup ! lmprefill \
 *     ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink
 * ]|
 */

#include <gstrunnel.h>
#include "elements.h"

#include "lmattach.h"

GST_DEBUG_CATEGORY_STATIC (lm_lookup_debug);
#define GST_CAT_DEFAULT lm_lookup_debug

#define DEFAULT_NGRAM_MIN 1
#define DEFAULT_NGRAM_MAX 16
#define DEFAULT_LOOKUP_MAX RUNNEL_MAX_DRAFT

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

enum {
  PROP_NGRAM_MIN = 1,
  PROP_NGRAM_MAX,
  PROP_LOOKUP_MAX,
  N_PROPS,                      /* the others are of the base class */
};

static const char *const property_names[N_PROPS] = {
  NULL, "ngram-min", "ngram-max", "lookup-max"
};

struct _GstLmLookup {
  GstLmFilter parent;

  guint values[N_PROPS];        /* object lock */

  /* streaming thread */
  RunnelDrafter *drafter;       /* of the last request, or NULL */
  guint used[N_PROPS];          /* its values */
};

G_DECLARE_FINAL_TYPE (GstLmLookup, gst_lm_lookup, GST, LM_LOOKUP, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmLookup, gst_lm_lookup, GST_TYPE_LM_FILTER,
    GST_DEBUG_CATEGORY_INIT (lm_lookup_debug, "lmlookup", 0,
        "Runnel lookup drafter"))
GST_ELEMENT_REGISTER_DEFINE (lmlookup, "lmlookup", GST_RANK_NONE,
    gst_lm_lookup_get_type ())

static gboolean
get_values (GstLmLookup *self, const GstLmRequestMeta *meta, guint *values,
            GError **error)
{
  for (guint id = 1; id < N_PROPS; id++) {
    g_auto (GValue) value = G_VALUE_INIT;

    if (!gst_lm_request_meta_get_parameter (meta, G_OBJECT (self),
            property_names[id], &value, error))
      return FALSE;
    values[id] = g_value_get_uint (&value);
  }
  return TRUE;
}

/* The drafter that the request asks for, borrowed. */
static RunnelDrafter *
get_drafter (GstLmLookup *self, const GstLmRequestMeta *meta, GError **error)
{
  guint values[N_PROPS] = { 0 };
  RunnelDrafter *drafter;

  if (!get_values (self, meta, values, error))
    return NULL;
  if (self->drafter && memcmp (values, self->used, sizeof values) == 0)
    return self->drafter;
  drafter = runnel_lookup_drafter_new (values[PROP_NGRAM_MIN],
      values[PROP_NGRAM_MAX], values[PROP_LOOKUP_MAX], error);
  if (!drafter)
    return NULL;
  g_clear_object (&self->drafter);
  self->drafter = drafter;
  memcpy (self->used, values, sizeof values);
  return drafter;
}

static GstFlowReturn
gst_lm_lookup_process (GstLmFilter *filter, GstBuffer *buffer)
{
  g_autoptr (GError) error = NULL;
  RunnelDrafter *drafter = get_drafter (GST_LM_LOOKUP (filter),
      gst_lm_buffer_get_request_meta (buffer), &error);

  return gst_lm_attach_drafter (filter, buffer, drafter, error);
}

static void
gst_lm_lookup_set_property (GObject *object, guint id, const GValue *value,
                            GParamSpec *pspec)
{
  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_lookup_parent_class)->set_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (object);
  GST_LM_LOOKUP (object)->values[id] = g_value_get_uint (value);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_lm_lookup_get_property (GObject *object, guint id, GValue *value,
                            GParamSpec *pspec)
{
  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_lookup_parent_class)->get_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (object);
  g_value_set_uint (value, GST_LM_LOOKUP (object)->values[id]);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_lm_lookup_finalize (GObject *object)
{
  g_clear_object (&GST_LM_LOOKUP (object)->drafter);
  G_OBJECT_CLASS (gst_lm_lookup_parent_class)->finalize (object);
}

static void
install_property (GObjectClass *klass, guint id, const char *nick,
                  const char *blurb, guint max, guint initial)
{
  g_object_class_install_property (klass, id,
      g_param_spec_uint (property_names[id], nick, blurb, 1, max, initial,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
          | GST_PARAM_MUTABLE_PLAYING));
}

static void
gst_lm_lookup_class_init (GstLmLookupClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_lookup_set_property;
  object_class->get_property = gst_lm_lookup_get_property;
  object_class->finalize = gst_lm_lookup_finalize;
  filter_class->process = gst_lm_lookup_process;
  filter_class->get_src_caps = gst_lm_attach_get_src_caps;

  install_property (object_class, PROP_NGRAM_MIN, "Shortest n-gram",
      "Propose where at least this many tokens stood before",
      RUNNEL_LOOKUP_MAX_NGRAM, DEFAULT_NGRAM_MIN);
  install_property (object_class, PROP_NGRAM_MAX, "Longest n-gram",
      "Compare at most this many tokens, to find the place that is most alike",
      RUNNEL_LOOKUP_MAX_NGRAM, DEFAULT_NGRAM_MAX);
  install_property (object_class, PROP_LOOKUP_MAX, "Longest proposal",
      "Propose at most this many tokens; lmdecode may verify fewer",
      RUNNEL_MAX_DRAFT, DEFAULT_LOOKUP_MAX);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model lookup drafter", "Filter/Text",
      "Attaches a drafter that looks the last tokens up in prompt and reply",
      "The Runnel developers");
}

static void
gst_lm_lookup_init (GstLmLookup *self)
{
  self->values[PROP_NGRAM_MIN] = DEFAULT_NGRAM_MIN;
  self->values[PROP_NGRAM_MAX] = DEFAULT_NGRAM_MAX;
  self->values[PROP_LOOKUP_MAX] = DEFAULT_LOOKUP_MAX;
}
