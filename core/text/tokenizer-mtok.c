/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tokenizer-mtok.h"

#include <string.h>

#include "../backends/cpu/half.h"
#include "../error-private.h"
#include "byte-level.h"
#include "rank-merges.h"

#define MAGIC "430 "
#define MAX_SPECIAL 4096
#define MAX_STAGES 8
#define MAX_TABLE 0x110000
/* Ids without a token are kept within reason where no model says how many
 * there are. */
#define MAX_GAPS 16384

enum { KIND_RANKS = 1, KIND_HUGGING_FACE = 3, KIND_PIPELINE = 4 };
enum { NORMALIZER_NONE, NORMALIZER_SEQUENCE = 4, NORMALIZER_TABLE = 6 };
enum { PRE_NONE, PRE_BYTE_LEVEL, PRE_DIGITS, PRE_SPLIT = 4, PRE_SEQUENCE = 6 };
enum { MODEL_BPE };
enum { DECODER_BYTE_LEVEL };
enum { POST_SEQUENCE, POST_SPECIAL };

typedef struct { guint kind, flag; const char *pattern; gsize length; } Stage;

typedef struct {
  const RunnelMtokContext *context;
  const char *name;
  const guint8 *at, *end;      /* what is left of the file */
  GError **error;
  gboolean failed;
  guint n_special, n_stop, n_prefix;
  guint32 *special;            /* then the stop ids, then the prefix */
  GArray *texts;               /* of RunnelTokenText, by id */
  RunnelTokenizerParts *parts;
} Reader;

static void
fail (Reader *self, RunnelError code, const char *what)
{
  if (!self->failed)
    runnel_set_error_about (self->error, code, self->name, "%s", what);
  self->failed = TRUE;
}

/* --- binary values; 0 after a failure --- */

static const guint8 *
take (Reader *self, gsize bytes)
{
  const guint8 *at = self->at;

  if (self->failed || bytes > (gsize) (self->end - at)) {
    fail (self, RUNNEL_ERROR_TRUNCATED, "ends before the tokenizer does");
    return NULL;
  }
  self->at += bytes;
  return at;
}

static guint
take_uint8 (Reader *self)
{
  const guint8 *p = take (self, 1);

  return p != NULL ? *p : 0;
}

static guint
take_uint16 (Reader *self)
{
  const guint8 *p = take (self, 2);

  return p != NULL ? runnel_load_u16 (p) : 0;
}

static guint32
take_uint32 (Reader *self)
{
  guint32 low = take_uint16 (self);

  return low | (guint32) take_uint16 (self) << 16;
}

/* How many items follow, of at least @bytes each. */
static guint32
take_count (Reader *self, guint32 limit, gsize bytes)
{
  guint32 n = take_uint32 (self);

  if (n > limit)
    fail (self, RUNNEL_ERROR_LIMIT, "has more entries than are allowed");
  else if (n > (gsize) (self->end - self->at) / bytes)
    fail (self, RUNNEL_ERROR_TRUNCATED, "ends before its entries do");
  return self->failed ? 0 : n;
}

static const char *
take_text (Reader *self, gsize length)
{
  const char *text = (const char *) take (self, length);

  if (text == NULL)
    return "";
  if (!g_utf8_validate_len (text, length, NULL)) {
    fail (self, RUNNEL_ERROR_MALFORMED, "holds a string that is no UTF-8");
    return "";
  }
  return text;
}

static const char *
take_string (Reader *self, gsize *length)
{
  *length = take_uint16 (self);
  return take_text (self, *length);
}

/* --- tokens --- */

static void
set_token (Reader *self, guint32 id, const char *text, gsize length,
           RunnelTokenType type)
{
  if (self->failed)
    return;
  if (id >= self->texts->len) {
    fail (self, RUNNEL_ERROR_MALFORMED, "a token's id is out of range");
    return;
  }
  if (!runnel_token_text_set (&g_array_index (self->texts, RunnelTokenText, 0),
                              id, text, length, type, self->name, self->error))
    self->failed = TRUE;
}

