/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Pages of keys and values. A page holds rows of all layers; it is shared by
 * reference count, and its rows are only ever appended: who wants to append
 * behind row n must claim the rows, which succeeds for one holder; the others
 * start a page of their own. So a fork copies nothing and nobody's rows
 * change. Only C11 and pthreads; safe from several threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RunnelPagePool RunnelPagePool;
typedef struct RunnelPage RunnelPage;

/* A pool of pages of `rows` rows and `bytes` bytes. It lives until it and
 * all its pages are released. NULL when memory is short. */
RunnelPagePool *runnel_page_pool_new (uint32_t rows, size_t bytes);
/* A pool whose pages are charged to another one. */
RunnelPagePool *runnel_page_pool_new_within (RunnelPagePool *parent,
                                             uint32_t rows, size_t bytes);
void runnel_page_pool_unref (RunnelPagePool *pool);
/* Lets pages lie on the system's huge pages once there are many and there is
 * no limit. Before the first page. */
void runnel_page_pool_use_huge_pages (RunnelPagePool *pool);
uint32_t runnel_page_pool_rows (const RunnelPagePool *pool);
size_t runnel_page_pool_page_bytes (const RunnelPagePool *pool);

/* Bytes all pages may take together with what is charged and what else
 * counts; 0 is no limit. */
void runnel_page_pool_set_limit (RunnelPagePool *pool, uint64_t bytes);
/* What else counts: weights and scratch. */
void runnel_page_pool_set_other (RunnelPagePool *pool, uint64_t bytes);
uint64_t runnel_page_pool_other (const RunnelPagePool *pool);
uint64_t runnel_page_pool_limit (const RunnelPagePool *pool);
uint64_t runnel_page_pool_bytes (const RunnelPagePool *pool);
uint64_t runnel_page_pool_peak (const RunnelPagePool *pool);

/* Takes bytes that are no pages of it from its budget, or its parent's; FALSE
 * over the limit. */
bool runnel_page_pool_charge (RunnelPagePool *pool, uint64_t bytes);
void runnel_page_pool_discharge (RunnelPagePool *pool, uint64_t bytes);
uint64_t runnel_page_pool_charged (const RunnelPagePool *pool);

/* A fresh page, zeroed, with no rows claimed; NULL over the limit or without
 * memory. */
RunnelPage *runnel_page_new (RunnelPagePool *pool);
RunnelPage *runnel_page_ref (RunnelPage *page);
void runnel_page_unref (RunnelPage *page);
uint8_t *runnel_page_data (const RunnelPage *page);

/* Claims rows [first, first + n) if nobody has claimed behind first. */
bool runnel_page_claim (RunnelPage *page, uint32_t first, uint32_t n);
/* Gives claimed rows [first, …) back if nothing was claimed after them up to
 * `end`. For an append that failed. */
void runnel_page_unclaim (RunnelPage *page, uint32_t first, uint32_t end);
/* Drops claims behind `rows` when the caller is the only holder. */
void runnel_page_trim (RunnelPage *page, uint32_t rows);
bool runnel_page_is_shared (const RunnelPage *page);

/* How many entries of the prefix cache refer to the page; used under the
 * cache's lock. */
uint32_t *runnel_page_cache_references (RunnelPage *page);
