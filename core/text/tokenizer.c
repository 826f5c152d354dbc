/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tokenizer-private.h"

#include <string.h>

#include "../error.h"
#include "character-class.h"
#include "normalizer.h"

struct _RunnelTokenizer {
  GObject parent_instance;

  RunnelTokenizerParts *parts;
  const guint8 *classes;
  char *digest;
};

G_DEFINE_FINAL_TYPE (RunnelTokenizer, runnel_tokenizer, G_TYPE_OBJECT)

gboolean
runnel_tokenizer_is_made (RunnelTokenizer *self)
{
  return RUNNEL_IS_TOKENIZER (self) && self->parts != NULL;
}

static void
runnel_tokenizer_finalize (GObject *object)
{
  RunnelTokenizer *self = RUNNEL_TOKENIZER (object);

  g_clear_pointer (&self->parts, runnel_tokenizer_parts_free);
  g_free (self->digest);
  G_OBJECT_CLASS (runnel_tokenizer_parent_class)->finalize (object);
}

static void
runnel_tokenizer_class_init (RunnelTokenizerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_tokenizer_finalize;
}

static void
runnel_tokenizer_init (RunnelTokenizer *self)
{
  self->classes = runnel_character_classes ();
}

RunnelTokenizerParts *
runnel_tokenizer_parts_new (void)
{
  RunnelTokenizerParts *self = g_new0 (RunnelTokenizerParts, 1);

  self->added = runnel_added_tokens_new ();
  self->added_normalized = runnel_added_tokens_new ();
  self->stop_tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->bos = self->eos = -1;
  return self;
}

void
runnel_tokenizer_parts_free (RunnelTokenizerParts *self)
{
  g_clear_pointer (&self->bpe, runnel_bpe_free);
  g_clear_pointer (&self->vocabulary, runnel_vocabulary_free);
  runnel_added_tokens_free (self->added);
  runnel_added_tokens_free (self->added_normalized);
  g_array_unref (self->stop_tokens);
  g_free (self->chat_template);
  g_free (self);
}

gboolean
runnel_tokenizer_parts_seal (RunnelTokenizerParts *self, const char *name,
                             GError **error)
{
  gint32 twice;

  if (runnel_added_tokens_seal (self->added, &twice)
      && runnel_added_tokens_seal (self->added_normalized, &twice))
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
               "%s: token %d has the text of another added token", name,
               twice);
  return FALSE;
}

void
runnel_tokenizer_parts_add_stop (RunnelTokenizerParts *self, gint32 token)
{
  if (token < 0)
    return;
  for (guint i = 0; i < self->stop_tokens->len; i++)
    if (g_array_index (self->stop_tokens, gint32, i) == token)
      return;
  g_array_append_val (self->stop_tokens, token);
}

gint32
runnel_tokenizer_parts_find (const RunnelTokenizerParts *self,
                             const char *text, gsize length)
{
  const guint8 *bytes = (const guint8 *) text;
  gint32 token = runnel_added_tokens_lookup (self->added, bytes, length);

  if (token < 0)
    token = runnel_added_tokens_lookup (self->added_normalized, bytes, length);
  if (token < 0)
    token = runnel_vocabulary_find (self->vocabulary, bytes, length);
  return token;
}

static void
digest_uint32s (GChecksum *checksum, const guint32 *values, gsize n)
{
  guint8 buffer[4096];

  while (n > 0) {
    gsize some = MIN (n, sizeof buffer / 4);

    for (gsize i = 0; i < some; i++) {
      guint32 little = GUINT32_TO_LE (values[i]);

      memcpy (buffer + 4 * i, &little, 4);
    }
    g_checksum_update (checksum, buffer, some * 4);
    values += some;
    n -= some;
  }
}

/* Converters to GGUF make control tokens of added tokens that only look like
 * them, so the two kinds of added tokens count as one. */
