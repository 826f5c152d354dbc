/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Models of noise, for benchmarks. Every type of weight holds the same
 * numbers: a scale d for 64 columns with at most 8 significant bits, times a
 * code from -7 to 7. So d * code is a half float, -8 d the offset of Q4_1, and
 * engines that read different files compute the same model. Packages are made
 * of such files, which loses nothing.
 */
#include "random-model.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "../error.h"
#include "../formats/converter.h"
#include "../formats/gguf.h"
#include "../text/synthetic-vocabulary.h"
#include "architecture.h"

#define GROUP 64
#define BLOCK 32
#define N_VOCAB 65536
#define HEAD_DIM 64
#define N_KV_HEADS 2
#define CONTEXT_LENGTH 32768
#define ROPE_BASE 1e6f
#define NORM_EPSILON 1e-6f

typedef struct {
  const char *name;
  guint n_layers, n_embd, n_ff;   /* widths are multiples of 64 */
} Shape;

/* The sweep: each size with 28 and with 36 layers, equal within 2 %. */
static const Shape shapes[] = {
  { "pocket-0.3b", 28, 896, 2560 },
  { "50m-28", 28, 256, 1280 }, { "50m-36", 36, 256, 960 },
  { "100m-28", 28, 512, 1152 }, { "100m-36", 36, 384, 1472 },
  { "200m-28", 28, 768, 1728 }, { "200m-36", 36, 640, 1792 },
  { "300m-28", 28, 896, 2560 }, { "300m-36", 36, 768, 2432 },
  { "600m-28", 28, 1280, 3904 }, { "600m-36", 36, 1152, 3392 },
  { "1.3b-28", 28, 2048, 5312 }, { "1.3b-36", 36, 1792, 4864 },
};