static void
add_token (Reader *self, guint32 id, const char *text, gsize length,
           RunnelTokenType type)
{
  if (length == 0)
    fail (self, RUNNEL_ERROR_MALFORMED, "an added token has no text");
  set_token (self, id, text, length, type);
  if (!self->failed)
    runnel_added_tokens_add (self->parts->added, (const guint8 *) text, length,
                             id);
}

/* @n: how many tokens the file has at most. */
static void
make_room (Reader *self, gsize n)
{
  guint n_vocab = self->context->n_vocab;

  g_array_set_size (self->texts, n_vocab > 0 ? n_vocab : n + MAX_GAPS);
  for (guint i = 0; i < self->texts->len; i++)
    g_array_index (self->texts, RunnelTokenText, i).type = RUNNEL_TOKEN_UNUSED;
}

static gboolean
make_vocabulary (Reader *self)
{
  gsize n = self->texts->len;

  while (self->context->n_vocab == 0 && n > 0
         && g_array_index (self->texts, RunnelTokenText, n - 1).text == NULL)
    n--;
  if (self->failed)
    return FALSE;
  self->parts->vocabulary = runnel_vocabulary_new (
      (const RunnelTokenText *) self->texts->data, n, self->name, self->error);
  self->failed = self->parts->vocabulary == NULL
      || !runnel_tokenizer_parts_seal (self->parts, self->name, self->error);
  return !self->failed;
}

/* --- the lines in front --- */

static const char *
take_line (Reader *self, gsize *length)
{
  const guint8 *start = self->at;
  const guint8 *newline = start < self->end && !self->failed
      ? memchr (start, '\n', self->end - start) : NULL;

  *length = 0;
  if (newline == NULL) {
    fail (self, RUNNEL_ERROR_TRUNCATED, "ends before its lines do");
    return "";
  }
  *length = newline - start;
  self->at = newline + 1;
  if (!g_utf8_validate_len ((const char *) start, *length, NULL))
    fail (self, RUNNEL_ERROR_MALFORMED, "holds a line that is no UTF-8");
  return (const char *) start;
}

/* Numbers with blanks between them; exactly @n on the line. */
static void
take_numbers (Reader *self, guint32 *numbers, gsize n)
{
  gsize length;
  const char *line = take_line (self, &length);
  const char *end = line + length;

  for (gsize i = 0; i < n && !self->failed; i++) {
    guint64 value = 0;

    while (line < end && *line == ' ')
      line++;
    if (line == end || !g_ascii_isdigit (*line))
      fail (self, RUNNEL_ERROR_MALFORMED, "lacks a number in its first lines");
    for (; line < end && g_ascii_isdigit (*line); line++)
      value = MIN (value * 10 + g_ascii_digit_value (*line), G_MAXUINT32);
    numbers[i] = value;
  }
}

static guint32
read_head (Reader *self)
{
  guint32 kind[2] = { 0 }, counts[3] = { 0 };
  gsize n;

  take_numbers (self, kind, 2);
  take_numbers (self, counts, 3);
  for (guint i = 0; i < 3; i++)
    if (counts[i] > MAX_SPECIAL)
      fail (self, RUNNEL_ERROR_LIMIT, "has more than 4096 special tokens");
  if (self->failed)
    return 0;
  self->n_special = counts[0];
  self->n_stop = counts[1];
  self->n_prefix = counts[2];
  n = (gsize) counts[0] + counts[1] + counts[2];
  self->special = g_new0 (guint32, n + 1);
  take_numbers (self, self->special, n);
  return kind[1];
}

/* Whether each of @n ids is special. */
static guint8 *
mark_special (const Reader *self, guint32 n)
{
  guint8 *marks = g_new0 (guint8, n + 1);

  for (guint i = 0; i < self->n_special; i++)
    if (self->special[i] < n)
      marks[self->special[i]] = TRUE;
  return marks;
}

static gboolean
is_listed (const guint32 *ids, guint n, guint32 id)
{
  for (guint i = 0; i < n; i++)
    if (ids[i] == id)
      return TRUE;
  return FALSE;
}

