/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include <runnel.h>

#include "formats/json.h"
#include "json-output.h"
#include "loading.h"
#include "report.h"
#include "verb.h"

static gboolean show_tensors;

static const GOptionEntry entries[] = {
  { "tensors", 0, 0, G_OPTION_ARG_NONE, &show_tensors,
    "List every tensor", NULL },
  G_OPTION_ENTRY_NULL
};

/* The tensors of one type, together. */
typedef struct {
  const char *type;   /* borrowed from the description */
  guint n;
  guint64 bytes;
} TypeSum;

static int
compare_sums (gconstpointer a, gconstpointer b)
{
  const TypeSum *first = a, *second = b;

  return (first->bytes < second->bytes) - (first->bytes > second->bytes);
}

/* Largest first. */
static GArray *
sum_types (GVariant *tensors)
{
  GArray *sums = g_array_new (FALSE, TRUE, sizeof (TypeSum));
  GVariantIter iter;
  const char *type;
  guint64 bytes;

  g_variant_iter_init (&iter, tensors);
  while (g_variant_iter_next (&iter, "(&s&s@att)", NULL, &type, NULL,
          &bytes)) {
    TypeSum *sum = NULL;

    for (guint i = 0; i < sums->len && sum == NULL; i++)
      if (strcmp (g_array_index (sums, TypeSum, i).type, type) == 0)
        sum = &g_array_index (sums, TypeSum, i);
    if (sum == NULL) {
      g_array_set_size (sums, sums->len + 1);
      sum = &g_array_index (sums, TypeSum, sums->len - 1);
      sum->type = type;
    }
    sum->n++;
    sum->bytes += bytes;
  }
  g_array_sort (sums, compare_sums);
  return sums;
}

static guint
get_uint (GVariant *description, const char *key)
{
  guint value = 0;

  g_variant_lookup (description, key, "u", &value);
  return value;
}

static const char *
get_string (GVariant *description, const char *key)
{
  const char *value = "";

  g_variant_lookup (description, key, "&s", &value);
  return value;
}

static double
get_double (GVariant *description, const char *key)
{
  double value = 0;

  g_variant_lookup (description, key, "d", &value);
  return value;
}

static void
print_token (const char *name, RunnelTokenizer *tokenizer, gint32 token)
{
  g_autoptr (GString) quoted = g_string_new (NULL);
  gsize size;
  const guint8 *piece;

  if (token < 0)
    return;
  piece = runnel_tokenizer_get_piece (tokenizer, token, &size);
  runnel_json_append_string (quoted, (const char *) piece, size);
  printf ("  %-14s %d %s\n", name, token, quoted->str);
}

static void
print_tokenizer (RunnelTokenizer *tokenizer)
{
  const char *template = runnel_tokenizer_get_chat_template (tokenizer);
  const gint32 *stops;
  gsize n_stops;

  printf ("tokenizer        %s, %u tokens, digest %s\n",
      runnel_tokenizer_get_pre (tokenizer),
      runnel_tokenizer_get_n_tokens (tokenizer),
      runnel_tokenizer_get_digest (tokenizer));
  print_token ("begins a text", tokenizer,
      runnel_tokenizer_get_bos (tokenizer));
  if (runnel_tokenizer_get_bos (tokenizer) >= 0)
    printf ("  %-14s %s\n", "", runnel_tokenizer_get_add_bos (tokenizer)
        ? "(wanted before every text)" : "(not put before a text)");
  print_token ("ends a text", tokenizer, runnel_tokenizer_get_eos (tokenizer));
  stops = runnel_tokenizer_get_stop_tokens (tokenizer, &n_stops);
  for (gsize i = 0; i < n_stops; i++)
    print_token ("ends a reply", tokenizer, stops[i]);
  if (template != NULL)
    printf ("chat template    %" G_GSIZE_FORMAT " bytes\n", strlen (template));
  else
    printf ("chat template    none\n");
}

