/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "vocabulary.h"

#include <string.h>

#include "../error.h"
#include "byte-level.h"

typedef struct {
  guint32 hash;
  guint32 token;   /* 1 + id; 0: empty */
} Slot;

struct _RunnelVocabulary {
  guint n;
  gsize longest;
  guint8 *types;      /* with RUNNEL_TOKEN_FINDABLE: is in the table */
  guint32 *offsets;   /* n + 1, into bytes */
  guint8 *bytes;
  guint64 seed;       /* so that a file cannot choose its collisions */
  gsize mask;
  Slot *slots;
};

static inline guint64
load (const guint8 *p, gsize n)
{
  guint64 value = 0;

  switch (n) {
    case 8:
      memcpy (&value, p, 8);
      return value;
    case 7: value |= (guint64) p[6] << 48; /* fall through */
    case 6: value |= (guint64) p[5] << 40; /* fall through */
    case 5: value |= (guint64) p[4] << 32; /* fall through */
    case 4: value |= (guint64) p[3] << 24; /* fall through */
    case 3: value |= (guint64) p[2] << 16; /* fall through */
    case 2: value |= (guint64) p[1] << 8; /* fall through */
    case 1: value |= (guint64) p[0];
  }
  return value;
}

/* Multiply and fold; the constant is 2^64 divided by the golden ratio. */
static inline guint64
hash_bytes (const guint8 *p, gsize n, guint64 seed)
{
  const guint64 odd = G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  guint64 h = seed ^ n;

  for (; n > 8; p += 8, n -= 8) {
    h = (h ^ load (p, 8)) * odd;
    h ^= h >> 29;
  }
  h = (h ^ load (p, n)) * odd;
  h ^= h >> 32;
  h *= odd;
  return h ^ h >> 29;
}

static gboolean
refuse (GError **error, const char *name, gsize token, const char *what)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
               "%s: token %" G_GSIZE_FORMAT " %s", name, token, what);
  return FALSE;
}

static gboolean
same_bytes (const RunnelVocabulary *self, guint token, const guint8 *bytes,
            gsize length)
{
  guint32 start = self->offsets[token];

  return self->offsets[token + 1] - start == length
      && memcmp (self->bytes + start, bytes, length) == 0;
}

/* The slot that holds these bytes, or the empty one where they would go. */
static Slot *
find_slot (const RunnelVocabulary *self, const guint8 *bytes, gsize length,
           guint32 *ret_hash)
{
  guint64 hash = hash_bytes (bytes, length, self->seed);
  gsize i = hash & self->mask;

  *ret_hash = (guint32) (hash >> 32);
  while (self->slots[i].token != 0
         && (self->slots[i].hash != *ret_hash
             || !same_bytes (self, self->slots[i].token - 1, bytes, length)))
    i = (i + 1) & self->mask;
  return &self->slots[i];
}

gint32
runnel_vocabulary_find (const RunnelVocabulary *self, const guint8 *bytes,
                        gsize length)
{
  guint32 hash;

  if (length > self->longest)
    return -1;
  return (gint32) find_slot (self, bytes, length, &hash)->token - 1;
}

gint32
runnel_vocabulary_find_near (const RunnelVocabulary *self, guint guess,
                             const guint8 *bytes, gsize length)
{
  if (guess < self->n && (self->types[guess] & RUNNEL_TOKEN_FINDABLE)
      && same_bytes (self, guess, bytes, length))
    return guess;
  return runnel_vocabulary_find (self, bytes, length);
}

/* "<0x41>", with two hexadecimal digits and nothing else. */
static gboolean
parse_byte_token (const char *text, gsize length, guint8 *ret)
{
  if (length != 6 || memcmp (text, "<0x", 3) != 0 || text[5] != '>'
      || !g_ascii_isxdigit (text[3]) || !g_ascii_isxdigit (text[4]))
    return FALSE;
  *ret = g_ascii_xdigit_value (text[3]) << 4 | g_ascii_xdigit_value (text[4]);
  return TRUE;
}

