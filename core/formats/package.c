/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "package.h"

#include <string.h>

#include "../error-private.h"

gboolean
runnel_package_is (const RunnelGguf *gguf)
{
  return runnel_gguf_has (gguf, RUNNEL_PACKAGE_KEY_VERSION);
}

static gboolean
check_version (const RunnelGguf *gguf, GError **error)
{
  guint64 version;

  if (!runnel_gguf_get_uint (gguf, RUNNEL_PACKAGE_KEY_VERSION, 0, G_MAXUINT32,
          &version, error))
    return FALSE;
  if (version == RUNNEL_PACKAGE_VERSION)
    return TRUE;
  runnel_set_error_about (error, RUNNEL_ERROR_UNSUPPORTED,
      runnel_gguf_name (gguf), "is a package of version %" G_GUINT64_FORMAT
      "; this Runnel reads version %d", version, RUNNEL_PACKAGE_VERSION);
  return FALSE;
}

gboolean
runnel_package_check (const RunnelGguf *gguf, GError **error)
{
  gsize data = runnel_gguf_data_offset (gguf);

  if (!runnel_package_is (gguf))
    return TRUE;
  if (!check_version (gguf, error))
    return FALSE;
  if (data % RUNNEL_PACKAGE_DATA_ALIGNMENT != 0) {
    runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
        runnel_gguf_name (gguf), "the data section begins at byte %"
        G_GSIZE_FORMAT "; a package's begins at a multiple of %d", data,
        RUNNEL_PACKAGE_DATA_ALIGNMENT);
    return FALSE;
  }
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);

    if (tensor->offset % RUNNEL_PACKAGE_ALIGNMENT == 0)
      continue;
    runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
        runnel_gguf_name (gguf), "the data of tensor '%s' begins at byte %"
        G_GSIZE_FORMAT "; a package's begin at multiples of %d", tensor->name,
        tensor->offset, RUNNEL_PACKAGE_ALIGNMENT);
    return FALSE;
  }
  return TRUE;
}

/* ---- Hyperparameters ------------------------------------------------- */

static const char *const styles[] = {
  [RUNNEL_ROPE_PAIRS] = "pairs",
  [RUNNEL_ROPE_HALVES] = "halves",
};

static const char *const scalings[] = {
  [RUNNEL_ROPE_SCALING_NONE] = "none",
  [RUNNEL_ROPE_SCALING_LINEAR] = "linear",
  [RUNNEL_ROPE_SCALING_YARN] = "yarn",
  [RUNNEL_ROPE_SCALING_LLAMA3] = "llama3",
};

/* What GGUF has no key for, or rounds to binary32. */
static const struct {
  const char *key;
  gsize offset;
} rope_doubles[] = {
  { "runnel.rope.factor", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_factor) },
  { "runnel.rope.low_freq_factor", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_low_freq_factor) },
  { "runnel.rope.high_freq_factor", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_high_freq_factor) },
  { "runnel.rope.beta_fast", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_beta_fast) },
  { "runnel.rope.beta_slow", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_beta_slow) },
  { "runnel.rope.attention_factor", G_STRUCT_OFFSET (RunnelHyperparameters,
        rope_attention_factor) },
};

static void
add_uint (RunnelGgufWriter *writer, const RunnelHyperparameters *hp,
          const char *suffix, guint value)
{
  g_autofree char *key = g_strdup_printf ("%s.%s", hp->architecture, suffix);

  runnel_gguf_writer_add_uint32 (writer, key, value);
}

static void
add_double (RunnelGgufWriter *writer, const RunnelHyperparameters *hp,
            const char *suffix, double value)
{
  g_autofree char *key = g_strdup_printf ("%s.%s", hp->architecture, suffix);

  runnel_gguf_writer_add_float64 (writer, key, value);
}

