/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mnn-package.h"

#include <math.h>
#include <string.h>

#include "checkpoint-private.h"
#include "json-reader.h"
#include "mnn-rope.h"

#define CONFIG "llm_config.json"     /* what the model is */
#define SETTINGS "config.json"       /* how MNN runs it: names of files */

struct _RunnelMnnPackage {
  char *folder;
  RunnelMapping *config_file;
  RunnelJson *config;
  RunnelJson *settings;        /* or NULL */
  RunnelMapping *graph_file, *weights, *embedding;
  RunnelMnnGraph graph;
  char *tokenizer_path;
  GPtrArray *made;             /* RunnelMapping: tensors that are no file's */
  GArray *origins;             /* RunnelMnnOrigin of each tensor */
};

/* How rows of the embedding are stored beside or in the output matrix. */
typedef struct {
  gboolean there;
  gint64 weight_offset, alpha_offset, alpha_size;
  gint64 block;                /* columns; 0: the row */
  guint bits;
  gboolean half_scales;
} TiedEmbedding;

typedef struct {
  RunnelCheckpoint *checkpoint;
  RunnelMnnPackage *package;
  RunnelJsonReader in;         /* llm_config.json */
  RunnelLoadMode mode;
  const RunnelArchitecture *architecture;
  TiedEmbedding tied;
} Reader;

#define fail(self, code, ...) \
  runnel_json_reader_fail (&(self)->in, code, __VA_ARGS__)

/* --- the object --- */

static RunnelMnnPackage *
package_new (const char *folder)
{
  RunnelMnnPackage *self = g_new0 (RunnelMnnPackage, 1);

  self->folder = g_strdup (folder);
  self->made = g_ptr_array_new_with_free_func (
      (GDestroyNotify) runnel_mapping_unref);
  self->origins = g_array_new (FALSE, FALSE, sizeof (RunnelMnnOrigin));
  return self;
}

void
runnel_mnn_package_free (RunnelMnnPackage *self)
{
  g_array_unref (self->origins);
  g_ptr_array_unref (self->made);
  runnel_mnn_graph_clear (&self->graph);
  g_clear_pointer (&self->graph_file, runnel_mapping_unref);
  g_clear_pointer (&self->weights, runnel_mapping_unref);
  g_clear_pointer (&self->embedding, runnel_mapping_unref);
  g_clear_pointer (&self->config_file, runnel_mapping_unref);
  g_clear_pointer (&self->config, runnel_json_unref);
  g_clear_pointer (&self->settings, runnel_json_unref);
  g_free (self->tokenizer_path);
  g_free (self->folder);
  g_free (self);
}

const char *
runnel_mnn_package_folder (const RunnelMnnPackage *self)
{
  return self->folder;
}

const RunnelMapping *
runnel_mnn_package_graph (const RunnelMnnPackage *self)
{
  return self->graph_file;
}

const RunnelMnnOrigin *
runnel_mnn_package_origin (const RunnelMnnPackage *self, gsize i)
{
  return &g_array_index (self->origins, RunnelMnnOrigin, i);
}

const char *
runnel_mnn_package_tokenizer_path (const RunnelMnnPackage *self)
{
  return self->tokenizer_path;
}

const char *
runnel_mnn_package_jinja (const RunnelMnnPackage *self, const char *key)
{
  const RunnelJsonNode *jinja =
      runnel_json_find (runnel_json_root (self->config), "jinja");
  const RunnelJsonNode *node =
      jinja != NULL ? runnel_json_find (jinja, key) : NULL;

  return node != NULL && runnel_json_node_kind (node) == RUNNEL_JSON_STRING ?
      runnel_json_node_string (node, NULL) : NULL;
}

/* --- files --- */

static gboolean
has_file (const char *folder, const char *name)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  return g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

static char *
dup_folder (const char *path)
{
  return g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) :
      g_path_get_dirname (path);
}

gboolean
runnel_mnn_package_is_at (const char *path)
{
  g_autofree char *folder = dup_folder (path);
  g_autofree char *name = g_path_get_basename (path);

  if (!has_file (folder, CONFIG))
    return FALSE;
  return g_file_test (path, G_FILE_TEST_IS_DIR) ||
      strcmp (name, CONFIG) == 0 || strcmp (name, SETTINGS) == 0 ||
      g_str_has_suffix (name, ".mnn");
}

