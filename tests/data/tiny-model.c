/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-model.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "formats/gguf.h"

#define CHATML \
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' " \
  "+ message['content'] + '<|im_end|>' + '\n' }}{% endfor %}" \
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

static const char *const controls[] = {
  "<|endoftext|>", "<|im_start|>", "<|im_end|>",
};

/* Pairs that merge, in order of rank; \xc4\xa0 is GPT-2's space. */
static const char *const merges[] = {
  "t h", "th e", "i n", "e r", "a n", "an d", "\xc4\xa0 the", "\xc4\xa0 and",
  "o n", "\xc4\xa0 i", "e s", "s e", "u s", "us er", "i s", "t a", "n t",
};

static const char *const pieces[] = {
  "th", "the", "in", "er", "an", "and", "\xc4\xa0the", "\xc4\xa0" "and", "on",
  "\xc4\xa0i", "es", "se", "us", "user", "is", "ta", "nt",
};

gint32
tiny_model_script_token (guint i)
{
  return TINY_FIRST_PIECE + G_N_ELEMENTS (pieces) + i;
}

/* ---- Vocabulary --------------------------------------------------------- */

/* GPT-2's mapping of bytes to printable characters. */
static gunichar
byte_character (guint byte)
{
  guint shift = 256;

  if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac)
      || byte >= 0xae)
    return byte;
  for (guint b = 0; b < byte; b++)
    if (!((b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae))
      shift++;
  return shift;
}

static char *
map_bytes (const char *text)
{
  GString *out = g_string_new (NULL);

  for (const guint8 *at = (const guint8 *) text; *at != 0; at++)
    g_string_append_unichar (out, byte_character (*at));
  return g_string_free (out, FALSE);
}

static GPtrArray *
list_tokens (const TinyModel *model)
{
  GPtrArray *tokens = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < G_N_ELEMENTS (controls); i++)
    g_ptr_array_add (tokens, g_strdup (controls[i]));
  for (guint b = 0; b < 256; b++) {
    char utf8[8] = { 0 };

    g_unichar_to_utf8 (byte_character (b), utf8);
    g_ptr_array_add (tokens, g_strdup (utf8));
  }
  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    g_ptr_array_add (tokens, g_strdup (pieces[i]));
  for (guint i = 0; model->script != NULL && model->script[i] != NULL; i++)
    g_ptr_array_add (tokens, map_bytes (model->script[i]));
  return tokens;
}

static void
add_vocabulary (RunnelGgufWriter *writer, GPtrArray *tokens)
{
  g_autofree gint32 *types = g_new (gint32, tokens->len);

  for (guint i = 0; i < tokens->len; i++)
    types[i] = i < G_N_ELEMENTS (controls) ? 3 : 1;
  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.model", "gpt2", -1);
  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.pre", "smollm", -1);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens",
      (const char *const *) tokens->pdata, NULL, tokens->len);
  runnel_gguf_writer_add_int32s (writer, "tokenizer.ggml.token_type", types,
      tokens->len);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.merges", merges,
      NULL, G_N_ELEMENTS (merges));
  runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.bos_token_id",
      TINY_IM_START);
  runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.eos_token_id",
      TINY_IM_END);
  runnel_gguf_writer_add_boolean (writer, "tokenizer.ggml.add_bos_token",
      FALSE);
  runnel_gguf_writer_add_string (writer, "tokenizer.chat_template", CHATML,
      -1);
}

/* ---- Weights ------------------------------------------------------------- */

/* xorshift64*: the same weights everywhere. */
static guint64
next (guint64 *state)
{
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * G_GUINT64_CONSTANT (0x2545f4914f6cdd1d);
}

/* Uniform in [-1, 1). */
static float
uniform (guint64 *state)
{
  return (float) ((gint64) (next (state) >> 11) - (G_GINT64_CONSTANT (1) << 52))
      / (float) (G_GINT64_CONSTANT (1) << 52);
}

static void
put_half (guint8 *at, float value)
{
  guint16 half = runnel_float_to_half (value);

  memcpy (at, &half, sizeof half);
}

