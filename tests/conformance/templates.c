/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 *   conformance-templates DIR
 *
 * Renders every case of DIR/templates/NAME.jsonl with
 * DIR/templates/jinja/NAME.jinja and compares each byte with what Jinja2 gave
 * for it. The message of a raise_exception must be the same, too; of other
 * errors only that there is one.
 */
#include <stdio.h>
#include <string.h>

#include <gio/gio.h>

#include "formats/json.h"
#include "text/chat-template.h"

typedef struct {
  guint passed, failed, not_run;
} Counts;

static void
append_node (GString *out, const RunnelJsonNode *node)
{
  gsize n = runnel_json_node_size (node);
  gsize length;
  const char *text;

  switch (runnel_json_node_kind (node))
    {
    case RUNNEL_JSON_NULL:
      g_string_append (out, "null");
      break;
    case RUNNEL_JSON_BOOLEAN:
      g_string_append (out,
                       runnel_json_node_boolean (node) ? "true" : "false");
      break;
    case RUNNEL_JSON_INTEGER:
      g_string_append (out, runnel_json_node_digits (node));
      break;
    case RUNNEL_JSON_FLOAT:
      runnel_json_append_double (out, runnel_json_node_double (node));
      break;
    case RUNNEL_JSON_STRING:
      text = runnel_json_node_string (node, &length);
      runnel_json_append_string (out, text, (gssize) length);
      break;
    case RUNNEL_JSON_ARRAY:
      g_string_append_c (out, '[');
      for (gsize i = 0; i < n; i++)
        {
          g_string_append (out, i > 0 ? "," : "");
          append_node (out, runnel_json_node_item (node, i));
        }
      g_string_append_c (out, ']');
      break;
    case RUNNEL_JSON_OBJECT:
      g_string_append_c (out, '{');
      for (gsize i = 0; i < n; i++)
        {
          g_string_append (out, i > 0 ? "," : "");
          text = runnel_json_node_key (node, i, &length);
          runnel_json_append_string (out, text, (gssize) length);
          g_string_append_c (out, ':');
          append_node (out, runnel_json_node_value (node, i));
        }
      g_string_append_c (out, '}');
      break;
    }
}

/* The variables of a case: messages, tools, no documents, and the rest. */
static char *
case_variables (const RunnelJsonNode *line)
{
  const RunnelJsonNode *kwargs = runnel_json_node_member (line, "kwargs");
  GString *out = g_string_new ("{\"messages\":");

  append_node (out, runnel_json_node_member (line, "messages"));
  g_string_append (out, ",\"tools\":");
  append_node (out, runnel_json_node_member (line, "tools"));
  g_string_append (out, ",\"documents\":null");
  for (gsize i = 0; i < runnel_json_node_size (kwargs); i++)
    {
      gsize length;
      const char *key = runnel_json_node_key (kwargs, i, &length);

      g_string_append_c (out, ',');
      runnel_json_append_string (out, key, (gssize) length);
      g_string_append_c (out, ':');
      append_node (out, runnel_json_node_value (kwargs, i));
    }
  g_string_append_c (out, '}');
  return g_string_free (out, FALSE);
}

static const char *
member_string (const RunnelJsonNode *line, const char *name, gsize *length)
{
  const RunnelJsonNode *node = runnel_json_node_member (line, name);

  return node != NULL ? runnel_json_node_string (node, length) : NULL;
}

static gboolean
check_case (RunnelChatTemplate *template, const RunnelJsonNode *line,
            GDateTime *now)
{
  g_autofree char *variables = case_variables (line);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelRenderedText) rendered =
      runnel_chat_template_render (template, variables, -1, now, &error);
  gsize length;
  gsize expected_length;
  const char *text;
  const char *expected = member_string (line, "output", &expected_length);

  if (expected != NULL)
    {
      if (rendered == NULL)
        {
          printf ("  error: %s\n", error->message);
          return FALSE;
        }
      text = runnel_rendered_text_get_text (rendered, &length);
      return length == expected_length && memcmp (text, expected, length) == 0;
    }
  if (rendered != NULL)
    return FALSE;
  if (strcmp (member_string (line, "error_kind", NULL), "raise_exception") != 0)
    return TRUE;
  return strcmp (member_string (line, "error", NULL), error->message) == 0;
}

static void
run_set (const char *folder, const char *name, GDateTime *now, Counts *counts)
{
  g_autofree char *source_path =
      g_strdup_printf ("%s/jinja/%s.jinja", folder, name);
  g_autofree char *path = g_strdup_printf ("%s/%s.jsonl", folder, name);
  g_autofree char *source = NULL;
  g_autofree char *lines = NULL;
  g_auto (GStrv) each = NULL;
  g_autoptr (RunnelChatTemplate) template = NULL;
  g_autoptr (GError) error = NULL;
  gsize length;

  if (!g_file_get_contents (source_path, &source, &length, &error)
      || !g_file_get_contents (path, &lines, NULL, &error))
    {
      printf ("%s: %s\n", name, error->message);
      counts->not_run++;
      return;
    }
  template = runnel_chat_template_new (source, (gssize) length, name, &error);
  if (template == NULL)
    printf ("%s\n", error->message);
  each = g_strsplit (lines, "\n", -1);
  for (gsize i = 0; each[i] != NULL; i++)
    {
      g_autoptr (RunnelJson) json = NULL;

      if (each[i][0] == '\0')
        continue;
      json = runnel_json_parse (each[i], strlen (each[i]), path, NULL);
      if (template != NULL && json != NULL
          && check_case (template, runnel_json_root (json), now))
        {
          counts->passed++;
          continue;
        }
      printf ("%s: line %" G_GSIZE_FORMAT " differs\n", name, i + 1);
      counts->failed++;
    }
}

int
main (int argc, char **argv)
{
  g_autofree char *folder = NULL;
  g_autoptr (GDir) dir = NULL;
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autoptr (GDateTime) now = g_date_time_new (utc, 2026, 12, 1, 0, 0, 0);
  Counts counts = { 0 };
  const char *file;

  if (argc != 2)
    {
      fprintf (stderr, "usage: %s DIR\n", argv[0]);
      return 2;
    }
  folder = g_build_filename (argv[1], "templates", NULL);
  dir = g_dir_open (folder, 0, NULL);
  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL)
    if (g_str_has_suffix (file, ".jsonl"))
      {
        g_autofree char *name =
            g_strndup (file, strlen (file) - strlen (".jsonl"));

        run_set (folder, name, now, &counts);
      }
  if (counts.passed + counts.failed + counts.not_run == 0)
    {
      printf ("no templates in %s\n", folder);
      counts.not_run++;
    }
  printf ("conformance templates: %u passed, %u failed, %u not run\n",
          counts.passed, counts.failed, counts.not_run);
  return counts.failed > 0 ? 1 : 0;
}