/* A file of the folder by the name under @key, or else by @fallback. Names
 * come from a file, so they do not leave the folder. */
static gboolean
find_file (Reader *self, const char *key, const char *fallback, char **ret)
{
  RunnelMnnPackage *package = self->package;
  RunnelJsonReader settings = { package->settings, NULL, self->in.error };
  const char *name = NULL;

  if (package->settings != NULL) {
    settings.root = runnel_json_root (package->settings);
    if (!runnel_json_get_string_or_null (&settings, settings.root, key, &name))
      return FALSE;
    if (name != NULL && (strchr (name, G_DIR_SEPARATOR) != NULL ||
            strcmp (name, "..") == 0))
      return runnel_json_reader_fail (&settings, RUNNEL_ERROR_UNSUPPORTED,
          "'%s' is \"%s\"; only a file of the same folder is supported", key,
          name);
  }
  *ret = g_build_filename (package->folder, name != NULL ? name : fallback,
      NULL);
  return TRUE;
}

static gboolean
open_file (Reader *self, const char *key, const char *fallback,
    RunnelMapping **ret)
{
  g_autofree char *path = NULL;

  if (!find_file (self, key, fallback, &path))
    return FALSE;
  *ret = runnel_mapping_open (path, self->mode, self->in.error);
  return *ret != NULL;
}

static gboolean
load_json (const char *folder, const char *name, RunnelMapping **ret_file,
    RunnelJson **ret, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (RunnelMapping) file =
      runnel_mapping_read (path, RUNNEL_JSON_MAX_TEXT, error);
  g_autoptr (RunnelJson) json = NULL;

  if (file == NULL)
    return FALSE;
  json = runnel_json_parse ((const char *) runnel_mapping_data (file),
      runnel_mapping_size (file), path, error);
  if (json == NULL)
    return FALSE;
  if (runnel_json_node_kind (runnel_json_root (json)) != RUNNEL_JSON_OBJECT) {
    runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED, path,
        "is no object");
    return FALSE;
  }
  *ret = g_steal_pointer (&json);
  *ret_file = g_steal_pointer (&file);
  return TRUE;
}

static gboolean
open_files (Reader *self)
{
  RunnelMnnPackage *package = self->package;
  g_autoptr (RunnelMapping) settings = NULL;
  GError **error = self->in.error;

  if (!load_json (package->folder, CONFIG, &package->config_file,
          &package->config, error) ||
      (has_file (package->folder, SETTINGS) &&
          !load_json (package->folder, SETTINGS, &settings,
              &package->settings, error)))
    return FALSE;
  self->in.json = package->config;
  self->in.root = runnel_json_root (package->config);
  return open_file (self, "llm_model", "llm.mnn", &package->graph_file) &&
      open_file (self, "llm_weight", "llm.mnn.weight", &package->weights) &&
      find_file (self, "tokenizer_file",
          has_file (package->folder, "tokenizer.mtok") ? "tokenizer.mtok" :
          "tokenizer.txt", &package->tokenizer_path);
}

/* --- llm_config.json --- */

/* The older form: the places of codes and scales, bytes of scales, bits, block;
 * scales are float32. */
static gboolean
read_tied_list (Reader *self, const RunnelJsonNode *node)
{
  gint64 numbers[5];

  if (runnel_json_node_size (node) == 0)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (runnel_json_node_size (node) < G_N_ELEMENTS (numbers) ||
        !runnel_json_node_int64 (runnel_json_node_item (node, i),
            &numbers[i]) || numbers[i] < 0)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "'tie_embeddings' is no list of five integers from 0");
  self->tied = (TiedEmbedding) { TRUE, numbers[0], numbers[1], numbers[2],
    numbers[4], MIN (numbers[3], 64), FALSE };
  return TRUE;
}

