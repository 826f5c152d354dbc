/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Memory for pages of keys and values that lies on the system's huge pages:
 * at depth attention streams all of it once a token, from another page every
 * few thousand bytes, and each small page of memory costs a walk through the
 * page tables. Memory comes in slabs of address space; a huge page takes
 * memory when something in it is first written, and gives it back when the
 * last page that lies in it is given back. Safe from several threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct RunnelPageArena RunnelPageArena;

/* NULL when memory is short or the system knows no huge pages. */
RunnelPageArena *runnel_page_arena_new (size_t page_bytes);
/* All its pages must have been given back. */
void runnel_page_arena_free (RunnelPageArena *arena);

/* Memory of a page, zeroed; NULL when memory is short. */
uint8_t *runnel_page_arena_take (RunnelPageArena *arena);
void runnel_page_arena_give_back (RunnelPageArena *arena, uint8_t *page);
/* Bytes of the huge pages that pages lie in: no more than these are
 * resident. */
size_t runnel_page_arena_bytes (RunnelPageArena *arena);