/* ---- Noise --------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014). */
static guint64
next (guint64 *state)
{
  guint64 z = *state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Uniform in [-1, 1), with 24 bits. */
static float
next_float (guint64 *state)
{
  return (float) ((gint32) (next (state) >> 40) - (1 << 23)) / (1 << 23);
}

/* The standard deviation of a code. */
#define CODE_SPREAD 3.2403703f   /* sqrt (2 (8² − 1) / 12) */

/* The sum of two uniform ones, −7 … 7: a triangle, near enough to the bell of
 * real weights. */
static void
draw_codes (gint8 codes[GROUP], guint64 *state)
{
  for (guint i = 0; i < GROUP; i += 8) {
    guint64 word = next (state);

    for (guint k = 0; k < 8; k++, word >>= 8)
      codes[i + k] = (gint8) ((word & 7) + (word >> 3 & 7)) - 7;
  }
}

/* A scale as a half float with 8 significant bits of 11. */
static guint16
draw_scale (float spread, guint64 *state)
{
  float d = spread / CODE_SPREAD * (1 + 0.25f * next_float (state));

  return runnel_float_to_half (d) & ~7;
}

/* ---- Types of weights ---------------------------------------------------- */

static guint8 *
put_half (guint8 *at, guint16 half)
{
  half = GUINT16_TO_LE (half);
  memcpy (at, &half, 2);
  return at + 2;
}

static guint8 *
put_nibbles (guint8 *at, const gint8 *codes)
{
  for (guint i = 0; i < BLOCK / 2; i++)
    at[i] = (codes[i] + 8) | (codes[i + BLOCK / 2] + 8) << 4;
  return at + BLOCK / 2;
}

static guint8 *
put_q4_0 (guint8 *at, guint16 d, const gint8 *codes)
{
  return put_nibbles (put_half (at, d), codes);
}

static guint8 *
put_q4_1 (guint8 *at, guint16 d, const gint8 *codes)
{
  guint16 m = runnel_float_to_half (-8 * runnel_half_to_float (d));

  return put_nibbles (put_half (put_half (at, d), m), codes);
}

static guint8 *
put_q8_0 (guint8 *at, guint16 d, const gint8 *codes)
{
  at = put_half (at, d);
  memcpy (at, codes, BLOCK);
  return at + BLOCK;
}

static guint8 *
put_f16 (guint8 *at, guint16 d, const gint8 *codes)
{
  guint16 values[15];

  for (int code = -7; code <= 7; code++)
    values[7 + code] = runnel_float_to_half (code * runnel_half_to_float (d));
  for (guint i = 0; i < BLOCK; i++)
    at = put_half (at, values[7 + codes[i]]);
  return at;
}

/* @file_type: llama.cpp's number for a file that is mostly of this type.
 * @package: that a package is made of the file, without loss. */
typedef struct {
  const char *name;
  RunnelTensorType type;
  gboolean package;
  guint file_type;
  guint8 *(*put) (guint8 *at, guint16 d, const gint8 *codes);
} Encoding;

static const Encoding encodings[] = {
  { "q4_1", RUNNEL_TENSOR_Q4_1, FALSE, 3, put_q4_1 },
  { "q4_0", RUNNEL_TENSOR_Q4_0, FALSE, 2, put_q4_0 },
  { "q8_0", RUNNEL_TENSOR_Q8_0, FALSE, 7, put_q8_0 },
  { "f16", RUNNEL_TENSOR_F16, FALSE, 1, put_f16 },
  { "int4", RUNNEL_TENSOR_Q4_1, TRUE, 3, put_q4_1 },
  { "int8", RUNNEL_TENSOR_Q8_0, TRUE, 7, put_q8_0 },
};

/* ---- Tensors ------------------------------------------------------------- */

typedef struct {
  RunnelPart part;
  guint64 dims[2];
  gsize bytes;
  guint64 state;          /* of the noise */
  float spread;           /* standard deviation */
  const Encoding *encoding;
  GCancellable *cancellable;
} Tensor;

static GBytes *
produce_vector (gpointer user_data, GError **error)
{
  const Tensor *self = user_data;
  guint64 state = self->state;
  guint8 *data = g_malloc (self->bytes);

  for (guint64 i = 0; i < self->dims[0]; i++) {
    float value = 1 + 0.1f * next_float (&state);
    guint32 bits;

    memcpy (&bits, &value, 4);
    bits = GUINT32_TO_LE (bits);
    memcpy (data + 4 * i, &bits, 4);
  }
  return g_bytes_new_take (data, self->bytes);
}

static GBytes *
produce_matrix (gpointer user_data, GError **error)
{
  const Tensor *self = user_data;
  guint64 n_groups = self->dims[0] / GROUP * self->dims[1];
  guint64 state = self->state;
  guint8 *data, *at;

  if (g_cancellable_is_cancelled (self->cancellable)) {
    g_set_error_literal (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
        "making the model was cancelled");
    return NULL;
  }
  at = data = g_malloc (self->bytes);
  for (guint64 i = 0; i < n_groups; i++) {
    guint16 d = draw_scale (self->spread, &state);
    gint8 codes[GROUP];

    draw_codes (codes, &state);
    for (guint k = 0; k < GROUP; k += BLOCK)
      at = self->encoding->put (at, d, codes + k);
  }
  return g_bytes_new_take (data, self->bytes);
}

/* So that activations keep their size: outputs of a product have the variance
 * of its inputs, what is added to the residual stream less of it the more
 * layers there are (as GPT-2 was initialised), and logits a deviation of 2. The
 * 16 makes the layers outweigh the embedding, to which the output is tied: else
 * each token would foretell itself. */
static float
get_spread (RunnelPart part, guint64 columns, guint n_layers)
{
  float spread = 1 / sqrtf (columns);

  switch (part) {
    case RUNNEL_PART_O:
    case RUNNEL_PART_DOWN:
      return spread * 16 / sqrtf (2 * n_layers);
    case RUNNEL_PART_EMBEDDING:
      return spread * 2;
    default:
      return spread;
  }
}

static void
add_tensor (GArray *tensors, const RunnelHyperparameters *hp, RunnelPart part,
            guint layer, const Encoding *encoding, guint64 seed)
{
  Tensor tensor = { .part = part, .encoding = encoding };
  guint64 place = (guint64) layer * RUNNEL_N_PARTS + part;

  runnel_part_get_dims (part, hp, tensor.dims);
  tensor.state = seed + place * G_GUINT64_CONSTANT (0xd1342543de82ef95);
  tensor.state = next (&tensor.state);
  tensor.spread = get_spread (part, tensor.dims[0], hp->n_layers);
  if (runnel_part_is_vector (part)) {
    tensor.bytes = tensor.dims[0] * sizeof (float);
  } else {
    const RunnelTensorTypeInfo *info
        = runnel_tensor_type_info (encoding->type);

    tensor.bytes = tensor.dims[0] / info->block_elements * info->block_bytes
        * tensor.dims[1];
  }
  g_array_append_val (tensors, tensor);
}

/* In the order of a pass, the way llama.cpp's files have them. */
static GArray *
list_tensors (const RunnelHyperparameters *hp, const Encoding *encoding,
              guint64 seed)
{
  GArray *tensors = g_array_new (FALSE, FALSE, sizeof (Tensor));
  const RunnelArchitecture *architecture
      = runnel_architecture_find (hp->architecture, "", NULL);

  add_tensor (tensors, hp, RUNNEL_PART_EMBEDDING, 0, encoding, seed);
  for (guint layer = 0; layer < hp->n_layers; layer++)
    for (guint part = 0; part < RUNNEL_N_LAYER_PARTS; part++)
      if (runnel_architecture_needs (architecture, hp, part))
        add_tensor (tensors, hp, part, layer, encoding, seed);
  add_tensor (tensors, hp, RUNNEL_PART_OUTPUT_NORM, 0, encoding, seed);
  return tensors;
}

static void
write_tensors (RunnelGgufWriter *writer, GArray *tensors,
               GCancellable *cancellable)
{
  guint layer = 0;

  for (guint i = 0; i < tensors->len; i++) {
    Tensor *tensor = &g_array_index (tensors, Tensor, i);
    gboolean vector = runnel_part_is_vector (tensor->part);
    g_autofree char *name = NULL;

    if (i > 1 && tensor->part == RUNNEL_PART_ATTN_NORM)
      layer++;
    name = runnel_part_dup_name (tensor->part, layer);
    tensor->cancellable = cancellable;
    runnel_gguf_writer_add_produced (writer, name,
        vector ? RUNNEL_TENSOR_F32 : tensor->encoding->type, tensor->dims,
        vector ? 1 : 2, tensor->bytes,
        vector ? produce_vector : produce_matrix, tensor);
  }
}

/* ---- The file ------------------------------------------------------------ */

static void
write_keys (RunnelGgufWriter *writer, const Shape *shape,
            const Encoding *encoding, guint64 seed)
{
  g_autofree char *name = g_strdup_printf ("%s (random noise, seed %"
      G_GUINT64_FORMAT ")", shape->name, seed);

  runnel_gguf_writer_add_string (writer, "general.architecture", "qwen3", -1);
  runnel_gguf_writer_add_string (writer, "general.name", name, -1);
  runnel_gguf_writer_add_string (writer, "general.description",
      "Random weights for benchmarks: it has learnt nothing, and what it says "
      "is noise", -1);
  runnel_gguf_writer_add_string (writer, "general.license", "cc0-1.0", -1);
  runnel_gguf_writer_add_uint32 (writer, "general.file_type",
      encoding->file_type);
  runnel_gguf_writer_add_uint32 (writer, "general.quantization_version", 2);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.block_count",
      shape->n_layers);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.context_length",
      CONTEXT_LENGTH);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.embedding_length",
      shape->n_embd);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.feed_forward_length",
      shape->n_ff);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.attention.head_count",
      shape->n_embd / HEAD_DIM);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.attention.head_count_kv",
      N_KV_HEADS);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.attention.key_length",
      HEAD_DIM);
  runnel_gguf_writer_add_uint32 (writer, "qwen3.attention.value_length",
      HEAD_DIM);
  runnel_gguf_writer_add_float32 (writer,
      "qwen3.attention.layer_norm_rms_epsilon", NORM_EPSILON);
  runnel_gguf_writer_add_float32 (writer, "qwen3.rope.freq_base", ROPE_BASE);
}