static gboolean
read_tied (Reader *self)
{
  const RunnelJsonNode *node = runnel_json_find (self->in.root,
      "tie_embeddings");
  TiedEmbedding *tied = &self->tied;
  static const char *const keys[] = { "weight_offset", "alpha_offset",
    "alpha_size", "quant_block" };
  gint64 *const numbers[] = { &tied->weight_offset, &tied->alpha_offset,
    &tied->alpha_size, &tied->block };
  const char *scales;

  if (node == NULL)
    return TRUE;
  if (runnel_json_node_kind (node) == RUNNEL_JSON_ARRAY)
    return read_tied_list (self, node);
  if (runnel_json_node_kind (node) != RUNNEL_JSON_OBJECT)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "'tie_embeddings' is neither an object nor a list");
  if (!runnel_json_get_uint_or (&self->in, node, "quant_bit", 16, 0,
          &tied->bits) ||
      !runnel_json_get_string_or_null (&self->in, node, "alpha_dtype",
          &scales))
    return FALSE;
  tied->there = TRUE;
  tied->half_scales = g_strcmp0 (scales, "fp16") == 0;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const RunnelJsonNode *number = runnel_json_find (node, keys[i]);

    if (number == NULL || !runnel_json_node_int64 (number, numbers[i]) ||
        *numbers[i] < 0)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "'tie_embeddings.%s' is no integer from 0", keys[i]);
  }
  return TRUE;
}

/* What would change the result. */
static gboolean
check_supported (Reader *self, const RunnelHyperparameters *hp)
{
  static const char *const keys[] = { "talker_model", "is_visual",
    "is_audio", "ple_embed_file", "is_mrope" };
  const char *attention;
  double scale;

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const RunnelJsonNode *node = runnel_json_find (self->in.root, keys[i]);

    if (node != NULL && (runnel_json_node_kind (node) != RUNNEL_JSON_BOOLEAN ||
            runnel_json_node_boolean (node)))
      return fail (self, RUNNEL_ERROR_UNSUPPORTED,
          "'%s' asks for something that is not supported", keys[i]);
  }
  if (!runnel_json_get_string_or_null (&self->in, self->in.root,
          "attention_type", &attention) ||
      !runnel_json_get_double_or (&self->in, self->in.root, "attn_scale", 0,
          &scale))
    return FALSE;
  if (attention != NULL && strcmp (attention, "full") != 0)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED, "'attention_type' is '%s'; "
        "only full attention is supported", attention);
  if (scale != 0 && fabs (scale * sqrt (hp->head_dim) - 1) > 1e-6)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED, "'attn_scale' is %g; only "
        "1/sqrt of a head's %u elements is supported", scale, hp->head_dim);
  return TRUE;
}

static gboolean
read_architecture (Reader *self, RunnelHyperparameters *hp)
{
  const char *type;

  if (!runnel_json_get_string_or_null (&self->in, self->in.root, "model_type",
          &type))
    return FALSE;
  if (type == NULL)
    return fail (self, RUNNEL_ERROR_MALFORMED, "'model_type' is missing");
  self->architecture = runnel_architecture_find (type,
      runnel_json_name (self->in.json), self->in.error);
  if (self->architecture == NULL)
    return FALSE;
  g_strlcpy (hp->architecture, type, sizeof hp->architecture);
  return TRUE;
}

/* A size that the graph gives, 0 where it does not. */
static gboolean
take_size (Reader *self, guint value, guint max, const char *what, guint *ret)
{
  if (value >= 1 && value <= max) {
    *ret = value;
    return TRUE;
  }
  if (value > max)
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_LIMIT,
        self->package->graph.buffer.name, "has %u %s; at most %u are "
        "supported", value, what, max);
  else
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_UNSUPPORTED,
        self->package->graph.buffer.name, "does not say how many %s there "
        "are (older exports do not); export it with MNN 3.6 or later", what);
  return FALSE;
}