/* A block of random codes whose values spread over about [-spread, spread]. */
static void
fill_block (RunnelTensorType type, guint8 *block, gsize bytes, float spread,
            guint64 *state)
{
  float jitter = 1 + 0.25f * uniform (state);

  for (gsize i = 0; i < bytes; i++)
    block[i] = next (state) >> 32;
  switch (type) {
    case RUNNEL_TENSOR_Q4_0:
      put_half (block, spread / 8 * jitter);
      break;
    case RUNNEL_TENSOR_Q5_0:
      put_half (block, spread / 16 * jitter);
      break;
    case RUNNEL_TENSOR_Q8_0:
      put_half (block, spread / 128 * jitter);
      break;
    case RUNNEL_TENSOR_Q4_1:
      put_half (block, spread / 8 * jitter);
      put_half (block + 2, -spread * jitter);
      break;
    case RUNNEL_TENSOR_Q5_1:
      put_half (block, spread / 16 * jitter);
      put_half (block + 2, -spread * jitter);
      break;
    case RUNNEL_TENSOR_Q2_K:
      put_half (block + 80, spread / 24 * jitter);
      put_half (block + 82, spread / 16 * jitter);
      break;
    case RUNNEL_TENSOR_Q3_K:
      put_half (block + 108, spread / 128 * jitter);
      break;
    case RUNNEL_TENSOR_Q4_K:
    case RUNNEL_TENSOR_Q5_K:
      put_half (block, spread / 480 * jitter);
      put_half (block + 2, spread / 32 * jitter);
      break;
    case RUNNEL_TENSOR_Q6_K:
      put_half (block + 208, spread / 4096 * jitter);
      break;
    default:
      g_assert_not_reached ();
  }
}

static void
put_float (RunnelTensorType type, guint8 *at, float value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof bits);
  if (type == RUNNEL_TENSOR_F32) {
    memcpy (at, &value, sizeof value);
  } else if (type == RUNNEL_TENSOR_F16) {
    put_half (at, value);
  } else {
    guint16 high = bits >> 16;

    memcpy (at, &high, sizeof high);
  }
}

/* Whole tiles: the rows that pad the last one are random too. */
static void
fill_tiles (RunnelTileForm form, guint8 *data, gsize bytes, guint64 columns,
            float spread, guint64 *state)
{
  float largest = form.bits == 4 ? 8 : 128;

  for (gsize i = 0; i < bytes; i++)
    data[i] = next (state) >> 32;
  for (guint8 *end = data + bytes; data < end;) {
    for (guint64 c = 0; c < columns; c += RUNNEL_TILE_COLUMNS) {
      if (c % form.group == 0) {
        for (guint r = 0; r < RUNNEL_TILE_ROWS; r++) {
          float jitter = 1 + 0.25f * uniform (state);
          float middle = form.bits == 4 && form.origin == 0 ? -spread : 0;

          put_half (data + 2 * r, spread / largest * jitter);
          if (form.offset)
            put_half (data + 16 + 2 * r, middle + spread / 8 * jitter);
        }
        data += runnel_tile_head_bytes (form);
      }
      data += runnel_tile_code_bytes (form);
    }
  }
}

static GBytes *
make_random (RunnelTensorType type, guint64 columns, guint64 rows,
             float spread, guint64 *state)
{
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);
  RunnelTileForm form;
  guint64 bytes;
  guint8 *data;

  g_assert_true (runnel_tensor_type_bytes (type, columns, rows, &bytes));
  data = g_malloc (bytes);
  if (runnel_blocks_tile_form (type, &form)) {
    fill_tiles (form, data, bytes, columns, spread, state);
    return g_bytes_new_take (data, bytes);
  }
  for (gsize at = 0; at < bytes; at += info->block_bytes) {
    if (info->block_elements == 1)
      put_float (type, data + at, spread * uniform (state));
    else
      fill_block (type, data + at, info->block_bytes, spread, state);
  }
  return g_bytes_new_take (data, bytes);
}

static void
add_matrix (RunnelGgufWriter *writer, const TinyModel *model, const char *name,
            guint64 columns, guint64 rows, guint64 *state)
{
  guint64 dims[2] = { columns, rows };
  g_autoptr (GBytes) data = make_random (model->type, columns, rows,
      2.5f / sqrtf (columns), state);

  runnel_gguf_writer_add_tensor (writer, name, model->type, dims, 2, data);
}

/* Around 1, so that forgetting it shows. */
static void
add_vector (RunnelGgufWriter *writer, const char *name, guint64 n,
            float middle, guint64 *state)
{
  float *values = g_new (float, n);
  g_autoptr (GBytes) data = NULL;

  for (guint64 i = 0; i < n; i++)
    values[i] = middle + 0.5f * uniform (state);
  data = g_bytes_new_take (values, n * sizeof (float));
  runnel_gguf_writer_add_tensor (writer, name, RUNNEL_TENSOR_F32, &n, 1,
      data);
}

