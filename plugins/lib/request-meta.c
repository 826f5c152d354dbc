/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "request-meta.h"

#include <math.h>

/**
 * gst_lm_request_meta_api_get_type:
 *
 * The API of the meta of a request.
 *
 * Returns: the type of the API
 *
 * Since: 0.1
 */
GType
gst_lm_request_meta_api_get_type (void)
{
  static gsize type = 0;
  static const gchar *tags[] = { NULL };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, gst_meta_api_type_register ("GstLmRequestMetaAPI", tags));
  return type;
}

static gboolean
request_meta_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  GstLmRequestMeta *self = (GstLmRequestMeta *) meta;

  self->id = 0;
  self->overrides = NULL;
  self->deadline = GST_CLOCK_TIME_NONE;
  self->drafters = NULL;
  self->model = NULL;
  self->is_reply = FALSE;
  self->finish_reason = RUNNEL_FINISH_REASON_NONE;
  self->prompt_tokens = 0;
  self->completion_tokens = 0;
  self->cached_tokens = 0;
  self->draft_blocks = 0;
  self->proposed_tokens = 0;
  self->accepted_tokens = 0;
  self->draft_time = 0;
  self->verify_time = 0;
  self->generation_prompt = -1;
  self->error = NULL;
  return TRUE;
}

static void
request_meta_free (GstMeta *meta, GstBuffer *buffer)
{
  GstLmRequestMeta *self = (GstLmRequestMeta *) meta;

  g_clear_pointer (&self->overrides, gst_structure_free);
  g_clear_pointer (&self->drafters, g_ptr_array_unref);
  g_clear_object (&self->model);
  g_clear_pointer (&self->error, g_free);
}

static GPtrArray *
copy_drafters (GPtrArray *drafters)
{
  if (drafters == NULL)
    return NULL;
  return g_ptr_array_copy (drafters, (GCopyFunc) (void (*) (void)) g_object_ref,
                           NULL);
}

static void
copy_fields (GstLmRequestMeta *self, const GstLmRequestMeta *from)
{
  self->id = from->id;
  self->overrides =
      from->overrides != NULL ? gst_structure_copy (from->overrides) : NULL;
  self->deadline = from->deadline;
  self->drafters = copy_drafters (from->drafters);
  g_set_object (&self->model, from->model);
  self->is_reply = from->is_reply;
  self->finish_reason = from->finish_reason;
  self->prompt_tokens = from->prompt_tokens;
  self->completion_tokens = from->completion_tokens;
  self->cached_tokens = from->cached_tokens;
  self->draft_blocks = from->draft_blocks;
  self->proposed_tokens = from->proposed_tokens;
  self->accepted_tokens = from->accepted_tokens;
  self->draft_time = from->draft_time;
  self->verify_time = from->verify_time;
  self->generation_prompt = from->generation_prompt;
  self->error = g_strdup (from->error);
}

/**
 * gst_lm_request_meta_copy:
 * @self: a request meta
 *
 * What a meta says, apart from its buffer.
 *
 * Returns: (transfer full): the copy
 *
 * Since: 0.1
 */
GstLmRequestMeta *
gst_lm_request_meta_copy (const GstLmRequestMeta *self)
{
  GstLmRequestMeta *copy = g_new0 (GstLmRequestMeta, 1);

  copy_fields (copy, self);
  return copy;
}

/**
 * gst_lm_request_meta_free: (skip)
 * @self: a copy made by gst_lm_request_meta_copy()
 *
 * Frees a copy.
 *
 * Since: 0.1
 */
void
gst_lm_request_meta_free (GstLmRequestMeta *self)
{
  request_meta_free (&self->meta, NULL);
  g_free (self);
}

/* Bindings copy what they get: a meta of their own outlives its buffer. */
G_DEFINE_BOXED_TYPE (GstLmRequestMeta, gst_lm_request_meta,
                     gst_lm_request_meta_copy, gst_lm_request_meta_free)

static gboolean
request_meta_transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer,
                        GQuark type, gpointer data)
{
  GstLmRequestMeta *copy;

  if (!GST_META_TRANSFORM_IS_COPY (type))
    return FALSE;
  if (gst_lm_buffer_get_request_meta (dest) != NULL)
    return TRUE;
  copy = (GstLmRequestMeta *) gst_buffer_add_meta (
      dest, GST_LM_REQUEST_META_INFO, NULL);
  copy_fields (copy, (GstLmRequestMeta *) meta);
  return TRUE;
}

/**
 * gst_lm_request_meta_get_info:
 *
 * How the meta of a request is made and copied.
 *
 * Returns: (transfer none): the registered implementation
 *
 * Since: 0.1
 */
