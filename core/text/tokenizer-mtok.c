/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Kinds 1 and 3, in text, and what all kinds share.
 */
#include "tokenizer-mtok-private.h"

#include <string.h>

#include "../error-private.h"
#include "byte-level.h"
#include "rank-merges.h"

#define MAGIC "430 "
#define MAX_SPECIAL 4096
/* Ids without a token are kept within reason where no model says how many
 * there are. */
#define MAX_GAPS 16384

enum { KIND_RANKS = 1, KIND_HUGGING_FACE = 3, KIND_PIPELINE = 4 };
void
mtok_fail (MtokReader *self, RunnelError code, const char *what)
{
  if (!self->failed)
    runnel_set_error_about (self->error, code, self->name, "%s", what);
  self->failed = TRUE;
}

/* --- tokens --- */

void
mtok_set_token (MtokReader *self, guint32 id, const char *text, gsize length,
                RunnelTokenType type)
{
  if (self->failed)
    return;
  if (id >= self->texts->len) {
    mtok_fail (self, RUNNEL_ERROR_MALFORMED, "a token's id is out of range");
    return;
  }
  if (!runnel_token_text_set (&g_array_index (self->texts, RunnelTokenText, 0),
                              id, text, length, type, self->name, self->error))
    self->failed = TRUE;
}

void
mtok_add_token (MtokReader *self, guint32 id, const char *text, gsize length,
                RunnelTokenType type)
{
  if (length == 0)
    mtok_fail (self, RUNNEL_ERROR_MALFORMED, "an added token has no text");
  mtok_set_token (self, id, text, length, type);
  if (!self->failed)
    runnel_added_tokens_add (self->parts->added, (const guint8 *) text, length,
                             id);
}

void
mtok_make_room (MtokReader *self, gsize n)
{
  guint n_vocab = self->context->n_vocab;

  g_array_set_size (self->texts, n_vocab > 0 ? n_vocab : n + MAX_GAPS);
  for (guint i = 0; i < self->texts->len; i++)
    g_array_index (self->texts, RunnelTokenText, i).type = RUNNEL_TOKEN_UNUSED;
}

gboolean
mtok_make_vocabulary (MtokReader *self)
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

/* Llama 3's tokenizer.json says ignore_merges, which these files lack. */
void
mtok_make_bpe (MtokReader *self, gsize n_merges)
{
  self->parts->bpe = runnel_bpe_new (
      self->parts->vocabulary, n_merges,
      self->parts->pre == RUNNEL_PRETOKENIZER_LLAMA_BPE);
}

/* --- the lines in front --- */

static const char *
take_line (MtokReader *self, gsize *length)
{
  const guint8 *start = self->at;
  const guint8 *newline = start < self->end && !self->failed
      ? memchr (start, '\n', self->end - start) : NULL;

  *length = 0;
  if (newline == NULL) {
    mtok_fail (self, RUNNEL_ERROR_TRUNCATED, "ends before its lines do");
    return "";
  }
  *length = newline - start;
  self->at = newline + 1;
  if (!g_utf8_validate_len ((const char *) start, *length, NULL))
    mtok_fail (self, RUNNEL_ERROR_MALFORMED, "holds a line that is no UTF-8");
  return (const char *) start;
}

/* Numbers with blanks between them; exactly @n on the line. */
static void
take_numbers (MtokReader *self, guint32 *numbers, gsize n)
{
  gsize length;
  const char *line = take_line (self, &length);
  const char *end = line + length;

  for (gsize i = 0; i < n && !self->failed; i++) {
    guint64 value = 0;

    while (line < end && *line == ' ')
      line++;
    if (line == end || !g_ascii_isdigit (*line))
      mtok_fail (self, RUNNEL_ERROR_MALFORMED, "lacks a number in its first "
                 "lines");
    for (; line < end && g_ascii_isdigit (*line); line++)
      value = MIN (value * 10 + g_ascii_digit_value (*line), G_MAXUINT32);
    numbers[i] = value;
  }
}

