/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "pages.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "page-arena.h"

/* Huge pages are for what attention streams from memory, not for a short
 * reply, whose last one would be mostly empty; and for pages that are not
 * small against them. */
#define HUGE_FROM_BYTES (8 << 20)
#define HUGE_PAGE_BYTES (64 << 10)

struct RunnelPagePool {
  RunnelPagePool *parent;    /* whose budget it is, or NULL: its own */
  uint32_t rows;
  size_t page_bytes;
  RunnelPageArena *arena;    /* on huge pages, or NULL */
  atomic_uint references;    /* the creator and every page */
  _Atomic uint64_t limit;
  _Atomic uint64_t other;    /* bytes that count beside the pages */
  _Atomic uint64_t bytes;    /* of its pages */
  _Atomic uint64_t peak;
  _Atomic uint64_t charged;
  _Atomic uint64_t taken;    /* bytes and charged, in one number */
};

struct RunnelPage {
  RunnelPagePool *pool;
  uint8_t *data;
  bool in_arena;
  atomic_uint references;
  _Atomic uint32_t claimed;  /* rows somebody has written or will write */
  uint32_t cache_references;
};

RunnelPagePool *
runnel_page_pool_new (uint32_t rows, size_t bytes)
{
  RunnelPagePool *pool = calloc (1, sizeof *pool);

  if (pool == NULL)
    return NULL;
  pool->rows = rows;
  pool->page_bytes = bytes;
  atomic_init (&pool->references, 1);
  return pool;
}

RunnelPagePool *
runnel_page_pool_new_within (RunnelPagePool *parent, uint32_t rows,
    size_t bytes)
{
  RunnelPagePool *pool = runnel_page_pool_new (rows, bytes);

  if (pool == NULL)
    return NULL;
  atomic_fetch_add (&parent->references, 1);
  pool->parent = parent;
  return pool;
}

void
runnel_page_pool_unref (RunnelPagePool *pool)
{
  RunnelPagePool *parent = pool->parent;

  if (atomic_fetch_sub (&pool->references, 1) != 1)
    return;
  runnel_page_arena_free (pool->arena);
  free (pool);
  if (parent != NULL)
    runnel_page_pool_unref (parent);
}

void
runnel_page_pool_use_huge_pages (RunnelPagePool *pool)
{
  if (pool->arena == NULL && pool->page_bytes >= HUGE_PAGE_BYTES)
    pool->arena = runnel_page_arena_new (pool->page_bytes);
}

uint32_t
runnel_page_pool_rows (const RunnelPagePool *pool)
{
  return pool->rows;
}

size_t
runnel_page_pool_page_bytes (const RunnelPagePool *pool)
{
  return pool->page_bytes;
}

void
runnel_page_pool_set_limit (RunnelPagePool *pool, uint64_t bytes)
{
  atomic_store (&pool->limit, bytes);
}

uint64_t
runnel_page_pool_limit (const RunnelPagePool *pool)
{
  return atomic_load (&pool->limit);
}

void
runnel_page_pool_set_other (RunnelPagePool *pool, uint64_t bytes)
{
  atomic_store (&pool->other, bytes);
}

uint64_t
runnel_page_pool_other (const RunnelPagePool *pool)
{
  return atomic_load (&pool->other);
}

uint64_t
runnel_page_pool_bytes (const RunnelPagePool *pool)
{
  return atomic_load (&pool->bytes);
}

uint64_t
runnel_page_pool_peak (const RunnelPagePool *pool)
{
  return atomic_load (&pool->peak);
}

/* Takes bytes from the budget. */
static bool
take (RunnelPagePool *pool, uint64_t bytes)
{
  uint64_t limit = atomic_load (&pool->limit);
  uint64_t other = atomic_load (&pool->other);
  uint64_t taken = atomic_load (&pool->taken);

  do {
    if (limit != 0 && (bytes > limit || other + taken > limit - bytes))
      return false;
  } while (!atomic_compare_exchange_weak (&pool->taken, &taken,
      taken + bytes));
  return true;
}

