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
 * The file is opened in NULL→READY and loaded in a thread from then on; the
 * first request waits for it. What it takes counts in lmprefill's max-memory
 * once it is attached; the max-memory here keeps it from being loaded at all.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Name a river." ! lmchat \
 *     ! lmtokenize model=$MODEL ! lmdraft draft=$DRAFT ! lmprefill \
 *     ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink
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
  PROP_MAX_MEMORY,
  N_PROPS,                      /* the others are of the base class */
};

struct _GstLmDraft {
  GstLmFilter parent;

  GstLmModelHolder *holder;     /* of the draft */
  guint64 max_memory;           /* object lock */
  RunnelDrafter *drafter;       /* of the draft that is loaded; object lock */
};

G_DECLARE_FINAL_TYPE (GstLmDraft, gst_lm_draft, GST, LM_DRAFT, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmDraft, gst_lm_draft, GST_TYPE_LM_FILTER,
    GST_DEBUG_CATEGORY_INIT (lm_draft_debug, "lmdraft", 0,
        "Runnel draft model"))
GST_ELEMENT_REGISTER_DEFINE (lmdraft, "lmdraft", GST_RANK_NONE,
    gst_lm_draft_get_type ())

/* ---- Loading ------------------------------------------------------------- */

/* In the holder's thread. Weights are kept by the kind of device, not by
 * threads, of which none is needed for what is used in the file. */
static gboolean
load (RunnelModel *model, RunnelProgressFunc progress, gpointer progress_data,
      GCancellable *cancellable, gpointer user_data, GError **error)
{
  GstLmDraft *self = user_data;
  g_autoptr (RunnelDrafter) drafter = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  guint64 max_memory;

  GST_OBJECT_LOCK (self);
  max_memory = self->max_memory;
  GST_OBJECT_UNLOCK (self);
  drafter = runnel_dflash_drafter_new (model, error);
  backend = drafter ? runnel_backend_get ("auto", 1, NULL, error) : NULL;
  if (!backend || !runnel_dflash_drafter_load (RUNNEL_DFLASH_DRAFTER (drafter),
          backend, max_memory, progress, progress_data, cancellable, error))
    return FALSE;
  GST_OBJECT_LOCK (self);
  g_set_object (&self->drafter, drafter);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

/* A file that is no draft is as bad as one that is no model. */
static gboolean
check_draft (GstLmDraft *self)
{
  g_autofree char *path = gst_lm_model_holder_dup_path (self->holder);
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelDrafter) drafter = NULL;
  g_autoptr (GError) error = NULL;

  if (!path)
    return TRUE;
  model = gst_lm_model_get (path, RUNNEL_LOAD_MODE_AUTO, &error);
  drafter = model ? runnel_dflash_drafter_new (model, &error) : NULL;
  if (!drafter)
    gst_lm_element_post_error (GST_ELEMENT (self), error);
  return drafter != NULL;
}

static void
drop_drafter (GstLmDraft *self)
{
  RunnelDrafter *drafter;

  GST_OBJECT_LOCK (self);
  drafter = g_steal_pointer (&self->drafter);
  GST_OBJECT_UNLOCK (self);
  g_clear_object (&drafter);
}