void
runnel_package_write_hyperparameters (RunnelGgufWriter *writer,
                                      const RunnelHyperparameters *hp)
{
  runnel_gguf_writer_add_string (writer, "general.architecture",
      hp->architecture, -1);
  add_uint (writer, hp, "block_count", hp->n_layers);
  add_uint (writer, hp, "context_length", hp->context_length);
  add_uint (writer, hp, "embedding_length", hp->n_embd);
  add_uint (writer, hp, "feed_forward_length", hp->n_ff);
  add_uint (writer, hp, "attention.head_count", hp->n_heads);
  add_uint (writer, hp, "attention.head_count_kv", hp->n_kv_heads);
  add_uint (writer, hp, "attention.key_length", hp->head_dim);
  add_uint (writer, hp, "attention.value_length", hp->head_dim);
  add_uint (writer, hp, "vocab_size", hp->n_vocab);
  add_uint (writer, hp, "rope.dimension_count", hp->rope_dimensions);
  add_double (writer, hp, "attention.layer_norm_rms_epsilon",
      hp->norm_epsilon);
  add_double (writer, hp, "rope.freq_base", hp->rope_base);
  runnel_gguf_writer_add_string (writer, "runnel.rope.style",
      styles[hp->rope_style], -1);
  runnel_gguf_writer_add_string (writer, "runnel.rope.scaling",
      scalings[hp->rope_scaling], -1);
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_NONE)
    return;
  runnel_gguf_writer_add_uint32 (writer, "runnel.rope.original_context",
      hp->rope_original_context);
  for (guint i = 0; i < G_N_ELEMENTS (rope_doubles); i++)
    runnel_gguf_writer_add_float64 (writer, rope_doubles[i].key,
        G_STRUCT_MEMBER (double, hp, rope_doubles[i].offset));
}

/* Which of @names the key holds. */
static gboolean
read_name (const RunnelGguf *gguf, const char *key, const char *const *names,
           guint n_names, guint *ret, GError **error)
{
  g_autofree char *name = NULL;
  const char *text;
  gsize length;

  if (!runnel_gguf_get_string (gguf, key, &text, &length, error))
    return FALSE;
  for (guint i = 0; i < n_names; i++) {
    if (strlen (names[i]) == length && memcmp (text, names[i], length) == 0) {
      *ret = i;
      return TRUE;
    }
  }
  name = g_utf8_make_valid (text, MIN (length, 64));
  runnel_set_error_about (error, RUNNEL_ERROR_UNSUPPORTED,
      runnel_gguf_name (gguf), "key '%s': '%s' is not supported", key, name);
  return FALSE;
}

gboolean
runnel_package_read_rope (const RunnelGguf *gguf, RunnelHyperparameters *hp,
                          GError **error)
{
  guint style, scaling;
  guint64 original;

  if (!read_name (gguf, "runnel.rope.style", styles, G_N_ELEMENTS (styles),
          &style, error) ||
      !read_name (gguf, "runnel.rope.scaling", scalings,
          G_N_ELEMENTS (scalings), &scaling, error))
    return FALSE;
  hp->rope_style = style;
  hp->rope_scaling = scaling;
  if (scaling == RUNNEL_ROPE_SCALING_NONE)
    return TRUE;
  if (!runnel_gguf_get_uint (gguf, "runnel.rope.original_context", 0,
          G_MAXINT32, &original, error))
    return FALSE;
  hp->rope_original_context = original;
  for (guint i = 0; i < G_N_ELEMENTS (rope_doubles); i++)
    if (!runnel_gguf_get_double (gguf, rope_doubles[i].key,
            &G_STRUCT_MEMBER (double, hp, rope_doubles[i].offset), error))
      return FALSE;
  return TRUE;
}

/* ---- The record ------------------------------------------------------ */

/* An array with @n elements of @type for each tensor. */
static gboolean
get_column (const RunnelGguf *gguf, const char *key, RunnelGgufType type,
            gsize n, RunnelGgufArray *ret, GError **error)
{
  if (!runnel_gguf_has (gguf, key)) {
    runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
        runnel_gguf_name (gguf), "key '%s' is missing", key);
    return FALSE;
  }
  if (!runnel_gguf_get_array (gguf, key, type, ret, error))
    return FALSE;
  if (ret->n == n * runnel_gguf_n_tensors (gguf))
    return TRUE;
  runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
      runnel_gguf_name (gguf), "key '%s' has %" G_GUINT64_FORMAT
      " entries for %" G_GSIZE_FORMAT " tensors", key, ret->n,
      runnel_gguf_n_tensors (gguf));
  return FALSE;
}

gboolean
runnel_package_get_digests (const RunnelGguf *gguf, const guint8 **ret,
                            GError **error)
{
  RunnelGgufArray digests;

  if (!get_column (gguf, RUNNEL_PACKAGE_TENSOR_SHA256, RUNNEL_GGUF_UINT8,
          RUNNEL_PACKAGE_DIGEST_BYTES, &digests, error))
    return FALSE;
  *ret = digests.data;
  return TRUE;
}

