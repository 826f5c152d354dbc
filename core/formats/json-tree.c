/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "json-private.h"

#include <errno.h>
#include <string.h>

#define FIRST_CHUNK ((gsize) 4096)
#define LAST_CHUNK ((gsize) 1 << 21)

/* Up to so many members are searched one by one. */
#define SMALL_OBJECT 8

void *
runnel_json_alloc (RunnelJson *doc, gsize bytes)
{
  void *memory;

  if (bytes == 0)
    return NULL;
  bytes = (bytes + 7) & ~(gsize) 7;
  if (bytes > doc->n_free) {
    gsize chunk = CLAMP (FIRST_CHUNK << MIN (doc->chunks->len, 16),
        FIRST_CHUNK, LAST_CHUNK);

    chunk = MAX (chunk, bytes);
    doc->free_at = g_malloc (chunk);
    doc->n_free = chunk;
    g_ptr_array_add (doc->chunks, doc->free_at);
  }
  memory = doc->free_at;
  doc->free_at += bytes;
  doc->n_free -= bytes;
  return memory;
}

/* SipHash-1-3 (Aumasson and Bernstein 2012) with a key of this process, so
 * that no text can be made to fall into few slots. */
static guint64
rotate_left (guint64 x, guint n)
{
  return x << n | x >> (64 - n);
}

static void
sip_round (guint64 v[4])
{
  v[0] += v[1]; v[1] = rotate_left (v[1], 13) ^ v[0];
  v[0] = rotate_left (v[0], 32);
  v[2] += v[3]; v[3] = rotate_left (v[3], 16) ^ v[2];
  v[0] += v[3]; v[3] = rotate_left (v[3], 21) ^ v[0];
  v[2] += v[1]; v[1] = rotate_left (v[1], 17) ^ v[2];
  v[2] = rotate_left (v[2], 32);
}

static guint32
hash_key (const char *text, gsize length)
{
  static gsize once = 0;
  static guint64 k0, k1;
  guint64 v[4], word;
  gsize i;

  if (g_once_init_enter (&once)) {
    k0 = (guint64) g_random_int () << 32 | g_random_int ();
    k1 = (guint64) g_random_int () << 32 | g_random_int ();
    g_once_init_leave (&once, 1);
  }
  v[0] = k0 ^ G_GUINT64_CONSTANT (0x736f6d6570736575);
  v[1] = k1 ^ G_GUINT64_CONSTANT (0x646f72616e646f6d);
  v[2] = k0 ^ G_GUINT64_CONSTANT (0x6c7967656e657261);
  v[3] = k1 ^ G_GUINT64_CONSTANT (0x7465646279746573);
  for (i = 0; i + 8 <= length; i += 8) {
    memcpy (&word, text + i, 8);
    v[3] ^= word;
    sip_round (v);
    v[0] ^= word;
  }
  word = 0;
  memcpy (&word, text + i, length - i);
  word |= (guint64) length << 56;
  v[3] ^= word;
  sip_round (v);
  v[0] ^= word;
  v[2] ^= 0xff;
  for (i = 0; i < 3; i++)
    sip_round (v);
  word = v[0] ^ v[1] ^ v[2] ^ v[3];
  return word ^ word >> 32;
}

static gboolean
key_equals (const RunnelJsonNode *key, const char *text, gsize length)
{
  return key->size == length && memcmp (key->text, text, length) == 0;
}

/* The member of that key among the first @n; if there is none, *@slot is
 * where it belongs and *@tag what belongs there, less its number. */
static RunnelJsonNode *
find_member (const RunnelJsonMembers *members, guint32 n, const char *key,
    gsize length, guint32 *slot, guint64 *tag)
{
  guint32 hash;

  if (members->slots == NULL) {
    for (guint32 i = 0; i < n; i++)
      if (key_equals (&members->nodes[2 * i], key, length))
        return &members->nodes[2 * i];
    return NULL;
  }
  hash = hash_key (key, length);
  for (guint32 at = hash & members->mask;; at = (at + 1) & members->mask) {
    guint64 found = members->slots[at];
    RunnelJsonNode *node;

    if (found == 0) {
      *slot = at;
      *tag = (guint64) hash << 32;
      return NULL;
    }
    if (found >> 32 != hash)
      continue;
    node = &members->nodes[2 * (gsize) ((guint32) found - 1)];
    if (key_equals (node, key, length))
      return node;
  }
}

