/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The verbs of the command, and the options that mean the same in all. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Exit codes. */
enum {
  EXIT_OK = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
  EXIT_INTERRUPTED = 130,
};

/* Which of the common options a verb heeds. The others are accepted and
 * without effect, so that scripts may give all verbs the same ones. */
typedef enum {
  USES_MODEL = 1 << 0,
  USES_ENGINE = 1 << 1,   /* --threads and others of the engine */
  USES_SEED = 1 << 2,
  USES_JSON = 1 << 3,
} Uses;

typedef struct {
  char *model;            /* -m, or else the environment; may be NULL */
  gboolean model_given;   /* by -m */
  gboolean verify;        /* the model, before it is used */
  int threads;            /* 0: by the machine */
  int prefill_threads;    /* 0: as threads, or by the machine */
  char *kernels;          /* NULL: the best */
  char *kv_type;          /* NULL: f16; else a type there is */
  char *load_mode;        /* a nick of RunnelLoadMode; NULL: auto */
  guint64 seed;
  gboolean seed_given;
  gboolean json;
  char **arguments;       /* what is left: no option; never NULL */
  guint n_arguments;
} Options;

typedef struct {
  const char *name;
  const char *parameters; /* for the usage line */
  const char *summary;    /* one line */
  const char *details;    /* the end of --help; nullable */
  Uses uses;
  guint max_arguments;
  const GOptionEntry *entries;      /* own options; nullable */
  const GOptionEntry *more_entries; /* shared with some; nullable */
  int (*run) (const Options *options);
} Verb;

extern const Verb verb_bench, verb_chat, verb_compare, verb_convert,
    verb_detokenize, verb_graph, verb_inspect, verb_logits, verb_make_model,
    verb_perplexity, verb_render, verb_run, verb_tokenize, verb_verify;
extern const Verb verb_decide;

/* Fills @options. Returns FALSE with *ret_status set when there is nothing
 * more to do: help was shown, or the usage was wrong. */
gboolean options_parse (Options *options, const Verb *verb, int argc,
                        char **argv, int *ret_status);
void options_clear (Options *options);

G_END_DECLS