/* --- kind 4: normaliser and pre-tokenizer --- */

/* Characters and what they become. NFC leaves compatibility characters alone,
 * NFKC does not; of both the file has single characters only, of which the
 * first is meant with compositions and all. */
static gboolean
take_table (Reader *self)
{
  guint32 n = take_count (self, MAX_TABLE, 6);
  gboolean composes = FALSE, is_nfc = TRUE;

  for (guint32 i = 0; i < n && !self->failed; i++) {
    guint32 character = take_uint32 (self);
    gsize length;

    take_string (self, &length);
    composes |= character == 0x340;   /* grave tone mark */
    is_nfc &= character != 0xa0 && character != 0xfb01;   /* blank, ligature */
  }
  if (!composes || !is_nfc)
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a normaliser that is not NFC");
  return TRUE;
}

static gboolean
read_normalizer (Reader *self)
{
  guint kind = take_uint8 (self);
  guint32 n = 1;
  gboolean nfc = FALSE;

  if (kind == NORMALIZER_SEQUENCE)
    n = take_count (self, MAX_STAGES, 1);
  for (guint32 i = 0; i < n && !self->failed; i++) {
    guint each = kind == NORMALIZER_SEQUENCE ? take_uint8 (self) : kind;

    if (each == NORMALIZER_TABLE)
      nfc = take_table (self);
    else if (each != NORMALIZER_NONE)
      fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a normaliser that is not NFC");
  }
  return nfc;
}

static void
take_stage (Reader *self, guint kind, Stage *stage)
{
  *stage = (Stage) { kind, 0, NULL, 0 };
  switch (kind) {
    case PRE_BYTE_LEVEL:
    case PRE_DIGITS:
      stage->flag = take_uint8 (self);
      break;
    case PRE_SPLIT:
      stage->pattern = take_string (self, &stage->length);
      /* Inverted, or with the separators joined to a side. */
      stage->flag = take_uint16 (self);
      break;
    default:
      fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a pre-tokenizer that is not "
            "supported; those of Qwen2 and Qwen3, SmolLM2, GPT-2 and Llama 3 "
            "are");
  }
}

static gboolean
recognize (const Stage *stages, guint n, RunnelPretokenizer *ret)
{
  if (n == 1 && stages[0].kind == PRE_BYTE_LEVEL && stages[0].flag) {
    *ret = RUNNEL_PRETOKENIZER_GPT2;
    return TRUE;
  }
  if (n != 2 || stages[1].kind != PRE_BYTE_LEVEL)
    return FALSE;
  if (stages[0].kind == PRE_DIGITS) {
    *ret = RUNNEL_PRETOKENIZER_SMOLLM;
    return stages[0].flag && stages[1].flag;
  }
  return stages[0].kind == PRE_SPLIT && stages[0].flag == 0 && !stages[1].flag
      && runnel_pretokenizer_from_pattern (stages[0].pattern, stages[0].length,
                                           ret);
}

static void
read_pretokenizer (Reader *self)
{
  gboolean nfc = read_normalizer (self);
  guint kind = take_uint8 (self);
  Stage stages[MAX_STAGES];
  guint32 n = 1;

  if (kind == PRE_SEQUENCE)
    n = take_count (self, MAX_STAGES, 1);
  for (guint32 i = 0; i < n && !self->failed; i++)
    take_stage (self, kind == PRE_SEQUENCE ? take_uint8 (self) : kind,
                &stages[i]);
  if (self->failed)
    return;
  if (!recognize (stages, n, &self->parts->pre)
      || nfc != runnel_pretokenizer_wants_nfc (self->parts->pre))
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a pre-tokenizer, or one with a "
          "normaliser, that is not supported; those of Qwen2 and Qwen3, "
          "SmolLM2, GPT-2 and Llama 3 are");
}

/* --- kind 4: model --- */

