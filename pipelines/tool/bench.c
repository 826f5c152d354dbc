/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>
#include <runnel.h>

#include "bench-cases.h"
#include "bench-child.h"
#include "bench-decide.h"
#include "bench-energy.h"
#include "bench-profile.h"
#include "json-output.h"
#include "loading.h"
#include "machine.h"
#include "report.h"
#include "samples.h"
#include "verb.h"

#define FIRST_TOKEN_PROMPT 20   /* tokens */
#define MEMORY_REPLY 60
#define MAX_LIST 16
#define MIB 1048576.0

static int repeats = 5;
static char *prompt_lengths = "128,512", *reply_lengths = "64";
static char *depths = "0,512";
static gboolean no_children;
static gboolean with_energy, with_profile;
static char *draft_path;
static char *sysfs;
static double battery_mah, battery_volts;

static const GOptionEntry entries[] = {
  { "repeats", 'r', 0, G_OPTION_ARG_INT, &repeats,
    "Measure everything this often, in turn (default: 5)", "N" },
  { "pp", 0, 0, G_OPTION_ARG_STRING, &prompt_lengths,
    "Lengths of prompts to read (default: 128,512)", "N,…" },
  { "tg", 0, 0, G_OPTION_ARG_STRING, &reply_lengths,
    "Lengths of replies to make (default: 64)", "N,…" },
  { "depths", 'd', 0, G_OPTION_ARG_STRING, &depths,
    "Tokens that are there before replies (default: 0,512)", "N,…" },
  { "no-children", 0, 0, G_OPTION_ARG_NONE, &no_children,
    "Do not measure memory and time to first token, which take processes of "
    "their own", NULL },
  { "draft", 0, 0, G_OPTION_ARG_FILENAME, &draft_path,
    "A draft model, which guesses along", "FILE" },
  { "profile", 0, 0, G_OPTION_ARG_NONE, &with_profile,
    "Show the share of the time that each operation takes", NULL },
  { "energy", 0, 0, G_OPTION_ARG_NONE, &with_energy,
    "Measure the energy of a typical inference, where there is a sensor",
    NULL },
  { "battery-mah", 0, 0, G_OPTION_ARG_DOUBLE, &battery_mah,
    "The battery to compare it with (default: 5000)", "MAH" },
  { "battery-volts", 0, 0, G_OPTION_ARG_DOUBLE, &battery_volts,
    "Its voltage (default: 3.85)", "V" },
  { "sysfs", 0, 0, G_OPTION_ARG_FILENAME, &sysfs,
    "Where to look for sensors (default: /sys)", "FOLDER" },
  G_OPTION_ENTRY_NULL
};

typedef struct {
  const Options *options;
  RunnelBackend *backend;
  RunnelModel *model;
  RunnelEngine *engine;
  RunnelDrafter *drafter;   /* or NULL */
  guint64 file_bytes;
  GPtrArray *cases;
  BenchProfile *profiles;   /* of the cases */
  BenchLimits limits;
  Samples load;             /* ms, from the open to a ready engine */
  Samples first_token;      /* ms, from exec */
  guint prompt_tokens;      /* of the prompt for it */
  ChildRun memory;
  guint64 kv_bytes;         /* of prompt and reply of that child */
  BenchEnergy energy;
} Bench;

static gboolean
parse_list (const char *option, const char *text, guint min, guint *values,
            guint *n_values, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);

  *n_values = 0;
  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 value;

    if (i == MAX_LIST || !g_ascii_string_to_unsigned (parts[i], 10, min,
            1 << 20, &value, NULL)) {
      report_set_usage (error, "%s: '%s' is no list of up to %d numbers from "
          "%u to %u", option, text, MAX_LIST, min, 1 << 20);
      return FALSE;
    }
    values[(*n_values)++] = value;
  }
  return TRUE;
}