static guint32
digest_type (const RunnelTokenizerParts *parts, guint token)
{
  RunnelTokenType type = runnel_vocabulary_type (parts->vocabulary, token);

  return type == RUNNEL_TOKEN_USER_DEFINED ? RUNNEL_TOKEN_CONTROL : type;
}

/* What makes ids mean the same: per token in use its id, type and bytes, the
 * merges in order, and the pre-tokenizer. Unused ids are left out, so that a
 * vocabulary padded to the model's size stays the same vocabulary. */
static char *
make_digest (const RunnelTokenizerParts *parts)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (GByteArray) tokens = g_byte_array_new ();
  guint n = runnel_vocabulary_size (parts->vocabulary);
  const char *pre = runnel_pretokenizer_name (parts->pre);
  const guint32 *merges;
  gsize n_merges;

  for (guint token = 0; token < n; token++) {
    gsize length;
    const guint8 *piece =
        runnel_vocabulary_piece (parts->vocabulary, token, &length);
    guint32 head[3] = {
      GUINT32_TO_LE (token),
      GUINT32_TO_LE (digest_type (parts, token)),
      GUINT32_TO_LE (length),
    };

    if (head[1] == GUINT32_TO_LE (RUNNEL_TOKEN_UNUSED))
      continue;
    g_byte_array_append (tokens, (const guint8 *) head, sizeof head);
    g_byte_array_append (tokens, piece, length);
  }
  g_checksum_update (checksum, tokens->data, tokens->len);
  merges = runnel_bpe_merges (parts->bpe, &n_merges);
  digest_uint32s (checksum, merges, 2 * n_merges);
  g_checksum_update (checksum, (const guchar *) pre, -1);
  return g_strdup (g_checksum_get_string (checksum));
}

RunnelTokenizer *
runnel_tokenizer_new_take (RunnelTokenizerParts *parts)
{
  RunnelTokenizer *self = g_object_new (RUNNEL_TYPE_TOKENIZER, NULL);

  self->parts = parts;
  self->digest = make_digest (parts);
  return self;
}

const RunnelTokenizerParts *
runnel_tokenizer_get_parts (RunnelTokenizer *self)
{
  return self->parts;
}

/* One call of encode. */
typedef struct {
  const RunnelTokenizer *self;
  RunnelBpeScratch *scratch;
  GString *normalized;
  RunnelTokenList out;
} Encoding;

/* Words of a text that holds no added token and is normalised. */
static void
encode_words (Encoding *run, const char *text, gsize length)
{
  const RunnelTokenizerParts *parts = run->self->parts;
  const guint8 *p = (const guint8 *) text, *end = p + length;

  while (p < end) {
    gsize n = runnel_pretokenizer_next (parts->pre, run->self->classes, p,
                                        end - p);

    runnel_bpe_encode (parts->bpe, p, n, run->scratch, &run->out);
    p += n;
  }
}

static gboolean
needs_normalizing (const Encoding *run, const char *text, gsize length)
{
  return runnel_pretokenizer_wants_nfc (run->self->parts->pre)
      && !runnel_is_surely_nfc (run->self->classes, text, length);
}

static void
encode_plain (Encoding *run, const char *text, gsize length)
{
  if (needs_normalizing (run, text, length)) {
    g_string_truncate (run->normalized, 0);
    runnel_normalize_nfc (run->self->classes, text, length, run->normalized);
    text = run->normalized->str;
    length = run->normalized->len;
  }
  encode_words (run, text, length);
}

/* The first added token in [begin, end) that lies inside one span; the spans
 * before the one it lies in are given up. */
static gint32
search_spans (const RunnelAddedTokens *added, const char *text, gsize begin,
              gsize end, const RunnelTextSpan **spans, gsize *n_spans,
              gsize *ret_start, gsize *ret_length)
{
  while (*n_spans > 0 && (*spans)->start < end) {
    gsize span_end = (*spans)->start + (*spans)->length;
    gint32 token = runnel_added_tokens_search (
        added, (const guint8 *) text, MAX (begin, (*spans)->start),
        MIN (end, span_end), ret_start, ret_length);

    if (token >= 0)
      return token;
    if (span_end > end)
      break;   /* the rest of it may matter to the text after @end */
    (*spans)++;
    (*n_spans)--;
  }
  return -1;
}