static gboolean
read_sizes (Reader *self, RunnelHyperparameters *hp)
{
  const RunnelMnnGraph *graph = &self->package->graph;
  const RunnelMnnLinear *gate = runnel_mnn_graph_find (graph,
      RUNNEL_PART_GATE);
  const RunnelMnnLinear *output = runnel_mnn_graph_find (graph,
      RUNNEL_PART_OUTPUT);

  if (!runnel_json_get_uint (&self->in, "layer_nums", RUNNEL_MAX_LAYERS,
          &hp->n_layers) ||
      !runnel_json_get_uint (&self->in, "hidden_size", RUNNEL_MAX_EMBD,
          &hp->n_embd) ||
      !runnel_json_get_uint (&self->in, "max_position_embeddings",
          RUNNEL_MAX_CONTEXT, &hp->context_length) ||
      !take_size (self, gate != NULL ? gate->rows : 0, RUNNEL_MAX_FF,
          "rows of gate_proj", &hp->n_ff) ||
      !take_size (self, output != NULL ? output->rows : 0, RUNNEL_MAX_VOCAB,
          "rows of lm_head", &hp->n_vocab) ||
      !take_size (self, graph->n_heads, RUNNEL_MAX_HEADS, "heads",
          &hp->n_heads) ||
      !take_size (self, graph->n_kv_heads, RUNNEL_MAX_HEADS,
          "key and value heads", &hp->n_kv_heads) ||
      !take_size (self, graph->head_dim, RUNNEL_MAX_HEAD_DIM,
          "elements of a head", &hp->head_dim))
    return FALSE;
  hp->rope_dimensions = graph->rope_dimensions;
  hp->rope_style = RUNNEL_ROPE_HALVES;
  hp->norm_epsilon = graph->norm_epsilon;
  return TRUE;
}

/* --- tensors --- */

/* Whether a tensor of the graph fits before memory is taken for it: its shape,
 * and that it comes once. */
static gboolean
check_part (Reader *self, const char *op, RunnelPart part, guint layer,
    guint columns, guint rows)
{
  const RunnelHyperparameters *hp = &self->checkpoint->hyperparameters;
  const char *file = self->package->graph.buffer.name;
  g_autofree char *name = runnel_part_dup_name (part, layer);
  guint64 dims[2];

  runnel_part_get_dims (part, hp, dims);
  if (layer >= hp->n_layers)
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_MISMATCH, file,
        "operator '%s' belongs to no layer (there are %u)", op, hp->n_layers);
  else if (runnel_checkpoint_tensor (self->checkpoint, name) != NULL)
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_MALFORMED, file,
        "operator '%s' is the second one for '%s'", op, name);
  else if (columns != dims[0] || rows != dims[1])
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_MISMATCH, file,
        "operator '%s' has %u rows of %u; the model's sizes ask for %"
        G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT, op, rows, columns, dims[1],
        dims[0]);
  else
    return TRUE;
  return FALSE;
}

/* Takes over the mapping, if it is none of the files. */
static void
add_tensor (Reader *self, RunnelTensor *tensor, gboolean made, RunnelPart part,
    guint layer, const RunnelMnnOrigin *origin)
{
  g_autofree char *name = runnel_part_dup_name (part, layer);

  if (made)
    g_ptr_array_add (self->package->made, tensor->mapping);
  g_array_append_val (self->package->origins, *origin);
  runnel_checkpoint_add_tensor (self->checkpoint, tensor, name);
}

/* A vector of its own memory: files hold them at any alignment, and they are
 * small. */
static void
add_vector (Reader *self, float *take_values, guint n, RunnelPart part,
    guint layer, const RunnelMnnOrigin *origin)
{
  g_autoptr (GBytes) bytes = g_bytes_new_take (take_values, 4 * (gsize) n);
  RunnelTensor tensor = { NULL, RUNNEL_TENSOR_F32, 1, { n, 1, 1, 1 } };

  tensor.mapping = runnel_mapping_new_from_bytes (bytes,
      runnel_mapping_name (origin->file));
  tensor.bytes = 4 * (gsize) n;
  add_tensor (self, &tensor, TRUE, part, layer, origin);
}

static float *
dup_floats (const RunnelMapping *file, guint64 at, guint n)
{
  float *values = g_new (float, n);

  for (guint i = 0; i < n; i++) {
    guint32 bits;

    memcpy (&bits, runnel_mapping_data (file) + at + 4 * (gsize) i, 4);
    values[i] = runnel_float_from_bits (GUINT32_FROM_LE (bits));
  }
  return values;
}