/* What a draft reads of its target, and how it guesses. */
static void
print_draft (GVariant *draft)
{
  g_autoptr (GVariant) taps = g_variant_lookup_value (draft, "taps", NULL);

  printf ("draft            DFlash %s, blocks of %u\n  reads layers  ",
      get_uint (draft, "selector_rank") > 0 ? "2" : "1",
      get_uint (draft, "block_size"));
  for (gsize i = 0; i < g_variant_n_children (taps); i++) {
    guint layer;

    g_variant_get_child (taps, i, "u", &layer);
    printf (" %u", layer);
  }
  if (get_uint (draft, "n_target_layers") > 0)
    printf (" of the target's %u, from 0\n",
        get_uint (draft, "n_target_layers"));
  else
    printf (" of the target, from 0\n");
  printf ("  mask token     %u\n", get_uint (draft, "mask_token"));
  if (get_uint (draft, "selector_rank") > 0)
    printf ("  path selector  rank %u, of the %u likeliest\n",
        get_uint (draft, "selector_rank"), get_uint (draft, "selector_top_k"));
  if (get_uint (draft, "window") > 0)
    printf ("  window         %u\n", get_uint (draft, "window"));
}

static void
print_head (GVariant *head)
{
  const char *error = get_string (head, "error");
  gboolean can_abstain = FALSE;

  if (*error != '\0') {
    g_autofree char *plain = report_make_plain (error);

    printf ("decision head    cannot be used: %s\n", plain);
    return;
  }
  g_variant_lookup (head, "can_abstain", "b", &can_abstain);
  printf ("decision head    form %s, %u wide%s\n", get_string (head, "form"),
      get_uint (head, "head_dim"), can_abstain ? ", can abstain" : "");
}

static void
print_shape (GVariant *description)
{
  g_autoptr (GVariant) draft
      = g_variant_lookup_value (description, "draft", NULL);
  g_autoptr (GVariant) head
      = g_variant_lookup_value (description, "decision_head", NULL);
  gboolean tied = FALSE;

  g_variant_lookup (description, "tied", "b", &tied);
  printf ("architecture     %s\n"
      "  layers         %u\n"
      "  width          %u, feed-forward %u\n"
      "  heads          %u of %u, keys and values %u\n"
      "  vocabulary     %u, output matrix %s\n"
      "  context        %u\n",
      get_string (description, "architecture"),
      get_uint (description, "n_layers"), get_uint (description, "n_embd"),
      get_uint (description, "n_ff"), get_uint (description, "n_heads"),
      get_uint (description, "head_dim"),
      get_uint (description, "n_kv_heads"), get_uint (description, "n_vocab"),
      draft != NULL ? "and embedding of the target"
      : tied ? "tied to the embedding" : "of its own",
      get_uint (description, "context_length"));
  printf ("  rope           base %g, %u dimensions, scaling %s",
      get_double (description, "rope_base"),
      get_uint (description, "rope_dimensions"),
      get_string (description, "rope_scaling"));
  if (strcmp (get_string (description, "rope_scaling"), "none") != 0)
    printf (" by %g", get_double (description, "rope_factor"));
  printf ("\n  norm epsilon   %g\n", get_double (description, "norm_epsilon"));
  if (draft != NULL)
    print_draft (draft);
  if (head != NULL)
    print_head (head);
}

static void
print_types (GVariant *description, GVariant *tensors)
{
  g_autoptr (GArray) sums = sum_types (tensors);
  guint64 n_rounded = 0;

  printf ("tensors          %" G_GSIZE_FORMAT "\n",
      g_variant_n_children (tensors));
  for (guint i = 0; i < sums->len; i++) {
    const TypeSum *sum = &g_array_index (sums, TypeSum, i);

    printf ("  %-15s %4u  %9.2f MiB\n", sum->type, sum->n,
        sum->bytes / 1048576.0);
  }
  if (g_variant_lookup (description, "n_rounded", "t", &n_rounded))
    printf ("  rounded        %" G_GUINT64_FORMAT " scales and offsets to half "
        "floats, by at most %.2g of their value\n", n_rounded,
        get_double (description, "rounding"));
}