typedef void (*EncodeGap) (Encoding *run, const char *text, gsize begin,
                           gsize end, const RunnelTextSpan **spans,
                           gsize *n_spans);

static void
encode_gap_plain (Encoding *run, const char *text, gsize begin, gsize end,
                  const RunnelTextSpan **spans, gsize *n_spans)
{
  encode_plain (run, text + begin, end - begin);
}

static void
encode_added (Encoding *run, const RunnelAddedTokens *added, const char *text,
              gsize begin, gsize end, const RunnelTextSpan **spans,
              gsize *n_spans, EncodeGap encode_gap)
{
  const RunnelTextSpan *gap_spans = *spans;
  gsize n_gap_spans = *n_spans;

  while (begin < end) {
    gsize start, length;
    gint32 token = search_spans (added, text, begin, end, spans, n_spans,
                                 &start, &length);

    if (token < 0)
      break;
    encode_gap (run, text, begin, start, &gap_spans, &n_gap_spans);
    runnel_token_list_append (&run->out, token);
    begin = start + length;
  }
  encode_gap (run, text, begin, end, &gap_spans, &n_gap_spans);
}

/* Tokens that are matched in normalised text come second. Where only spans
 * may hold them, they are matched as written: a span has no place in the
 * normalised text, and template text is written composed. */
static void
encode_gap_normalized (Encoding *run, const char *text, gsize begin, gsize end,
                       const RunnelTextSpan **spans, gsize *n_spans)
{
  encode_added (run, run->self->parts->added_normalized, text, begin, end,
                spans, n_spans, encode_gap_plain);
}

/* The same where the whole text may hold tokens, as `tokenizers` does it. */
static void
encode_gap_whole (Encoding *run, const char *text, gsize begin, gsize end,
                  const RunnelTextSpan **spans, gsize *n_spans)
{
  g_autoptr (GString) composed = NULL;
  RunnelTextSpan span = { begin, end - begin };
  const RunnelTextSpan *whole = &span;
  gsize one = 1;

  if (needs_normalizing (run, text + begin, end - begin)) {
    composed = g_string_new (NULL);
    runnel_normalize_nfc (run->self->classes, text + begin, end - begin,
                          composed);
    text = composed->str;
    begin = 0;
    end = composed->len;
    span = (RunnelTextSpan) { 0, end };
  }
  encode_added (run, run->self->parts->added_normalized, text, begin, end,
                &whole, &one, encode_gap_plain);
}

static gboolean
check_text (const char *text, gsize length, GError **error)
{
  const char *at = text, *end = text + length;

  if (length > G_MAXINT32) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                 "text of %" G_GSIZE_FORMAT " bytes: at most %d can be "
                 "tokenized at once", length, G_MAXINT32);
    return FALSE;
  }
  /* GLib refuses NUL, which is a character like others to a tokenizer. */
  while (!g_utf8_validate_len (at, end - at, &at)) {
    if (*at != '\0') {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "text is not valid UTF-8 at byte %" G_GSIZE_FORMAT,
                   (gsize) (at - text));
      return FALSE;
    }
    at++;
  }
  return TRUE;
}

static gboolean
check_spans (const RunnelTextSpan *spans, gsize n_spans, gsize length,
             GError **error)
{
  gsize end = 0;

  for (gsize i = 0; i < n_spans; i++) {
    if (spans[i].start < end || spans[i].start > length
        || spans[i].length > length - spans[i].start) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "span %" G_GSIZE_FORMAT " overlaps the one before it or "
                   "ends outside the text of %" G_GSIZE_FORMAT " bytes", i,
                   length);
      return FALSE;
    }
    end = spans[i].start + spans[i].length;
  }
  return TRUE;
}