const GstMetaInfo *
gst_lm_request_meta_get_info (void)
{
  static const GstMetaInfo *info = NULL;

  if (g_once_init_enter ((GstMetaInfo **) &info))
    g_once_init_leave (
        (GstMetaInfo **) &info,
        (GstMetaInfo *) gst_meta_register (
            GST_LM_REQUEST_META_API_TYPE, "GstLmRequestMetaImpl",
            sizeof (GstLmRequestMeta), request_meta_init, request_meta_free,
            request_meta_transform));
  return info;
}

/**
 * gst_lm_request_id_new:
 *
 * An id that no other request of this process has.
 *
 * Returns: the id, never 0
 *
 * Since: 0.1
 */
guint64
gst_lm_request_id_new (void)
{
  static GMutex lock;
  static guint64 last = 0;
  guint64 id;

  g_mutex_lock (&lock);
  id = ++last;
  g_mutex_unlock (&lock);
  return id;
}

/**
 * gst_lm_buffer_add_request_meta:
 * @buffer: a writable buffer without the meta
 * @id: the request's id; 0: a new one
 *
 * Makes a buffer a part of a request.
 *
 * Returns: (transfer none): the meta
 *
 * Since: 0.1
 */
GstLmRequestMeta *
gst_lm_buffer_add_request_meta (GstBuffer *buffer, guint64 id)
{
  GstLmRequestMeta *self;

  g_return_val_if_fail (gst_buffer_is_writable (buffer), NULL);
  g_return_val_if_fail (gst_lm_buffer_get_request_meta (buffer) == NULL, NULL);

  self = (GstLmRequestMeta *) gst_buffer_add_meta (
      buffer, GST_LM_REQUEST_META_INFO, NULL);
  self->id = id != 0 ? id : gst_lm_request_id_new ();
  return self;
}

/**
 * gst_lm_buffer_get_request_meta:
 * @buffer: a buffer
 *
 * What is said about the buffer's request.
 *
 * Returns: (transfer none) (nullable): the meta
 *
 * Since: 0.1
 */
GstLmRequestMeta *
gst_lm_buffer_get_request_meta (GstBuffer *buffer)
{
  return (GstLmRequestMeta *) gst_buffer_get_meta (
      buffer, GST_LM_REQUEST_META_API_TYPE);
}

/**
 * gst_lm_buffer_ensure_request_meta:
 * @buffer: (inout) (transfer full): a buffer; replaced by a writable one when
 *   it lacks the meta
 *
 * Gives a buffer that belongs to no request a new request's meta.
 *
 * Returns: (transfer none): the meta
 *
 * Since: 0.1
 */
GstLmRequestMeta *
gst_lm_buffer_ensure_request_meta (GstBuffer **buffer)
{
  GstLmRequestMeta *self = gst_lm_buffer_get_request_meta (*buffer);

  if (self != NULL)
    return self;
  *buffer = gst_buffer_make_writable (*buffer);
  return gst_lm_buffer_add_request_meta (*buffer, 0);
}

/**
 * gst_lm_buffer_copy_request_meta:
 * @buffer: a writable buffer without the meta
 * @from: a buffer of the same request
 *
 * Makes a buffer a part of another one's request.
 *
 * Returns: (transfer none) (nullable): the copy, or %NULL when @from has no
 *   request meta
 *
 * Since: 0.1
 */
GstLmRequestMeta *
gst_lm_buffer_copy_request_meta (GstBuffer *buffer, GstBuffer *from)
{
  GstLmRequestMeta *source = gst_lm_buffer_get_request_meta (from);
  GstLmRequestMeta *self;

  if (source == NULL)
    return NULL;
  self = gst_lm_buffer_add_request_meta (buffer, source->id);
  if (self != NULL)
    copy_fields (self, source);
  return self;
}

/**
 * gst_lm_buffer_has_ended:
 * @buffer: a buffer on its way to generation
 *
 * Whether the buffer's request ended before generation: it failed, or there
 * is nothing to reply to. Such a buffer is passed on without work, see
 * gst_lm_buffer_new_ended().
 *
 * Returns: %TRUE if it has
 *
 * Since: 0.1
 */
gboolean
gst_lm_buffer_has_ended (GstBuffer *buffer)
{
  GstLmRequestMeta *self = gst_lm_buffer_get_request_meta (buffer);

  return self != NULL && !self->is_reply &&
         self->finish_reason != RUNNEL_FINISH_REASON_NONE;
}

/**
 * gst_lm_request_meta_set_overrides: (skip)
 * @self: the meta of a buffer that was not pushed yet
 * @overrides: (nullable): typed fields, named as properties
 *
 * Sets parameters for this request alone. The structure's name does not
 * matter. Fields are checked by the elements that read them, against the
 * properties of the same names.
 *
 * Since: 0.1
 */