/* Llama 3's tokenizer.json says ignore_merges, which these files lack. */
static void
make_bpe (Reader *self, gsize n_merges)
{
  self->parts->bpe = runnel_bpe_new (
      self->parts->vocabulary, n_merges,
      self->parts->pre == RUNNEL_PRETOKENIZER_LLAMA_BPE);
}

/* @pairs: two ids of each rank. */
static void
add_merges (Reader *self, const guint32 *pairs, gsize n)
{
  make_bpe (self, n);
  for (gsize i = 0; i < n && !self->failed; i++)
    self->failed = !runnel_bpe_add_merge_of (self->parts->bpe, pairs[2 * i],
                                             pairs[2 * i + 1], self->name,
                                             self->error);
}

static guint32 *
take_merges (Reader *self, gsize n)
{
  g_autofree guint32 *pairs = g_new (guint32, 2 * n + 1);
  g_autofree guint8 *seen = g_new0 (guint8, n + 1);

  for (gsize i = 0; i < n && !self->failed; i++) {
    guint32 ids[2] = { take_uint32 (self), take_uint32 (self) };
    guint32 rank = take_uint32 (self);

    for (guint k = 0; k < 2; k++)
      if (ids[k] >= self->texts->len
          || g_array_index (self->texts, RunnelTokenText, ids[k]).text == NULL)
        fail (self, RUNNEL_ERROR_MALFORMED, "a merge names no token");
    if (rank >= n || seen[rank])
      fail (self, RUNNEL_ERROR_MALFORMED, "the ranks of the merges are not "
            "those of a list");
    if (self->failed)
      break;
    seen[rank] = TRUE;
    memcpy (pairs + 2 * rank, ids, sizeof ids);
  }
  return g_steal_pointer (&pairs);
}

static guint32 *
read_model (Reader *self, gsize *ret_n)
{
  guint32 n_vocab;
  guint flags;

  *ret_n = 0;
  if (take_uint8 (self) != MODEL_BPE) {
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "is no byte-level BPE tokenizer, "
          "which is the only kind supported");
    return NULL;
  }
  n_vocab = take_count (self, RUNNEL_MAX_TOKENS, 6);
  flags = take_uint16 (self);   /* falls back to bytes, levels bytes itself */
  if (flags != 0)
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "falls back to byte tokens, which "
          "is not supported");
  *ret_n = take_count (self, RUNNEL_MAX_TOKENS, 12);
  make_room (self, n_vocab);
  for (guint32 i = 0; i < n_vocab && !self->failed; i++) {
    gsize length;
    const char *text = take_string (self, &length);

    set_token (self, take_uint32 (self), text, length, RUNNEL_TOKEN_NORMAL);
  }
  return take_merges (self, *ret_n);
}

static void
read_added (Reader *self)
{
  guint32 n = take_count (self, RUNNEL_MAX_TOKENS, 9);

  for (guint32 i = 0; i < n && !self->failed; i++) {
    guint32 id = take_uint32 (self);
    gboolean control = take_uint8 (self) != 0;
    guint strips = take_uint16 (self);
    gsize length;
    const char *text = take_string (self, &length);

    if (strips != 0)
      fail (self, RUNNEL_ERROR_UNSUPPORTED, "has an added token that strips "
            "blanks, which is not supported");
    add_token (self, id, text, length,
               control ? RUNNEL_TOKEN_CONTROL : RUNNEL_TOKEN_USER_DEFINED);
  }
}

/* --- what the file says of beginning and end --- */

/* @text: of the folder's configuration, or NULL; then that of the file. */
static gint32
find_named (Reader *self, const char *text, const char *in_file,
            gsize in_file_length)
{
  gsize length = text != NULL ? strlen (text) : in_file_length;
  const char *wanted = text != NULL ? text : in_file;
  gint32 found;

  if (length == 0 || self->failed)
    return -1;
  found = runnel_tokenizer_parts_find (self->parts, wanted, length);
  if (found < 0)
    fail (self, RUNNEL_ERROR_MISMATCH, "the token for the beginning or end of "
          "a text is none of its tokens");
  return found;
}

