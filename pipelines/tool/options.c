/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "verb.h"

#include "loading.h"
#include "report.h"

static const char *seed_text;

static gboolean
parse_seed (Options *options, GError **error)
{
  if (seed_text == NULL)
    return TRUE;
  options->seed_given = TRUE;
  if (g_ascii_string_to_unsigned (seed_text, 10, 0, G_MAXUINT64,
          &options->seed, NULL))
    return TRUE;
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
      "--seed: '%s' is no whole number from 0 to 2^64 - 1", seed_text);
  return FALSE;
}

static gboolean
check (Options *options, const Verb *verb, GError **error)
{
  options->n_arguments = g_strv_length (options->arguments);
  if (options->n_arguments > verb->max_arguments) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
        "'%s' is one argument too many; put a text of several words in "
        "quotes", options->arguments[verb->max_arguments]);
    return FALSE;
  }
  if (options->threads < 0 || options->prefill_threads < 0) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
        "%s: %d is no number of threads; 0 chooses by the machine",
        options->threads < 0 ? "--threads" : "--prefill-threads",
        MIN (options->threads, options->prefill_threads));
    return FALSE;
  }
  if (options->kv_type != NULL && !loading_get_kv_type (options, NULL)) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
        "--kv-type: '%s' is none of f16, f32, int8", options->kv_type);
    return FALSE;
  }
  return parse_seed (options, error);
}

static void
add_common_entries (GOptionContext *context, Options *options,
                    const Verb *verb)
{
  const int hidden = G_OPTION_FLAG_HIDDEN;
  const int model = verb->uses & USES_MODEL ? 0 : hidden;
  const int engine = verb->uses & USES_ENGINE ? 0 : hidden;
  const int seed = verb->uses & USES_SEED ? 0 : hidden;
  const int json = verb->uses & USES_JSON ? 0 : hidden;
  const GOptionEntry entries[] = {
    { "model", 'm', model, G_OPTION_ARG_FILENAME, &options->model,
      "Model file or folder (default: $RUNNEL_MODEL)", "FILE" },
    { "verify", 0, model, G_OPTION_ARG_NONE, &options->verify,
      "Compare the model, a package, with its digests before it is used",
      NULL },
    { "threads", 't', engine, G_OPTION_ARG_INT, &options->threads,
      "Threads to compute with (default: by the machine)", "N" },
    { "prefill-threads", 0, engine, G_OPTION_ARG_INT,
      &options->prefill_threads,
      "Threads to read prompts with (default: as --threads, or by the "
      "machine)", "N" },
    { "kernels", 0, engine, G_OPTION_ARG_STRING, &options->kernels,
      "Level of the processor's kernels: scalar, avx2, neon, … (default: the "
      "best); all give the same bits", "LEVEL" },
    { "kv-type", 0, engine, G_OPTION_ARG_STRING, &options->kv_type,
      "Type of keys and values in memory: f16, f32 or int8 (default: f16)",
      "TYPE" },
    { "load-mode", 0, engine, G_OPTION_ARG_STRING, &options->load_mode,
      "How the model comes into memory: auto, map or read (default: auto)",
      "MODE" },
    { "seed", 0, seed, G_OPTION_ARG_STRING, &seed_text,
      "Of everything that is drawn; the same seed gives the same result",
      "N" },
    { "json", 0, json, G_OPTION_ARG_NONE, &options->json,
      "Write JSON", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY,
      &options->arguments, NULL, verb->parameters },
    G_OPTION_ENTRY_NULL
  };

  g_option_context_add_main_entries (context, entries, NULL);
}

/* What GLib says of a value that is no text names neither. */
static void
explain_encoding (GError **error, int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    g_autofree char *valid = NULL;

    if (g_utf8_validate (argv[i], -1, NULL))
      continue;
    valid = g_utf8_make_valid (argv[i], -1);
    g_clear_error (error);
    report_set_usage (error, "%s%s'%s' is no text in UTF-8",
        argv[i][0] != '-' && argv[i - 1][0] == '-' ? argv[i - 1] : "",
        argv[i][0] != '-' && argv[i - 1][0] == '-' ? ": " : "", valid);
    return;
  }
}

static void
print_help (GOptionContext *context)
{
  g_autofree char *help = g_option_context_get_help (context, TRUE, NULL);

  g_print ("%s", help);
}

gboolean
options_parse (Options *options, const Verb *verb, int argc, char **argv,
               int *ret_status)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autofree char *program = g_strdup_printf ("runnel %s", verb->name);
  g_autoptr (GError) error = NULL;
  gboolean help = FALSE;
  const GOptionEntry help_entry[] = {
    { "help", 'h', 0, G_OPTION_ARG_NONE, &help, "Show this text", NULL },
    G_OPTION_ENTRY_NULL
  };

  g_set_prgname (program);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_summary (context, verb->summary);
  g_option_context_set_description (context, verb->details);
  if (verb->entries != NULL)
    g_option_context_add_main_entries (context, verb->entries, NULL);
  if (verb->more_entries != NULL)
    g_option_context_add_main_entries (context, verb->more_entries, NULL);
  add_common_entries (context, options, verb);
  g_option_context_add_main_entries (context, help_entry, NULL);

  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    if (error->domain == G_CONVERT_ERROR)
      explain_encoding (&error, argc, argv);
    *ret_status = report_error (error);
    return FALSE;
  }
  if (help) {
    print_help (context);
    *ret_status = EXIT_OK;
    return FALSE;
  }
  if (options->arguments == NULL)
    options->arguments = g_new0 (char *, 1);
  options->model_given = options->model != NULL;
  if (options->model == NULL && g_getenv ("RUNNEL_MODEL") != NULL)
    options->model = g_strdup (g_getenv ("RUNNEL_MODEL"));
  if (!check (options, verb, &error)) {
    *ret_status = report_error (error);
    return FALSE;
  }
  return TRUE;
}

void
options_clear (Options *options)
{
  g_free (options->model);
  g_free (options->kernels);
  g_free (options->kv_type);
  g_free (options->load_mode);
  g_strfreev (options->arguments);
}