static gboolean
write_gguf (const Shape *shape, const Encoding *encoding, const char *path,
            guint64 seed, GCancellable *cancellable, GError **error)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GArray) tensors = NULL;
  const RunnelHyperparameters hp = { .architecture = "qwen3",
    .n_layers = shape->n_layers, .n_embd = shape->n_embd, .n_ff = shape->n_ff,
    .n_heads = shape->n_embd / HEAD_DIM, .n_kv_heads = N_KV_HEADS,
    .head_dim = HEAD_DIM, .n_vocab = N_VOCAB, .tied = TRUE };

  write_keys (writer, shape, encoding, seed);
  runnel_synthetic_vocabulary_write (writer, N_VOCAB);
  tensors = list_tensors (&hp, encoding, seed);
  write_tensors (writer, tensors, cancellable);
  return runnel_gguf_writer_save (writer, path, error);
}

/* By way of a file that is always called the same, as a package tells what it
 * was made of. */
static gboolean
write_package (const Shape *shape, const Encoding *encoding, const char *path,
               guint64 seed, GCancellable *cancellable, GError **error)
{
  g_autofree char *folder = g_strconcat (path, ".XXXXXX", NULL);
  g_autofree char *name = g_strconcat (shape->name, ".gguf", NULL);
  g_autofree char *source = NULL;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;

  if (g_mkdtemp (folder) == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: cannot be written: %s", path, g_strerror (errno));
    return FALSE;
  }
  source = g_build_filename (folder, name, NULL);
  if (write_gguf (shape, encoding, source, seed, cancellable, error))
    report = runnel_converter_convert (converter, source, path, NULL, NULL,
        cancellable, error);
  g_unlink (source);
  g_rmdir (folder);
  return report != NULL;
}

