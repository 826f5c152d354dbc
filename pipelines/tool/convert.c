/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>
#include <runnel.h>

#include "input.h"
#include "interruptible.h"
#include "json-output.h"
#include "loading.h"
#include "report.h"
#include "verb.h"

static char *type_name;
static int group;
static char **kept;
static char *calibration_path;
static char *head_path, *head_output_path;

static const GOptionEntry entries[] = {
  { "type", 0, 0, G_OPTION_ARG_STRING, &type_name,
    "What becomes of matrices: auto, int4, int8, f16 or source (default: "
    "auto)", "TYPE" },
  { "group", 0, 0, G_OPTION_ARG_INT, &group,
    "Columns that share a scale: 32 or 64 (default: as it fits)", "N" },
  { "keep", 0, 0, G_OPTION_ARG_STRING_ARRAY, &kept,
    "Another type for the tensors whose names fit, such as "
    "'token_embd*=int8'; may be repeated", "PATTERN=TYPE" },
  { "calibrate", 0, 0, G_OPTION_ARG_FILENAME, &calibration_path,
    "A text like those the model will meet, by which what is quantised anew "
    "loses less", "TEXT" },
  { "head", 0, 0, G_OPTION_ARG_FILENAME, &head_path,
    "A decision head for the package (default: the one that IN comes with, if "
    "there is one)", "FILE" },
  { "head-output", 0, 0, G_OPTION_ARG_FILENAME, &head_output_path,
    "Keep the head beside the package, in FILE and not in OUT", "FILE" },
  G_OPTION_ENTRY_NULL
};

static gboolean
parse_type (const char *option, const char *name, RunnelPackageType *ret,
            GError **error)
{
  GEnumClass *types = g_type_class_ref (RUNNEL_TYPE_PACKAGE_TYPE);
  const GEnumValue *found = g_enum_get_value_by_nick (types, name);

  if (found != NULL)
    *ret = found->value;
  else
    report_set_usage (error, "%s: '%s' is no type (auto, int4, int8, f16 and "
        "source are)", option, name);
  g_type_class_unref (types);
  return found != NULL;
}

static gboolean
add_kept (RunnelConverter *converter, GError **error)
{
  for (char **rule = kept; rule != NULL && *rule != NULL; rule++) {
    const char *equals = strrchr (*rule, '=');
    g_autofree char *pattern = NULL;
    RunnelPackageType type;

    if (equals == NULL || equals == *rule) {
      report_set_usage (error, "--keep: '%s' is not PATTERN=TYPE", *rule);
      return FALSE;
    }
    if (!parse_type ("--keep", equals + 1, &type, error))
      return FALSE;
    pattern = g_strndup (*rule, equals - *rule);
    runnel_converter_keep (converter, pattern, type);
  }
  return TRUE;
}

static RunnelConverter *
make_converter (GError **error)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  RunnelPackageType type = RUNNEL_PACKAGE_TYPE_AUTO;

  if (type_name != NULL && !parse_type ("--type", type_name, &type, error))
    return NULL;
  if (group != 0 && group != 32 && group != 64) {
    report_set_usage (error, "--group: %d is neither 32 nor 64", group);
    return NULL;
  }
  g_object_set (converter, "type", type, "group", (guint) group, NULL);
  return add_kept (converter, error) ? g_steal_pointer (&converter) : NULL;
}

static gboolean
is_same_file (const char *a, const char *b)
{
  g_autofree char *path_a = a ? g_canonicalize_filename (a, NULL) : NULL;
  g_autofree char *path_b = b ? g_canonicalize_filename (b, NULL) : NULL;
  GStatBuf status_a, status_b;

  if (a == NULL || b == NULL)
    return FALSE;
  return g_str_equal (path_a, path_b)
      || (g_stat (a, &status_a) == 0 && g_stat (b, &status_b) == 0
          && status_a.st_dev == status_b.st_dev
          && status_a.st_ino == status_b.st_ino);
}