static gboolean
make_cases (Bench *self, GError **error)
{
  guint pp[MAX_LIST], tg[MAX_LIST], depth[MAX_LIST];
  guint n_pp, n_tg, n_depths;

  if (!parse_list ("--pp", prompt_lengths, 1, pp, &n_pp, error)
      || !parse_list ("--tg", reply_lengths, 1, tg, &n_tg, error)
      || !parse_list ("--depths", depths, 0, depth, &n_depths, error))
    return FALSE;
  for (guint i = 0; i < n_pp; i++)
    g_ptr_array_add (self->cases, bench_case_new (BENCH_PREFILL, pp[i], 0));
  for (guint i = 0; i < n_tg; i++)
    for (guint j = 0; j < n_depths; j++)
      g_ptr_array_add (self->cases,
          bench_case_new (BENCH_DECODE, tg[i], depth[j]));
  for (guint i = 0; i < n_tg; i++)
    g_ptr_array_add (self->cases,
        bench_case_new (BENCH_TWO_REPLIES, tg[i], 0));
  return TRUE;
}

/* A prompt of so many tokens, or nearly. */
static char *
make_prompt (RunnelModel *model, guint *ret_n_tokens, GError **error)
{
  static const char text[] = "The river rises in the mountains, runs through "
      "three valleys and many small towns, and reaches the sea after a "
      "journey of four hundred miles.";
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autofree gint32 *tokens = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gsize n, size;
  const char *data;

  if (tokenizer == NULL)
    return NULL;
  tokens = runnel_tokenizer_encode (tokenizer, text, -1, FALSE, &n, error);
  if (tokens == NULL)
    return NULL;
  n = MIN (n, FIRST_TOKEN_PROMPT);
  bytes = runnel_tokenizer_decode (tokenizer, tokens, n, FALSE, error);
  if (bytes == NULL)
    return NULL;
  *ret_n_tokens = n;
  data = g_bytes_get_data (bytes, &size);
  return g_strndup (data, size);
}

/* The keys and values that the child's reply had. */
static gboolean
measure_kv (Bench *self, GError **error)
{
  guint n = self->memory.prompt_tokens + self->memory.completion_tokens;
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (self->engine, 0, error);
  g_autofree gint32 *tokens = g_new0 (gint32, MAX (n, 1));

  if (sequence == NULL || (n > 0
          && !runnel_sequence_prefill (sequence, tokens, n, 0, FALSE, NULL,
              NULL, NULL, NULL, error)))
    return FALSE;
  self->kv_bytes = runnel_sequence_get_kv_bytes (sequence);
  return TRUE;
}

/* Before the model is loaded here: see bench-child.h. */
static gboolean
run_children (Bench *self, GError **error)
{
  g_autofree char *prompt
      = make_prompt (self->model, &self->prompt_tokens, error);

  if (prompt == NULL)
    return FALSE;
  report_progress ("Measuring memory");
  if (!bench_child_run (self->options, prompt, MEMORY_REPLY, TRUE,
          &self->memory, error))
    return FALSE;
  for (int i = 0; i < repeats; i++) {
    ChildRun child;

    report_progress ("Measuring the time to the first token");
    if (!bench_child_run (self->options, prompt, 1, FALSE, &child, error))
      return FALSE;
    samples_add (&self->first_token, child.first_byte * 1000);
  }
  return TRUE;
}

/* Each time from nothing; the last one stays. */
static gboolean
measure_load (Bench *self, GError **error)
{
  RunnelKvType kv_type = RUNNEL_KV_TYPE_F16;

  loading_get_kv_type (self->options, &kv_type);
  for (int i = 0; i < repeats; i++) {
    gint64 started;

    g_clear_object (&self->engine);
    g_clear_object (&self->model);
    started = g_get_monotonic_time ();
    self->model = loading_open_model (self->options, error);
    if (self->model == NULL
        || runnel_model_get_tokenizer (self->model, error) == NULL)
      return FALSE;
    self->engine = runnel_engine_get (self->model, self->backend,
        kv_type, NULL, NULL, NULL, error);
    if (self->engine == NULL)
      return FALSE;
    samples_add (&self->load, (g_get_monotonic_time () - started) / 1e3);
  }
  return TRUE;
}