static guint32
read_head (MtokReader *self)
{
  guint32 kind[2] = { 0 }, counts[3] = { 0 };
  gsize n;

  take_numbers (self, kind, 2);
  take_numbers (self, counts, 3);
  for (guint i = 0; i < 3; i++)
    if (counts[i] > MAX_SPECIAL)
      mtok_fail (self, RUNNEL_ERROR_LIMIT, "has more than 4096 special tokens");
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
mark_special (const MtokReader *self, guint32 n)
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

/* --- what the file says of beginning and end --- */

/* @text: of the folder's configuration, or NULL; then that of the file. */
static gint32
find_named (MtokReader *self, const char *text, const char *in_file,
            gsize in_file_length)
{
  gsize length = text != NULL ? strlen (text) : in_file_length;
  const char *wanted = text != NULL ? text : in_file;
  gint32 found;

  if (length == 0 || self->failed)
    return -1;
  found = runnel_tokenizer_parts_find (self->parts, wanted, length);
  if (found < 0)
    mtok_fail (self, RUNNEL_ERROR_MISMATCH, "the token for the beginning or "
               "end of a text is none of its tokens");
  return found;
}

void
mtok_set_bos (MtokReader *self, gint32 token)
{
  RunnelTokenizerParts *parts = self->parts;

  if (token < 0 || (guint) token >= runnel_vocabulary_size (parts->vocabulary)
      || (parts->add_bos && parts->bos != token)) {
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "puts more than one token "
               "before a text, or none of its own");
    return;
  }
  parts->bos = token;
  parts->add_bos = TRUE;
}

void
mtok_set_ends (MtokReader *self, const char *bos, gsize bos_length,
               const char *eos, gsize eos_length)
{
  RunnelTokenizerParts *parts = self->parts;
  const guint32 *ids = self->special + self->n_special;

  parts->bos = find_named (self, self->context->bos, bos, bos_length);
  parts->eos = find_named (self, self->context->eos, eos, eos_length);
  runnel_tokenizer_parts_add_stop (parts, parts->eos);
  for (guint i = 0; i < self->n_stop && !self->failed; i++) {
    if (ids[i] >= runnel_vocabulary_size (parts->vocabulary))
      mtok_fail (self, RUNNEL_ERROR_MALFORMED, "a stop id is out of range");
    else
      runnel_tokenizer_parts_add_stop (parts, ids[i]);
  }
  if (parts->eos < 0 && self->n_stop > 0 && !self->failed)
    parts->eos = ids[0];
  for (guint i = 0; i < self->n_prefix && !self->failed; i++)
    mtok_set_bos (self, ids[self->n_stop + i]);
}

/* --- kind 3 --- */

/* The file does not say how words are cut; the architecture does, and for
 * Llama's the tokens that came with the tokenizers. */
static void
guess_pretokenizer (MtokReader *self)
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
  mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "does not say how it cuts words, "
             "and it is neither Qwen's, Llama 3's nor SmolLM2's; export the "
             "model again, with tokenizer.mtok");
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
take_tokens (MtokReader *self, guint32 n)
{
  const guint32 *stops = self->special + self->n_special;
  g_autofree guint8 *special = mark_special (self, n);

  for (guint32 id = 0; id < n && !self->failed; id++) {
    gsize length;
    const char *text = take_line (self, &length);

    if (!special[id]) {
      /* Ids between the tokens are filled up with this. */
      if (length != strlen ("<unk>") || memcmp (text, "<unk>", length) != 0)
        mtok_set_token (self, id, text, length, RUNNEL_TOKEN_NORMAL);
      continue;
    }
    mtok_add_token (self, id, text, length,
                    is_listed (stops, self->n_stop, id)
                            || looks_like_control (text, length)
                        ? RUNNEL_TOKEN_CONTROL : RUNNEL_TOKEN_USER_DEFINED);
  }
}