static void
set_bos (Reader *self, gint32 token)
{
  RunnelTokenizerParts *parts = self->parts;

  if (token < 0 || (guint) token >= runnel_vocabulary_size (parts->vocabulary)
      || (parts->add_bos && parts->bos != token)) {
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "puts more than one token before a "
          "text, or none of its own");
    return;
  }
  parts->bos = token;
  parts->add_bos = TRUE;
}

static void
set_ends (Reader *self, const char *bos, gsize bos_length, const char *eos,
          gsize eos_length)
{
  RunnelTokenizerParts *parts = self->parts;
  const guint32 *ids = self->special + self->n_special;

  parts->bos = find_named (self, self->context->bos, bos, bos_length);
  parts->eos = find_named (self, self->context->eos, eos, eos_length);
  runnel_tokenizer_parts_add_stop (parts, parts->eos);
  for (guint i = 0; i < self->n_stop && !self->failed; i++) {
    if (ids[i] >= runnel_vocabulary_size (parts->vocabulary))
      fail (self, RUNNEL_ERROR_MALFORMED, "a stop id is out of range");
    else
      runnel_tokenizer_parts_add_stop (parts, ids[i]);
  }
  if (parts->eos < 0 && self->n_stop > 0 && !self->failed)
    parts->eos = ids[0];
  for (guint i = 0; i < self->n_prefix && !self->failed; i++)
    set_bos (self, ids[self->n_stop + i]);
}

/* What is put around a text: one token before it, at most. Older files end
 * before this. */
static void
read_postprocessor (Reader *self)
{
  guint n = self->at < self->end ? take_uint16 (self) : 0;
  gboolean seen = FALSE;

  for (guint i = 0; i < n && !self->failed; i++) {
    guint kind = take_uint8 (self);

    if (kind == POST_SPECIAL && !seen)
      set_bos (self, take_uint32 (self));
    else if (kind == POST_SEQUENCE && !seen)
      seen = TRUE;
    else
      fail (self, RUNNEL_ERROR_UNSUPPORTED, "puts tokens behind a text, which "
            "is not supported");
  }
}

static void
read_rest (Reader *self)
{
  gsize template_length, bos_length = 0, eos_length;
  const char *template, *bos = NULL, *eos;

  template_length = take_uint32 (self);
  template = take_text (self, template_length);
  eos = take_string (self, &eos_length);
  take_uint8 (self);   /* whether to tidy blanks up, which changes the text */
  if (self->at < self->end)
    bos = take_string (self, &bos_length);
  if (self->failed)
    return;
  if (memchr (template, '\0', template_length) != NULL)
    fail (self, RUNNEL_ERROR_MALFORMED,
          "its chat template holds a NUL character");
  else if (template_length > 0 && self->parts->chat_template == NULL)
    self->parts->chat_template = g_strndup (template, template_length);
  set_ends (self, bos, bos_length, eos, eos_length);
  read_postprocessor (self);
}

static void
read_pipeline (Reader *self)
{
  g_autofree guint32 *pairs = NULL;
  gsize n_merges;

  read_pretokenizer (self);
  pairs = read_model (self, &n_merges);
  if (!self->failed && take_uint8 (self) != DECODER_BYTE_LEVEL)
    fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a decoder that is not "
          "byte-level");
  read_added (self);
  if (!make_vocabulary (self))
    return;
  add_merges (self, pairs, n_merges);
  read_rest (self);
}

/* --- kind 3 --- */

/* The file does not say how words are cut; the architecture does, and for
 * Llama's the tokens that came with the tokenizers. */