static void
print_tensors (GVariant *tensors)
{
  GVariantIter iter;
  const char *name, *type;
  GVariant *dims;
  guint64 bytes;

  printf ("\n");
  g_variant_iter_init (&iter, tensors);
  while (g_variant_iter_loop (&iter, "(&s&s@att)", &name, &type, &dims,
          &bytes)) {
    g_autoptr (GString) shape = g_string_new (NULL);
    g_autofree char *plain = report_make_plain (name);

    for (gsize i = 0; i < g_variant_n_children (dims); i++) {
      guint64 size;

      g_variant_get_child (dims, i, "t", &size);
      g_string_append_printf (shape, i > 0 ? " x %" G_GUINT64_FORMAT
          : "%" G_GUINT64_FORMAT, size);
    }
    printf ("%-32s %-15s %-16s %11" G_GUINT64_FORMAT "\n", plain, type,
        shape->str, bytes);
  }
}

static void
print_sources (GVariant *package)
{
  g_autoptr (GVariant) files = g_variant_lookup_value (package,
      "source_files", G_VARIANT_TYPE ("a(ss)"));
  GVariantIter iter;
  const char *name, *digest;

  printf ("  made of        %s\n", get_string (package, "source_format"));
  g_variant_iter_init (&iter, files);
  while (g_variant_iter_loop (&iter, "(&s&s)", &name, &digest)) {
    g_autofree char *plain = report_make_plain (name);

    printf ("    %s\n      sha256     %s\n", plain, digest);
  }
}

/* How much was lost, by the type that it was before. */
static void
print_record (GVariant *package)
{
  g_autoptr (GVariant) record = g_variant_lookup_value (package, "record",
      G_VARIANT_TYPE ("a(ssbds)"));
  GVariantIter iter;
  gboolean lossless;
  double error, largest = 0;
  guint n_lossless = 0;

  g_variant_iter_init (&iter, record);
  while (g_variant_iter_next (&iter, "(&s&sbd&s)", NULL, NULL, &lossless,
          &error, NULL)) {
    n_lossless += lossless;
    largest = MAX (largest, error);
  }
  printf ("  lossless       %u of %" G_GSIZE_FORMAT " tensors", n_lossless,
      g_variant_n_children (record));
  if (largest > 0)
    printf (", largest relative error of the others %.4f", largest);
  printf ("\n");
}

/* What each tensor was, and lost, and its digest. */
static void
print_whole_record (GVariant *package)
{
  g_autoptr (GVariant) record = g_variant_lookup_value (package, "record",
      G_VARIANT_TYPE ("a(ssbds)"));
  GVariantIter iter;
  const char *name, *type, *digest;
  gboolean lossless;
  double error;

  printf ("\n");
  g_variant_iter_init (&iter, record);
  while (g_variant_iter_loop (&iter, "(&s&sbd&s)", &name, &type, &lossless,
          &error, &digest)) {
    g_autofree char *plain = report_make_plain (name);

    printf ("%-32s from %-5s ", plain, type);
    if (lossless)
      printf ("lossless    ");
    else
      printf ("error %.4f ", error);
    printf ("%s\n", digest);
  }
}

static void
print_package (GVariant *description)
{
  g_autoptr (GVariant) package = g_variant_lookup_value (description,
      "package", G_VARIANT_TYPE_VARDICT);
  g_autofree char *license = NULL, *generation = NULL;

  if (package == NULL)
    return;
  license = report_make_plain (get_string (package, "license"));
  generation = report_make_plain (get_string (package, "generation_config"));
  printf ("package\n  sha256         %s\n  licence        %s\n",
      get_string (package, "sha256"),
      *license != '\0' ? license : "not said");
  print_sources (package);
  print_record (package);
  if (*generation != '\0')
    printf ("  sampling       %s\n", generation);
  if (show_tensors)
    print_whole_record (package);
}

