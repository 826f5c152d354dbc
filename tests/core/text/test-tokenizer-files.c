/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What tokenizer files may say, and what they must not.
 */
#include <string.h>

#include <glib/gstdio.h>

#include "error.h"
#include "small-vocabulary.h"
#include "text/detokenizer.h"

static SmallVocabulary *
make_vocabulary (void)
{
  SmallVocabulary *self = small_vocabulary_new ();

  small_vocabulary_add_word (self, "hello");
  small_vocabulary_add (self, "<|bos|>", RUNNEL_TOKEN_CONTROL);
  small_vocabulary_add (self, "<|eos|>", RUNNEL_TOKEN_CONTROL);
  small_vocabulary_add (self, "<|eot|>", RUNNEL_TOKEN_CONTROL);
  return self;
}

static void
assert_refused (const SmallVocabulary *vocabulary, const char *pre,
                RunnelError code, const char *says)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (small_vocabulary_load (vocabulary, pre, &error));
  g_assert_error (error, RUNNEL_ERROR, (gint) code);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, says));
}

static void
test_byte_tokens (void)
{
  static const char *const bad[] = { "<0x-1>", "<0xZZ>", "<0x1>", "<0x100>",
                                     "<0x4 >", "<0X41>", "0x41", "<0x41>x" };
  g_autoptr (SmallVocabulary) good = make_vocabulary ();
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  g_autoptr (GError) error = NULL;
  const guint8 *piece;
  gsize length;
  gint32 id;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    small_vocabulary_add (vocabulary, bad[i], RUNNEL_TOKEN_BYTE);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED,
                    "not written as <0xHH>");
  }
  /* "A" has a token already. */
  id = small_vocabulary_add (good, "<0x41>", RUNNEL_TOKEN_BYTE);
  assert_refused (good, "gpt-2", RUNNEL_ERROR_MALFORMED,
                  "has the bytes of an earlier token");
  g_free (g_ptr_array_index (good->texts, 'A'));
  g_ptr_array_index (good->texts, 'A') = g_strdup ("unused");
  tokenizer = small_vocabulary_load (good, "gpt-2", &error);
  g_assert_no_error (error);
  piece = runnel_tokenizer_get_piece (tokenizer, id, &length);
  g_assert_cmpmem (piece, length, "A", 1);
  g_assert_cmpint (runnel_tokenizer_find_token (tokenizer, "A"), ==, id);
}

static void
test_bad_tokens (void)
{
  const gint32 types[] = { 0, 7, -1, G_MAXINT32, G_MININT32 };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    small_vocabulary_add (vocabulary, "x", (RunnelTokenType) types[i]);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED, "type");
  }
  for (guint i = RUNNEL_TOKEN_NORMAL; i <= RUNNEL_TOKEN_BYTE; i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    small_vocabulary_add (vocabulary, "", (RunnelTokenType) i);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED, "is empty");
  }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    small_vocabulary_add (vocabulary, i == 0 ? "a" : "<|eos|>",
                          i == 0 ? RUNNEL_TOKEN_NORMAL : RUNNEL_TOKEN_CONTROL);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED,
                    i == 0 ? "earlier token" : "another added token");
  }
}

static void
test_bad_merges (void)
{
  static const struct {
    const char *merge, *says;
  } cases[] = {
    { "hello", "no blank" }, { " h", "empty part" }, { "h ", "empty part" },
    { "h  e", "no token" }, { "h zz", "no token" }, { "z z", "no token" },
    { "<|bos|> h", "no token" }, { "\xf0\x9f\x99\x82 h", "no token" },
    { "", "no blank" }, { " ", "empty part" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    g_ptr_array_add (vocabulary->merges, g_strdup (cases[i].merge));
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED,
                    cases[i].says);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED, "merge 4");
  }
}

/* Merges cannot make a control token out of what a user types. */
static void
test_merge_into_control (void)
{
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

  small_vocabulary_add_bytes (vocabulary, "<|bos|", 6);
  g_ptr_array_add (vocabulary->merges, g_strdup ("<|bos| >"));
  assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED, "no token");
}