/* Everything once, then everything again: what changes over time changes all
 * alike. */
static gboolean
run_cases (Bench *self, GError **error)
{
  const guint64 seed = self->options->seed;

  for (guint i = 0; i < self->cases->len; i++)
    if (!bench_case_prepare (self->cases->pdata[i], self->engine,
            self->drafter, seed, error)
        || !bench_case_run (self->cases->pdata[i], self->engine, seed, TRUE,
            error))
      return FALSE;
  bench_profile_add (&(BenchProfile) { 0 }, self->backend, 0);
  for (int round = 0; round < repeats; round++) {
    bench_limits_measure (&self->limits, self->backend);
    for (guint i = 0; i < self->cases->len; i++) {
      BenchCase *bench_case = self->cases->pdata[i];
      gint64 started = g_get_monotonic_time ();
      g_autofree char *text = g_strdup_printf ("%s, depth %u: %d of %d",
          bench_case->name, bench_case->depth, round + 1, repeats);

      report_progress (text);
      if (!bench_case_run (bench_case, self->engine, seed, FALSE, error))
        return FALSE;
      bench_profile_add (&self->profiles[i], self->backend,
          (g_get_monotonic_time () - started) * 1e-6);
    }
  }
  report_progress_end ();
  return TRUE;
}

/* What the memory of a reply may be at most. */
static guint64
get_memory_budget (const Bench *self)
{
  return self->file_bytes * 5 / 4 + self->kv_bytes + 30 * 1000 * 1000;
}

static void
print_case (const BenchCase *bench_case)
{
  printf ("%-10s %6u  %10.2f  %10.2f – %.2f", bench_case->name,
      bench_case->depth, samples_median (&bench_case->speed),
      samples_min (&bench_case->speed), samples_max (&bench_case->speed));
  if (samples_count (&bench_case->ratio) > 0)
    printf ("   %.2f × the time of one",
        samples_median (&bench_case->ratio));
  putchar ('\n');
}

static void
print_memory (const Bench *self)
{
  guint64 known = self->file_bytes + self->kv_bytes;
  guint64 budget = get_memory_budget (self);

  printf ("peak memory    %.1f MiB for a reply of %u tokens: file %.1f, keys "
      "and values %.1f, rest %.1f\n"
      "               %s 1.25 × file + keys and values + 30 MB = %.1f MiB\n",
      self->memory.peak_bytes / MIB, self->memory.completion_tokens,
      self->file_bytes / MIB, self->kv_bytes / MIB,
      ((double) self->memory.peak_bytes - (double) known) / MIB,
      self->memory.peak_bytes <= budget ? "within" : "OVER", budget / MIB);
}

static void
print_text (const Bench *self)
{
  g_autofree char *machine = machine_describe (self->backend);

  printf ("machine        %s\n", machine);
  printf ("model          %s, %s, %.1f MiB\n",
      runnel_model_get_path (self->model),
      runnel_model_get_name (self->model), self->file_bytes / MIB);
  printf ("runnel %s, seed %" G_GUINT64_FORMAT ", %d repeats, interleaved; "
      "median and spread\n\n", RUNNEL_VERSION, self->options->seed, repeats);
  printf ("%-10s %6s  %10s  %10s – %s\n", "test", "depth", "tokens/s", "min",
      "max");
  for (guint i = 0; i < self->cases->len; i++)
    print_case (self->cases->pdata[i]);
  for (guint i = 0; with_profile && i < self->cases->len; i++)
    bench_profile_print_ops (&self->profiles[i], self->cases->pdata[i],
        i == 0);
  putchar ('\n');
  bench_limits_print (&self->limits);
  for (guint i = 0; i < self->cases->len; i++)
    bench_profile_print_roofline (&self->profiles[i], self->cases->pdata[i],
        &self->limits);
  printf ("weights        %s\n", runnel_engine_get_placement (self->engine));
  printf ("load           %.1f ms (%.1f – %.1f)\n",
      samples_median (&self->load), samples_min (&self->load),
      samples_max (&self->load));
  if (with_energy)
    bench_energy_print (&self->energy);
  if (no_children)
    return;
  printf ("first token    %.0f ms from exec (%.0f – %.0f), prompt of %u "
      "tokens\n", samples_median (&self->first_token),
      samples_min (&self->first_token), samples_max (&self->first_token),
      self->prompt_tokens);
  print_memory (self);
}