typedef struct {
  guint n_embd, n_ff, n_heads, n_kv_heads, head_dim;
} Sizes;

static void
add_layer (RunnelGgufWriter *writer, const TinyModel *model, const Sizes *s,
           guint layer, guint64 *state)
{
  const struct {
    const char *name;
    guint columns, rows;     /* rows 0: a vector */
    const char *only;        /* architecture, or NULL for all */
    float middle;
  } parts[] = {
    { "attn_norm.weight", s->n_embd, 0, NULL, 1 },
    { "attn_q.weight", s->n_embd, s->n_heads * s->head_dim, NULL, 0 },
    { "attn_k.weight", s->n_embd, s->n_kv_heads * s->head_dim, NULL, 0 },
    { "attn_v.weight", s->n_embd, s->n_kv_heads * s->head_dim, NULL, 0 },
    { "attn_q.bias", s->n_heads * s->head_dim, 0, "qwen2", 0 },
    { "attn_k.bias", s->n_kv_heads * s->head_dim, 0, "qwen2", 0 },
    { "attn_v.bias", s->n_kv_heads * s->head_dim, 0, "qwen2", 0 },
    { "attn_q_norm.weight", s->head_dim, 0, "qwen3", 1 },
    { "attn_k_norm.weight", s->head_dim, 0, "qwen3", 1 },
    { "attn_output.weight", s->n_heads * s->head_dim, s->n_embd, NULL, 0 },
    { "ffn_norm.weight", s->n_embd, 0, NULL, 1 },
    { "ffn_gate.weight", s->n_embd, s->n_ff, NULL, 0 },
    { "ffn_up.weight", s->n_embd, s->n_ff, NULL, 0 },
    { "ffn_down.weight", s->n_ff, s->n_embd, NULL, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *name = g_strdup_printf ("blk.%u.%s", layer,
        parts[i].name);

    if (parts[i].only != NULL
        && !g_str_equal (parts[i].only, model->architecture))
      continue;
    if (parts[i].rows > 0)
      add_matrix (writer, model, name, parts[i].columns, parts[i].rows,
          state);
    else
      add_vector (writer, name, parts[i].columns, parts[i].middle, state);
  }
}

static void
add_random_weights (RunnelGgufWriter *writer, const TinyModel *model,
                    const Sizes *s, guint n_vocab)
{
  guint64 state = model->seed * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) + 1;

  add_matrix (writer, model, "token_embd.weight", s->n_embd, n_vocab, &state);
  for (guint layer = 0; layer < model->n_layers; layer++)
    add_layer (writer, model, s, layer, &state);
  add_vector (writer, "output_norm.weight", s->n_embd, 1, &state);
  if (!model->tied)
    add_matrix (writer, model, "output.weight", s->n_embd, n_vocab, &state);
}

/* ---- Scripts ------------------------------------------------------------- */

static void
add_floats (RunnelGgufWriter *writer, const char *name, guint64 columns,
            guint64 rows, float *values)
{
  guint64 dims[2] = { columns, rows };
  g_autoptr (GBytes) data = g_bytes_new_take (values,
      columns * MAX (rows, 1) * sizeof (float));

  runnel_gguf_writer_add_tensor (writer, name, RUNNEL_TENSOR_F32, dims,
      rows > 0 ? 2 : 1, data);
}

static float *
make_constant (gsize n, float value)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = value;
  return values;
}

/* Layers that add nothing: what comes in as an embedding goes out. */
static void
add_silent_layer (RunnelGgufWriter *writer, const Sizes *s, guint layer)
{
  const struct {
    const char *name;
    guint columns, rows;
  } parts[] = {
    { "attn_norm", s->n_embd, 0 },
    { "attn_q", s->n_embd, s->n_heads * s->head_dim },
    { "attn_k", s->n_embd, s->n_kv_heads * s->head_dim },
    { "attn_v", s->n_embd, s->n_kv_heads * s->head_dim },
    { "attn_output", s->n_heads * s->head_dim, s->n_embd },
    { "ffn_norm", s->n_embd, 0 },
    { "ffn_gate", s->n_embd, s->n_ff },
    { "ffn_up", s->n_embd, s->n_ff },
    { "ffn_down", s->n_ff, s->n_embd },
  };

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *name = g_strdup_printf ("blk.%u.%s.weight", layer,
        parts[i].name);

    add_floats (writer, name, parts[i].columns, parts[i].rows, make_constant (
        (gsize) parts[i].columns * MAX (parts[i].rows, 1),
        parts[i].rows > 0 ? 0 : 1));
  }
}