static void
test_counts (void)
{
  for (guint i = 0; i < 4; i++) {
    g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

    if (i < 2)
      g_array_set_size (vocabulary->types,
                        vocabulary->types->len + (i == 0 ? 1 : -1));
    else if (i == 2)
      g_array_set_size (vocabulary->types, 0);
    else
      g_ptr_array_set_size (vocabulary->texts, 0);
    assert_refused (vocabulary, "gpt-2", RUNNEL_ERROR_MALFORMED,
                    "tokenizer.ggml.token_type");
  }
}

static void
test_pretokenizer_names (void)
{
  static const char *const names[] = { "default", "", "qwen", "qwen2x",
                                       "deepseek-llm", "\xff\xfe" };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    assert_refused (vocabulary, names[i], RUNNEL_ERROR_UNSUPPORTED,
                    "tokenizer.ggml.pre");
}

static void
test_special_ids (void)
{
  static const guint32 bad[] = { 0xffffffff, 0x80000000, 100000 };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  gint32 eos = vocabulary->texts->len - 2;

  for (guint i = 0; i < G_N_ELEMENTS (bad) + 2; i++) {
    g_autofree char *path = small_vocabulary_save (vocabulary, "qwen2", eos);
    g_autofree char *folder = g_path_get_dirname (path);
    g_autofree char *bytes = NULL;
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelTokenizer) tokenizer = NULL;
    gsize length, n;
    guint32 id = i < G_N_ELEMENTS (bad) ? bad[i]
        : i == G_N_ELEMENTS (bad) ? vocabulary->texts->len : (guint32) eos;
    char *key;

    g_assert_true (g_file_get_contents (path, &bytes, &length, NULL));
    key = memmem (bytes, length, "eos_token_id", 12);
    id = GUINT32_TO_LE (id);
    memcpy (key + 12 + 4, &id, 4);
    g_assert_true (g_file_set_contents (path, bytes, length, NULL));
    tokenizer = runnel_tokenizer_new_from_file (path, &error);
    g_remove (path);
    g_rmdir (folder);
    if (i <= G_N_ELEMENTS (bad)) {
      g_assert_null (tokenizer);
      g_assert_nonnull (strstr (error->message, "eos_token_id"));
      continue;
    }
    g_assert_no_error (error);
    g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==, eos);
    g_assert_cmpint (runnel_tokenizer_get_stop_tokens (tokenizer, &n)[0], ==,
                     eos);
    g_assert_cmpuint (n, ==, 1);
    g_assert_cmpint (runnel_tokenizer_get_bos (tokenizer), ==, -1);
    g_assert_false (runnel_tokenizer_get_add_bos (tokenizer));
  }
}

/* A token of 1 MiB, and one that holds NUL. */
static void
test_large_tokens (void)
{
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *large = g_malloc (1 << 20);
  g_autofree char *control = g_strnfill (1 << 20, 'y');
  gint32 id, nul, control_id;
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  g_autoptr (RunnelDetokenizer) detokenizer = NULL;
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *ids = NULL;
  gsize length, n;
  const guint8 *piece;

  memset (large, 'x', 1 << 20);
  id = small_vocabulary_add_bytes (vocabulary, large, 1 << 20);
  nul = small_vocabulary_add_bytes (vocabulary, "a\0b", 3);
  control_id = small_vocabulary_add (vocabulary, control,
                                     RUNNEL_TOKEN_CONTROL);
  tokenizer = small_vocabulary_load (vocabulary, "gpt-2", &error);
  g_assert_no_error (error);
  piece = runnel_tokenizer_get_piece (tokenizer, id, &length);
  g_assert_cmpmem (piece, length, large, 1 << 20);
  piece = runnel_tokenizer_get_piece (tokenizer, nul, &length);
  g_assert_cmpmem (piece, length, "a\0b", 3);
  detokenizer = runnel_detokenizer_new (tokenizer, TRUE);
  g_assert_true (runnel_detokenizer_push_to (detokenizer, id, out, NULL));
  g_assert_true (runnel_detokenizer_push_to (detokenizer, nul, out, NULL));
  g_assert_cmpuint (out->len, ==, (1 << 20) + 3);
  ids = runnel_tokenizer_encode (tokenizer, control, 1 << 20, TRUE, &n, NULL);
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpint (ids[0], ==, control_id);
}

