/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>

#include <runnel.h>

#include "interruptible.h"
#include "json-output.h"
#include "report.h"
#include "verb.h"

static char *type;

static const GOptionEntry entries[] = {
  { "type", 0, 0, G_OPTION_ARG_STRING, &type,
    "Of the weights: q4_1 (the default), q4_0, q8_0 or f16 in a GGUF file, "
    "int4 or int8 in a package; all hold the same numbers", "TYPE" },
  G_OPTION_ENTRY_NULL
};

static gboolean
check_arguments (const Options *options, GError **error)
{
  g_auto (GStrv) shapes = NULL;
  g_autofree char *known = NULL;

  if (options->n_arguments == 2)
    return TRUE;
  shapes = runnel_random_model_dup_shapes ();
  known = g_strjoinv (", ", shapes);
  report_set_usage (error, "a shape and the file to write are needed; there "
      "are the shapes %s", known);
  return FALSE;
}

static void
print_json (RunnelModel *model, guint64 seed)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  json_add_string (&json, "path", runnel_model_get_path (model), -1);
  json_add_string (&json, "name", runnel_model_get_name (model), -1);
  json_add_uint (&json, "seed", seed);
  json_add_uint (&json, "n_parameters",
      runnel_model_get_n_parameters (model));
  json_add_string (&json, "content_id", runnel_model_get_content_id (model),
      -1);
  json_end_object (&json);
  json_print (&json);
}

typedef struct {
  const char *shape, *path;
  guint64 seed;
  gboolean done;
  GError *error;
} Work;

static void
make (GCancellable *cancellable, gpointer data)
{
  Work *work = data;

  work->done = runnel_random_model_write (work->shape, work->path, type,
      work->seed, cancellable, &work->error);
}

static int
run (const Options *options)
{
  const guint64 seed = options->seed_given ? options->seed : 1;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (GError) error = NULL;
  Work work = { .seed = seed };
  const char *path;

  if (!check_arguments (options, &error))
    return report_error (error);
  work.shape = options->arguments[0];
  work.path = path = options->arguments[1];
  /* A limit on the size of files is then an error like a full disk. */
  signal (SIGXFSZ, SIG_IGN);
  interruptible_run (make, &work);
  error = work.error;
  if (!work.done
      || (model = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error))
          == NULL)
    return report_error (error);
  if (options->json)
    print_json (model, seed);
  else
    printf ("%s: %s, %.1f million parameters\n", path,
        runnel_model_get_name (model),
        runnel_model_get_n_parameters (model) / 1e6);
  return EXIT_OK;
}

const Verb verb_make_model = {
  .name = "make-model",
  .parameters = "SHAPE OUT",
  .summary = "Write a model of noise, for benchmarks",
  .details = "OUT becomes a GGUF file or a package. Its weights and words mean "
    "nothing, but\nit computes like a real model. Shapes: pocket-0.3b, and "
    "50m, 100m, 200m, 300m,\n600m and 1.3b, each with 28 or 36 layers (50m-28, 50m-36, …).",
  .uses = USES_SEED | USES_JSON,
  .max_arguments = 2,
  .entries = entries,
  .run = run,
};
