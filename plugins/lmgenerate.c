/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmgenerate
 * @title: lmgenerate
 * @see_also: lmchat, lmtokenize, lmprefill, lmdecode, lmdetokenize
 *
 * Text or chat messages in, the model's reply out: lmchat, lmtokenize,
 * lmprefill, lmdecode and lmdetokenize in one bin. A property of the bin is
 * the property of that name of every element in it that has one; its output is
 * that of the elements linked by hand.
 *
 * ## Example launch line
 * |[
 * echo "What is the capital of Italy?" | gst-launch-1.0 -q fdsrc \
 *     ! lmgenerate model=$MODEL framing=stream ! fdsink
 * ]|
 */

#include <gstrunnel.h>
#include "elements.h"

GST_DEBUG_CATEGORY_STATIC (lm_generate_debug);
#define GST_CAT_DEFAULT lm_generate_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_LM_CAPS_TEXT "; " GST_LM_CAPS_JSON));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

#define N_CHILDREN 5

static const char *const child_factories[N_CHILDREN] = {
  "lmchat", "lmtokenize", "lmprefill", "lmdecode", "lmdetokenize"
};

struct _GstLmGenerate {
  GstBin parent;

  GstElement *children[N_CHILDREN];     /* borrowed from the bin */
};

G_DECLARE_FINAL_TYPE (GstLmGenerate, gst_lm_generate, GST, LM_GENERATE, GstBin)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmGenerate, gst_lm_generate, GST_TYPE_BIN,
    G_IMPLEMENT_INTERFACE (GST_TYPE_PRESET, NULL)
    GST_DEBUG_CATEGORY_INIT (lm_generate_debug, "lmgenerate", 0,
        "Runnel text in, text out"))
GST_ELEMENT_REGISTER_DEFINE (lmgenerate, "lmgenerate", GST_RANK_NONE,
    gst_lm_generate_get_type ())

/* Elements after the first take one buffer for one request, whatever way the
 * bin's input is framed. */
static gboolean
takes_property (guint child, const char *name)
{
  return child == 0 || g_strcmp0 (name, "framing") != 0;
}

static GParamSpec *
find_property (guint child, GObjectClass *klass, const char *name)
{
  GParamSpec *spec = g_object_class_find_property (klass, name);

  return spec && g_type_is_a (spec->owner_type, GST_TYPE_LM_FILTER)
      && takes_property (child, name) ? spec : NULL;
}

static void
gst_lm_generate_set_property (GObject *object, guint id, const GValue *value,
                              GParamSpec *pspec)
{
  GstLmGenerate *self = GST_LM_GENERATE (object);

  for (guint i = 0; i < N_CHILDREN; i++)
    if (self->children[i] && find_property (i,
            G_OBJECT_GET_CLASS (self->children[i]), pspec->name))
      g_object_set_property (G_OBJECT (self->children[i]), pspec->name, value);
}

static void
gst_lm_generate_get_property (GObject *object, guint id, GValue *value,
                              GParamSpec *pspec)
{
  GstLmGenerate *self = GST_LM_GENERATE (object);

  for (guint i = 0; i < N_CHILDREN; i++)
    if (self->children[i] && find_property (i,
            G_OBJECT_GET_CLASS (self->children[i]), pspec->name)) {
      g_object_get_property (G_OBJECT (self->children[i]), pspec->name, value);
      return;
    }
}

/* The same property for another class: a flat switch over the types that the
 * elements use. */