static gint32 *
encode (RunnelTokenizer *self, const char *text, gsize length,
        const RunnelTextSpan *spans, gsize n_spans, gsize *n_tokens,
        GError **error)
{
  g_autoptr (RunnelBpeScratch) scratch = NULL;
  g_autoptr (GString) normalized = NULL;
  Encoding run = { self };
  gboolean whole =
      n_spans == 1 && spans->start == 0 && spans->length == length;

  if (!check_text (text, length, error)
      || !check_spans (spans, n_spans, length, error))
    return NULL;
  run.scratch = scratch = runnel_bpe_scratch_new ();
  run.normalized = normalized = g_string_new (NULL);
  run.out.room = length / 4 + 16;
  run.out.ids = g_new (gint32, run.out.room);
  if (n_spans == 0)
    encode_plain (&run, text, length);
  else if (runnel_added_tokens_size (self->parts->added_normalized) == 0)
    encode_added (&run, self->parts->added, text, 0, length, &spans, &n_spans,
                  encode_gap_plain);
  else
    encode_added (&run, self->parts->added, text, 0, length, &spans, &n_spans,
                  whole ? encode_gap_whole : encode_gap_normalized);
  *n_tokens = run.out.n;
  return run.out.ids;
}

/**
 * runnel_tokenizer_encode:
 * @self: a tokenizer
 * @text: (array length=length) (element-type guint8): UTF-8; NUL is a
 *   character like others
 * @length: the bytes of @text, or -1 when it ends with NUL
 * @parse_special: whether text that looks like a control token becomes one;
 *   only for text that no stranger wrote
 * @n_tokens: (out): the number of ids
 * @error: return location
 *
 * Turns a text into token ids. Nothing is added before or after.
 *
 * Fails with %RUNNEL_ERROR_INVALID_ARGUMENT, naming the byte, when @text is
 * not valid UTF-8, and with %RUNNEL_ERROR_LIMIT from 2 GiB on.
 *
 * Returns: (transfer full) (array length=n_tokens): the ids
 *
 * Since: 0.1
 */
gint32 *
runnel_tokenizer_encode (RunnelTokenizer *self, const char *text,
                         gssize length, gboolean parse_special,
                         gsize *n_tokens, GError **error)
{
  RunnelTextSpan whole = { 0 };

  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);
  g_return_val_if_fail (text != NULL && n_tokens != NULL, NULL);

  whole.length = length < 0 ? strlen (text) : (gsize) length;
  return encode (self, text, whole.length, &whole, parse_special ? 1 : 0,
                 n_tokens, error);
}

/**
 * runnel_tokenizer_encode_spans:
 * @self: a tokenizer
 * @text: (array length=length) (element-type guint8): UTF-8
 * @length: the bytes of @text, or -1 when it ends with NUL
 * @spans: (array length=n_spans) (nullable): the ranges of @text that a chat
 *   template wrote, ascending, not overlapping
 * @n_spans: the number of @spans
 * @n_tokens: (out): the number of ids
 * @error: return location
 *
 * Like [method@Runnel.Tokenizer.encode], but a control token is recognised
 * only where it lies wholly inside one span. Elsewhere the same characters
 * are plain text. Between control tokens the text is tokenized as one piece,
 * whatever spans it crosses.
 *
 * Returns: (transfer full) (array length=n_tokens): the ids
 *
 * Since: 0.1
 */
gint32 *
runnel_tokenizer_encode_spans (RunnelTokenizer *self, const char *text,
                               gssize length, const RunnelTextSpan *spans,
                               gsize n_spans, gsize *n_tokens, GError **error)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);
  g_return_val_if_fail (text != NULL && n_tokens != NULL, NULL);
  g_return_val_if_fail (spans != NULL || n_spans == 0, NULL);

  return encode (self, text, length < 0 ? strlen (text) : (gsize) length,
                 spans, n_spans, n_tokens, error);
}