static void
add_case_json (JsonOutput *json, const Bench *self, guint i)
{
  const BenchCase *bench_case = self->cases->pdata[i];

  json_begin_object (json, NULL);
  json_add_string (json, "test", bench_case->name, -1);
  json_add_uint (json, "tokens", bench_case->n_tokens);
  json_add_uint (json, "depth", bench_case->depth);
  json_add_string (json, "unit", "tokens/s", -1);
  samples_add_json (&bench_case->speed, json);
  if (samples_count (&bench_case->ratio) > 0) {
    json_begin_object (json, "time_by_one_reply");
    samples_add_json (&bench_case->ratio, json);
    json_end_object (json);
  }
  bench_profile_add_json (&self->profiles[i], &self->limits, with_profile,
      json);
  json_end_object (json);
}

static void
add_children_json (JsonOutput *json, const Bench *self)
{
  json_begin_object (json, "first_token_ms");
  json_add_uint (json, "prompt_tokens", self->prompt_tokens);
  samples_add_json (&self->first_token, json);
  json_end_object (json);
  json_begin_object (json, "memory");
  json_add_uint (json, "peak_bytes", self->memory.peak_bytes);
  json_add_uint (json, "file_bytes", self->file_bytes);
  json_add_uint (json, "kv_bytes", self->kv_bytes);
  json_add_uint (json, "budget_bytes", get_memory_budget (self));
  json_add_uint (json, "completion_tokens", self->memory.completion_tokens);
  json_end_object (json);
}

static void
print_json (const Bench *self)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  json_add_string (&json, "runnel", RUNNEL_VERSION, -1);
  machine_add_json (&json, self->backend);
  json_begin_object (&json, "model");
  json_add_string (&json, "path", runnel_model_get_path (self->model), -1);
  json_add_string (&json, "name", runnel_model_get_name (self->model), -1);
  json_add_string (&json, "content_id",
      runnel_model_get_content_id (self->model), -1);
  json_add_uint (&json, "file_bytes", self->file_bytes);
  json_end_object (&json);
  json_add_string (&json, "weights",
      runnel_engine_get_placement (self->engine), -1);
  json_add_uint (&json, "seed", self->options->seed);
  json_add_int (&json, "repeats", repeats);
  json_begin_array (&json, "results");
  for (guint i = 0; i < self->cases->len; i++)
    add_case_json (&json, self, i);
  json_end_array (&json);
  bench_limits_add_json (&self->limits, &json);
  json_begin_object (&json, "load_ms");
  samples_add_json (&self->load, &json);
  json_end_object (&json);
  if (with_energy)
    bench_energy_add_json (&self->energy, &json);
  if (!no_children)
    add_children_json (&json, self);
  json_end_object (&json);
  json_print (&json);
}

/* The weights' share of the file, where it is a folder. */
static guint64
get_file_bytes (RunnelModel *model)
{
  g_autoptr (GVariant) description = runnel_model_describe (model);
  GStatBuf status;
  guint64 bytes = 0;

  if (g_stat (runnel_model_get_path (model), &status) == 0
      && S_ISREG (status.st_mode))
    return status.st_size;
  g_variant_lookup (description, "tensor_bytes", "t", &bytes);
  return bytes;
}