/* Writes the piece of a token; @ret_merges: whether merging may end in it. */
static gboolean
write_piece (const RunnelTokenText *token, guint8 *out, gsize *ret_length,
             gboolean *ret_merges)
{
  *ret_merges = FALSE;
  *ret_length = 0;
  if (token->text == NULL)
    return TRUE;
  if (token->type == RUNNEL_TOKEN_BYTE) {
    *ret_length = 1;
    *ret_merges = TRUE;
    return parse_byte_token (token->text, token->length, out);
  }
  if (token->type == RUNNEL_TOKEN_NORMAL
      && runnel_byte_level_decode (token->text, token->length, out,
                                   ret_length)) {
    *ret_merges = TRUE;
    return TRUE;
  }
  /* Outside the alphabet a token is its own text, as `tokenizers` has it. */
  memcpy (out, token->text, token->length);
  *ret_length = token->length;
  *ret_merges = token->type == RUNNEL_TOKEN_USER_DEFINED;
  return TRUE;
}

static gboolean
add_token (RunnelVocabulary *self, guint id, const RunnelTokenText *token,
           const char *name, GError **error)
{
  guint32 start = self->offsets[id], hash;
  guint8 *piece = self->bytes + start;
  gboolean merges;
  gsize length;
  Slot *slot;

  if (token->text != NULL && token->length == 0)
    return refuse (error, name, id, "is empty");
  if (token->type < RUNNEL_TOKEN_NORMAL || token->type > RUNNEL_TOKEN_BYTE)
    return refuse (error, name, id, "has a type that is not 1 to 6");
  if (!write_piece (token, piece, &length, &merges))
    return refuse (error, name, id,
                   "is of type byte, but not written as <0xHH>");
  self->offsets[id + 1] = start + length;
  self->types[id] = token->text != NULL ? token->type : RUNNEL_TOKEN_UNUSED;
  self->longest = MAX (self->longest, length);
  if (!merges)
    return TRUE;

  slot = find_slot (self, piece, length, &hash);
  if (slot->token != 0) {
    if (token->type == RUNNEL_TOKEN_USER_DEFINED)
      return TRUE;   /* merges are about the normal one */
    if (runnel_vocabulary_type (self, slot->token - 1)
        != RUNNEL_TOKEN_USER_DEFINED)
      return refuse (error, name, id, "has the bytes of an earlier token");
    self->types[slot->token - 1] &= ~RUNNEL_TOKEN_FINDABLE;
  }
  slot->hash = hash;
  slot->token = id + 1;
  self->types[id] |= RUNNEL_TOKEN_FINDABLE;
  return TRUE;
}

gboolean
runnel_token_text_set (RunnelTokenText *tokens, gsize id, const char *text,
                       gsize length, RunnelTokenType type, const char *name,
                       GError **error)
{
  RunnelTokenText *token = &tokens[id];

  if (token->text != NULL
      && (type == RUNNEL_TOKEN_NORMAL || token->type != RUNNEL_TOKEN_NORMAL
          || token->length != length
          || memcmp (token->text, text, length) != 0)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: two tokens have the id %" G_GSIZE_FORMAT, name, id);
    return FALSE;
  }
  *token = (RunnelTokenText) { text, length, type };
  return TRUE;
}

static gboolean
check_size (gsize n, const char *name, GError **error)
{
  if (n > 0 && n <= RUNNEL_MAX_TOKENS)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
               "%s: the vocabulary has %" G_GSIZE_FORMAT
               " tokens; 1 to %u are supported", name, n, RUNNEL_MAX_TOKENS);
  return FALSE;
}

/* Room for @n tokens of @total bytes. */
static RunnelVocabulary *
vocabulary_new (gsize n, gsize total)
{
  RunnelVocabulary *self = g_new0 (RunnelVocabulary, 1);
  gsize n_slots = 16;

  while (n_slots < n + n / 2)
    n_slots *= 2;
  self->n = n;
  self->types = g_malloc0 (n);
  self->offsets = g_new0 (guint32, n + 1);
  self->bytes = g_malloc (total + 1);
  self->seed = (guint64) g_random_int () << 32 | g_random_int ();
  self->mask = n_slots - 1;
  self->slots = g_new0 (Slot, n_slots);
  return self;
}