static RunnelPart
bias_of (RunnelPart part)
{
  switch (part) {
    case RUNNEL_PART_Q: return RUNNEL_PART_Q_BIAS;
    case RUNNEL_PART_K: return RUNNEL_PART_K_BIAS;
    case RUNNEL_PART_V: return RUNNEL_PART_V_BIAS;
    default: return RUNNEL_N_PARTS;
  }
}

static gboolean
add_bias (Reader *self, const RunnelMnnLinear *linear)
{
  RunnelMapping *file = self->package->weights;
  RunnelPart part = bias_of (linear->part);
  RunnelMnnOrigin origin = { file,
    linear->at + linear->codes_bytes + linear->scales_bytes,
    linear->bias_bytes };
  g_autofree float *values = NULL;
  gboolean all_zero = TRUE;

  if (linear->bias_bytes == 0)
    return TRUE;
  if (!runnel_mnn_check_range (file, origin.at, origin.bytes, linear->op,
          self->in.error))
    return FALSE;
  if (linear->bias_bytes != 4 * (guint64) linear->rows) {
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_MISMATCH,
        runnel_mapping_name (file), "'%s' has %" G_GUINT64_FORMAT " bytes of "
        "bias for %u rows", linear->op, linear->bias_bytes, linear->rows);
    return FALSE;
  }
  values = dup_floats (file, origin.at, linear->rows);
  for (guint i = 0; i < linear->rows; i++)
    all_zero &= values[i] == 0;
  /* The exporter writes biases of zero where a model has none. */
  if (part != RUNNEL_N_PARTS && (!all_zero ||
          runnel_architecture_allows (self->architecture,
              &self->checkpoint->hyperparameters, part))) {
    add_vector (self, g_steal_pointer (&values), linear->rows, part,
        linear->layer, &origin);
    return TRUE;
  }
  if (all_zero)
    return TRUE;
  runnel_set_error_about (self->in.error, RUNNEL_ERROR_UNSUPPORTED,
      runnel_mapping_name (file), "'%s' has a bias, which is not supported "
      "there in architecture '%s'", linear->op, self->architecture->name);
  return FALSE;
}

/* Rows of 16-bit floats as the file has them. */
static gboolean
add_floats (Reader *self, RunnelMapping *file, RunnelTensorType type,
    guint rows, guint columns, guint64 at, guint64 bytes, const char *what,
    RunnelPart part, guint layer)
{
  RunnelTensor tensor = { NULL, type, 2, { columns, rows, 1, 1 } };
  RunnelMnnOrigin origin = { file, at, bytes };

  if (bytes != 2 * (guint64) rows * columns) {
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_MISMATCH,
        runnel_mapping_name (file), "'%s' has %" G_GUINT64_FORMAT " bytes; %u "
        "rows of %u 16-bit floats take %" G_GUINT64_FORMAT, what, bytes, rows,
        columns, 2 * (guint64) rows * columns);
    return FALSE;
  }
  if (!runnel_mnn_check_range (file, at, bytes, what, self->in.error))
    return FALSE;
  tensor.mapping = file;
  tensor.offset = at;
  tensor.bytes = bytes;
  add_tensor (self, &tensor, FALSE, part, layer, &origin);
  return TRUE;
}

static gboolean
add_codes (Reader *self, const RunnelMnnCodes *codes, RunnelPart part,
    guint layer)
{
  RunnelMnnOrigin origin = { codes->file, codes->codes_at,
    codes->codes_bytes };
  RunnelTensor tensor;

  /* Pages that were read are lost when they are given back. */
  if (!runnel_mnn_codes_make_tensor (codes,
          self->mode != RUNNEL_LOAD_MODE_READ, &tensor, &origin.rounding,
          self->in.error))
    return FALSE;
  add_tensor (self, &tensor, TRUE, part, layer, &origin);
  return TRUE;
}