/* A name of its own for the head that is kept beside. */
static gboolean
check_head_output (const Options *options, GError **error)
{
  const char *const others[] = { options->arguments[0], options->arguments[1],
    head_path, calibration_path };

  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (is_same_file (head_output_path, others[i])) {
      report_set_usage (error, "--head-output: '%s' is the name of another "
          "file of this conversion", head_output_path);
      return FALSE;
    }
  return TRUE;
}

/* The converter itself looks at what it reads. */
static gboolean
check_calibration_path (const Options *options, GError **error)
{
  if (!is_same_file (options->arguments[1], calibration_path))
    return TRUE;
  report_set_usage (error, "--calibrate: '%s' is the place for the package; "
      "name another one for it", calibration_path);
  return FALSE;
}

/* The head goes into the package, or beside it. */
static gboolean
set_head (RunnelConverter *converter, const Options *options,
          RunnelDecisionHead **ret_beside, GError **error)
{
  g_autoptr (RunnelDecisionHead) head = NULL;

  if (head_path == NULL && head_output_path == NULL)
    return TRUE;
  if (head_output_path != NULL && !check_head_output (options, error))
    return FALSE;
  head = runnel_decision_head_open (head_path ? head_path
      : options->arguments[0], error);
  if (head == NULL)
    return FALSE;
  runnel_converter_set_head (converter, head);
  if (head_output_path == NULL)
    return TRUE;
  g_object_set (converter, "attach-head", FALSE, NULL);
  *ret_beside = g_steal_pointer (&head);
  return TRUE;
}

/* ---- The report ------------------------------------------------------ */

static guint64
get_uint64 (GVariant *report, const char *key)
{
  guint64 value = 0;

  g_variant_lookup (report, key, "t", &value);
  return value;
}

static void
print_tensors (GVariant *tensors, guint64 *ret_source, guint64 *ret_bytes)
{
  GVariantIter iter;
  const char *name, *source, *type;
  gboolean lossless;
  double error;
  guint64 source_bytes, bytes;

  g_variant_iter_init (&iter, tensors);
  while (g_variant_iter_loop (&iter, "(&s&s&sbdtt)", &name, &source, &type,
          &lossless, &error, &source_bytes, &bytes)) {
    g_autofree char *plain = report_make_plain (name);

    printf ("%-28s %-5s -> %-15s ", plain, source, type);
    if (lossless)
      printf ("lossless    ");
    else
      printf ("error %.4f ", error);
    printf ("%11" G_GUINT64_FORMAT "\n", bytes);
    *ret_source += source_bytes;
    *ret_bytes += bytes;
  }
}

static void
print_report (GVariant *report)
{
  g_autoptr (GVariant) tensors
      = g_variant_lookup_value (report, "tensors", NULL);
  gboolean was_embedding = FALSE, has_head = FALSE;
  guint n_tensors = 0, n_lossless = 0;
  guint64 source = 0, bytes = 0;
  const char *output = "";

  g_variant_lookup (report, "n_tensors", "u", &n_tensors);
  g_variant_lookup (report, "n_lossless", "u", &n_lossless);
  g_variant_lookup (report, "output_was_embedding", "b", &was_embedding);
  g_variant_lookup (report, "has_decision_head", "b", &has_head);
  g_variant_lookup (report, "output", "&s", &output);
  print_tensors (tensors, &source, &bytes);
  if (has_head)
    printf ("with its decision head\n");
  if (was_embedding)
    printf ("output.weight is token_embd.weight once more: stored once\n");
  printf ("%u tensors, %u lossless, %.2f MB of %.2f MB in the source\n"
      "%s: %" G_GUINT64_FORMAT " bytes\n", n_tensors, n_lossless, bytes / 1e6,
      source / 1e6, output, get_uint64 (report, "bytes"));
}

static void
print_json (GVariant *report)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_add_variant (&json, NULL, report);
  json_print (&json);
}

/* ---- The work -------------------------------------------------------- */