/* @text with every @old, of which there is one at least, made @new. */
static char *
replace (const char *text, const char *old, const char *new)
{
  g_auto (GStrv) parts = g_strsplit (text, old, -1);

  g_assert_nonnull (parts[1]);
  return g_strjoinv (new, parts);
}

static void
test_json_unsupported (void)
{
  static const struct {
    const char *old, *new, *says;
  } cases[] = {
    { "\"type\":\"BPE\"", "\"type\":\"Unigram\"", "Unigram" },
    { "\"type\":\"BPE\"", "\"type\":\"WordPiece\"", "WordPiece" },
    { "\"dropout\":null", "\"dropout\":0.1", "dropout" },
    { "\"dropout\":null", "\"byte_fallback\":true", "byte_fallback" },
    { "\"dropout\":null", "\"end_of_word_suffix\":\"</w>\"",
      "end_of_word_suffix" },
    { "{\"type\":\"NFC\"}", "{\"type\":\"NFKC\"}", "NFKC" },
    { "{\"type\":\"NFC\"}", "{\"type\":\"Prepend\",\"prepend\":\"x\"}",
      "Prepend" },
    { "{\"type\":\"NFC\"}", "null", "normalizer" },
    { "\\\\p{N}|", "\\\\p{N}{1,2}|", "p{N}{1,2}" },
    { "\"Isolated\"", "\"Removed\"", "Split" },
    { "\"invert\":false", "\"invert\":true", "Split" },
    { "\"single_word\":false", "\"single_word\":true", "single_word" },
    { "\"lstrip\":false", "\"lstrip\":true", "lstrip" },
    { "\"rstrip\":false", "\"rstrip\":true", "rstrip" },
    { "\"post_processor\":null",
      "\"post_processor\":{\"type\":\"BertProcessing\"}", "BertProcessing" },
    { "\"decoder\":{\"type\":\"ByteLevel\"",
      "\"decoder\":{\"type\":\"Metaspace\"", "Metaspace" },
  };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *good = small_vocabulary_to_json (vocabulary, "qwen2", TRUE);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *json = replace (good, cases[i].old, cases[i].new);
    g_autoptr (GError) error = NULL;

    g_assert_null (small_vocabulary_load_json (json, NULL, NULL, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].says));
  }
}