static gboolean
add_linear (Reader *self, const RunnelMnnLinear *linear, RunnelPart part)
{
  RunnelMapping *file = self->package->weights;
  RunnelMnnCodes codes;

  if (!check_part (self, linear->op, part, linear->layer, linear->columns,
          linear->rows) || !add_bias (self, linear))
    return FALSE;
  if (linear->bits == 16)
    return add_floats (self, file, RUNNEL_TENSOR_F16, linear->rows,
        linear->columns, linear->at, linear->codes_bytes, linear->op, part,
        linear->layer);
  return runnel_mnn_codes_find (&codes, file, linear, self->in.error) &&
      add_codes (self, &codes, part, linear->layer);
}

static gboolean
add_norm (Reader *self, const RunnelMnnNorm *norm)
{
  RunnelMapping *file = norm->n_bytes > 0 ? self->package->weights :
      self->package->graph_file;
  RunnelMnnOrigin origin = { file, norm->at, norm->n_bytes };
  float *values;

  if (!check_part (self, norm->op, norm->part, norm->layer, norm->n, 1))
    return FALSE;
  if (norm->n_bytes == 0) {
    origin.at = norm->inside.at;
    origin.bytes = 4 * (guint64) norm->n;
    add_vector (self, dup_floats (file, origin.at, norm->n), norm->n,
        norm->part, norm->layer, &origin);
    return TRUE;
  }
  if (!runnel_mnn_check_range (file, norm->at, norm->n_bytes, norm->op,
          self->in.error) ||
      !runnel_mnn_check_range (file, norm->at + norm->n_bytes,
          norm->beta_bytes, norm->op, self->in.error))
    return FALSE;
  for (guint64 i = 0; i < norm->beta_bytes; i++) {
    if (runnel_mapping_data (file)[norm->at + norm->n_bytes + i] == 0)
      continue;
    runnel_set_error_about (self->in.error, RUNNEL_ERROR_UNSUPPORTED,
        runnel_mapping_name (file), "'%s' adds to what it normalises, which "
        "is not supported", norm->op);
    return FALSE;
  }
  values = dup_floats (file, norm->at, norm->n);
  add_vector (self, values, norm->n, norm->part, norm->layer, &origin);
  return TRUE;
}

/* --- the embedding --- */

/* Codes and scales in a file of their own, without a header. */
static gboolean
add_coded_embedding (Reader *self, const RunnelHyperparameters *hp)
{
  const TiedEmbedding *tied = &self->tied;
  RunnelMapping *file = self->package->embedding;
  RunnelMnnCodes codes = {
    .file = file, .name = "embedding", .rows = hp->n_vocab,
    .columns = hp->n_embd, .bits = tied->bits,
    .half_scales = tied->half_scales, .codes_bytes = tied->alpha_offset,
    .scales_at = tied->alpha_offset, .scales_bytes = tied->alpha_size,
  };
  guint64 blocks = tied->block > 0 ? MAX (hp->n_embd / tied->block, 1) : 1;
  guint64 scales = blocks * hp->n_vocab * (tied->half_scales ? 2 : 4);

  if (tied->bits != 4 && tied->bits != 8)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED, "'tie_embeddings.quant_bit' "
        "is %u; 4 and 8 are supported for an embedding of its own",
        tied->bits);
  /* Zero points or not follows from the number of scales. */
  if (codes.scales_bytes != scales && codes.scales_bytes != 2 * scales)
    return fail (self, RUNNEL_ERROR_MISMATCH, "'tie_embeddings.alpha_size' is "
        "%" G_GUINT64_FORMAT "; %u rows of %" G_GUINT64_FORMAT " blocks have %"
        G_GUINT64_FORMAT " bytes of scales, or twice as many",
        codes.scales_bytes, hp->n_vocab, blocks, scales);
  codes.offset = codes.scales_bytes == 2 * scales;
  return add_codes (self, &codes, RUNNEL_PART_EMBEDDING, 0);
}

/* The output matrix serves as embedding, if its codes are where the embedding
 * is said to be. */
static gboolean
check_tied (Reader *self, const RunnelMnnLinear *output)
{
  guint64 header = output->bits == 16 ? 0 :
      1 + (output->wide ? 8 : 4) + 1 + ((guint64) 1 << output->bits);

  if ((guint64) self->tied.weight_offset == output->at + header &&
      self->tied.bits == output->bits)
    return TRUE;
  return fail (self, RUNNEL_ERROR_MISMATCH, "'tie_embeddings' names %u-bit "
      "codes at byte %" G_GINT64_FORMAT ", but those of lm_head have %u bits "
      "and begin at %" G_GUINT64_FORMAT, self->tied.bits,
      self->tied.weight_offset, output->bits, output->at + header);
}