static void
guess_pretokenizer (Reader *self)
{
  static const struct { const char *token; RunnelPretokenizer pre; }
  marks[] = {
    { "<|begin_of_text|>", RUNNEL_PRETOKENIZER_LLAMA_BPE },
    { "<jupyter_start>", RUNNEL_PRETOKENIZER_SMOLLM },
  };
  const char *architecture = self->context->architecture;

  if (architecture != NULL && g_str_has_prefix (architecture, "qwen")) {
    self->parts->pre = RUNNEL_PRETOKENIZER_QWEN2;
    return;
  }
  for (guint i = 0; architecture != NULL && i < G_N_ELEMENTS (marks); i++) {
    if (runnel_tokenizer_parts_find (self->parts, marks[i].token,
                                     strlen (marks[i].token)) >= 0) {
      self->parts->pre = marks[i].pre;
      return;
    }
  }
  fail (self, RUNNEL_ERROR_UNSUPPORTED, "does not say how it cuts words, and "
        "it is neither Qwen's, Llama 3's nor SmolLM2's; export the model "
        "again, with tokenizer.mtok");
}

/* Added tokens are listed without their kind: of those that are part of the
 * text ("<think>", "<tool_call>") none looks like this. */
static gboolean
looks_like_control (const char *text, gsize length)
{
  return length > 4 && memcmp (text, "<|", 2) == 0
      && memcmp (text + length - 2, "|>", 2) == 0;
}

static void
take_tokens (Reader *self, guint32 n)
{
  const guint32 *stops = self->special + self->n_special;
  g_autofree guint8 *special = mark_special (self, n);

  for (guint32 id = 0; id < n && !self->failed; id++) {
    gsize length;
    const char *text = take_line (self, &length);

    if (!special[id]) {
      /* Ids between the tokens are filled up with this. */
      if (length != strlen ("<unk>") || memcmp (text, "<unk>", length) != 0)
        set_token (self, id, text, length, RUNNEL_TOKEN_NORMAL);
      continue;
    }
    add_token (self, id, text, length,
               is_listed (stops, self->n_stop, id)
                       || looks_like_control (text, length)
                   ? RUNNEL_TOKEN_CONTROL : RUNNEL_TOKEN_USER_DEFINED);
  }
}

static void
take_merge_lines (Reader *self, guint32 n)
{
  make_bpe (self, n);
  for (guint32 i = 0; i < n && !self->failed; i++) {
    gsize length, left;
    const char *line = take_line (self, &length);
    const char *blank = memchr (line, ' ', length);

    if (i == 0 && length > 8 && memcmp (line, "#version", 8) == 0)
      continue;   /* the first line of merges.txt */
    if (blank == NULL)
      fail (self, RUNNEL_ERROR_MALFORMED,
            "a merge has no blank between two parts");
    if (self->failed)
      return;
    left = blank - line;
    self->failed = !runnel_bpe_add_merge (self->parts->bpe, line, left,
                                          blank + 1, length - left - 1,
                                          self->name, self->error);
  }
}

static void
read_lines (Reader *self)
{
  guint32 counts[2] = { 0 };

  take_numbers (self, counts, 2);
  if (counts[0] > RUNNEL_MAX_TOKENS || counts[1] > RUNNEL_MAX_TOKENS
      || counts[0] > (gsize) (self->end - self->at)
      || counts[1] > (gsize) (self->end - self->at))
    fail (self, RUNNEL_ERROR_LIMIT, "has fewer lines than tokens and merges");
  if (self->failed)
    return;
  make_room (self, counts[0]);
  take_tokens (self, counts[0]);
  if (!make_vocabulary (self))
    return;
  guess_pretokenizer (self);
  if (!self->failed)
    take_merge_lines (self, counts[1]);
  if (!self->failed)
    set_ends (self, NULL, 0, NULL, 0);
}

/* --- kind 1 --- */

/* Bytes in the alphabet that the vocabulary wants; kept by @texts. */
static const char *
spell (GStringChunk *texts, const guint8 *bytes, gsize n, gsize *ret_length)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (gsize i = 0; i < n; i++)
    g_string_append_unichar (text, runnel_byte_level_character (bytes[i]));
  *ret_length = text->len;
  return g_string_chunk_insert_len (texts, text->str, text->len);
}