static void
test_json_malformed (void)
{
  static const struct {
    const char *old, *new;
  } cases[] = {
    { "\"model\":", "\"other\":" }, { "\"vocab\":", "\"other\":" },
    { "\"merges\":", "\"other\":" }, { "\"a\":97", "\"a\":-1" },
    { "\"a\":97", "\"a\":98" }, { "\"a\":97", "\"a\":\"97\"" },
    { "\"a\":97", "\"a\":97.5" }, { "\"a\":97", "\"a\":99999999999999999999" },
    { "\"a\":97", "\"a\":16777215" }, { "\"a\":97", "\"\":97" },
    { "\"id\":260,", "" }, { "\"id\":260,", "\"id\":97," },
    { "\"content\":\"<|bos|>\"", "\"content\":\"\"" },
    { "\"content\":\"<|bos|>\"", "\"content\":null" },
    { "\"content\":\"<|bos|>\"", "\"content\":\"<|eos|>\"" },
    { "[\"h\",\"e\"]", "[\"h\"]" }, { "[\"h\",\"e\"]", "\"he\"" },
    { "[\"h\",\"e\"]", "[\"h\",\"e\",\"l\"]" }, { "[\"h\",\"e\"]", "7" },
    { "[\"h\",\"e\"]", "[\"h\",\"\"]" }, { "[\"h\",\"e\"]", "[\"h\",\"q\"]" },
    { "\"added_tokens\":[", "\"added_tokens\":7,\"x\":[" },
    { "\"added_tokens\":[", "\"added_tokens\":[7," },
    { "\"unk_token\":null", "\"unk_token\":{}" },
  };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *good = NULL;

  /* Without "~" the unknown token is looked at. */
  g_free (g_ptr_array_index (vocabulary->texts, '~'));
  g_ptr_array_index (vocabulary->texts, '~') = g_strdup ("unused");
  good = small_vocabulary_to_json (vocabulary, "qwen2", TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *json = replace (good, cases[i].old, cases[i].new);
    g_autoptr (GError) error = NULL;

    g_assert_null (small_vocabulary_load_json (json, NULL, NULL, &error));
    g_test_message ("%s", error->message);
    g_assert_true (g_error_matches (error, RUNNEL_ERROR,
                                    RUNNEL_ERROR_MALFORMED)
                   || g_error_matches (error, RUNNEL_ERROR,
                                       RUNNEL_ERROR_LIMIT));
    g_assert_nonnull (strstr (error->message, "tokenizer.json"));
  }
}

static void
test_json_config (void)
{
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *json = small_vocabulary_to_json (vocabulary, "gpt-2", TRUE);
  const char *config = "{\"bos_token\":{\"content\":\"<|bos|>\"},"
    "\"eos_token\":\"<|eos|>\",\"add_bos_token\":true,\"chat_template\":"
    "[{\"name\":\"tool_use\",\"template\":\"T\"},"
    "{\"name\":\"default\",\"template\":\"{{ messages }}\"}]}";
  const char *generation = "{\"eos_token_id\":[262,261,262]}";
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) tokenizer =
      small_vocabulary_load_json (json, config, generation, &error);
  g_autoptr (RunnelTokenizer) only_generation = NULL;
  const gint32 *stops;
  gsize n;

  g_assert_no_error (error);
  g_assert_cmpint (runnel_tokenizer_get_bos (tokenizer), ==, 260);
  g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==, 261);
  g_assert_true (runnel_tokenizer_get_add_bos (tokenizer));
  stops = runnel_tokenizer_get_stop_tokens (tokenizer, &n);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpint (stops[0], ==, 261);
  g_assert_cmpint (stops[1], ==, 262);
  g_assert_cmpstr (runnel_tokenizer_get_chat_template (tokenizer), ==,
                   "{{ messages }}");

  only_generation = small_vocabulary_load_json (
      json, "{\"eos_token\":null,\"chat_template\":\"T\"}",
      "{\"eos_token_id\":262}", &error);
  g_assert_no_error (error);
  g_assert_cmpint (runnel_tokenizer_get_eos (only_generation), ==, 262);
  g_assert_cmpint (runnel_tokenizer_get_bos (only_generation), ==, -1);
  g_assert_cmpstr (runnel_tokenizer_get_chat_template (only_generation), ==,
                   "T");
}

static void
test_json_bad_config (void)
{
  static const struct {
    const char *config, *generation, *says;
  } cases[] = {
    { "{\"eos_token\":\"<|none|>\"}", "{}", "<|none|>" },
    { "{\"eos_token\":\"\"}", "{}", "eos_token" },
    { "{\"eos_token\":7}", "{}", "eos_token" },
    { "{\"bos_token\":{\"content\":[]}}", "{}", "bos_token" },
    { "{\"chat_template\":7}", "{}", "chat_template" },
    { "{\"chat_template\":[]}", "{}", "default" },
    { "{\"add_eos_token\":true}", "{}", "add_eos_token" },
    { "{\"chat_template\":\"a\\u0000b\"}", "{}", "NUL" },
    { "{\"chat_template\":[{\"name\":\"default\",\"template\":"
      "\"\\u0000\"}]}", "{}", "NUL" },
    { "[]", "{}", "object" },
    { "{}", "[]", "object" },
    { "{}", "null", "object" },
    { "{}", "{\"eos_token_id\":263}", "eos_token_id" },
    { "{}", "{\"eos_token_id\":-1}", "eos_token_id" },
    { "{}", "{\"eos_token_id\":[261,\"x\"]}", "eos_token_id" },
  };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *json = small_vocabulary_to_json (vocabulary, "gpt-2", TRUE);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (small_vocabulary_load_json (json, cases[i].config,
                                               cases[i].generation, &error));
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].says));
  }
}

