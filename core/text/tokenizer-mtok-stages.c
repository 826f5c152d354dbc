/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Kind 4: the stages of tokenizer.json, in binary.
 */
#include "tokenizer-mtok-private.h"

#include <string.h>

#include "../backends/cpu/half.h"

#define MAX_STAGES 8
#define MAX_TABLE 0x110000

enum { NORMALIZER_NONE, NORMALIZER_SEQUENCE = 4, NORMALIZER_TABLE = 6 };
enum { PRE_NONE, PRE_BYTE_LEVEL, PRE_DIGITS, PRE_SPLIT = 4, PRE_SEQUENCE = 6 };
enum { MODEL_BPE };
enum { DECODER_BYTE_LEVEL };
enum { POST_SEQUENCE, POST_SPECIAL };

typedef struct { guint kind, flag; const char *pattern; gsize length; } Stage;

/* --- binary values; 0 after a failure --- */

static const guint8 *
take (MtokReader *self, gsize bytes)
{
  const guint8 *at = self->at;

  if (self->failed || bytes > (gsize) (self->end - at)) {
    mtok_fail (self, RUNNEL_ERROR_TRUNCATED, "ends before the tokenizer does");
    return NULL;
  }
  self->at += bytes;
  return at;
}

static guint
take_uint8 (MtokReader *self)
{
  const guint8 *p = take (self, 1);

  return p != NULL ? *p : 0;
}

static guint
take_uint16 (MtokReader *self)
{
  const guint8 *p = take (self, 2);

  return p != NULL ? runnel_load_u16 (p) : 0;
}

static guint32
take_uint32 (MtokReader *self)
{
  guint32 low = take_uint16 (self);

  return low | (guint32) take_uint16 (self) << 16;
}

/* How many items follow, of at least @bytes each. */
static guint32
take_count (MtokReader *self, guint32 limit, gsize bytes)
{
  guint32 n = take_uint32 (self);

  if (n > limit)
    mtok_fail (self, RUNNEL_ERROR_LIMIT, "has more entries than are allowed");
  else if (n > (gsize) (self->end - self->at) / bytes)
    mtok_fail (self, RUNNEL_ERROR_TRUNCATED, "ends before its entries do");
  return self->failed ? 0 : n;
}

static const char *
take_text (MtokReader *self, gsize length)
{
  const char *text = (const char *) take (self, length);

  if (text == NULL)
    return "";
  if (!g_utf8_validate_len (text, length, NULL)) {
    mtok_fail (self, RUNNEL_ERROR_MALFORMED, "holds a string that is no UTF-8");
    return "";
  }
  return text;
}

static const char *
take_string (MtokReader *self, gsize *length)
{
  *length = take_uint16 (self);
  return take_text (self, *length);
}

/* --- normaliser and pre-tokenizer --- */

/* Characters and what they become. NFC leaves compatibility characters alone,
 * NFKC does not; of both the file has single characters only, of which the
 * first is meant with compositions and all. */
static gboolean
take_table (MtokReader *self)
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
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a normaliser that is not "
               "NFC");
  return TRUE;
}

static gboolean
read_normalizer (MtokReader *self)
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
      mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a normaliser that is "
                 "not NFC");
  }
  return nfc;
}

static void
take_stage (MtokReader *self, guint kind, Stage *stage)
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
      mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a pre-tokenizer that is "
                 "not supported; those of Qwen2 and Qwen3, SmolLM2, GPT-2 and "
                 "Llama 3 are");
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
read_pretokenizer (MtokReader *self)
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
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a pre-tokenizer, or one "
               "with a normaliser, that is not supported; those of Qwen2 and "
               "Qwen3, SmolLM2, GPT-2 and Llama 3 are");
}

/* --- model --- */

/* @pairs: two ids of each rank. */
static void
add_merges (MtokReader *self, const guint32 *pairs, gsize n)
{
  mtok_make_bpe (self, n);
  for (gsize i = 0; i < n && !self->failed; i++)
    self->failed = !runnel_bpe_add_merge_of (self->parts->bpe, pairs[2 * i],
                                             pairs[2 * i + 1], self->name,
                                             self->error);
}

