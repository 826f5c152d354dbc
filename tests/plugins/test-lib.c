/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "element-fixture.h"

#include <math.h>
#include <string.h>

/* ---- Metas -------------------------------------------------------------- */

static void
test_request_meta_copy (void)
{
  g_autoptr (GstBuffer) buffer = element_test_buffer ("abc");
  g_autoptr (GstStructure) overrides =
      gst_structure_new ("o", "seed", G_TYPE_UINT64, (guint64) 7, NULL);
  g_autoptr (RunnelDrafter) drafter =
      runnel_lookup_drafter_new (2, 4, 8, NULL);
  g_autoptr (GstBuffer) copy = NULL;
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, 0), *other;

  g_assert_cmpuint (meta->id, >, 0);
  g_assert_cmpuint (meta->deadline, ==, GST_CLOCK_TIME_NONE);
  gst_lm_request_meta_set_overrides (meta, overrides);
  gst_lm_request_meta_add_drafter (meta, drafter);
  meta->is_reply = TRUE;
  meta->prompt_tokens = 5;
  gst_lm_request_meta_set_error (meta, "because");

  copy = gst_buffer_copy (buffer);
  other = gst_lm_buffer_get_request_meta (copy);
  g_assert_nonnull (other);
  g_assert_true (other != meta);
  g_assert_cmpuint (other->id, ==, meta->id);
  g_assert_true (other->overrides != meta->overrides);
  g_assert_true (gst_structure_is_equal (other->overrides, overrides));
  g_assert_true (other->drafters != meta->drafters);
  g_assert_true (other->drafters->pdata[0] == drafter);
  g_assert_true (other->is_reply);
  g_assert_cmpint (other->finish_reason, ==, RUNNEL_FINISH_REASON_ERROR);
  g_assert_cmpuint (other->prompt_tokens, ==, 5);
  g_assert_cmpstr (other->error, ==, "because");

  gst_lm_request_meta_add_drafter (other, drafter);
  g_assert_cmpuint (meta->drafters->len, ==, 1);
  g_clear_pointer (&copy, gst_buffer_unref);
  g_assert_cmpuint (G_OBJECT (drafter)->ref_count, ==, 2);
}

static void
test_request_meta_ensure (void)
{
  GstBuffer *buffer = element_test_buffer ("abc");
  g_autoptr (GstBuffer) shared = gst_buffer_ref (buffer);
  GstLmRequestMeta *meta = gst_lm_buffer_ensure_request_meta (&buffer);

  g_assert_true (buffer != shared);
  g_assert_null (gst_lm_buffer_get_request_meta (shared));
  g_assert_true (gst_lm_buffer_ensure_request_meta (&buffer) == meta);
  g_assert_cmpuint (gst_lm_request_id_new (), >, meta->id);
  g_assert_false (gst_lm_buffer_has_ended (buffer));
  meta->finish_reason = RUNNEL_FINISH_REASON_STOP;
  g_assert_true (gst_lm_buffer_has_ended (buffer));
  meta->is_reply = TRUE;
  g_assert_false (gst_lm_buffer_has_ended (buffer));
  gst_buffer_unref (buffer);
}

/* ---- Overrides ---------------------------------------------------------- */

typedef struct {
  GObject parent_instance;
} Tunable;
typedef struct {
  GObjectClass parent_class;
} TunableClass;
static GType tunable_get_type (void);
G_DEFINE_TYPE (Tunable, tunable, G_TYPE_OBJECT)

static void
tunable_get_property (GObject *object, guint id, GValue *value,
                      GParamSpec *pspec)
{
  g_param_value_set_default (pspec, value);
}

static void
tunable_class_init (TunableClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamSpec *specs[] = {
    NULL,
    g_param_spec_double ("temperature", "", "", 0, 5, 0.8, G_PARAM_READABLE),
    g_param_spec_uint ("top-k", "", "", 0, 100, 40, G_PARAM_READABLE),
    g_param_spec_int ("max-tokens", "", "", -1, 1000, -1, G_PARAM_READABLE),
    g_param_spec_uint64 ("seed", "", "", 0, G_MAXUINT64, 0, G_PARAM_READABLE),
    g_param_spec_boolean ("special", "", "", FALSE, G_PARAM_READABLE),
    g_param_spec_enum ("framing", "", "", GST_TYPE_LM_FRAMING,
                       GST_LM_FRAMING_BUFFER, G_PARAM_READABLE),
  };

  object_class->get_property = tunable_get_property;
  g_object_class_install_properties (object_class, G_N_ELEMENTS (specs),
                                     specs);
}