gboolean
runnel_package_get_record (const RunnelGguf *gguf, gsize i,
                           RunnelPackageRecord *ret, GError **error)
{
  RunnelGgufArray types, lossless, errors;
  const guint8 *digests;
  guint32 type, bits;

  if (!get_column (gguf, RUNNEL_PACKAGE_SOURCE_TYPE, RUNNEL_GGUF_UINT32, 1,
          &types, error) ||
      !get_column (gguf, RUNNEL_PACKAGE_LOSSLESS, RUNNEL_GGUF_BOOL, 1,
          &lossless, error) ||
      !get_column (gguf, RUNNEL_PACKAGE_ERROR, RUNNEL_GGUF_FLOAT32, 1,
          &errors, error) ||
      !runnel_package_get_digests (gguf, &digests, error))
    return FALSE;
  memcpy (&type, types.data + 4 * i, sizeof type);
  memcpy (&bits, errors.data + 4 * i, sizeof bits);
  bits = GUINT32_FROM_LE (bits);
  ret->source_type = GUINT32_FROM_LE (type);
  ret->lossless = lossless.data[i];
  memcpy (&ret->error, &bits, sizeof bits);
  for (guint byte = 0; byte < RUNNEL_PACKAGE_DIGEST_BYTES; byte++)
    g_snprintf (ret->sha256 + 2 * byte, 3, "%02x",
        digests[i * RUNNEL_PACKAGE_DIGEST_BYTES + byte]);
  return TRUE;
}

static const char *
type_name (guint type)
{
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);

  return info != NULL ? info->name : "?";
}

static GVariant *
describe_record (const RunnelGguf *gguf)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(ssbds)"));
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    RunnelPackageRecord record;

    if (runnel_package_get_record (gguf, i, &record, NULL))
      g_variant_builder_add (&builder, "(ssbds)",
          runnel_gguf_tensor (gguf, i)->name, type_name (record.source_type),
          record.lossless, (double) record.error, record.sha256);
  }
  return g_variant_builder_end (&builder);
}

static void
describe_string (GVariantBuilder *builder, const RunnelGguf *gguf,
                 const char *name, const char *key)
{
  const char *text;
  gsize length;

  if (runnel_gguf_has (gguf, key) &&
      runnel_gguf_get_string (gguf, key, &text, &length, NULL))
    g_variant_builder_add (builder, "{sv}", name, g_variant_new_take_string (
            g_utf8_make_valid (text, length)));
}

static GVariant *
describe_sources (const RunnelGguf *gguf)
{
  RunnelGgufArray files, digests;
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(ss)"));
  if (runnel_gguf_get_array (gguf, RUNNEL_PACKAGE_SOURCE_FILES,
          RUNNEL_GGUF_STRING, &files, NULL) &&
      runnel_gguf_get_array (gguf, RUNNEL_PACKAGE_SOURCE_SHA256,
          RUNNEL_GGUF_STRING, &digests, NULL)) {
    const guint8 *file = files.data, *digest = digests.data;

    for (guint64 i = 0; i < MIN (files.n, digests.n); i++) {
      g_autofree char *name = NULL, *sum = NULL;
      const char *text;
      gsize length;

      file = runnel_gguf_next_string (file, &text, &length);
      name = g_utf8_make_valid (text, length);
      digest = runnel_gguf_next_string (digest, &text, &length);
      sum = g_utf8_make_valid (text, length);
      g_variant_builder_add (&builder, "(ss)", name, sum);
    }
  }
  return g_variant_builder_end (&builder);
}

GVariant *
runnel_package_describe (const RunnelGguf *gguf)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  describe_string (&builder, gguf, "sha256", RUNNEL_PACKAGE_SHA256);
  describe_string (&builder, gguf, "license", "general.license");
  describe_string (&builder, gguf, "source_format",
      RUNNEL_PACKAGE_SOURCE_FORMAT);
  g_variant_builder_add (&builder, "{sv}", "source_files",
      describe_sources (gguf));
  describe_string (&builder, gguf, "generation_config",
      RUNNEL_PACKAGE_GENERATION_CONFIG);
  g_variant_builder_add (&builder, "{sv}", "record", describe_record (gguf));
  return g_variant_builder_end (&builder);
}