static guint32 *
take_merges (MtokReader *self, gsize n)
{
  g_autofree guint32 *pairs = g_new (guint32, 2 * n + 1);
  g_autofree guint8 *seen = g_new0 (guint8, n + 1);

  for (gsize i = 0; i < n && !self->failed; i++) {
    guint32 ids[2] = { take_uint32 (self), take_uint32 (self) };
    guint32 rank = take_uint32 (self);

    for (guint k = 0; k < 2; k++)
      if (ids[k] >= self->texts->len
          || g_array_index (self->texts, RunnelTokenText, ids[k]).text == NULL)
        mtok_fail (self, RUNNEL_ERROR_MALFORMED, "a merge names no token");
    if (rank >= n || seen[rank])
      mtok_fail (self, RUNNEL_ERROR_MALFORMED, "the ranks of the merges are "
                 "not those of a list");
    if (self->failed)
      break;
    seen[rank] = TRUE;
    memcpy (pairs + 2 * rank, ids, sizeof ids);
  }
  return g_steal_pointer (&pairs);
}

static guint32 *
read_model (MtokReader *self, gsize *ret_n)
{
  guint32 n_vocab;
  guint flags;

  *ret_n = 0;
  if (take_uint8 (self) != MODEL_BPE) {
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "is no byte-level BPE "
               "tokenizer, which is the only kind supported");
    return NULL;
  }
  n_vocab = take_count (self, RUNNEL_MAX_TOKENS, 6);
  flags = take_uint16 (self);   /* falls back to bytes, levels bytes itself */
  if (flags != 0)
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "falls back to byte tokens, "
               "which is not supported");
  *ret_n = take_count (self, RUNNEL_MAX_TOKENS, 12);
  mtok_make_room (self, n_vocab);
  for (guint32 i = 0; i < n_vocab && !self->failed; i++) {
    gsize length;
    const char *text = take_string (self, &length);

    mtok_set_token (self, take_uint32 (self), text, length,
                    RUNNEL_TOKEN_NORMAL);
  }
  return take_merges (self, *ret_n);
}

static void
read_added (MtokReader *self)
{
  guint32 n = take_count (self, RUNNEL_MAX_TOKENS, 9);

  for (guint32 i = 0; i < n && !self->failed; i++) {
    guint32 id = take_uint32 (self);
    gboolean control = take_uint8 (self) != 0;
    guint strips = take_uint16 (self);
    gsize length;
    const char *text = take_string (self, &length);

    if (strips != 0)
      mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has an added token that "
                 "strips blanks, which is not supported");
    mtok_add_token (self, id, text, length,
                    control ? RUNNEL_TOKEN_CONTROL : RUNNEL_TOKEN_USER_DEFINED);
  }
}

/* --- the rest --- */

/* What is put around a text: one token before it, at most. Older files end
 * before this. */
static void
read_postprocessor (MtokReader *self)
{
  guint n = self->at < self->end ? take_uint16 (self) : 0;
  gboolean seen = FALSE;

  for (guint i = 0; i < n && !self->failed; i++) {
    guint kind = take_uint8 (self);

    if (kind == POST_SPECIAL && !seen)
      mtok_set_bos (self, take_uint32 (self));
    else if (kind == POST_SEQUENCE && !seen)
      seen = TRUE;
    else
      mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "puts tokens behind a text, "
                 "which is not supported");
  }
}

static void
read_rest (MtokReader *self)
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
    mtok_fail (self, RUNNEL_ERROR_MALFORMED,
               "its chat template holds a NUL character");
  else if (template_length > 0 && self->parts->chat_template == NULL)
    self->parts->chat_template = g_strndup (template, template_length);
  mtok_set_ends (self, bos, bos_length, eos, eos_length);
  read_postprocessor (self);
}

void
mtok_read_stages (MtokReader *self)
{
  g_autofree guint32 *pairs = NULL;
  gsize n_merges;

  read_pretokenizer (self);
  pairs = read_model (self, &n_merges);
  if (!self->failed && take_uint8 (self) != DECODER_BYTE_LEVEL)
    mtok_fail (self, RUNNEL_ERROR_UNSUPPORTED, "has a decoder that is not "
               "byte-level");
  read_added (self);
  if (!mtok_make_vocabulary (self))
    return;
  add_merges (self, pairs, n_merges);
  read_rest (self);
}