static gboolean
add_embedding (Reader *self, const RunnelHyperparameters *hp)
{
  RunnelMnnPackage *package = self->package;
  RunnelMapping *file;

  if (hp->tied)
    return TRUE;
  if (!open_file (self, "embedding_file", !self->tied.there ?
          "embeddings_bf16.bin" : self->tied.bits == 4 ?
          "embeddings_int4.bin" : "embeddings_int8.bin", &package->embedding))
    return FALSE;
  file = package->embedding;
  if (self->tied.there)
    return add_coded_embedding (self, hp);
  return add_floats (self, file, RUNNEL_TENSOR_BF16, hp->n_vocab, hp->n_embd,
      0, runnel_mapping_size (file), "embedding", RUNNEL_PART_EMBEDDING, 0);
}

/* --- the whole --- */

static gboolean
add_tensors (Reader *self)
{
  const RunnelMnnGraph *graph = &self->package->graph;
  const RunnelHyperparameters *hp = &self->checkpoint->hyperparameters;

  for (guint i = 0; i < graph->linears->len; i++) {
    const RunnelMnnLinear *linear =
        &g_array_index (graph->linears, RunnelMnnLinear, i);
    RunnelPart part = linear->part;

    if (part == RUNNEL_PART_OUTPUT && hp->tied)
      part = RUNNEL_PART_EMBEDDING;
    if (!add_linear (self, linear, part))
      return FALSE;
  }
  for (guint i = 0; i < graph->norms->len; i++)
    if (!add_norm (self, &g_array_index (graph->norms, RunnelMnnNorm, i)))
      return FALSE;
  return add_embedding (self, hp);
}

static gboolean
read_rope (Reader *self, RunnelHyperparameters *hp)
{
  RunnelMnnPackage *package = self->package;
  g_autoptr (GArray) factors = NULL;
  gboolean may_have = runnel_architecture_allows (self->architecture, hp,
      RUNNEL_PART_ROPE_FACTORS);
  RunnelMnnOrigin origin = { package->graph_file, 0, 0 };

  if (!runnel_mnn_rope_read (&package->graph, package->weights, hp,
          may_have ? &factors : NULL, self->in.error))
    return FALSE;
  if (factors != NULL)
    add_vector (self, g_memdup2 (factors->data, 4 * (gsize) factors->len),
        factors->len, RUNNEL_PART_ROPE_FACTORS, 0, &origin);
  return TRUE;
}

gboolean
runnel_checkpoint_read_mnn (RunnelCheckpoint *self, RunnelLoadMode mode,
    RunnelMapping **config, GError **error)
{
  RunnelHyperparameters *hp = &self->hyperparameters;
  Reader reader = { self, NULL, { NULL, NULL, error }, mode };
  g_autofree char *folder = dup_folder (self->path);
  const RunnelMnnLinear *output;

  self->mnn = reader.package = package_new (folder);
  if (!open_files (&reader) || !read_architecture (&reader, hp) ||
      !runnel_mnn_graph_read (&self->mnn->graph, self->mnn->graph_file,
          error) ||
      !read_sizes (&reader, hp) || !check_supported (&reader, hp) ||
      !read_tied (&reader) || !read_rope (&reader, hp) ||
      !runnel_checkpoint_check_hyperparameters (self, error))
    return FALSE;
  output = runnel_mnn_graph_find (&self->mnn->graph, RUNNEL_PART_OUTPUT);
  hp->tied = reader.tied.there && reader.tied.weight_offset > 0;
  if (hp->tied && !check_tied (&reader, output))
    return FALSE;
  if (!add_tensors (&reader) ||
      !runnel_checkpoint_check_tensors (self, reader.architecture, error))
    return FALSE;
  *config = runnel_mapping_ref (self->mnn->config_file);
  return TRUE;
}
