/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Questions from JSON and from code, and what is wrong with bad ones.
 */
#include <string.h>

#include "error.h"
#include "generate/question-private.h"

static GPtrArray *
parse (const char *json)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *questions = runnel_question_parse_json (json, -1, "test", &error);

  g_assert_no_error (error);
  return questions;
}

static void
test_json (void)
{
  g_autoptr (GPtrArray) questions = parse ("{\"questions\":{"
      "\"intent\":{\"type\":\"choice\",\"instructions\":\"Which?\","
      "\"criteria\":{\"b\":null,\"a\":\"the first\"}},"
      "\"list\":{\"instructions\":\"Which?\",\"criteria\":[\"x\",\"y\"]},"
      "\"urgent\":{\"type\":\"noul\",\"instructions\":\"Urgent?\","
      "\"criteria\":{\"false\":\"it can wait\"}},"
      "\"tone\":{\"type\":\"score\",\"instructions\":\"How warm?\","
      "\"criteria\":[\"cold\",\"warm\",\"hot\"]}}}");
  RunnelQuestion *intent = questions->pdata[0];
  RunnelQuestion *urgent = questions->pdata[2];
  RunnelQuestion *tone = questions->pdata[3];

  g_assert_cmpuint (questions->len, ==, 4);
  g_assert_cmpstr (runnel_question_get_id (intent), ==, "intent");
  g_assert_cmpstr (runnel_question_get_instructions (intent), ==, "Which?");
  g_assert_cmpstr (runnel_question_get_label (intent, 0), ==, "b");
  g_assert_null (runnel_question_get_description (intent, 0));
  g_assert_cmpstr (runnel_question_get_description (intent, 1), ==,
      "the first");
  g_assert_cmpuint (runnel_question_get_order (intent)[0], ==, 1);
  g_assert_cmpint (runnel_question_get_question_type (urgent), ==,
      RUNNEL_QUESTION_TYPE_YESNO);
  g_assert_cmpstr (runnel_question_get_label (urgent, 0), ==, "yes");
  g_assert_cmpstr (runnel_question_get_description (urgent, 1), ==,
      "it can wait");
  g_assert_cmpint (runnel_question_get_question_type (tone), ==,
      RUNNEL_QUESTION_TYPE_SCORE);
  g_assert_cmpuint (runnel_question_get_n_options (tone), ==, 3);
}

/* Equal but for the order of their options and the id. */
static void
test_key (void)
{
  g_autoptr (GPtrArray) questions = parse ("{\"questions\":{"
      "\"a\":{\"instructions\":\"Q\",\"criteria\":{\"x\":\"1\",\"y\":null}},"
      "\"b\":{\"instructions\":\"Q\",\"criteria\":{\"y\":null,\"x\":\"1\"}},"
      "\"c\":{\"instructions\":\"Q\",\"criteria\":{\"x\":null,\"y\":\"1\"}}}}");
  g_autofree char *a = runnel_question_make_key (questions->pdata[0]);
  g_autofree char *b = runnel_question_make_key (questions->pdata[1]);
  g_autofree char *c = runnel_question_make_key (questions->pdata[2]);

  g_assert_cmpstr (a, ==, b);
  g_assert_cmpstr (a, !=, c);
}

#define WITH(body) "{\"questions\":{\"q\":{" body "}}}"