bool
runnel_page_pool_charge (RunnelPagePool *pool, uint64_t bytes)
{
  if (pool->parent != NULL)
    return runnel_page_pool_charge (pool->parent, bytes);
  if (!take (pool, bytes))
    return false;
  atomic_fetch_add (&pool->charged, bytes);
  return true;
}

void
runnel_page_pool_discharge (RunnelPagePool *pool, uint64_t bytes)
{
  if (pool->parent != NULL) {
    runnel_page_pool_discharge (pool->parent, bytes);
    return;
  }
  atomic_fetch_sub (&pool->charged, bytes);
  atomic_fetch_sub (&pool->taken, bytes);
}

uint64_t
runnel_page_pool_charged (const RunnelPagePool *pool)
{
  return atomic_load (&pool->charged);
}

static bool
take_page (RunnelPagePool *pool)
{
  uint64_t bytes, peak;

  if (!(pool->parent != NULL
          ? runnel_page_pool_charge (pool->parent, pool->page_bytes)
          : take (pool, pool->page_bytes)))
    return false;
  bytes = atomic_fetch_add (&pool->bytes, pool->page_bytes)
      + pool->page_bytes;
  peak = atomic_load (&pool->peak);
  while (peak < bytes && !atomic_compare_exchange_weak (&pool->peak, &peak,
      bytes))
    ;
  return true;
}

static void
give_page (RunnelPagePool *pool)
{
  atomic_fetch_sub (&pool->bytes, pool->page_bytes);
  if (pool->parent != NULL)
    runnel_page_pool_discharge (pool->parent, pool->page_bytes);
  else
    atomic_fetch_sub (&pool->taken, pool->page_bytes);
}

/* A limit is kept to the page, so there nothing larger is taken. */
static void
allocate (RunnelPagePool *pool, RunnelPage *page)
{
  if (pool->arena != NULL && atomic_load (&pool->limit) == 0
      && atomic_load (&pool->bytes) > HUGE_FROM_BYTES)
    page->data = runnel_page_arena_take (pool->arena);
  page->in_arena = page->data != NULL;
  if (page->data == NULL)
    page->data = calloc (1, pool->page_bytes);
}

RunnelPage *
runnel_page_new (RunnelPagePool *pool)
{
  RunnelPage *page;

  if (!take_page (pool))
    return NULL;
  page = calloc (1, sizeof *page);
  if (page != NULL)
    allocate (pool, page);
  if (page == NULL || page->data == NULL) {
    free (page);
    give_page (pool);
    return NULL;
  }
  page->pool = pool;
  atomic_init (&page->references, 1);
  atomic_fetch_add (&pool->references, 1);
  return page;
}

RunnelPage *
runnel_page_ref (RunnelPage *page)
{
  atomic_fetch_add_explicit (&page->references, 1, memory_order_relaxed);
  return page;
}

void
runnel_page_unref (RunnelPage *page)
{
  RunnelPagePool *pool = page->pool;

  if (atomic_fetch_sub_explicit (&page->references, 1, memory_order_acq_rel)
      != 1)
    return;
  give_page (pool);
  if (page->in_arena)
    runnel_page_arena_give_back (pool->arena, page->data);
  else
    free (page->data);
  free (page);
  runnel_page_pool_unref (pool);
}

uint8_t *
runnel_page_data (const RunnelPage *page)
{
  return page->data;
}

bool
runnel_page_claim (RunnelPage *page, uint32_t first, uint32_t n)
{
  uint32_t expected = first;

  return first + n <= page->pool->rows
      && atomic_compare_exchange_strong (&page->claimed, &expected, first + n);
}

void
runnel_page_unclaim (RunnelPage *page, uint32_t first, uint32_t end)
{
  uint32_t expected = end;

  atomic_compare_exchange_strong (&page->claimed, &expected, first);
}

void
runnel_page_trim (RunnelPage *page, uint32_t rows)
{
  if (!runnel_page_is_shared (page))
    atomic_store (&page->claimed, rows);
}

bool
runnel_page_is_shared (const RunnelPage *page)
{
  return atomic_load_explicit (&page->references, memory_order_acquire) > 1;
}

uint32_t *
runnel_page_cache_references (RunnelPage *page)
{
  return &page->cache_references;
}