typedef struct {
  RunnelConverter *converter;
  const Options *options;
  const char *input, *output;
  GVariant *report;
  GError *error;
} Work;

static gboolean
feed (RunnelCalibration *calibration, RunnelModel *model,
      GCancellable *cancellable, GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autofree char *text = NULL;
  g_autofree gint32 *tokens = NULL;
  gsize length, n_tokens;

  text = tokenizer ? input_read_file (calibration_path, &length, error) : NULL;
  tokens = text ? runnel_tokenizer_encode (tokenizer, text, length, FALSE,
      &n_tokens, error) : NULL;
  if (text != NULL && tokens == NULL)
    g_prefix_error (error, "%s: ", calibration_path);
  if (tokens != NULL && n_tokens < 2) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "%s: %" G_GSIZE_FORMAT " tokens are too few to calibrate with; give a "
        "text of some thousands", calibration_path, n_tokens);
    return FALSE;
  }
  return tokens != NULL && runnel_calibration_feed (calibration, tokens,
      n_tokens, report_progress_fraction, "Calibrating", cancellable, error);
}

/* Lets the model itself read the text. */
static gboolean
calibrate (Work *work, GCancellable *cancellable)
{
  g_autoptr (RunnelModel) model = runnel_model_open (work->input,
      RUNNEL_LOAD_MODE_MAP, &work->error);
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelCalibration) calibration = NULL;

  backend = model ? loading_get_backend (work->options, &work->error) : NULL;
  engine = backend ? runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16,
      report_progress_fraction, "Loading the model", cancellable,
      &work->error) : NULL;
  calibration = engine ? runnel_calibration_new (engine, &work->error) : NULL;
  if (calibration == NULL
      || !feed (calibration, model, cancellable, &work->error))
    return FALSE;
  runnel_converter_set_calibration (work->converter, calibration);
  return TRUE;
}

static void
convert (GCancellable *cancellable, gpointer data)
{
  Work *work = data;

  if (calibration_path != NULL && !calibrate (work, cancellable))
    return;
  work->report = runnel_converter_convert (work->converter, work->input,
      work->output, report_progress_fraction, "Converting", cancellable,
      &work->error);
}

static int
run (const Options *options)
{
  g_autoptr (RunnelConverter) converter = NULL;
  g_autoptr (RunnelDecisionHead) beside = NULL;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (GError) error = NULL;
  Work work = { NULL };

  if (options->n_arguments < 2)
    report_set_usage (&error, "a model and a place for the package are "
        "needed");
  converter = error == NULL ? make_converter (&error) : NULL;
  if (converter == NULL || !check_calibration_path (options, &error)
      || !set_head (converter, options, &beside, &error)
      || (beside != NULL
          && !runnel_decision_head_save (beside, head_output_path, &error)))
    return report_error (error);
  /* A limit on the size of files is then an error like a full disk. */
  signal (SIGXFSZ, SIG_IGN);
  work.converter = converter;
  work.options = options;
  work.input = options->arguments[0];
  work.output = options->arguments[1];
  interruptible_run (convert, &work);
  report_progress_end ();
  report = work.report;
  error = work.error;
  if (report == NULL)
    return report_error (error);
  if (options->json)
    print_json (report);
  else
    print_report (report);
  return EXIT_OK;
}

const Verb verb_convert = {
  .name = "convert",
  .parameters = "IN OUT",
  .summary = "Make a package of a model: one file, used where it lies",
  .details = "IN is a GGUF file, a Hugging Face folder or a .safetensors file "
    "in one, the folder\nof an MNN package, or a package, of a model or a "
    "draft. Weights that are quantised\nalready keep their codes and scales "
    "with --type auto, which is proven for each tensor;\na model of floats "
    "gets 4-bit codes with groups of 64, and loses about half as much\nwith "
    "--calibrate.\n\n"
    "  runnel convert model.gguf model.runnel",
  .uses = USES_ENGINE | USES_JSON,
  .max_arguments = 2,
  .entries = entries,
  .run = run,
};