/* Llama 3 says in its post-processor that a text begins with a token. */
static void
test_json_template_processing (void)
{
#define TEMPLATE(single) "\"post_processor\":{\"type\":\"Sequence\"," \
  "\"processors\":[{\"type\":\"ByteLevel\",\"trim_offsets\":false}," \
  "{\"type\":\"TemplateProcessing\",\"single\":[" single "]}]}"
#define TOKEN(id) "{\"SpecialToken\":{\"id\":\"" id "\",\"type_id\":0}}"
#define TEXT "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
  static const struct {
    const char *stage;
    gint32 bos;       /* -2: refused */
  } cases[] = {
    { TEMPLATE (TOKEN ("<|bos|>") "," TEXT), 260 },
    { TEMPLATE (TEXT), -1 },
    { TEMPLATE (TEXT "," TOKEN ("<|eos|>")), -2 },
    { TEMPLATE (TOKEN ("<|bos|>") "," TEXT "," TOKEN ("<|eos|>")), -2 },
    { TEMPLATE (TOKEN ("<|none|>") "," TEXT), -2 },
    { TEMPLATE (""), -2 },
  };
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *good =
      small_vocabulary_to_json (vocabulary, "llama-bpe", TRUE);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *json = replace (good, "\"post_processor\":null",
                                     cases[i].stage);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelTokenizer) tokenizer =
        small_vocabulary_load_json (json, NULL, NULL, &error);

    if (cases[i].bos == -2) {
      g_assert_null (tokenizer);
      g_assert_nonnull (strstr (error->message, "post_processor"));
      continue;
    }
    g_assert_no_error (error);
    g_assert_cmpint (runnel_tokenizer_get_bos (tokenizer), ==, cases[i].bos);
    g_assert_cmpint (runnel_tokenizer_get_add_bos (tokenizer), ==,
                     cases[i].bos >= 0);
  }
}

static void
write_file (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  if (text != NULL)
    g_assert_true (g_file_set_contents (path, text, -1, NULL));
  else
    g_remove (path);
}

static void
test_folder (void)
{
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *json = small_vocabulary_to_json (vocabulary, "gpt-2", TRUE);
  g_autofree char *folder = g_dir_make_tmp ("runnel-XXXXXX", NULL);
  g_autofree char *template =
      g_build_filename (folder, "chat_template.jinja", NULL);
  static const char *const names[] = { NULL, "tokenizer.json",
                                       "model.safetensors", "other.json" };
  g_autoptr (GError) refused = NULL;

  write_file (folder, "tokenizer.json", json);
  write_file (folder, "other.json", json);
  write_file (folder, "tokenizer_config.json",
              "{\"eos_token\":\"<|eos|>\",\"chat_template\":\"old\"}");
  write_file (folder, "generation_config.json", "{\"eos_token_id\":262}");
  write_file (folder, "chat_template.jinja", "new");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelTokenizer) tokenizer =
        runnel_tokenizer_new_from_file (path, &error);
    gboolean alone = i == 3;
    gsize n;

    g_assert_no_error (error);
    g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==,
                     alone ? -1 : 261);
    g_assert_cmpstr (runnel_tokenizer_get_chat_template (tokenizer), ==,
                     alone ? NULL : "new");
    runnel_tokenizer_get_stop_tokens (tokenizer, &n);
    g_assert_cmpuint (n, ==, alone ? 0 : 2);
  }
  g_assert_true (g_file_set_contents (template, "a\0b", 3, NULL));
  g_assert_null (runnel_tokenizer_new_from_file (folder, &refused));
  g_assert_error (refused, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_assert_nonnull (strstr (refused->message, "chat_template.jinja: holds a"));
  write_file (folder, "chat_template.jinja", NULL);
  write_file (folder, "generation_config.json", NULL);
  write_file (folder, "tokenizer_config.json", NULL);
  write_file (folder, "other.json", NULL);
  write_file (folder, "tokenizer.json", NULL);
  g_rmdir (folder);
}