static gboolean
measure_energy (Bench *self, GError **error)
{
  BenchEnergy *energy = &self->energy;

  if (!with_energy)
    return TRUE;
  energy->sysfs = sysfs;
  if (battery_mah > 0)
    energy->battery_mah = battery_mah;
  if (battery_volts > 0)
    energy->battery_volts = battery_volts;
  return bench_energy_measure (energy, self->engine, self->options->seed,
      repeats, error);
}

static gboolean
check_options (GError **error)
{
  if (repeats < 1 || repeats > 1000)
    report_set_usage (error, "--repeats: %d is not between 1 and 1000",
        repeats);
  else if (!(battery_mah >= 0) || !(battery_volts >= 0))
    report_set_usage (error, "--battery-mah and --battery-volts are above 0");
  else
    return TRUE;
  return FALSE;
}

static gboolean
open_draft (Bench *self, GError **error)
{
  g_autoptr (RunnelModel) draft = NULL;

  if (draft_path == NULL)
    return TRUE;
  draft = runnel_model_open (draft_path, RUNNEL_LOAD_MODE_AUTO, error);
  self->drafter = draft ? runnel_dflash_drafter_new (draft, error) : NULL;
  return self->drafter != NULL;
}

static gboolean
measure (Bench *self, GError **error)
{
  if (!check_options (error) || !make_cases (self, error)
      || !open_draft (self, error))
    return FALSE;
  self->profiles = g_new0 (BenchProfile, self->cases->len);
  self->model = loading_open_model (self->options, error);
  if (self->model == NULL)
    return FALSE;
  self->file_bytes = get_file_bytes (self->model);
  self->backend = loading_get_backend (self->options, error);
  if (self->backend == NULL)
    return FALSE;
  runnel_backend_start_profile (self->backend);
  return (no_children || run_children (self, error))
      && measure_load (self, error)
      && (no_children || measure_kv (self, error))
      && run_cases (self, error)
      && measure_energy (self, error);
}

/* What is measured instead, by name. */
static int
run_named (const Options *options)
{
  g_autoptr (GError) error = NULL;

  if (strcmp (options->arguments[0], "decide") != 0)
    report_set_usage (&error, "there is no bench '%s'; there is 'decide'",
        options->arguments[0]);
  if (error == NULL && check_options (&error))
    return bench_decide_run (options, repeats);
  return report_error (error);
}

static int
run (const Options *options)
{
  Bench self = { .options = options };
  g_autoptr (GError) error = NULL;
  int status = EXIT_OK;

  if (options->n_arguments > 0)
    return run_named (options);
  self.cases = g_ptr_array_new_with_free_func (
      (GDestroyNotify) bench_case_free);
  samples_init (&self.load);
  samples_init (&self.first_token);
  bench_energy_init (&self.energy);
  bench_limits_init (&self.limits);
  if (!measure (&self, &error))
    status = report_error (error);
  else if (options->json)
    print_json (&self);
  else
    print_text (&self);
  g_ptr_array_unref (self.cases);
  samples_clear (&self.load);
  samples_clear (&self.first_token);
  bench_energy_clear (&self.energy);
  bench_limits_clear (&self.limits);
  g_free (self.profiles);
  g_clear_object (&self.drafter);
  g_clear_object (&self.engine);
  g_clear_object (&self.model);
  g_clear_object (&self.backend);
  return status;
}

const Verb verb_bench = {
  .name = "bench",
  .parameters = "[decide]",
  .summary = "How fast this machine is",
  .details = "pp is reading a prompt, tg making a reply, in tokens per "
    "second. Load time, the\ntime from exec to the first token (prompt of 20 "
    "tokens) and peak memory (reply of\n60 tokens) go with them. 'bench decide' tells what decisions cost.",
  .uses = USES_MODEL | USES_ENGINE | USES_SEED | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