static const Shape *
find_shape (const char *name, GError **error)
{
  g_auto (GStrv) names = NULL;
  g_autofree char *known = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    if (g_ascii_strcasecmp (name, shapes[i].name) == 0)
      return &shapes[i];
  names = runnel_random_model_dup_shapes ();
  known = g_strjoinv (", ", names);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "there is no shape '%s'; there are %s", name, known);
  return NULL;
}

static const Encoding *
find_encoding (const char *name, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (encodings); i++) {
    if (g_ascii_strcasecmp (name, encodings[i].name) == 0)
      return &encodings[i];
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "",
        encodings[i].name);
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "a random model cannot have weights of the type '%s', only %s", name,
      known->str);
  return NULL;
}

/**
 * runnel_random_model_dup_shapes:
 *
 * The shapes that runnel_random_model_write() knows: that of MNN-Pocket-0.3B,
 * and a sweep of 50 to 1300 million parameters with 28 and 36 layers each.
 *
 * Returns: (transfer full) (array zero-terminated=1): their names
 *
 * Since: 0.1
 */
GStrv
runnel_random_model_dup_shapes (void)
{
  GStrv names = g_new0 (char *, G_N_ELEMENTS (shapes) + 1);

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    names[i] = g_strdup (shapes[i].name);
  return names;
}

/**
 * runnel_random_model_write:
 * @shape: the name of a shape, such as "pocket-0.3b"
 * @path: (type filename): the file to write; one that is there is replaced
 *   when the new one is complete
 * @type: (nullable): the type of the matrices: "q4_1" (%NULL means this),
 *   "q4_0", "q8_0" or "f16" for a GGUF file, "int4" or "int8" for a package
 * @seed: of the weights
 * @cancellable: (nullable): ends it between two tensors
 * @error: return location for an error
 *
 * Writes a model of a given shape whose weights are noise, for benchmarks: it
 * computes like a real one and says nothing. The vocabulary is synthetic too,
 * but of full size, and tokenizes. The same shape and seed give the same
 * weights, whatever the type, bit for bit.
 *
 * Returns: %FALSE with an error of #RUNNEL_ERROR when the shape or the type is
 *   unknown (#RUNNEL_ERROR_INVALID_ARGUMENT), or nothing could be written
 *   (#RUNNEL_ERROR_IO)
 *
 * Since: 0.1
 */
gboolean
runnel_random_model_write (const char *shape, const char *path,
                           const char *type, guint64 seed,
                           GCancellable *cancellable, GError **error)
{
  const Encoding *encoding;
  const Shape *found;

  g_return_val_if_fail (shape != NULL && path != NULL, FALSE);

  if ((found = find_shape (shape, error)) == NULL
      || (encoding = find_encoding (type ? type : "q4_1", error)) == NULL)
    return FALSE;
  return (encoding->package ? write_package : write_gguf) (found, encoding,
      path, seed, cancellable, error);
}
