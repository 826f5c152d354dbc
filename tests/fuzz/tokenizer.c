/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tokenizer.json, or a GGUF file with a vocabulary. What is accepted has to
 * encode, decode and detokenize any text.
 */
#include <stdint.h>
#include <string.h>

#include "text/detokenizer.h"
#include "text/tokenizer-private.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

/* Every id that comes out is one of the vocabulary, and plain text gives no
 * control token. */
static void
use (RunnelTokenizer *self, const char *text, gsize length)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (self, TRUE);
  g_autoptr (GString) out = g_string_new (NULL);
  RunnelTextSpan span = { length / 3, length / 3 };

  for (guint mode = 0; mode < 3; mode++) {
    g_autoptr (GBytes) bytes = NULL;
    g_autofree gint32 *ids = NULL;
    g_autofree char *rest = NULL;
    gsize n;

    ids = mode < 2
        ? runnel_tokenizer_encode (self, text, length, mode == 1, &n, NULL)
        : runnel_tokenizer_encode_spans (self, text, length, &span, 1, &n,
                                         NULL);
    if (ids == NULL)
      return;   /* not UTF-8 */
    bytes = runnel_tokenizer_decode (self, ids, n, TRUE, NULL);
    g_assert_nonnull (bytes);
    g_string_truncate (out, 0);
    for (gsize i = 0; i < n; i++) {
      g_assert_true (mode > 0 || !runnel_tokenizer_is_control (self, ids[i]));
      g_assert_true (runnel_detokenizer_push_to (detokenizer, ids[i], out,
                                                 NULL));
    }
    rest = runnel_detokenizer_flush (detokenizer, TRUE);
    for (gsize i = 0; i < out->len; i++)
      if (out->str[i] == '\0')
        out->str[i] = ' ';   /* GLib's check refuses it */
    g_assert_true (g_utf8_validate (out->str, out->len, NULL));
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const char text[] = "hello  hello<|end|> 12\n\ncafe\xcc\x81 \0'S<t>aab";
  g_autoptr (RunnelTokenizer) self = NULL;
  g_autoptr (GError) error = NULL;
  gsize tail = MIN (size, 64);

  if (size >= 4 && memcmp (data, "GGUF", 4) == 0) {
    g_autoptr (GBytes) bytes = g_bytes_new (data, size);
    g_autoptr (RunnelMapping) mapping =
        runnel_mapping_new_from_bytes (bytes, "fuzz.gguf");
    g_autoptr (RunnelGguf) gguf = runnel_gguf_new (mapping, &error);

    if (gguf != NULL)
      self = runnel_tokenizer_new_from_gguf (gguf, &error);
  } else {
    g_autoptr (RunnelJson) json = runnel_json_parse ((const char *) data, size,
                                                     "fuzz.json", &error);
    /* The settings of all three files may stand in one. */
    RunnelTokenizerFiles files = { json, json, json };

    if (json != NULL)
      self = runnel_tokenizer_new_from_files (&files, &error);
  }
  g_assert_true ((self != NULL) == (error == NULL));
  if (self == NULL) {
    g_assert_true (g_utf8_validate (error->message, -1, NULL));
    return 0;
  }
  use (self, text, sizeof text - 1);
  use (self, (const char *) data + size - tail, tail);
  return 0;
}

#define JSON(stages) \
  "{\"added_tokens\":[{\"id\":9,\"content\":\"<|end|>\",\"special\":true}," \
  "{\"id\":10,\"content\":\"<t>\",\"special\":false,\"normalized\":true}]," \
  stages ",\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\"," \
  "\"vocab\":{\"a\":0,\"b\":1,\"\304\240\":2,\"h\":3,\"l\":4,\"ll\":5," \
  "\"aa\":6,\"aab\":7,\"\304\212\":8},\"merges\":[\"l l\",[\"a\",\"a\"]," \
  "\"aa b\"]},\"eos_token\":\"<|end|>\",\"bos_token\":{\"content\":\"a\"}," \
  "\"eos_token_id\":[9,0],\"chat_template\":\"x\"}"
