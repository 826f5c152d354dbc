/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The template language piece by piece, against values of Jinja2.
 */
#include <string.h>

#include "error.h"
#include "template-cases.h"
#include "text/chat-template.h"

static RunnelRenderedText *
render (const char *source, GError **error)
{
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autoptr (GDateTime) now = g_date_time_new (utc, 2026, 12, 1, 0, 0, 0);
  g_autoptr (RunnelChatTemplate) template =
      runnel_chat_template_new (source, -1, "test", error);

  if (template == NULL)
    return NULL;
  return runnel_chat_template_render (template, template_variables, -1, now,
                                      error);
}

static void
check_cases (const TemplateCase *cases, gsize n)
{
  for (gsize i = 0; i < n; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RunnelRenderedText) text = render (cases[i].source, &error);
      const char *got = text != NULL
                            ? runnel_rendered_text_get_text (text, NULL)
                            : error->message;

      if (text == NULL || strcmp (got, cases[i].expected) != 0)
        g_test_fail_printf ("%s: \"%s\" instead of \"%s\"", cases[i].source,
                            got, cases[i].expected);
    }
}

#define CASES_TEST(name)                                                      \
  static void test_##name (void)                                              \
  {                                                                           \
    check_cases (name##_cases, G_N_ELEMENTS (name##_cases));                  \
  }

CASES_TEST (arithmetic)
CASES_TEST (subscripts)
CASES_TEST (strings)
CASES_TEST (percent)
CASES_TEST (braces)
CASES_TEST (sequences)
CASES_TEST (text)
CASES_TEST (json)
CASES_TEST (values)
CASES_TEST (numbers)
CASES_TEST (statements)

static void
test_failing (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (failing_templates); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RunnelRenderedText) text =
          render (failing_templates[i], &error);

      if (text != NULL)
        g_test_fail_printf ("%s: no error, but \"%s\"", failing_templates[i],
                            runnel_rendered_text_get_text (text, NULL));
      else
        g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/template-language/arithmetic", test_arithmetic);
  g_test_add_func ("/template-language/subscripts", test_subscripts);
  g_test_add_func ("/template-language/strings", test_strings);
  g_test_add_func ("/template-language/percent", test_percent);
  g_test_add_func ("/template-language/braces", test_braces);
  g_test_add_func ("/template-language/sequences", test_sequences);
  g_test_add_func ("/template-language/text", test_text);
  g_test_add_func ("/template-language/json", test_json);
  g_test_add_func ("/template-language/values", test_values);
  g_test_add_func ("/template-language/numbers", test_numbers);
  g_test_add_func ("/template-language/statements", test_statements);
  g_test_add_func ("/template-language/failing", test_failing);
  return g_test_run ();
}
