/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmdraft
 * @title: lmdraft
 * @see_also: lmlookup, lmprefill, lmdecode
 *
 * Attaches a draft model to requests: a DFlash draft, of version 1 or 2, which
 * guesses a block of tokens from what the model itself has computed, and
 * lmdecode verifies them in one pass. Replies stay the same. The draft must
 * have been made for the model that reads the prompt. It stands before
 * lmprefill, tokens pass unchanged.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Name a river." ! lmchat ! lmtokenize model=$MODEL ! lmdraft draft=$DRAFT ! lmprefill ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink
 * ]|
 */

#include <gstrunnel.h>
#include "elements.h"

#include "lmattach.h"

GST_DEBUG_CATEGORY_STATIC (lm_draft_debug);
#define GST_CAT_DEFAULT lm_draft_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

enum {
  PROP_DRAFT = 1,
  N_PROPS,                      /* the others are of the base class */
};

struct _GstLmDraft {
  GstLmFilter parent;

  char *draft;                  /* object lock */

  /* streaming thread */
  RunnelDrafter *drafter;       /* of the last request, or NULL */
  char *used;                   /* its file */
};

G_DECLARE_FINAL_TYPE (GstLmDraft, gst_lm_draft, GST, LM_DRAFT, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmDraft, gst_lm_draft, GST_TYPE_LM_FILTER,
    GST_DEBUG_CATEGORY_INIT (lm_draft_debug, "lmdraft", 0,
        "Runnel draft model"))
GST_ELEMENT_REGISTER_DEFINE (lmdraft, "lmdraft", GST_RANK_NONE,
    gst_lm_draft_get_type ())

static RunnelDrafter *
open_drafter (const char *path, GError **error)
{
  g_autoptr (RunnelModel) model = NULL;

  if (!path || !*path) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "lmdraft has no draft model; name its file by 'draft'");
    return NULL;
  }
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_AUTO, error);
  return model ? runnel_dflash_drafter_new (model, error) : NULL;
}

/* The drafter of the file that is set, borrowed. */
static RunnelDrafter *
get_drafter (GstLmDraft *self, GError **error)
{
  g_autofree char *path = NULL;
  RunnelDrafter *drafter;

  GST_OBJECT_LOCK (self);
  path = g_strdup (self->draft);
  GST_OBJECT_UNLOCK (self);
  if (self->drafter && g_strcmp0 (path, self->used) == 0)
    return self->drafter;
  drafter = open_drafter (path, error);
  if (!drafter)
    return NULL;
  g_set_object (&self->drafter, drafter);
  g_object_unref (drafter);
  g_free (self->used);
  self->used = g_steal_pointer (&path);
  return self->drafter;
}

static GstFlowReturn
gst_lm_draft_process (GstLmFilter *filter, GstBuffer *buffer)
{
  g_autoptr (GError) error = NULL;
  RunnelDrafter *drafter = get_drafter (GST_LM_DRAFT (filter), &error);

  return gst_lm_attach_drafter (filter, buffer, drafter, error);
}

static void
gst_lm_draft_set_property (GObject *object, guint id, const GValue *value,
                           GParamSpec *pspec)
{
  GstLmDraft *self = GST_LM_DRAFT (object);

  if (id != PROP_DRAFT) {
    G_OBJECT_CLASS (gst_lm_draft_parent_class)->set_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  g_free (self->draft);
  self->draft = g_value_dup_string (value);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_draft_get_property (GObject *object, guint id, GValue *value,
                           GParamSpec *pspec)
{
  if (id != PROP_DRAFT) {
    G_OBJECT_CLASS (gst_lm_draft_parent_class)->get_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (object);
  g_value_set_string (value, GST_LM_DRAFT (object)->draft);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_lm_draft_finalize (GObject *object)
{
  GstLmDraft *self = GST_LM_DRAFT (object);

  g_clear_object (&self->drafter);
  g_free (self->draft);
  g_free (self->used);
  G_OBJECT_CLASS (gst_lm_draft_parent_class)->finalize (object);
}

static void
gst_lm_draft_class_init (GstLmDraftClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_draft_set_property;
  object_class->get_property = gst_lm_draft_get_property;
  object_class->finalize = gst_lm_draft_finalize;
  filter_class->process = gst_lm_draft_process;
  filter_class->get_src_caps = gst_lm_attach_get_src_caps;

  g_object_class_install_property (object_class, PROP_DRAFT,
      g_param_spec_string ("draft", "Draft model",
          "GGUF file or Hugging Face folder of a DFlash draft that was made "
          "for the model", NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
          | GST_PARAM_MUTABLE_PLAYING));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model draft", "Filter/Text",
      "Attaches a draft model that guesses blocks of tokens",
      "The Runnel developers");
}

static void
gst_lm_draft_init (GstLmDraft *self)
{
}