static void
test_no_file (void)
{
  g_autofree char *folder = g_dir_make_tmp ("runnel-XXXXXX", NULL);
  g_autofree char *gone = g_build_filename (folder, "gone.gguf", NULL);
  g_autofree char *text = g_build_filename (folder, "readme.txt", NULL);
  const char *paths[] = { folder, gone, text };

  write_file (folder, "readme.txt", "hello");
  for (guint i = 0; i < G_N_ELEMENTS (paths); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_tokenizer_new_from_file (paths[i], &error));
    g_assert_error (error, RUNNEL_ERROR,
                    (gint) (i < 2 ? RUNNEL_ERROR_IO
                                  : RUNNEL_ERROR_UNSUPPORTED));
    g_assert_nonnull (strstr (error->message, folder));
  }
  write_file (folder, "readme.txt", NULL);
  g_rmdir (folder);
}

/* Ids that only the model has are unused: no text, and no other digest. */
static void
test_padding (void)
{
  g_autoptr (SmallVocabulary) vocabulary = make_vocabulary ();
  g_autofree char *text = small_vocabulary_to_json (vocabulary, "qwen2", TRUE);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) json =
      runnel_json_parse (text, strlen (text), "tokenizer.json", &error);
  RunnelTokenizerFiles files = { json };
  g_autoptr (RunnelTokenizer) plain =
      runnel_tokenizer_new_from_files (&files, &error);
  g_autoptr (RunnelTokenizer) padded = NULL;
  g_autoptr (RunnelDetokenizer) detokenizer = NULL;
  g_autofree char *piece = NULL;

  files.n_vocab = 300;
  padded = runnel_tokenizer_new_from_files (&files, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (runnel_tokenizer_get_n_tokens (plain), ==, 263);
  g_assert_cmpuint (runnel_tokenizer_get_n_tokens (padded), ==, 300);
  g_assert_cmpstr (runnel_tokenizer_get_digest (plain), ==,
                   runnel_tokenizer_get_digest (padded));
  g_assert_true (runnel_tokenizer_is_control (padded, 299));
  g_assert_false (runnel_tokenizer_is_control (padded, 300));
  detokenizer = runnel_detokenizer_new (padded, TRUE);
  piece = runnel_detokenizer_push (detokenizer, 299, &error);
  g_assert_cmpstr (piece, ==, "");
  files.n_vocab = 262;
  g_assert_null (runnel_tokenizer_new_from_files (&files, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) \
  g_test_add_func ("/tokenizer-files/" name, function)
  ADD ("byte-tokens", test_byte_tokens);
  ADD ("bad-tokens", test_bad_tokens);
  ADD ("bad-merges", test_bad_merges);
  ADD ("merge-into-control", test_merge_into_control);
  ADD ("counts", test_counts);
  ADD ("pretokenizer-names", test_pretokenizer_names);
  ADD ("special-ids", test_special_ids);
  ADD ("large-tokens", test_large_tokens);
  ADD ("json-unsupported", test_json_unsupported);
  ADD ("json-malformed", test_json_malformed);
  ADD ("json-config", test_json_config);
  ADD ("json-bad-config", test_json_bad_config);
  ADD ("json-template-processing", test_json_template_processing);
  ADD ("folder", test_folder);
  ADD ("no-file", test_no_file);
  ADD ("padding", test_padding);
  return g_test_run ();
}
