/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include <runnel.h>

#include "interruptible.h"
#include "report.h"
#include "verb.h"

typedef struct {
  const char *path;
  gboolean good;
  GError *error;
} Work;

static void
verify (GCancellable *cancellable, gpointer data)
{
  Work *work = data;

  work->good = runnel_verify_file (work->path, report_progress_fraction,
      "Verifying", cancellable, &work->error);
}

static int
run (const Options *options)
{
  g_autoptr (GError) error = NULL;
  Work work = { options->n_arguments > 0 ? options->arguments[0]
    : options->model };

  if (work.path == NULL)
    report_set_usage (&error, "no package: name its FILE, or set -m FILE or "
        "the environment variable RUNNEL_MODEL");
  if (error != NULL)
    return report_error (error);
  interruptible_run (verify, &work);
  report_progress_end ();
  error = work.error;
  if (!work.good)
    return report_error (error);
  printf ("%s: all digests agree\n", work.path);
  return EXIT_OK;
}

const Verb verb_verify = {
  .name = "verify",
  .parameters = "[FILE]",
  .summary = "Compare a package with the digests it holds",
  .details = "Reads the whole FILE. What differs is named, and the exit code "
    "is 1.",
  .uses = USES_MODEL,
  .max_arguments = 1,
  .run = run,
};
