/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "page-arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t) 2 << 20)
#define SLAB_BYTES ((size_t) 32 << 20)   /* at least, and a few pages */
#define MIN_SLAB_PAGES 4
#define ALIGNMENT 64

typedef enum { FRESH, TAKEN, GIVEN_BACK } State;

/* Pages lie one behind another, across the edges of huge pages. */
typedef struct Slab Slab;
struct Slab {
  Slab *next;                /* a newer one */
  uint8_t *memory;           /* whole huge pages */
  uint32_t n_taken;
  uint32_t *n_inside;        /* [huge pages] taken pages that lie there */
  uint8_t *states;           /* [pages] */
};

struct RunnelPageArena {
  pthread_mutex_t mutex;
  size_t page_bytes;         /* from one page to the next */
  uint32_t slab_pages;
  uint32_t slab_huge_pages;
  size_t n_huge_pages;       /* in use; under `mutex`, as the slabs are */
  Slab *slabs;               /* the oldest first */
};

RunnelPageArena *
runnel_page_arena_new (size_t page_bytes)
{
#ifdef MADV_HUGEPAGE
  RunnelPageArena *arena;
  size_t slab_bytes = SLAB_BYTES;

  if (page_bytes == 0 || page_bytes > SIZE_MAX / (2 * MIN_SLAB_PAGES))
    return NULL;
  arena = calloc (1, sizeof *arena);
  if (arena == NULL)
    return NULL;
  page_bytes = (page_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (slab_bytes < MIN_SLAB_PAGES * page_bytes)
    slab_bytes = MIN_SLAB_PAGES * page_bytes;
  pthread_mutex_init (&arena->mutex, NULL);
  arena->page_bytes = page_bytes;
  arena->slab_pages = slab_bytes / page_bytes;
  arena->slab_huge_pages = (slab_bytes + HUGE_BYTES - 1) / HUGE_BYTES;
  return arena;
#else
  return NULL;
#endif
}

void
runnel_page_arena_free (RunnelPageArena *arena)
{
  if (arena == NULL)
    return;
  pthread_mutex_destroy (&arena->mutex);
  free (arena);
}

/* ---- Slabs --------------------------------------------------------------- */

/* Address space that begins with a huge page. */
static uint8_t *
map_slab (size_t bytes)
{
  uint8_t *mapping = mmap (NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  size_t before;

  if (mapping == MAP_FAILED)
    return NULL;
  before = -(uintptr_t) mapping % HUGE_BYTES;
  if (before > 0)
    munmap (mapping, before);
  if (before < HUGE_BYTES)
    munmap (mapping + before + bytes, HUGE_BYTES - before);
#ifdef MADV_HUGEPAGE
  madvise (mapping + before, bytes, MADV_HUGEPAGE);
#endif
  return mapping + before;
}

static void
slab_free (const RunnelPageArena *arena, Slab *slab)
{
  if (slab->memory != NULL)
    munmap (slab->memory, arena->slab_huge_pages * HUGE_BYTES);
  free (slab->n_inside);
  free (slab->states);
  free (slab);
}

static Slab *
slab_new (const RunnelPageArena *arena)
{
  Slab *slab = calloc (1, sizeof *slab);

  if (slab == NULL)
    return NULL;
  slab->n_inside = calloc (arena->slab_huge_pages, sizeof *slab->n_inside);
  slab->states = calloc (arena->slab_pages, sizeof *slab->states);
  if (slab->n_inside != NULL && slab->states != NULL)
    slab->memory = map_slab (arena->slab_huge_pages * HUGE_BYTES);
  if (slab->memory != NULL)
    return slab;
  slab_free (arena, slab);
  return NULL;
}

/* The oldest slab with room, so that the newest empty themselves. */
static Slab *
find_room (RunnelPageArena *arena)
{
  Slab **at = &arena->slabs;

  while (*at != NULL && (*at)->n_taken == arena->slab_pages)
    at = &(*at)->next;
  if (*at == NULL)
    *at = slab_new (arena);
  return *at;
}

static bool
contains (const RunnelPageArena *arena, const Slab *slab, const uint8_t *page)
{
  return (uintptr_t) page - (uintptr_t) slab->memory
      < arena->slab_huge_pages * HUGE_BYTES;
}

/* ---- Pages --------------------------------------------------------------- */

static void
enter_huge_pages (RunnelPageArena *arena, Slab *slab, uint32_t page)
{
  size_t begin = page * arena->page_bytes;
  size_t last = (begin + arena->page_bytes - 1) / HUGE_BYTES;

  for (size_t i = begin / HUGE_BYTES; i <= last; i++)
    if (slab->n_inside[i]++ == 0)
      arena->n_huge_pages++;
}

static void
leave_huge_pages (RunnelPageArena *arena, Slab *slab, uint32_t page)
{
  size_t begin = page * arena->page_bytes;
  size_t last = (begin + arena->page_bytes - 1) / HUGE_BYTES;

  for (size_t i = begin / HUGE_BYTES; i <= last; i++) {
    if (--slab->n_inside[i] > 0)
      continue;
    arena->n_huge_pages--;
    madvise (slab->memory + i * HUGE_BYTES, HUGE_BYTES, MADV_DONTNEED);
  }
}

uint8_t *
runnel_page_arena_take (RunnelPageArena *arena)
{
  uint8_t *memory = NULL;
  bool clear = false;
  Slab *slab;

  pthread_mutex_lock (&arena->mutex);
  slab = find_room (arena);
  if (slab != NULL) {
    uint32_t page = 0;

    while (slab->states[page] == TAKEN)
      page++;
    clear = slab->states[page] == GIVEN_BACK;
    slab->states[page] = TAKEN;
    slab->n_taken++;
    enter_huge_pages (arena, slab, page);
    memory = slab->memory + page * arena->page_bytes;
  }
  pthread_mutex_unlock (&arena->mutex);
  if (clear)
    memset (memory, 0, arena->page_bytes);
  return memory;
}

void
runnel_page_arena_give_back (RunnelPageArena *arena, uint8_t *page)
{
  Slab **at = &arena->slabs, *slab;
  uint32_t number;

  pthread_mutex_lock (&arena->mutex);
  while (!contains (arena, *at, page))
    at = &(*at)->next;
  slab = *at;
  number = (page - slab->memory) / arena->page_bytes;
  leave_huge_pages (arena, slab, number);
  slab->states[number] = GIVEN_BACK;
  if (--slab->n_taken == 0) {
    *at = slab->next;
    slab_free (arena, slab);
  }
  pthread_mutex_unlock (&arena->mutex);
}

size_t
runnel_page_arena_bytes (RunnelPageArena *arena)
{
  size_t bytes;

  pthread_mutex_lock (&arena->mutex);
  bytes = arena->n_huge_pages * HUGE_BYTES;
  pthread_mutex_unlock (&arena->mutex);
  return bytes;
}