static void
test_bad_json (void)
{
  static const struct {
    const char *json;
    RunnelError code;
    const char *part;
  } cases[] = {
    { "", RUNNEL_ERROR_TRUNCATED, "test" },
    { "[]", RUNNEL_ERROR_MALFORMED, "no object 'questions'" },
    { "{\"questions\":[]}", RUNNEL_ERROR_MALFORMED, "no object 'questions'" },
    { "{\"questions\":{}}", RUNNEL_ERROR_LIMIT, "0 questions; give 1 to 256" },
    { "{\"questions\":{\"q\":1}}", RUNNEL_ERROR_MALFORMED, "not an object" },
    { "{\"questions\":{},\"state\":\"x\"}", RUNNEL_ERROR_MALFORMED,
      "only member" },
    { WITH ("\"instructions\":\"Q\""), RUNNEL_ERROR_MALFORMED,
      "criteria are missing" },
    { WITH ("\"criteria\":[\"a\",\"b\"]"), RUNNEL_ERROR_MALFORMED,
      "instructions are missing" },
    { WITH ("\"instructions\":\" \",\"criteria\":[\"a\",\"b\"]"),
      RUNNEL_ERROR_INVALID_ARGUMENT, "instructions is empty" },
    { WITH ("\"instructions\":7,\"criteria\":[\"a\",\"b\"]"),
      RUNNEL_ERROR_MALFORMED, "instructions is not a string" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[]"), RUNNEL_ERROR_LIMIT,
      "0 options; give 2 to 255" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\"]"),
      RUNNEL_ERROR_LIMIT, "1 options" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",\"\"]"),
      RUNNEL_ERROR_INVALID_ARGUMENT, "option 2 is empty" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",\"b\",\"a\"]"),
      RUNNEL_ERROR_INVALID_ARGUMENT, "option 'a' is there twice" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",\"b\\u0000\"]"),
      RUNNEL_ERROR_MALFORMED, "NUL" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",null]"),
      RUNNEL_ERROR_MALFORMED, "not a string" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":{\"a\":1,\"b\":2}"),
      RUNNEL_ERROR_MALFORMED, "description is not a string" },
    { WITH ("\"type\":\"guess\",\"instructions\":\"Q\""),
      RUNNEL_ERROR_MALFORMED, "type 'guess'" },
    { WITH ("\"type\":\"score\",\"instructions\":\"Q\","
        "\"criteria\":{\"a\":null,\"b\":null}"), RUNNEL_ERROR_MALFORMED,
      "array of levels" },
    { WITH ("\"type\":\"yesno\",\"instructions\":\"Q\","
        "\"criteria\":{\"maybe\":null}"), RUNNEL_ERROR_MALFORMED,
      "nothing else" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",\"b\"],\"x\":1"),
      RUNNEL_ERROR_MALFORMED, "'x' is none of" },
    { WITH ("\"instructions\":\"Q\",\"criteria\":[\"a\",\"\xff\"]"),
      RUNNEL_ERROR_MALFORMED, "UTF-8" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GPtrArray) questions
        = runnel_question_parse_json (cases[i].json, -1, "test", &error);

    g_test_message ("case %u", i);
    g_assert_null (questions);
    g_assert_error (error, RUNNEL_ERROR, cases[i].code);
    g_assert_nonnull (strstr (error->message, cases[i].part));
    g_assert_nonnull (strstr (error->message, "test"));
  }
}

static void
test_too_many (void)
{
  g_autoptr (GPtrArray) labels = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i <= RUNNEL_MAX_OPTIONS; i++)
    g_ptr_array_add (labels, g_strdup_printf ("option %u", i));
  for (guint n = RUNNEL_MAX_OPTIONS; n <= RUNNEL_MAX_OPTIONS + 1; n++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelQuestion) question = runnel_question_new ("q",
        RUNNEL_QUESTION_TYPE_CHOICE, "Q", (const char *const *) labels->pdata,
        NULL, n, &error);

    if (n <= RUNNEL_MAX_OPTIONS) {
      g_assert_no_error (error);
      g_assert_cmpuint (runnel_question_get_n_options (question), ==, n);
    } else {
      g_assert_null (question);
      g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
    }
  }
}

static void
test_bad_text (void)
{
  static const char *const broken[] = { "a", "b\xc3" };
  static const char *const three[] = { "yes", "no", "maybe" };
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_question_new ("q", RUNNEL_QUESTION_TYPE_CHOICE, "Q",
      broken, NULL, 2, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_assert_nonnull (strstr (error->message, "option 2 is not UTF-8 at byte 1"));
  g_clear_error (&error);
  g_assert_null (runnel_question_new ("q", RUNNEL_QUESTION_TYPE_YESNO, "Q",
      three, NULL, 3, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/question/json", test_json);
  g_test_add_func ("/question/key", test_key);
  g_test_add_func ("/question/bad-json", test_bad_json);
  g_test_add_func ("/question/too-many", test_too_many);
  g_test_add_func ("/question/bad-text", test_bad_text);
  return g_test_run ();
}