static void
tunable_init (Tunable *self)
{
}

/* The value as text, or NULL when it is refused. */
static char *
get_override (const char *name, const char *structure)
{
  g_autoptr (GObject) tunable = g_object_new (tunable_get_type (), NULL);
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, 0);
  g_autoptr (GstStructure) overrides =
      structure != NULL ? gst_structure_from_string (structure, NULL) : NULL;
  g_auto (GValue) value = G_VALUE_INIT;
  g_autoptr (GError) error = NULL;

  gst_lm_request_meta_set_overrides (meta, overrides);
  if (!gst_lm_request_meta_get_parameter (meta, tunable, name, &value, &error))
    {
      g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
      g_assert_nonnull (strstr (error->message, name));
      return NULL;
    }
  g_assert_no_error (error);
  return gst_value_serialize (&value);
}

static void
test_overrides (void)
{
  static const struct {
    const char *name, *structure, *expected;
  } cases[] = {
    { "temperature", NULL, "0.80000000000000004" },
    { "temperature", "o,top-k=1", "0.80000000000000004" },
    { "temperature", "o,temperature=1.5", "1.5" },
    { "temperature", "o,temperature=(int)2", "2" },
    { "temperature", "o,temperature=5.5", NULL },
    { "temperature", "o,temperature=-0.1", NULL },
    { "temperature", "o,temperature=(string)hot", NULL },
    { "top-k", "o,top-k=7", "7" },
    { "top-k", "o,top-k=(double)7", "7" },
    { "top-k", "o,top-k=(double)7.5", NULL },
    { "top-k", "o,top-k=-1", NULL },
    { "top-k", "o,top-k=101", NULL },
    { "top-k", "o,top-k=(gint64)4294967297", NULL },
    { "max-tokens", "o,max-tokens=-1", "-1" },
    { "max-tokens", "o,max-tokens=-2", NULL },
    { "seed", "o,seed=(guint64)18446744073709551615", "18446744073709551615" },
    { "seed", "o,seed=-1", NULL },
    { "special", "o,special=true", "true" },
    { "special", "o,special=(int)1", NULL },
    { "framing", "o,framing=(string)line", "line" },
    { "framing", "o,framing=(string)word", NULL },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *got = get_override (cases[i].name, cases[i].structure);

      if (g_strcmp0 (got, cases[i].expected) != 0)
        g_error ("%s of %s is %s", cases[i].name, cases[i].structure, got);
    }
}

static void
test_override_nan (void)
{
  g_autoptr (GObject) tunable = g_object_new (tunable_get_type (), NULL);
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, 0);
  g_autoptr (GstStructure) overrides =
      gst_structure_new ("o", "temperature", G_TYPE_DOUBLE, NAN, NULL);
  g_auto (GValue) value = G_VALUE_INIT;

  gst_lm_request_meta_set_overrides (meta, overrides);
  g_assert_false (gst_lm_request_meta_get_parameter (
      meta, tunable, "temperature", &value, NULL));
}

static void
test_text_meta_region (void)
{
  g_autoptr (GstBuffer) buffer = element_test_buffer ("0123456789");
  const RunnelTextSpan spans[] = { { 0, 3 }, { 5, 4 } };
  g_autoptr (GstBuffer) whole = NULL;
  g_autoptr (GstBuffer) part = NULL;
  GstLmTextMeta *meta;

  gst_lm_buffer_add_text_meta (buffer, spans, 2);
  whole = gst_buffer_copy (buffer);
  meta = gst_lm_buffer_get_text_meta (whole);
  g_assert_cmpuint (meta->n_spans, ==, 2);
  g_assert_cmpmem (meta->spans, sizeof spans, spans, sizeof spans);

  part = gst_buffer_copy_region (buffer, GST_BUFFER_COPY_ALL, 2, 5);
  meta = gst_lm_buffer_get_text_meta (part);
  g_assert_cmpuint (meta->n_spans, ==, 2);
  g_assert_cmpuint (meta->spans[0].start, ==, 0);
  g_assert_cmpuint (meta->spans[0].length, ==, 1);
  g_assert_cmpuint (meta->spans[1].start, ==, 3);
  g_assert_cmpuint (meta->spans[1].length, ==, 2);
}