/* A token in base64 on each line; those that are special are text. */
static void
take_ranked (Reader *self, guint32 n, GStringChunk *texts)
{
  g_autofree guint8 *special = mark_special (self, n);

  for (guint32 id = 0; id < n && !self->failed; id++) {
    gsize length, n_bytes;
    const char *line = take_line (self, &length);
    g_autofree char *copy = g_strndup (line, length);
    g_autofree guint8 *bytes = g_base64_decode (copy, &n_bytes);

    if (n_bytes == 0 || n_bytes > RUNNEL_MAX_RANKED) {
      fail (self, RUNNEL_ERROR_MALFORMED,
            "a line is no token of 1 to 256 bytes in base64");
    } else if (!special[id]) {
      const char *text = spell (texts, bytes, n_bytes, &length);

      set_token (self, id, text, length, RUNNEL_TOKEN_NORMAL);
    } else if (!g_utf8_validate_len ((const char *) bytes, n_bytes, NULL)) {
      fail (self, RUNNEL_ERROR_MALFORMED, "a special token is no UTF-8");
    } else {
      add_token (self, id, g_string_chunk_insert_len (
          texts, (const char *) bytes, n_bytes), n_bytes,
          RUNNEL_TOKEN_CONTROL);
    }
  }
}

static void
read_ranks (Reader *self)
{
  g_autoptr (GStringChunk) texts = g_string_chunk_new (4096);
  guint32 n = 0, parts[2];

  take_numbers (self, &n, 1);
  if (n > RUNNEL_MAX_TOKENS || n > (gsize) (self->end - self->at))
    fail (self, RUNNEL_ERROR_LIMIT, "has fewer lines than tokens");
  if (self->failed)
    return;
  make_room (self, n);
  take_ranked (self, n, texts);
  if (!make_vocabulary (self))
    return;
  guess_pretokenizer (self);
  if (self->failed)
    return;
  make_bpe (self, n);
  for (guint32 id = 0; id < n && !self->failed; id++)
    if (runnel_vocabulary_is_findable (self->parts->vocabulary, id)
        && runnel_rank_merge_find (self->parts->vocabulary, id, parts))
      self->failed = !runnel_bpe_add_merge_of (self->parts->bpe, parts[0],
                                               parts[1], self->name,
                                               self->error);
  if (!self->failed)
    set_ends (self, NULL, 0, NULL, 0);
}

/* --- the whole --- */

gboolean
runnel_tokenizer_is_mtok (const guint8 *data, gsize size)
{
  return size > strlen (MAGIC) && memcmp (data, MAGIC, strlen (MAGIC)) == 0;
}

RunnelTokenizer *
runnel_tokenizer_new_from_mtok (RunnelMapping *file,
                                const RunnelMtokContext *context,
                                GError **error)
{
  g_autoptr (RunnelTokenizerParts) parts = runnel_tokenizer_parts_new ();
  g_autoptr (GArray) texts =
      g_array_new (FALSE, TRUE, sizeof (RunnelTokenText));
  const guint8 *data = runnel_mapping_data (file);
  Reader reader = {
    .context = context, .name = runnel_mapping_name (file), .at = data,
    .end = data + runnel_mapping_size (file), .error = error, .texts = texts,
    .parts = parts,
  };
  guint32 kind;

  if (!runnel_tokenizer_is_mtok (data, runnel_mapping_size (file))
      || context->n_vocab > RUNNEL_MAX_TOKENS) {
    fail (&reader, RUNNEL_ERROR_MALFORMED, "is no tokenizer of MNN's");
    return NULL;
  }
  parts->chat_template = g_strdup (context->chat_template);
  kind = read_head (&reader);
  if (kind == KIND_PIPELINE)
    read_pipeline (&reader);
  else if (kind == KIND_HUGGING_FACE)
    read_lines (&reader);
  else if (kind == KIND_RANKS)
    read_ranks (&reader);
  else
    fail (&reader, RUNNEL_ERROR_UNSUPPORTED, "is no byte-level BPE tokenizer "
          "(kinds 1, 3 and 4), which is the only kind supported");
  g_free (reader.special);
  return reader.failed ? NULL
                       : runnel_tokenizer_new_take (g_steal_pointer (&parts));
}