static void
take_merge_lines (MtokReader *self, guint32 n)
{
  mtok_make_bpe (self, n);
  for (guint32 i = 0; i < n && !self->failed; i++) {
    gsize length, left;
    const char *line = take_line (self, &length);
    const char *blank = memchr (line, ' ', length);

    if (i == 0 && length > 8 && memcmp (line, "#version", 8) == 0)
      continue;   /* the first line of merges.txt */
    if (blank == NULL)
      mtok_fail (self, RUNNEL_ERROR_MALFORMED,
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
read_lines (MtokReader *self)
{
  guint32 counts[2] = { 0 };

  take_numbers (self, counts, 2);
  if (counts[0] > RUNNEL_MAX_TOKENS || counts[1] > RUNNEL_MAX_TOKENS
      || counts[0] > (gsize) (self->end - self->at)
      || counts[1] > (gsize) (self->end - self->at))
    mtok_fail (self, RUNNEL_ERROR_LIMIT, "has fewer lines than tokens and "
               "merges");
  if (self->failed)
    return;
  mtok_make_room (self, counts[0]);
  take_tokens (self, counts[0]);
  if (!mtok_make_vocabulary (self))
    return;
  guess_pretokenizer (self);
  if (!self->failed)
    take_merge_lines (self, counts[1]);
  if (!self->failed)
    mtok_set_ends (self, NULL, 0, NULL, 0);
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
take_ranked (MtokReader *self, guint32 n, GStringChunk *texts)
{
  g_autofree guint8 *special = mark_special (self, n);

  for (guint32 id = 0; id < n && !self->failed; id++) {
    gsize length, n_bytes;
    const char *line = take_line (self, &length);
    g_autofree char *copy = g_strndup (line, length);
    g_autofree guint8 *bytes = g_base64_decode (copy, &n_bytes);

    if (n_bytes == 0 || n_bytes > RUNNEL_MAX_RANKED) {
      mtok_fail (self, RUNNEL_ERROR_MALFORMED,
                 "a line is no token of 1 to 256 bytes in base64");
    } else if (!special[id]) {
      const char *text = spell (texts, bytes, n_bytes, &length);

      mtok_set_token (self, id, text, length, RUNNEL_TOKEN_NORMAL);
    } else if (!g_utf8_validate_len ((const char *) bytes, n_bytes, NULL)) {
      mtok_fail (self, RUNNEL_ERROR_MALFORMED, "a special token is no UTF-8");
    } else {
      mtok_add_token (self, id, g_string_chunk_insert_len (
          texts, (const char *) bytes, n_bytes), n_bytes,
          RUNNEL_TOKEN_CONTROL);
    }
  }
}

static void
read_ranks (MtokReader *self)
{
  g_autoptr (GStringChunk) texts = g_string_chunk_new (4096);
  guint32 n = 0, parts[2];

  take_numbers (self, &n, 1);
  if (n > RUNNEL_MAX_TOKENS || n > (gsize) (self->end - self->at))
    mtok_fail (self, RUNNEL_ERROR_LIMIT, "has fewer lines than tokens");
  if (self->failed)
    return;
  mtok_make_room (self, n);
  take_ranked (self, n, texts);
  if (!mtok_make_vocabulary (self))
    return;
  guess_pretokenizer (self);
  if (self->failed)
    return;
  mtok_make_bpe (self, n);
  for (guint32 id = 0; id < n && !self->failed; id++)
    if (runnel_vocabulary_is_findable (self->parts->vocabulary, id)
        && runnel_rank_merge_find (self->parts->vocabulary, id, parts))
      self->failed = !runnel_bpe_add_merge_of (self->parts->bpe, parts[0],
                                               parts[1], self->name,
                                               self->error);
  if (!self->failed)
    mtok_set_ends (self, NULL, 0, NULL, 0);
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
  MtokReader reader = {
    .context = context, .name = runnel_mapping_name (file), .at = data,
    .end = data + runnel_mapping_size (file), .error = error, .texts = texts,
    .parts = parts,
  };
  guint32 kind;

  if (!runnel_tokenizer_is_mtok (data, runnel_mapping_size (file))
      || context->n_vocab > RUNNEL_MAX_TOKENS) {
    mtok_fail (&reader, RUNNEL_ERROR_MALFORMED, "is no tokenizer of MNN's");
    return NULL;
  }
  parts->chat_template = g_strdup (context->chat_template);
  kind = read_head (&reader);
  if (kind == KIND_PIPELINE)
    mtok_read_stages (&reader);
  else if (kind == KIND_HUGGING_FACE)
    read_lines (&reader);
  else if (kind == KIND_RANKS)
    read_ranks (&reader);
  else
    mtok_fail (&reader, RUNNEL_ERROR_UNSUPPORTED, "is no byte-level BPE "
               "tokenizer (kinds 1, 3 and 4), which is the only kind "
               "supported");
  g_free (reader.special);
  return reader.failed ? NULL
                       : runnel_tokenizer_new_take (g_steal_pointer (&parts));
}