static void
print_text (GVariant *description, RunnelTokenizer *tokenizer)
{
  g_autoptr (GVariant) tensors
      = g_variant_lookup_value (description, "tensors", NULL);
  g_autofree char *name
      = report_make_plain (get_string (description, "name"));
  guint64 n_parameters = 0, bytes = 0;

  g_variant_lookup (description, "n_parameters", "t", &n_parameters);
  g_variant_lookup (description, "tensor_bytes", "t", &bytes);
  printf ("%s\n", name);
  printf ("file             %s (%s)\n", get_string (description, "path"),
      get_string (description, "format"));
  printf ("content id       %s\n", get_string (description, "content_id"));
  printf ("parameters       %.2f million in %.2f MiB, %.2f bits each\n",
      n_parameters / 1e6, bytes / 1048576.0, 8.0 * bytes / n_parameters);
  print_shape (description);
  print_types (description, tensors);
  if (tokenizer != NULL)
    print_tokenizer (tokenizer);
  print_package (description);
  if (show_tensors)
    print_tensors (tensors);
}

static void
add_tokenizer_json (JsonOutput *json, RunnelTokenizer *tokenizer)
{
  const gint32 *stops;
  gsize n_stops;

  json_begin_object (json, "tokenizer");
  json_add_string (json, "pre", runnel_tokenizer_get_pre (tokenizer), -1);
  json_add_uint (json, "n_tokens", runnel_tokenizer_get_n_tokens (tokenizer));
  json_add_string (json, "digest", runnel_tokenizer_get_digest (tokenizer),
      -1);
  json_add_int (json, "bos", runnel_tokenizer_get_bos (tokenizer));
  json_add_boolean (json, "add_bos",
      runnel_tokenizer_get_add_bos (tokenizer));
  json_add_int (json, "eos", runnel_tokenizer_get_eos (tokenizer));
  stops = runnel_tokenizer_get_stop_tokens (tokenizer, &n_stops);
  json_add_tokens (json, "stop_tokens", stops, n_stops);
  json_end_object (json);
  json_add_string (json, "chat_template",
      runnel_tokenizer_get_chat_template (tokenizer), -1);
}

static void
add_types_json (JsonOutput *json, GVariant *tensors)
{
  g_autoptr (GArray) sums = sum_types (tensors);

  json_begin_object (json, "tensor_types");
  for (guint i = 0; i < sums->len; i++) {
    const TypeSum *sum = &g_array_index (sums, TypeSum, i);

    json_begin_object (json, sum->type);
    json_add_uint (json, "n", sum->n);
    json_add_uint (json, "bytes", sum->bytes);
    json_end_object (json);
  }
  json_end_object (json);
}

static void
print_json (GVariant *description, RunnelTokenizer *tokenizer)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  g_autoptr (GVariant) tensors
      = g_variant_lookup_value (description, "tensors", NULL);
  GVariantIter iter;
  const char *key;
  GVariant *value;

  json_begin_object (&json, NULL);
  g_variant_iter_init (&iter, description);
  while (g_variant_iter_loop (&iter, "{&sv}", &key, &value))
    if (strcmp (key, "tensors") != 0)
      json_add_variant (&json, key, value);
  add_types_json (&json, tensors);
  if (tokenizer != NULL)
    add_tokenizer_json (&json, tokenizer);
  if (show_tensors)
    json_add_variant (&json, "tensors", tensors);
  json_end_object (&json);
  json_print (&json);
}

static int
run (const Options *options)
{
  Options chosen = *options;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (GVariant) description = NULL;
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer;

  if (options->n_arguments > 0)
    chosen.model = options->arguments[0];
  model = loading_open_model (&chosen, &error);
  if (model == NULL)
    return report_error (error);
  description = runnel_model_describe (model);
  tokenizer = runnel_model_get_tokenizer (model, &error);
  /* A draft may leave that to its target. */
  if (tokenizer == NULL && !g_variant_lookup (description, "draft", "@a{sv}",
          NULL))
    return report_error (error);
  if (options->json)
    print_json (description, tokenizer);
  else
    print_text (description, tokenizer);
  return EXIT_OK;
}

const Verb verb_inspect = {
  .name = "inspect",
  .parameters = "[FILE]",
  .summary = "What a model file holds",
  .details = "FILE is a package, a GGUF file, a Hugging Face folder or a "
    ".safetensors file\nin one, or the folder of an MNN package. Only its "
    "header and vocabulary are read.",
  .uses = USES_MODEL | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
