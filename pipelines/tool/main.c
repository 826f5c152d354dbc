/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "verb.h"

static const Verb *const verbs[] = {
  &verb_run, &verb_chat, &verb_convert, &verb_verify, &verb_inspect,
  &verb_tokenize, &verb_detokenize, &verb_render, &verb_logits,
  &verb_perplexity, &verb_compare, &verb_bench, &verb_graph,
  &verb_make_model,
  &verb_decide,
};

static void
print_usage (FILE *to)
{
  fprintf (to, "Usage:\n  runnel VERB [OPTION…]\n\n"
      "Small language models on this device.\n\nVerbs:\n");
  for (guint i = 0; i < G_N_ELEMENTS (verbs); i++)
    fprintf (to, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
  fprintf (to, "\n'runnel VERB --help' tells more of each, 'runnel --version' "
      "the version.\n");
}

static const Verb *
find_verb (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (verbs); i++)
    if (strcmp (verbs[i]->name, name) == 0)
      return verbs[i];
  return NULL;
}

/* Texts and file names are UTF-8, also where the locale is not set up. */
static void
set_locale (void)
{
  setlocale (LC_CTYPE, "");
  if (!g_get_charset (NULL))
    setlocale (LC_CTYPE, "C.UTF-8");
}

/* Without this a shell would not see an exit code of 130, but a signal. */
static void
on_interrupt (int signal_number)
{
  _exit (EXIT_INTERRUPTED);
}

/* A file opened in the place of a closed stream would get its text. What is
 * opened here instead refuses it, as a closed stream does. */
static void
fill_standard_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0)
      open ("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int
run_verb (const Verb *verb, int argc, char **argv)
{
  Options options = { 0 };
  int status;

  if (options_parse (&options, verb, argc, argv, &status))
    status = verb->run (&options);
  options_clear (&options);
  report_progress_end ();
  return status;
}

/* What is lost is an error, unless there was another one before. */
static int
finish (int status)
{
  const int error_number = report_flush_output ();

  if (error_number == 0 || status != EXIT_OK)
    return status;
  fprintf (stderr, "%s: the output cannot be written: %s\n",
      g_get_prgname (), g_strerror (error_number));
  return EXIT_FAILED;
}

int
main (int argc, char **argv)
{
  const Verb *verb;

  fill_standard_streams ();
  set_locale ();
  g_set_prgname ("runnel");
  signal (SIGINT, on_interrupt);
  if (argc < 2) {
    print_usage (stderr);
    return EXIT_USAGE;
  }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0
      || strcmp (argv[1], "help") == 0) {
    print_usage (stdout);
    return finish (EXIT_OK);
  }
  if (strcmp (argv[1], "--version") == 0) {
    printf ("runnel %s\n", RUNNEL_VERSION);
    return finish (EXIT_OK);
  }
  verb = find_verb (argv[1]);
  if (verb == NULL) {
    fprintf (stderr, "runnel: there is no verb '%s'; see 'runnel --help'\n",
        argv[1]);
    return EXIT_USAGE;
  }
  return finish (run_verb (verb, argc - 1, argv + 1));
}
