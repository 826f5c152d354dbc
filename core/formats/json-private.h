/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tree behind a JSON document: json.c parses text into it, json-tree.c
 * builds and reads it.
 */
#pragma once

#include "json.h"

G_BEGIN_DECLS

/* A node takes 16 bytes. The nodes of a container lie side by side; those of
 * an object alternate between key and value. */
struct _RunnelJsonNode {
  guint8 kind;
  guint32 size;   /* bytes of a string, items, members; value of a boolean */
  union {
    double number;
    const char *text;             /* a string, or the digits of an integer */
    const RunnelJsonNode *items;
    const struct _RunnelJsonMembers *members;
  };
};

G_STATIC_ASSERT (sizeof (RunnelJsonNode) == 16);

typedef struct _RunnelJsonMembers {
  RunnelJsonNode *nodes;
  /* Hash (upper half) and member + 1, open addressing; the hash is there to
   * spare the look at a node. NULL for small objects. */
  guint64 *slots;
  guint32 mask;
} RunnelJsonMembers;

struct _RunnelJson {
  gatomicrefcount ref_count;
  char *name;
  char *text;          /* all strings and digits, each closed by NUL */
  GPtrArray *chunks;   /* memory of nodes, members and slots */
  guint8 *free_at;
  gsize n_free;
  RunnelJsonNode root;
};

/* Memory of the document, aligned to 8 bytes. */
void *runnel_json_alloc (RunnelJson *doc, gsize bytes);
/* From @n keys and values that alternate; the last of equal keys wins. */
const RunnelJsonMembers *
runnel_json_make_members (RunnelJson *doc, const RunnelJsonNode *from,
                          guint32 n, guint32 *n_kept);

G_END_DECLS