const RunnelJsonMembers *
runnel_json_make_members (RunnelJson *doc, const RunnelJsonNode *from,
    guint32 n, guint32 *n_kept)
{
  RunnelJsonMembers *members = runnel_json_alloc (doc, sizeof *members);
  guint32 kept = 0, slot = 0;
  guint64 tag = 0;

  members->nodes = runnel_json_alloc (doc,
      2 * (gsize) n * sizeof (RunnelJsonNode));
  members->slots = NULL;
  members->mask = 0;
  if (n > SMALL_OBJECT) {
    gsize n_slots = (gsize) 1 << g_bit_storage (2 * (gulong) n - 1);

    members->mask = n_slots - 1;
    members->slots = runnel_json_alloc (doc, n_slots * sizeof (guint64));
    memset (members->slots, 0, n_slots * sizeof (guint64));
  }
  for (guint32 i = 0; i < n; i++) {
    const RunnelJsonNode *key = &from[2 * (gsize) i];
    RunnelJsonNode *to = find_member (members, kept, key->text, key->size,
        &slot, &tag);

    if (to == NULL) {
      to = &members->nodes[2 * (gsize) kept++];
      to[0] = key[0];
      if (members->slots != NULL)
        members->slots[slot] = tag | kept;
    }
    to[1] = key[1];
  }
  *n_kept = kept;
  return members;
}

RunnelJson *
runnel_json_ref (RunnelJson *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
runnel_json_unref (RunnelJson *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_ptr_array_unref (self->chunks);
  g_free (self->text);
  g_free (self->name);
  g_free (self);
}

const RunnelJsonNode *
runnel_json_root (const RunnelJson *self)
{
  return &self->root;
}

const char *
runnel_json_name (const RunnelJson *self)
{
  return self->name;
}

RunnelJsonKind
runnel_json_node_kind (const RunnelJsonNode *node)
{
  return node->kind;
}

gboolean
runnel_json_node_boolean (const RunnelJsonNode *node)
{
  return node->kind == RUNNEL_JSON_BOOLEAN && node->size != 0;
}

gboolean
runnel_json_node_int64 (const RunnelJsonNode *node, gint64 *ret)
{
  gint64 value;

  if (node->kind != RUNNEL_JSON_INTEGER)
    return FALSE;
  errno = 0;
  value = g_ascii_strtoll (node->text, NULL, 10);
  if (errno != 0)
    return FALSE;
  *ret = value;
  return TRUE;
}

double
runnel_json_node_double (const RunnelJsonNode *node)
{
  if (node->kind == RUNNEL_JSON_INTEGER)
    return g_ascii_strtod (node->text, NULL);
  g_return_val_if_fail (node->kind == RUNNEL_JSON_FLOAT, 0);
  return node->number;
}

const char *
runnel_json_node_digits (const RunnelJsonNode *node)
{
  g_return_val_if_fail (node->kind == RUNNEL_JSON_INTEGER, NULL);
  return node->text;
}

const char *
runnel_json_node_string (const RunnelJsonNode *node, gsize *length)
{
  g_return_val_if_fail (node->kind == RUNNEL_JSON_STRING, NULL);
  if (length != NULL)
    *length = node->size;
  return node->text;
}

gsize
runnel_json_node_size (const RunnelJsonNode *node)
{
  return node->kind == RUNNEL_JSON_ARRAY || node->kind == RUNNEL_JSON_OBJECT ?
      node->size : 0;
}

const RunnelJsonNode *
runnel_json_node_item (const RunnelJsonNode *node, gsize i)
{
  g_return_val_if_fail (node->kind == RUNNEL_JSON_ARRAY, NULL);
  g_return_val_if_fail (i < node->size, NULL);
  return &node->items[i];
}

const char *
runnel_json_node_key (const RunnelJsonNode *node, gsize i, gsize *length)
{
  g_return_val_if_fail (node->kind == RUNNEL_JSON_OBJECT, NULL);
  g_return_val_if_fail (i < node->size, NULL);
  return runnel_json_node_string (&node->members->nodes[2 * i], length);
}

const RunnelJsonNode *
runnel_json_node_value (const RunnelJsonNode *node, gsize i)
{
  g_return_val_if_fail (node->kind == RUNNEL_JSON_OBJECT, NULL);
  g_return_val_if_fail (i < node->size, NULL);
  return &node->members->nodes[2 * i + 1];
}

const RunnelJsonNode *
runnel_json_node_member (const RunnelJsonNode *node, const char *key)
{
  const RunnelJsonNode *found;
  guint64 tag;
  guint32 slot;

  if (node->kind != RUNNEL_JSON_OBJECT)
    return NULL;
  found = find_member (node->members, node->size, key, strlen (key), &slot,
      &tag);
  return found != NULL ? found + 1 : NULL;
}