static GParamSpec *
copy_spec (GParamSpec *spec)
{
  const char *name = spec->name;
  const char *nick = g_param_spec_get_nick (spec);
  const char *blurb = g_param_spec_get_blurb (spec);
  const GValue *initial = g_param_spec_get_default_value (spec);
  GType type = G_PARAM_SPEC_VALUE_TYPE (spec);
  GParamFlags flags = spec->flags;

  if (G_IS_PARAM_SPEC_BOOLEAN (spec))
    return g_param_spec_boolean (name, nick, blurb,
        g_value_get_boolean (initial), flags);
  if (G_IS_PARAM_SPEC_INT (spec))
    return g_param_spec_int (name, nick, blurb,
        G_PARAM_SPEC_INT (spec)->minimum, G_PARAM_SPEC_INT (spec)->maximum,
        g_value_get_int (initial), flags);
  if (G_IS_PARAM_SPEC_UINT (spec))
    return g_param_spec_uint (name, nick, blurb,
        G_PARAM_SPEC_UINT (spec)->minimum, G_PARAM_SPEC_UINT (spec)->maximum,
        g_value_get_uint (initial), flags);
  if (G_IS_PARAM_SPEC_UINT64 (spec))
    return g_param_spec_uint64 (name, nick, blurb,
        G_PARAM_SPEC_UINT64 (spec)->minimum,
        G_PARAM_SPEC_UINT64 (spec)->maximum, g_value_get_uint64 (initial),
        flags);
  if (G_IS_PARAM_SPEC_DOUBLE (spec))
    return g_param_spec_double (name, nick, blurb,
        G_PARAM_SPEC_DOUBLE (spec)->minimum,
        G_PARAM_SPEC_DOUBLE (spec)->maximum, g_value_get_double (initial),
        flags);
  if (G_IS_PARAM_SPEC_STRING (spec))
    return g_param_spec_string (name, nick, blurb,
        g_value_get_string (initial), flags);
  if (G_IS_PARAM_SPEC_ENUM (spec))
    return g_param_spec_enum (name, nick, blurb, type,
        g_value_get_enum (initial), flags);
  if (G_IS_PARAM_SPEC_BOXED (spec))
    return g_param_spec_boxed (name, nick, blurb, type, flags);
  if (G_IS_PARAM_SPEC_OBJECT (spec))
    return g_param_spec_object (name, nick, blurb, type, flags);
  if (GST_IS_PARAM_SPEC_ARRAY_LIST (spec))
    return gst_param_spec_array (name, nick, blurb,
        GST_PARAM_SPEC_ARRAY_LIST (spec)->element_spec,
        flags);
  g_return_val_if_reached (NULL);
}

/* Every property of every element of the bin, once. */
static void
install_properties (GObjectClass *klass)
{
  const GType types[N_CHILDREN] = {
    gst_lm_chat_get_type (), gst_lm_tokenize_get_type (),
    gst_lm_prefill_get_type (), gst_lm_decode_get_type (),
    gst_lm_detokenize_get_type ()
  };
  guint id = 1;

  for (guint i = 0; i < N_CHILDREN; i++) {
    GObjectClass *child = g_type_class_ref (types[i]);
    g_autofree GParamSpec **specs = NULL;
    guint n_specs;

    specs = g_object_class_list_properties (child, &n_specs);
    for (guint j = 0; j < n_specs; j++)
      if (find_property (i, child, specs[j]->name)
          && !g_object_class_find_property (klass, specs[j]->name))
        g_object_class_install_property (klass, id++, copy_spec (specs[j]));
    g_type_class_unref (child);
  }
}

static void
gst_lm_generate_class_init (GstLmGenerateClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_lm_generate_set_property;
  object_class->get_property = gst_lm_generate_get_property;
  install_properties (object_class);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model", "Filter/Text", "Text or chat messages in, reply out",
      "The Runnel developers");
}

static void
add_ghost_pad (GstLmGenerate *self, GstElement *child, const char *name,
               GstStaticPadTemplate *template)
{
  g_autoptr (GstPad) target = gst_element_get_static_pad (child, name);
  g_autoptr (GstPadTemplate) pad_template =
      gst_static_pad_template_get (template);

  gst_element_add_pad (GST_ELEMENT (self),
      gst_ghost_pad_new_from_template (name, target, pad_template));
}

static void
gst_lm_generate_init (GstLmGenerate *self)
{
  for (guint i = 0; i < N_CHILDREN; i++) {
    const char *name = child_factories[i] + strlen ("lm");

    self->children[i] = gst_element_factory_make (child_factories[i], name);
    gst_bin_add (GST_BIN (self), self->children[i]);
    if (i > 0)
      gst_element_link (self->children[i - 1], self->children[i]);
  }
  add_ghost_pad (self, self->children[0], "sink", &sink_template);
  add_ghost_pad (self, self->children[N_CHILDREN - 1], "src", &src_template);
}