static gboolean
add_up (gsize *total, gsize length, const char *name, GError **error)
{
  if (g_size_checked_add (total, *total, length) && *total <= G_MAXINT32)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
               "%s: the tokens have more than %d bytes in all", name,
               G_MAXINT32);
  return FALSE;
}

RunnelVocabulary *
runnel_vocabulary_new (const RunnelTokenText *tokens, gsize n,
                       const char *name, GError **error)
{
  g_autoptr (RunnelVocabulary) self = NULL;
  gsize total = 0;

  if (!check_size (n, name, error))
    return NULL;
  for (gsize i = 0; i < n; i++)
    if (!add_up (&total, tokens[i].length, name, error))
      return NULL;
  self = vocabulary_new (n, total);
  for (gsize i = 0; i < n; i++)
    if (!add_token (self, i, &tokens[i], name, error))
      return NULL;
  return g_steal_pointer (&self);
}

/* A token whose bytes are in place already. */
static gboolean
add_piece (RunnelVocabulary *self, guint id, gsize length, guint8 type_byte,
           const char *name, GError **error)
{
  guint type = type_byte & ~RUNNEL_TOKEN_FINDABLE;
  const guint8 *piece = self->bytes + self->offsets[id];
  guint32 hash;
  Slot *slot;

  if (type < RUNNEL_TOKEN_NORMAL || type > RUNNEL_TOKEN_BYTE)
    return refuse (error, name, id, "has a type that is not 1 to 6");
  if (length == 0 && type != RUNNEL_TOKEN_UNUSED)
    return refuse (error, name, id, "is empty");
  self->offsets[id + 1] = self->offsets[id] + length;
  self->types[id] = type_byte;
  self->longest = MAX (self->longest, length);
  if ((type_byte & RUNNEL_TOKEN_FINDABLE) == 0)
    return TRUE;
  if (type != RUNNEL_TOKEN_NORMAL && type != RUNNEL_TOKEN_USER_DEFINED
      && type != RUNNEL_TOKEN_BYTE)
    return refuse (error, name, id, "is of a type that merging cannot end in");
  slot = find_slot (self, piece, length, &hash);
  if (slot->token != 0)
    return refuse (error, name, id, "has the bytes of an earlier token");
  slot->hash = hash;
  slot->token = id + 1;
  return TRUE;
}

RunnelVocabulary *
runnel_vocabulary_new_from_pieces (const guint8 *pieces, gsize size,
                                   const guint16 *lengths,
                                   const guint8 *types, gsize n,
                                   const char *name, GError **error)
{
  g_autoptr (RunnelVocabulary) self = NULL;
  gsize total = 0;

  if (!check_size (n, name, error))
    return NULL;
  for (gsize i = 0; i < n; i++)
    if (!add_up (&total, lengths[i], name, error))
      return NULL;
  if (total != size) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: the lengths of the tokens add up to %" G_GSIZE_FORMAT
                 ", but there are %" G_GSIZE_FORMAT " bytes", name, total,
                 size);
    return NULL;
  }
  self = vocabulary_new (n, total);
  memcpy (self->bytes, pieces, size);
  for (gsize i = 0; i < n; i++)
    if (!add_piece (self, i, lengths[i], types[i], name, error))
      return NULL;
  return g_steal_pointer (&self);
}

void
runnel_vocabulary_free (RunnelVocabulary *self)
{
  g_free (self->types);
  g_free (self->offsets);
  g_free (self->bytes);
  g_free (self->slots);
  g_free (self);
}

guint
runnel_vocabulary_size (const RunnelVocabulary *self)
{
  return self->n;
}

const guint8 *
runnel_vocabulary_piece (const RunnelVocabulary *self, guint token,
                         gsize *length)
{
  guint32 start = self->offsets[token];

  *length = self->offsets[token + 1] - start;
  return self->bytes + start;
}

gboolean
runnel_vocabulary_is_findable (const RunnelVocabulary *self, guint token)
{
  return (self->types[token] & RUNNEL_TOKEN_FINDABLE) != 0;
}

RunnelTokenType
runnel_vocabulary_type (const RunnelVocabulary *self, guint token)
{
  return (RunnelTokenType) (self->types[token] & ~RUNNEL_TOKEN_FINDABLE);
}