#define BYTES(regex) "{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
  "\"use_regex\":" regex "}"

static const char gpt2_json[] = JSON ("\"pre_tokenizer\":" BYTES ("true"));
static const char smollm_json[] = JSON (
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Digits\",\"individual_digits\":true}," BYTES ("true") "]}");
static const char qwen_json[] = JSON (
    "\"normalizer\":{\"type\":\"NFC\"},\"post_processor\":"
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
    "{\"id\":\"a\"}},{\"Sequence\":{\"id\":\"A\"}}]},\"pre_tokenizer\":"
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
    "\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?"
    "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\"},"
    BYTES ("false") "]}");

static void
put (GByteArray *out, guint64 value, guint bytes)
{
  value = GUINT64_TO_LE (value);
  g_byte_array_append (out, (const guint8 *) &value, bytes);
}

static void
put_string (GByteArray *out, const char *text)
{
  put (out, strlen (text), 8);
  g_byte_array_append (out, (const guint8 *) text, strlen (text));
}

static void
put_strings (GByteArray *out, const char *key, const char *const *texts)
{
  put_string (out, key);
  put (out, RUNNEL_GGUF_ARRAY, 4);
  put (out, RUNNEL_GGUF_STRING, 4);
  put (out, g_strv_length ((GStrv) texts), 8);
  for (gsize i = 0; texts[i] != NULL; i++)
    put_string (out, texts[i]);
}

static GByteArray *
make_gguf (const char *pre)
{
  static const char *const tokens[] = { "a", "b", "\304\240", "h", "l", "ll",
                                        "aa", "aab", "<0x0A>", "<|end|>",
                                        "<t>", "[PAD]", NULL };
  static const guint types[] = { 1, 1, 1, 1, 1, 1, 1, 1, 6, 3, 4, 5 };
  static const char *const merges[] = { "l l", "a a", "aa b", NULL };
  GByteArray *out = g_byte_array_new ();

  g_byte_array_append (out, (const guint8 *) "GGUF", 4);
  put (out, 3, 4);
  put (out, 0, 8);
  put (out, 7, 8);
  put_string (out, "tokenizer.ggml.model");
  put (out, RUNNEL_GGUF_STRING, 4);
  put_string (out, "gpt2");
  put_string (out, "tokenizer.ggml.pre");
  put (out, RUNNEL_GGUF_STRING, 4);
  put_string (out, pre);
  put_strings (out, "tokenizer.ggml.tokens", tokens);
  put_string (out, "tokenizer.ggml.token_type");
  put (out, RUNNEL_GGUF_ARRAY, 4);
  put (out, RUNNEL_GGUF_INT32, 4);
  put (out, G_N_ELEMENTS (types), 8);
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    put (out, types[i], 4);
  put_strings (out, "tokenizer.ggml.merges", merges);
  put_string (out, "tokenizer.ggml.eos_token_id");
  put (out, RUNNEL_GGUF_UINT32, 4);
  put (out, 9, 4);
  put_string (out, "tokenizer.ggml.add_bos_token");
  put (out, RUNNEL_GGUF_BOOL, 4);
  put (out, 1, 1);
  return out;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static const char *const jsons[] = { gpt2_json, smollm_json, qwen_json };
  static const char *const pres[] = { "qwen2", "smollm", "gpt-2",
                                      "llama-bpe" };
  static GByteArray *ggufs[G_N_ELEMENTS (pres)];

  if (i < G_N_ELEMENTS (jsons)) {
    *size = strlen (jsons[i]);
    return (const uint8_t *) jsons[i];
  }
  i -= G_N_ELEMENTS (jsons);
  if (i >= G_N_ELEMENTS (pres))
    return NULL;
  if (ggufs[i] == NULL)
    ggufs[i] = make_gguf (pres[i]);
  *size = ggufs[i]->len;
  return ggufs[i]->data;
}