void
gst_lm_request_meta_set_overrides (GstLmRequestMeta *self,
                                   const GstStructure *overrides)
{
  g_return_if_fail (self != NULL);

  g_clear_pointer (&self->overrides, gst_structure_free);
  if (overrides != NULL)
    self->overrides = gst_structure_copy (overrides);
}

/**
 * gst_lm_buffer_set_overrides:
 * @buffer: a writable buffer that was not pushed yet
 * @overrides: (nullable): typed fields, named as properties
 *
 * Sets parameters for the request that the buffer is, and makes it one if it
 * is none: gst_lm_request_meta_set_overrides() for languages in which metas
 * are copies.
 *
 * Since: 0.1
 */
void
gst_lm_buffer_set_overrides (GstBuffer *buffer, const GstStructure *overrides)
{
  GstLmRequestMeta *self = gst_lm_buffer_get_request_meta (buffer);

  if (self == NULL)
    self = gst_lm_buffer_add_request_meta (buffer, 0);
  gst_lm_request_meta_set_overrides (self, overrides);
}

/**
 * gst_lm_request_meta_set_model: (skip)
 * @self: the meta of a buffer that was not pushed yet
 * @model: (nullable): the model of its tokens or state
 *
 * Says which model tokens or a state belong to.
 *
 * Since: 0.1
 */
void
gst_lm_request_meta_set_model (GstLmRequestMeta *self, RunnelModel *model)
{
  g_return_if_fail (self != NULL);

  g_set_object (&self->model, model);
}

/**
 * gst_lm_request_meta_add_drafter: (skip)
 * @self: the meta of a buffer that was not pushed yet
 * @drafter: a drafter
 *
 * Attaches a drafter to the request.
 *
 * Since: 0.1
 */
void
gst_lm_request_meta_add_drafter (GstLmRequestMeta *self,
                                 RunnelDrafter *drafter)
{
  g_return_if_fail (self != NULL);
  g_return_if_fail (RUNNEL_IS_DRAFTER (drafter));

  if (self->drafters == NULL)
    self->drafters = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (self->drafters, g_object_ref (drafter));
}

/**
 * gst_lm_request_meta_set_error: (skip)
 * @self: the meta of a buffer that was not pushed yet
 * @message: what went wrong
 *
 * Marks the request as failed.
 *
 * Since: 0.1
 */
void
gst_lm_request_meta_set_error (GstLmRequestMeta *self, const gchar *message)
{
  g_return_if_fail (self != NULL);

  self->finish_reason = RUNNEL_FINISH_REASON_ERROR;
  g_free (self->error);
  self->error = g_strdup (message);
}

/**
 * gst_lm_request_meta_has_override:
 * @self: (nullable): the request
 * @name: a property's name
 *
 * Whether a request brings its own value of a parameter.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gst_lm_request_meta_has_override (const GstLmRequestMeta *self,
                                  const gchar *name)
{
  return self != NULL && self->overrides != NULL &&
         gst_structure_has_field (self->overrides, name);
}

static gboolean
is_integer (const GValue *value)
{
  return G_VALUE_HOLDS_INT (value) || G_VALUE_HOLDS_UINT (value) ||
         G_VALUE_HOLDS_INT64 (value) || G_VALUE_HOLDS_UINT64 (value) ||
         G_VALUE_HOLDS_LONG (value) || G_VALUE_HOLDS_ULONG (value);
}

static gboolean
is_float (const GValue *value)
{
  return G_VALUE_HOLDS_DOUBLE (value) || G_VALUE_HOLDS_FLOAT (value);
}

/* Whole numbers only, and none that another width would change: transforming
 * alone makes -1 a large unsigned number. */
static gboolean
convert_integer (const GValue *given, GValue *value)
{
  g_auto (GValue) back = G_VALUE_INIT;
  g_auto (GValue) here = G_VALUE_INIT;

  g_value_init (&here, G_TYPE_DOUBLE);
  g_value_init (&back, G_TYPE_DOUBLE);
  if (!g_value_transform (given, &here) || !g_value_transform (given, value) ||
      !g_value_transform (value, &back))
    return FALSE;
  return g_value_get_double (&here) == g_value_get_double (&back);
}

static void
append_string (GValue *array, const gchar *string)
{
  GValue item = G_VALUE_INIT;

  g_value_init (&item, G_TYPE_STRING);
  g_value_set_string (&item, string);
  gst_value_array_append_and_take_value (array, &item);
}