static GstStateChangeReturn
gst_lm_draft_change_state (GstElement *element, GstStateChange transition)
{
  GstLmDraft *self = GST_LM_DRAFT (element);
  GstStateChangeReturn ret;

  if ((transition == GST_STATE_CHANGE_NULL_TO_READY && !check_draft (self))
      || !gst_lm_model_holder_prepare_change (self->holder, transition))
    return GST_STATE_CHANGE_FAILURE;
  ret = GST_ELEMENT_CLASS (gst_lm_draft_parent_class)->change_state (element,
      transition);
  if (ret == GST_STATE_CHANGE_FAILURE)
    return ret;
  gst_lm_model_holder_finish_change (self->holder, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    drop_drafter (self);
  return ret;
}

/* A flush begins or ends: nobody waits meanwhile. */
static void
gst_lm_draft_unlock (GstLmFilter *filter)
{
  gst_lm_model_holder_set_flushing (GST_LM_DRAFT (filter)->holder, TRUE);
}

static void
gst_lm_draft_reset (GstLmFilter *filter, gboolean hard)
{
  if (!hard)
    gst_lm_model_holder_set_flushing (GST_LM_DRAFT (filter)->holder, FALSE);
}

/* ---- Requests ------------------------------------------------------------ */

static GstFlowReturn
gst_lm_draft_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmDraft *self = GST_LM_DRAFT (filter);
  g_autoptr (RunnelModel) model
      = gst_lm_model_holder_dup_own_model (self->holder);
  g_autoptr (RunnelDrafter) drafter = NULL;
  g_autoptr (GError) error = NULL;
  GstFlowReturn ret = GST_FLOW_OK;

  if (!model) {
    g_set_error (&error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "%s has no draft model; name its file by 'draft'",
        GST_OBJECT_NAME (self));
    return gst_lm_filter_fail (filter, buffer, error);
  }
  ret = gst_lm_model_holder_wait (self->holder, NULL);
  if (ret != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return ret;
  }
  GST_OBJECT_LOCK (self);
  drafter = g_object_ref (self->drafter);
  GST_OBJECT_UNLOCK (self);
  return gst_lm_attach_drafter (filter, buffer, drafter, NULL);
}

/* ---- The element --------------------------------------------------------- */

static void
gst_lm_draft_set_property (GObject *object, guint id, const GValue *value,
                           GParamSpec *pspec)
{
  GstLmDraft *self = GST_LM_DRAFT (object);

  switch (id) {
    case PROP_DRAFT:
      gst_lm_model_holder_set_path (self->holder, g_value_get_string (value));
      break;
    case PROP_MAX_MEMORY:
      GST_OBJECT_LOCK (self);
      self->max_memory = g_value_get_uint64 (value);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_CLASS (gst_lm_draft_parent_class)->set_property (object, id,
          value, pspec);
  }
}

static void
gst_lm_draft_get_property (GObject *object, guint id, GValue *value,
                           GParamSpec *pspec)
{
  GstLmDraft *self = GST_LM_DRAFT (object);

  switch (id) {
    case PROP_DRAFT:
      g_value_take_string (value, gst_lm_model_holder_dup_path (self->holder));
      break;
    case PROP_MAX_MEMORY:
      GST_OBJECT_LOCK (self);
      g_value_set_uint64 (value, self->max_memory);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_CLASS (gst_lm_draft_parent_class)->get_property (object, id,
          value, pspec);
  }
}

static void
gst_lm_draft_finalize (GObject *object)
{
  GstLmDraft *self = GST_LM_DRAFT (object);

  g_clear_object (&self->holder);   /* joins its thread */
  g_clear_object (&self->drafter);
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
  element_class->change_state = gst_lm_draft_change_state;
  filter_class->process = gst_lm_draft_process;
  filter_class->unlock = gst_lm_draft_unlock;
  filter_class->reset = gst_lm_draft_reset;
  filter_class->get_src_caps = gst_lm_attach_get_src_caps;

  g_object_class_install_property (object_class, PROP_DRAFT,
      g_param_spec_string ("draft", "Draft model",
          "Package, GGUF file or Hugging Face folder of a DFlash draft that "
          "was made for the model", NULL, G_PARAM_READWRITE
          | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (object_class, PROP_MAX_MEMORY,
      g_param_spec_uint64 ("max-memory", "Max memory",
          "Bytes that the weights of the draft may take (0 = no limit)", 0,
          G_MAXUINT64, 0, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
          | GST_PARAM_MUTABLE_READY));

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
  self->holder = gst_lm_model_holder_new (GST_ELEMENT (self), 0);
  gst_lm_model_holder_set_load_func (self->holder, load, self);
}