/**
 * runnel_tokenizer_decode:
 * @self: a tokenizer
 * @tokens: (array length=n_tokens): ids
 * @n_tokens: the number of @tokens
 * @render_special: whether control tokens give their literal text or nothing
 * @error: return location
 *
 * Joins the bytes of tokens. They need not be valid UTF-8; use a
 * [class@Runnel.Detokenizer] for text.
 *
 * Fails with %RUNNEL_ERROR_INVALID_ARGUMENT when an id is out of range.
 *
 * Returns: (transfer full): the bytes
 *
 * Since: 0.1
 */
GBytes *
runnel_tokenizer_decode (RunnelTokenizer *self, const gint32 *tokens,
                         gsize n_tokens, gboolean render_special,
                         GError **error)
{
  g_autoptr (GByteArray) out = NULL;

  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);
  g_return_val_if_fail (tokens != NULL || n_tokens == 0, NULL);

  out = g_byte_array_new ();
  for (gsize i = 0; i < n_tokens; i++) {
    gsize length;
    const guint8 *piece =
        runnel_tokenizer_get_piece (self, tokens[i], &length);

    if (piece == NULL) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "token %d at position %" G_GSIZE_FORMAT " is not below the "
                   "vocabulary's %u tokens", tokens[i], i,
                   runnel_tokenizer_get_n_tokens (self));
      return NULL;
    }
    if (!render_special && runnel_tokenizer_is_control (self, tokens[i]))
      continue;
    if (length > G_MAXUINT - out->len) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                   "the text of these tokens has more than %u bytes; decode "
                   "them in parts", G_MAXUINT);
      return NULL;
    }
    g_byte_array_append (out, piece, length);
  }
  return g_byte_array_free_to_bytes (g_steal_pointer (&out));
}

/**
 * runnel_tokenizer_get_piece:
 * @self: a tokenizer
 * @token: an id
 * @length: (out): the number of bytes
 *
 * Gets the bytes of one token. They may be part of a character, and may hold
 * NUL. Control tokens give their literal text.
 *
 * Returns: (transfer none) (nullable) (array length=length): the bytes; %NULL
 *   when @token is out of range
 *
 * Since: 0.1
 */
const guint8 *
runnel_tokenizer_get_piece (RunnelTokenizer *self, gint32 token, gsize *length)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);
  g_return_val_if_fail (length != NULL, NULL);

  *length = 0;
  if (token < 0
      || (guint) token >= runnel_vocabulary_size (self->parts->vocabulary))
    return NULL;
  return runnel_vocabulary_piece (self->parts->vocabulary, token, length);
}

/**
 * runnel_tokenizer_is_control:
 * @self: a tokenizer
 * @token: an id
 *
 * Tells whether a token is no part of a text: a control token, or an id that
 * the vocabulary does not use.
 *
 * Returns: %TRUE for control tokens; %FALSE for others and out of range
 *
 * Since: 0.1
 */
gboolean
runnel_tokenizer_is_control (RunnelTokenizer *self, gint32 token)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), FALSE);

  if (token < 0
      || (guint) token >= runnel_vocabulary_size (self->parts->vocabulary))
    return FALSE;
  switch (runnel_vocabulary_type (self->parts->vocabulary, token)) {
    case RUNNEL_TOKEN_CONTROL:
    case RUNNEL_TOKEN_UNKNOWN:
    case RUNNEL_TOKEN_UNUSED:
      return TRUE;
    case RUNNEL_TOKEN_NORMAL:
    case RUNNEL_TOKEN_USER_DEFINED:
    case RUNNEL_TOKEN_BYTE:
      return FALSE;
  }
  g_assert_not_reached ();
}

/**
 * runnel_tokenizer_find_token:
 * @self: a tokenizer
 * @text: a token's text, as it stands in a text (" the", "<|im_end|>")
 *
 * Looks for the token that has exactly this text.
 *
 * Returns: its id, or -1
 *
 * Since: 0.1
 */
