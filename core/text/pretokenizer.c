/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The expressions, as the models' tokenizer.json files give them; the order
 * of the alternatives is the order of the tests below.
 *
 * gpt-2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
 *        |\s+(?!\S)|\s+
 * smollm: first every digit by itself, then gpt-2 on what lies between.
 * qwen2: (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}
 *        | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * llama-bpe: as qwen2, but with \p{N}{1,3}.
 */
#include "pretokenizer.h"

#include <string.h>

#include "character-class.h"

#define LETTER RUNNEL_CHARACTER_LETTER
#define NUMBER RUNNEL_CHARACTER_NUMBER
#define SPACE RUNNEL_CHARACTER_SPACE
#define NEWLINE RUNNEL_CHARACTER_NEWLINE
#define DIGIT RUNNEL_CHARACTER_DIGIT

static const char *const names[] = {
  [RUNNEL_PRETOKENIZER_QWEN2] = "qwen2",
  [RUNNEL_PRETOKENIZER_SMOLLM] = "smollm",
  [RUNNEL_PRETOKENIZER_GPT2] = "gpt-2",
  [RUNNEL_PRETOKENIZER_LLAMA_BPE] = "llama-bpe",
};

gboolean
runnel_pretokenizer_from_name (const char *name, gsize length,
                               RunnelPretokenizer *ret)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (strlen (names[i]) == length && memcmp (names[i], name, length) == 0) {
      *ret = (RunnelPretokenizer) i;
      return TRUE;
    }
  }
  return FALSE;
}

#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

gboolean
runnel_pretokenizer_from_pattern (const char *pattern, gsize length,
                                  RunnelPretokenizer *ret)
{
  static const struct { const char *pattern; RunnelPretokenizer pre; }
  known[] = {
    { WORDS "\\p{N}" REST, RUNNEL_PRETOKENIZER_QWEN2 },
    { WORDS "\\p{N}{1,3}" REST, RUNNEL_PRETOKENIZER_LLAMA_BPE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (known); i++) {
    if (strlen (known[i].pattern) == length
        && memcmp (known[i].pattern, pattern, length) == 0) {
      *ret = known[i].pre;
      return TRUE;
    }
  }
  return FALSE;
}

const char *
runnel_pretokenizer_name (RunnelPretokenizer self)
{
  return names[self];
}

gboolean
runnel_pretokenizer_wants_nfc (RunnelPretokenizer self)
{
  return self == RUNNEL_PRETOKENIZER_QWEN2;
}

/* Steps over characters that have one of @wanted, or, when @wanted is 0, none
 * of @unwanted. */
static inline const guint8 *
skip (const guint8 *classes, const guint8 *p, const guint8 *end, guint8 wanted,
      guint8 unwanted)
{
  while (p < end) {
    guint length;
    guint8 class = runnel_character_class_at (classes, p, &length);

    if (wanted ? !(class & wanted) : (class & unwanted) != 0)
      break;
    p += length;
  }
  return p;
}

/* Case folding is what (?i:...) means to Oniguruma: U+017F folds to "s". */
static gsize
match_contraction (const guint8 *p, const guint8 *end, gboolean fold)
{
  guint8 mask = fold ? 0x20 : 0;
  guint8 first, second;

  if (end - p < 2)
    return 0;
  first = p[1] | mask;
  if (first == 's' || first == 't' || first == 'm' || first == 'd')
    return 2;
  if (end - p < 3)
    return 0;
  if (fold && p[1] == 0xc5 && p[2] == 0xbf)
    return 3;
  second = p[2] | mask;
  if (((first == 'r' || first == 'v') && second == 'e')
      || (first == 'l' && second == 'l'))
    return 3;
  return 0;
}

/* @p is at white space. @stop: classes that end the text (smollm's digits). */
static const guint8 *
match_space (const guint8 *classes, const guint8 *p, const guint8 *end,
             gboolean newlines, guint8 stop)
{
  const guint8 *at = p, *last = p, *after_newline = NULL;
  guint length;

  while (at < end) {
    guint8 class = runnel_character_class_at (classes, at, &length);

    if (!(class & SPACE)) {
      if (class & stop)
        end = at;
      break;
    }
    last = at;
    at += length;
    if (class & NEWLINE)
      after_newline = at;
  }
  if (newlines && after_newline != NULL)
    return after_newline;
  /* The last blank goes with what follows it, unless it is the only one. */
  return at == end || last == p ? at : last;
}

static const guint8 *
next_qwen2 (const guint8 *classes, const guint8 *p, const guint8 *end,
            guint max_numbers)
{
  guint length, after;
  guint8 class = runnel_character_class_at (classes, p, &length);
  const guint8 *at;

  if (class & LETTER)
    return skip (classes, p + length, end, LETTER, 0);
  if (*p == '\'') {
    gsize n = match_contraction (p, end, TRUE);

    if (n > 0)
      return p + n;
  }
  if (class & NUMBER) {
    at = p + length;
    while (--max_numbers > 0 && at < end
           && (runnel_character_class_at (classes, at, &after) & NUMBER))
      at += after;
    return at;
  }
  at = p + length;
  if (!(class & NEWLINE) && at < end
      && (runnel_character_class_at (classes, at, &after) & LETTER))
    return skip (classes, at + after, end, LETTER, 0);
  at = skip (classes, *p == ' ' ? p + 1 : p, end, 0, SPACE | LETTER | NUMBER);
  if (at > p + (*p == ' '))
    return skip (classes, at, end, NEWLINE, 0);
  return match_space (classes, p, end, TRUE, 0);
}

static const guint8 *
next_gpt2 (const guint8 *classes, const guint8 *p, const guint8 *end,
           guint8 isolated)
{
  const guint8 *start = *p == ' ' ? p + 1 : p;
  guint length;
  guint8 class;

  if (*p == '\'') {
    gsize n = match_contraction (p, end, FALSE);

    if (n > 0)
      return p + n;
  }
  if (start == end)
    return end;
  class = runnel_character_class_at (classes, start, &length);
  if (class & LETTER)
    return skip (classes, start + length, end, LETTER, 0);
  if (class & isolated)
    return start + (start == p ? length : 0);
  if (class & NUMBER)
    return skip (classes, start + length, end, NUMBER, 0);
  if (!(class & SPACE))
    return skip (classes, start + length, end, 0,
                 SPACE | LETTER | NUMBER | isolated);
  return match_space (classes, p, end, FALSE, isolated);
}

gsize
runnel_pretokenizer_next (RunnelPretokenizer self, const guint8 *classes,
                          const guint8 *text, gsize length)
{
  const guint8 *end = text + length;

  switch (self) {
    case RUNNEL_PRETOKENIZER_QWEN2:
      return next_qwen2 (classes, text, end, 1) - text;
    case RUNNEL_PRETOKENIZER_LLAMA_BPE:
      return next_qwen2 (classes, text, end, 3) - text;
    case RUNNEL_PRETOKENIZER_SMOLLM:
      return next_gpt2 (classes, text, end, DIGIT) - text;
    case RUNNEL_PRETOKENIZER_GPT2:
      return next_gpt2 (classes, text, end, 0) - text;
  }
  g_assert_not_reached ();
}