/* What scripts have for an array: a list, a string vector, a single string. */
static gboolean
convert_array (const GValue *given, GValue *array)
{
  if (GST_VALUE_HOLDS_LIST (given))
    {
      for (guint i = 0; i < gst_value_list_get_size (given); i++)
        gst_value_array_append_value (array,
                                      gst_value_list_get_value (given, i));
      return TRUE;
    }
  if (G_VALUE_HOLDS (given, G_TYPE_STRV))
    {
      gchar **strings = g_value_get_boxed (given);

      for (guint i = 0; strings != NULL && strings[i] != NULL; i++)
        append_string (array, strings[i]);
      return TRUE;
    }
  if (!G_VALUE_HOLDS_STRING (given) || g_value_get_string (given) == NULL)
    return FALSE;
  append_string (array, g_value_get_string (given));
  return TRUE;
}

static gboolean
convert_override (const GValue *given, GValue *value)
{
  if (G_VALUE_TYPE (given) == G_VALUE_TYPE (value))
    {
      g_value_copy (given, value);
      return TRUE;
    }
  if (GST_VALUE_HOLDS_ARRAY (value))
    return convert_array (given, value);
  if (is_integer (value))
    return (is_integer (given) || is_float (given)) &&
           convert_integer (given, value);
  if (is_float (value))
    return (is_integer (given) || is_float (given)) &&
           g_value_transform (given, value);
  if (G_VALUE_HOLDS_STRING (given))
    return gst_value_deserialize (value, g_value_get_string (given));
  if (G_VALUE_HOLDS_BOOLEAN (value) || G_VALUE_HOLDS_STRING (value))
    return FALSE;
  return g_value_transform (given, value);
}

static gchar *
describe_range (GParamSpec *pspec)
{
  if (G_IS_PARAM_SPEC_INT (pspec))
    return g_strdup_printf ("an integer from %d to %d",
                            G_PARAM_SPEC_INT (pspec)->minimum,
                            G_PARAM_SPEC_INT (pspec)->maximum);
  if (G_IS_PARAM_SPEC_UINT (pspec))
    return g_strdup_printf ("an integer from %u to %u",
                            G_PARAM_SPEC_UINT (pspec)->minimum,
                            G_PARAM_SPEC_UINT (pspec)->maximum);
  if (G_IS_PARAM_SPEC_UINT64 (pspec))
    return g_strdup_printf ("an integer from %" G_GUINT64_FORMAT " to %"
                            G_GUINT64_FORMAT,
                            G_PARAM_SPEC_UINT64 (pspec)->minimum,
                            G_PARAM_SPEC_UINT64 (pspec)->maximum);
  if (G_IS_PARAM_SPEC_DOUBLE (pspec))
    return g_strdup_printf ("a number from %g to %g",
                            G_PARAM_SPEC_DOUBLE (pspec)->minimum,
                            G_PARAM_SPEC_DOUBLE (pspec)->maximum);
  return g_strdup_printf ("a %s", g_type_name (pspec->value_type));
}

static gboolean
is_nan (const GValue *value)
{
  return G_VALUE_HOLDS_DOUBLE (value) && isnan (g_value_get_double (value));
}

/**
 * gst_lm_request_meta_get_parameter:
 * @self: (nullable): the request
 * @element: the element that reads the parameter
 * @name: name of one of its properties
 * @ret_value: (out caller-allocates): an unset value; of the property's type
 *   afterwards
 * @error: return location for a #GError
 *
 * The value of a parameter for this request: its own, checked against the
 * property's type and range, or else the element's property.
 *
 * Returns: %FALSE with %RUNNEL_ERROR_INVALID_ARGUMENT when the request's value
 *   is of a wrong type or out of range
 *
 * Since: 0.1
 */
gboolean
gst_lm_request_meta_get_parameter (const GstLmRequestMeta *self,
                                   GObject *element, const gchar *name,
                                   GValue *ret_value, GError **error)
{
  GParamSpec *pspec;
  const GValue *given;
  g_auto (GValue) value = G_VALUE_INIT;

  pspec = g_object_class_find_property (G_OBJECT_GET_CLASS (element), name);
  g_return_val_if_fail (pspec != NULL, FALSE);

  g_value_init (&value, pspec->value_type);
  if (!gst_lm_request_meta_has_override (self, name))
    g_object_get_property (element, name, &value);
  else
    {
      given = gst_structure_get_value (self->overrides, name);
      if (!convert_override (given, &value) || is_nan (&value) ||
          g_param_value_validate (pspec, &value))
        {
          g_autofree gchar *text = gst_value_serialize (given);
          g_autofree gchar *range = describe_range (pspec);

          g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                       "request %" G_GUINT64_FORMAT ": override %s=%s is not "
                       "%s",
                       self->id, name, text != NULL ? text : "?", range);
          return FALSE;
        }
    }
  g_value_init (ret_value, pspec->value_type);
  g_value_copy (&value, ret_value);
  return TRUE;
}