gint32
runnel_tokenizer_find_token (RunnelTokenizer *self, const char *text)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), -1);
  g_return_val_if_fail (text != NULL, -1);

  return runnel_tokenizer_parts_find (self->parts, text, strlen (text));
}

/**
 * runnel_tokenizer_get_n_tokens:
 * @self: a tokenizer
 *
 * Gets the size of the vocabulary; ids are below it.
 *
 * Returns: the number of ids
 *
 * Since: 0.1
 */
guint
runnel_tokenizer_get_n_tokens (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), 0);

  return runnel_vocabulary_size (self->parts->vocabulary);
}

/**
 * runnel_tokenizer_get_digest:
 * @self: a tokenizer
 *
 * Gets the identity of the vocabulary: a SHA-256 over tokens, types, merges
 * and pre-tokenizer. Two tokenizers with the same digest mean the same by an
 * id, whatever files they came from.
 *
 * Returns: (transfer none): 64 hexadecimal digits
 *
 * Since: 0.1
 */
const char *
runnel_tokenizer_get_digest (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);

  return self->digest;
}

/**
 * runnel_tokenizer_get_pre:
 * @self: a tokenizer
 *
 * Gets the name of the pre-tokenizer: `qwen2`, `smollm`, `gpt-2` or
 * `llama-bpe`.
 *
 * Returns: (transfer none): the name
 *
 * Since: 0.1
 */
const char *
runnel_tokenizer_get_pre (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);

  return runnel_pretokenizer_name (self->parts->pre);
}

/**
 * runnel_tokenizer_get_bos:
 * @self: a tokenizer
 *
 * Gets the token that begins a text.
 *
 * Returns: its id, or -1 when the model has none
 *
 * Since: 0.1
 */
gint32
runnel_tokenizer_get_bos (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), -1);

  return self->parts->bos;
}

/**
 * runnel_tokenizer_get_eos:
 * @self: a tokenizer
 *
 * Gets the token that ends a text. More may end a reply:
 * [method@Runnel.Tokenizer.get_stop_tokens].
 *
 * Returns: its id, or -1 when the model has none
 *
 * Since: 0.1
 */
gint32
runnel_tokenizer_get_eos (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), -1);

  return self->parts->eos;
}

/**
 * runnel_tokenizer_get_add_bos:
 * @self: a tokenizer
 *
 * Tells whether the model wants its beginning-of-text token before a text
 * that no chat template made. [method@Runnel.Tokenizer.encode] never adds it.
 *
 * Returns: %TRUE when it does
 *
 * Since: 0.1
 */
gboolean
runnel_tokenizer_get_add_bos (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), FALSE);

  return self->parts->add_bos;
}

/**
 * runnel_tokenizer_get_stop_tokens:
 * @self: a tokenizer
 * @n: (out): the number of ids
 *
 * Gets all ids that end a reply: end of text, of turn and of message, and
 * what generation_config.json lists.
 *
 * Returns: (transfer none) (array length=n): the ids
 *
 * Since: 0.1
 */
const gint32 *
runnel_tokenizer_get_stop_tokens (RunnelTokenizer *self, gsize *n)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);
  g_return_val_if_fail (n != NULL, NULL);

  *n = self->parts->stop_tokens->len;
  return (const gint32 *) self->parts->stop_tokens->data;
}

/**
 * runnel_tokenizer_get_chat_template:
 * @self: a tokenizer
 *
 * Gets the source of the model's own chat template.
 *
 * Returns: (transfer none) (nullable): the template, or %NULL when the model
 *   has none
 *
 * Since: 0.1
 */
const char *
runnel_tokenizer_get_chat_template (RunnelTokenizer *self)
{
  g_return_val_if_fail (runnel_tokenizer_is_made (self), NULL);

  return self->parts->chat_template;
}