/* Row @token of a matrix of embeddings: tokens of the script have directions
 * of their own, all others share one. */
static void
fill_direction (float *row, guint n_embd, gint32 token, guint n_script)
{
  guint64 state = 1;

  if (token >= tiny_model_script_token (0)
      && token < tiny_model_script_token (n_script))
    state = (guint64) token * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  for (guint i = 0; i < n_embd; i++)
    row[i] = uniform (&state);
}

static void
add_script (RunnelGgufWriter *writer, const TinyModel *model, const Sizes *s,
            guint n_vocab)
{
  guint n_script = g_strv_length ((char **) model->script);
  float *embedding = make_constant ((gsize) n_vocab * s->n_embd, 0);
  float *output = make_constant ((gsize) n_vocab * s->n_embd, 0);

  for (guint token = 0; token < n_vocab; token++)
    fill_direction (embedding + (gsize) token * s->n_embd, s->n_embd, token,
        n_script);
  /* The token after `previous` has its direction as output row. */
  for (guint i = 0; i <= n_script; i++) {
    gint32 previous = i > 0 ? tiny_model_script_token (i - 1)
                            : TINY_FIRST_BYTE;
    gint32 token = i < n_script ? tiny_model_script_token (i) : TINY_IM_END;

    fill_direction (output + (gsize) token * s->n_embd, s->n_embd, previous,
        n_script);
  }
  add_floats (writer, "token_embd.weight", s->n_embd, n_vocab, embedding);
  for (guint layer = 0; layer < model->n_layers; layer++)
    add_silent_layer (writer, s, layer);
  add_floats (writer, "output_norm.weight", s->n_embd, 0,
      make_constant (s->n_embd, 1));
  add_floats (writer, "output.weight", s->n_embd, n_vocab, output);
}

/* ---- The file ------------------------------------------------------------ */

static void
add_hyperparameters (RunnelGgufWriter *writer, const TinyModel *model,
                     const Sizes *s)
{
  const char *arch = model->script != NULL ? "llama" : model->architecture;
  const struct {
    const char *name;
    guint value;
  } keys[] = {
    { "block_count", model->n_layers },
    { "context_length", model->context_length },
    { "embedding_length", s->n_embd },
    { "feed_forward_length", s->n_ff },
    { "attention.head_count", s->n_heads },
    { "attention.head_count_kv", s->n_kv_heads },
    { "attention.key_length", s->head_dim },
    { "attention.value_length", s->head_dim },
    { "rope.dimension_count", s->head_dim },
  };
  g_autofree char *epsilon
      = g_strconcat (arch, ".attention.layer_norm_rms_epsilon", NULL);
  g_autofree char *base = g_strconcat (arch, ".rope.freq_base", NULL);

  runnel_gguf_writer_add_string (writer, "general.architecture", arch, -1);
  runnel_gguf_writer_add_string (writer, "general.name", "tiny", -1);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_autofree char *key = g_strconcat (arch, ".", keys[i].name, NULL);

    runnel_gguf_writer_add_uint32 (writer, key, keys[i].value);
  }
  runnel_gguf_writer_add_float32 (writer, epsilon, 1e-5f);
  runnel_gguf_writer_add_float32 (writer, base, 10000);
}

char *
tiny_model_write (const TinyModel *model)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GPtrArray) tokens = list_tokens (model);
  g_autoptr (GError) error = NULL;
  guint wide = model->n_embd / 64;
  Sizes sizes = { model->n_embd, model->n_embd * 3 / 2, 4, 2, 16 * wide };
  g_autofree char *path = NULL;
  int fd;

  if (runnel_tensor_type_info (model->type)->block_elements > 32)
    sizes.n_ff = model->n_embd;
  add_hyperparameters (writer, model, &sizes);
  add_vocabulary (writer, tokens);
  if (model->script != NULL)
    add_script (writer, model, &sizes, tokens->len);
  else
    add_random_weights (writer, model, &sizes, tokens->len);
  fd = g_file_open_tmp ("runnel-tiny-XXXXXX.gguf", &path, &error);
  g_assert_no_error (error);
  close (fd);
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return g_steal_pointer (&path);
}