static void
test_tokens (void)
{
  const gint32 ids[] = { 1, -1, 70000 };
  const RunnelTokenLogprob top[] = { { 1, -0.5f }, { 2, -1 }, { 3, -2 } };
  const gfloat logprobs[] = { -1, -2, -3 };
  g_autoptr (GstBuffer) buffer = gst_lm_buffer_new_tokens (ids, 3);
  g_autoptr (GstBuffer) empty = gst_lm_buffer_new_tokens (NULL, 0);
  g_autoptr (GstBuffer) odd = element_test_buffer ("abcde");
  g_autoptr (GstBuffer) copy = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *got = NULL;
  g_autofree gint32 *none = NULL;
  GstLmTokensMeta *meta;
  gsize n;

  got = gst_lm_buffer_dup_tokens (buffer, &n, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (got, n * sizeof *got, ids, sizeof ids);
  none = gst_lm_buffer_dup_tokens (empty, &n, &error);
  g_assert_no_error (error);
  g_assert_nonnull (none);
  g_assert_cmpuint (n, ==, 0);
  g_assert_null (gst_lm_buffer_dup_tokens (odd, &n, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);

  gst_lm_buffer_add_tokens_meta (buffer, 12, logprobs, 3, top, 3);
  copy = gst_buffer_copy (buffer);
  meta = gst_lm_buffer_get_tokens_meta (copy);
  g_assert_cmpuint (meta->text_end, ==, 12);
  g_assert_cmpuint (meta->n_logprobs, ==, 3);
  g_assert_cmpint (meta->top[2].token, ==, 3);
}

/* ---- Events ------------------------------------------------------------- */

static void
test_events (void)
{
  g_autoptr (GstEvent) cancel = gst_lm_event_new_cancel (9);
  g_autoptr (GstEvent) reply =
      gst_lm_event_new_reply (10, "text", RUNNEL_FINISH_REASON_LENGTH);
  RunnelFinishReason reason;
  const gchar *text;
  guint64 id;

  g_assert_true (GST_EVENT_IS_UPSTREAM (cancel));
  g_assert_true (gst_lm_event_parse_cancel (cancel, &id));
  g_assert_cmpuint (id, ==, 9);
  g_assert_false (gst_lm_event_parse_reply (cancel, NULL, NULL, NULL));
  g_assert_true (gst_lm_event_parse_reply (reply, &id, &text, &reason));
  g_assert_cmpuint (id, ==, 10);
  g_assert_cmpstr (text, ==, "text");
  g_assert_cmpint (reason, ==, RUNNEL_FINISH_REASON_LENGTH);
  g_assert_false (gst_lm_event_parse_cancel (reply, NULL));
}

/* ---- Framing ------------------------------------------------------------ */

static char *
describe_requests (GstLmTextFramer *framer)
{
  GString *all = g_string_new (NULL);
  guint64 last = 0;
  GstBuffer *request;

  while ((request = gst_lm_text_framer_pull (framer)) != NULL)
    {
      g_autofree char *text = element_test_text (request);
      GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (request);

      g_assert_cmpuint (meta->id, !=, last);
      last = meta->id;
      g_string_append_printf (all, "[%s]", text);
      gst_buffer_unref (request);
    }
  return g_string_free (all, FALSE);
}

/* However the stream is cut, the requests are the same. */
static void
test_framing (void)
{
  static const char *const stream = "one \xf0\x9f\xa6\x99\r\n\ntwo\nthree";
  static const struct {
    GstLmFraming framing;
    const char *expected;
  } cases[] = {
    { GST_LM_FRAMING_STREAM, "[one \xf0\x9f\xa6\x99\r\n\ntwo\nthree]" },
    { GST_LM_FRAMING_LINE, "[one \xf0\x9f\xa6\x99][two][three]" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    for (gsize step = 1; step <= strlen (stream); step++)
      {
        g_autoptr (GstLmTextFramer) framer = gst_lm_text_framer_new ();
        g_autofree char *got = NULL;

        for (gsize at = 0; at < strlen (stream); at += step)
          {
            g_autofree char *part = g_strndup (stream + at, step);

            g_assert_true (gst_lm_text_framer_push (
                framer, element_test_buffer (part), cases[i].framing, NULL));
          }
        gst_lm_text_framer_drain (framer);
        got = describe_requests (framer);
        g_assert_cmpstr (got, ==, cases[i].expected);
        gst_lm_text_framer_drain (framer);
        g_assert_null (gst_lm_text_framer_pull (framer));
      }
}

static GstBuffer *
reply_part (const char *text, guint64 id, gboolean last)
{
  GstBuffer *buffer = element_test_buffer (text);
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, id);

  meta->is_reply = TRUE;
  if (last)
    {
      meta->finish_reason = RUNNEL_FINISH_REASON_STOP;
      GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
    }
  return buffer;
}

static void
test_framing_reply (void)
{
  g_autoptr (GstLmTextFramer) framer = gst_lm_text_framer_new ();
  guint64 id = gst_lm_request_id_new ();
  g_autoptr (GstBuffer) request = NULL;
  g_autoptr (GstBuffer) failed = NULL;
  g_autofree char *text = NULL;
  GstBuffer *part;
  GstLmRequestMeta *meta;

  gst_lm_text_framer_push (framer, reply_part ("par", id, FALSE), 0, NULL);
  gst_lm_text_framer_push (framer, reply_part ("is", id, FALSE), 0, NULL);
  g_assert_null (gst_lm_text_framer_pull (framer));
  gst_lm_text_framer_push (framer, reply_part ("", id, TRUE), 0, NULL);
  request = gst_lm_text_framer_pull (framer);
  text = element_test_text (request);
  g_assert_cmpstr (text, ==, "paris");
  meta = gst_lm_buffer_get_request_meta (request);
  g_assert_cmpuint (meta->id, !=, id);
  g_assert_false (meta->is_reply);
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_NONE);

  part = reply_part ("half", id, TRUE);
  gst_lm_request_meta_set_error (gst_lm_buffer_get_request_meta (part), "no");
  gst_lm_text_framer_push (framer, part, 0, NULL);
  failed = gst_lm_text_framer_pull (framer);
  g_assert_true (gst_lm_buffer_has_ended (failed));
}

static void
test_framing_spans (void)
{
  g_autoptr (GstLmTextFramer) framer = gst_lm_text_framer_new ();
  const RunnelTextSpan span = { 1, 4 };
  g_autoptr (GstBuffer) first = NULL;
  g_autoptr (GstBuffer) second = NULL;
  GstBuffer *buffer = element_test_buffer ("ab\ncdef");
  GstLmTextMeta *meta;

  gst_lm_buffer_add_text_meta (buffer, &span, 1);
  gst_lm_text_framer_push (framer, element_test_buffer ("xy"),
                           GST_LM_FRAMING_LINE, NULL);
  gst_lm_text_framer_push (framer, buffer, GST_LM_FRAMING_LINE, NULL);
  gst_lm_text_framer_drain (framer);
  first = gst_lm_text_framer_pull (framer);
  second = gst_lm_text_framer_pull (framer);
  meta = gst_lm_buffer_get_text_meta (first);
  g_assert_cmpuint (meta->n_spans, ==, 1);
  g_assert_cmpuint (meta->spans[0].start, ==, 3);
  g_assert_cmpuint (meta->spans[0].length, ==, 1);
  meta = gst_lm_buffer_get_text_meta (second);
  g_assert_cmpuint (meta->n_spans, ==, 1);
  g_assert_cmpuint (meta->spans[0].start, ==, 0);
  g_assert_cmpuint (meta->spans[0].length, ==, 2);
}

/* ---- States ------------------------------------------------------------- */

static RunnelSequence *
make_sequence (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model =
      gst_lm_model_get (element_test_model (1), RUNNEL_LOAD_MODE_AUTO, &error);
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  RunnelSequence *sequence;
  const gint32 tokens[] = { 10, 11, 12, 13 };

  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 1, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
                              NULL, &error);
  g_assert_no_error (error);
  sequence = runnel_sequence_new (engine, 0, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, tokens, G_N_ELEMENTS (tokens), 0, FALSE,
                           NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  return sequence;
}

static void
test_state (void)
{
  RunnelSequence *sequence = make_sequence (), *taken;
  guint64 bytes = runnel_sequence_get_kv_bytes (sequence);
  GstBuffer *buffer = gst_lm_buffer_new_state (sequence);
  GstBuffer *copy;
  GstMapInfo map;

  g_assert_cmpuint (bytes, >, 0);
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==, bytes);
  g_assert_true (gst_lm_is_state_memory (gst_buffer_peek_memory (buffer, 0)));
  g_assert_false (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_assert_true (gst_lm_buffer_peek_state (buffer) == sequence);

  copy = gst_buffer_copy (buffer);
  g_assert_nonnull (gst_lm_buffer_peek_state (copy));
  g_assert_true (gst_lm_buffer_peek_state (copy) != sequence);
  taken = gst_lm_state_take (copy);
  g_assert_cmpuint (runnel_sequence_get_length (taken), ==, 4);
  g_object_unref (taken);

  gst_buffer_ref (buffer);
  taken = gst_lm_state_take (buffer);
  g_assert_true (taken != sequence);
  g_object_unref (taken);
  taken = gst_lm_state_take (buffer);
  g_assert_true (taken == sequence);
  g_object_unref (taken);

  g_assert_null (gst_lm_state_take (element_test_buffer ("no state")));
}

static gpointer
take_and_extend (gpointer data)
{
  g_autoptr (RunnelSequence) sequence = gst_lm_state_take (data);
  const gint32 token = 20;

  g_assert_true (runnel_sequence_prefill (sequence, &token, 1, 0, FALSE, NULL,
                                          NULL, NULL, NULL, NULL));
  g_assert_cmpuint (runnel_sequence_get_length (sequence), ==, 5);
  return NULL;
}

/* What a tee does: the same buffer, taken by several threads at once. */
static void
test_state_shared (void)
{
  for (guint round = 0; round < 20; round++)
    {
      GstBuffer *buffer = gst_lm_buffer_new_state (make_sequence ());
      GThread *threads[4];

      for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
        threads[i] = g_thread_new ("branch", take_and_extend,
                                   gst_buffer_ref (buffer));
      gst_buffer_unref (buffer);
      for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
        g_thread_join (threads[i]);
    }
}

/* ---- Models ------------------------------------------------------------- */

static void
test_model_registry (void)
{
  g_autoptr (GError) error = NULL;
  const char *path = element_test_model (1);
  g_autoptr (RunnelModel) first = gst_lm_model_get (path, 0, &error);
  g_autoptr (RunnelModel) second = gst_lm_model_get (path, 0, &error);
  g_autoptr (RunnelModel) read =
      gst_lm_model_get (path, RUNNEL_LOAD_MODE_READ, &error);
  g_autofree char *contents = NULL;
  gsize length;

  g_assert_no_error (error);
  g_assert_true (first == second);
  g_assert_true (first != read);
  g_assert_null (gst_lm_model_get ("/no/such/file", 0, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);

  /* A file that was replaced is another model. */
  g_assert_true (g_file_get_contents (path, &contents, &length, NULL));
  g_assert_true (g_file_set_contents (path, contents, length, NULL));
  g_set_object (&second, NULL);
  second = gst_lm_model_get (path, 0, &error);
  g_assert_no_error (error);
  g_assert_true (first != second);
}

/* ---- The filter --------------------------------------------------------- */

typedef struct {
  GstLmFilter parent_instance;
} Echo;
typedef struct {
  GstLmFilterClass parent_class;
} EchoClass;
static GType echo_get_type (void);
G_DEFINE_TYPE (Echo, echo, GST_TYPE_LM_FILTER)

/* Passes text on, but for a request that says fail. */
static GstFlowReturn
echo_process (GstLmFilter *filter, GstBuffer *buffer)
{
  g_autofree char *text = element_test_text (buffer);
  g_autoptr (GError) error = NULL;

  if (g_str_equal (text, "fail"))
    {
      error = g_error_new (RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE, "it said so");
      return gst_lm_filter_fail (filter, buffer, error);
    }
  return gst_lm_filter_push (filter, buffer);
}

static void
echo_class_init (EchoClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  static GstStaticPadTemplate sink = GST_STATIC_PAD_TEMPLATE (
      "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));
  static GstStaticPadTemplate src = GST_STATIC_PAD_TEMPLATE (
      "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

  GST_LM_FILTER_CLASS (klass)->process = echo_process;
  gst_lm_filter_class_frame_text (GST_LM_FILTER_CLASS (klass));
  gst_element_class_add_static_pad_template (element_class, &sink);
  gst_element_class_add_static_pad_template (element_class, &src);
  gst_element_class_set_static_metadata (element_class, "Echo", "Filter/Text",
                                         "A test", "Runnel");
}

static void
echo_init (Echo *self)
{
}

static ElementTest *
echo_new (const char *launch)
{
  gst_element_register (NULL, "lmtestecho", GST_RANK_NONE, echo_get_type ());
  return element_test_new (launch, GST_LM_CAPS_TEXT);
}

/* Event types downstream of the element, up to the first buffer. */
static void
expect_events (GstHarness *harness, const GstEventType *types)
{
  for (gsize i = 0; types[i] != GST_EVENT_UNKNOWN; i++)
    {
      g_autoptr (GstEvent) event = gst_harness_try_pull_event (harness);

      g_assert_nonnull (event);
      g_assert_cmpstr (GST_EVENT_TYPE_NAME (event), ==,
                       gst_event_type_get_name (types[i]));
    }
  g_assert_null (gst_harness_try_pull_event (harness));
}

static void
test_filter_events (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho");
  g_autoptr (GstEvent) segment = NULL;
  const GstEventType before[] = { GST_EVENT_STREAM_START, GST_EVENT_UNKNOWN };
  const GstEventType after[] = { GST_EVENT_CAPS, GST_EVENT_SEGMENT,
                                 GST_EVENT_TAG, GST_EVENT_UNKNOWN };
  const GstSegment *given;
  GstSegment bytes;

  gst_segment_init (&bytes, GST_FORMAT_BYTES);
  gst_harness_push_event (test->harness, gst_event_new_segment (&bytes));
  gst_harness_push_event (test->harness,
                          gst_event_new_tag (gst_tag_list_new_empty ()));
  expect_events (test->harness, before);
  g_assert_cmpint (element_test_push (test, "a"), ==, GST_FLOW_OK);
  expect_events (test->harness, after);
  segment = gst_pad_get_sticky_event (test->harness->sinkpad,
                                      GST_EVENT_SEGMENT, 0);
  gst_event_parse_segment (segment, &given);
  g_assert_cmpint (given->format, ==, GST_FORMAT_TIME);
}

static void
test_filter_gap (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho");
  const GstEventType types[] = { GST_EVENT_STREAM_START, GST_EVENT_CAPS,
                                 GST_EVENT_SEGMENT, GST_EVENT_GAP,
                                 GST_EVENT_EOS, GST_EVENT_UNKNOWN };

  gst_harness_push_event (test->harness, gst_event_new_gap (0, 0));
  gst_harness_push_event (test->harness, gst_event_new_eos ());
  expect_events (test->harness, types);
}

static void
test_filter_failure (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho error-policy=report");
  g_autoptr (GstBuffer) failed = NULL;
  g_autoptr (GstEvent) reply = NULL;
  g_autofree char *next = NULL;
  GstLmRequestMeta *meta;
  RunnelFinishReason reason;
  guint64 id;

  g_assert_cmpint (element_test_push (test, "fail"), ==, GST_FLOW_OK);
  g_assert_cmpint (element_test_push (test, "go on"), ==, GST_FLOW_OK);
  failed = gst_harness_pull (test->harness);
  meta = gst_lm_buffer_get_request_meta (failed);
  g_assert_cmpuint (gst_buffer_get_size (failed), ==, 0);
  g_assert_true (GST_BUFFER_FLAG_IS_SET (failed, GST_BUFFER_FLAG_MARKER));
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_ERROR);
  g_assert_cmpstr (meta->error, ==, "it said so");
  next = element_test_pull (test);
  g_assert_cmpstr (next, ==, "go on");

  reply = element_test_pull_reply (test);
  g_assert_true (gst_lm_event_parse_reply (reply, &id, NULL, &reason));
  g_assert_cmpuint (id, ==, meta->id);
  g_assert_cmpint (reason, ==, RUNNEL_FINISH_REASON_ERROR);
  element_test_expect (test, GST_MESSAGE_WARNING, "it said so");
  element_test_expect_none (test, GST_MESSAGE_ERROR);
}

static void
test_filter_error (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho");
  g_autoptr (GstEvent) reply = NULL;

  g_assert_cmpint (element_test_push (test, "fail"), ==, GST_FLOW_ERROR);
  element_test_expect (test, GST_MESSAGE_ERROR, "it said so");
  element_test_expect_none (test, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  reply = element_test_pull_reply (test);
  g_assert_nonnull (reply);
}

/* A failed request reaches the end once, whatever stands on its way. */
static void
test_filter_passes_ended (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho ! lmtestecho");
  GstBuffer *buffer = element_test_buffer ("fail");
  g_autoptr (GstBuffer) passed = NULL;
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, 0);

  gst_lm_request_meta_set_error (meta, "before");
  g_assert_cmpint (gst_harness_push (test->harness, buffer), ==, GST_FLOW_OK);
  passed = gst_harness_pull (test->harness);
  g_assert_cmpuint (gst_buffer_get_size (passed), ==, 0);
  g_assert_true (GST_BUFFER_FLAG_IS_SET (passed, GST_BUFFER_FLAG_MARKER));
  g_assert_cmpstr (gst_lm_buffer_get_request_meta (passed)->error, ==,
                   "before");
  g_assert_cmpuint (gst_harness_buffers_in_queue (test->harness), ==, 0);
  g_assert_null (element_test_pull_reply (test));
}

static void
test_filter_bad_utf8 (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho error-policy=report");
  g_autoptr (GstBuffer) failed = NULL;
  g_autofree char *nul = NULL;
  g_autoptr (GstBuffer) with_nul = NULL;

  element_test_push (test, "ab\xff");
  failed = gst_harness_pull (test->harness);
  g_assert_cmpuint (gst_buffer_get_size (failed), ==, 0);
  element_test_expect (test, GST_MESSAGE_WARNING, "byte 2");
  gst_harness_push (test->harness, gst_buffer_new_memdup ("a\0b", 3));
  with_nul = gst_harness_pull (test->harness);
  g_assert_cmpuint (gst_buffer_get_size (with_nul), ==, 3);
}

/* EOS is behind what the stream still gave; a flush throws it away. */
static void
test_filter_stream (void)
{
  g_autoptr (ElementTest) test = echo_new ("lmtestecho framing=stream");
  g_autofree char *text = NULL;
  GstSegment segment;

  element_test_push (test, "old");
  gst_harness_push_event (test->harness, gst_event_new_flush_start ());
  gst_harness_push_event (test->harness, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (test->harness, gst_event_new_segment (&segment));
  element_test_push (test, "new \xf0\x9f");
  element_test_push (test, "\xa6\x99");
  g_assert_cmpuint (gst_harness_buffers_received (test->harness), ==, 0);
  gst_harness_push_event (test->harness, gst_event_new_eos ());
  text = element_test_pull (test);
  g_assert_cmpstr (text, ==, "new \xf0\x9f\xa6\x99");
  g_assert_cmpuint (gst_harness_buffers_received (test->harness), ==, 1);
}

static void
add_tests (void)
{
  g_test_add_func ("/lib/request-meta/copy", test_request_meta_copy);
  g_test_add_func ("/lib/request-meta/ensure", test_request_meta_ensure);
  g_test_add_func ("/lib/overrides/values", test_overrides);
  g_test_add_func ("/lib/overrides/nan", test_override_nan);
  g_test_add_func ("/lib/text-meta/region", test_text_meta_region);
  g_test_add_func ("/lib/tokens", test_tokens);
  g_test_add_func ("/lib/events", test_events);
  g_test_add_func ("/lib/framing/cuts", test_framing);
  g_test_add_func ("/lib/framing/reply", test_framing_reply);
  g_test_add_func ("/lib/framing/spans", test_framing_spans);
  g_test_add_func ("/lib/state/take", test_state);
  g_test_add_func ("/lib/state/shared", test_state_shared);
  g_test_add_func ("/lib/model-registry", test_model_registry);
  g_test_add_func ("/lib/filter/events", test_filter_events);
  g_test_add_func ("/lib/filter/gap", test_filter_gap);
  g_test_add_func ("/lib/filter/failure", test_filter_failure);
  g_test_add_func ("/lib/filter/error", test_filter_error);
  g_test_add_func ("/lib/filter/ended", test_filter_passes_ended);
  g_test_add_func ("/lib/filter/bad-utf8", test_filter_bad_utf8);
  g_test_add_func ("/lib/filter/stream", test_filter_stream);
}

int
main (int argc, char **argv)
{
  return element_test_run (&argc, &argv, add_tests);
}
