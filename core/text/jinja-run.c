/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-run.h"

#include "../error.h"

#define CHUNK_SIZE (32u << 10)
#define ALIGNMENT 16u

struct _JinjaChunk {
  JinjaChunk *next;
  gsize capacity;
  gsize used;
  gsize unused; /* keeps data aligned */
  char data[];
};

G_STATIC_ASSERT (G_STRUCT_OFFSET (JinjaChunk, data) % ALIGNMENT == 0);

void
jinja_arena_clear (JinjaArena *arena)
{
  while (arena->chunks != NULL)
    {
      JinjaChunk *chunk = arena->chunks;

      arena->chunks = chunk->next;
      g_free (chunk);
    }
  arena->used = 0;
}

static gsize
limit_for (gsize base, gsize per_byte, gsize size)
{
  return base + MIN (size, (gsize) 1 << 40) * per_byte;
}

void
jinja_run_init (JinjaRun *run, JinjaArena *arena, const char *name, gsize size)
{
  memset (run, 0, sizeof *run);
  run->arena = arena;
  run->name = name;
  run->max_depth = JINJA_MAX_DEPTH;
  run->memory_limit =
      limit_for (JINJA_BASE_MEMORY, JINJA_MEMORY_PER_BYTE, size);
  run->text_limit = MIN (limit_for (JINJA_BASE_TEXT, JINJA_TEXT_PER_BYTE, size),
                         G_MAXUINT32 / 2);
  run->steps_left = limit_for (JINJA_BASE_STEPS, JINJA_STEPS_PER_BYTE, size);
}

void
jinja_raise (JinjaRun *run, const char *format, ...)
{
  g_autofree char *reason = NULL;
  g_autofree char *valid = NULL;
  va_list args;

  va_start (args, format);
  reason = g_strdup_vprintf (format, args);
  va_end (args);
  /* A precision may have cut a character in two. */
  valid = g_utf8_make_valid (reason, -1);
  g_set_error (&run->error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE,
               "%s, line %u: %s", run->name, run->line, valid);
  g_clear_pointer (&reason, g_free);
  g_clear_pointer (&valid, g_free);
  longjmp (run->escape, 1);
}

void
jinja_raise_verbatim (JinjaRun *run, const char *text, gsize length)
{
  run->error = g_error_new (RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE, "%.*s",
                            (int) MIN (length, G_MAXINT), text);
  longjmp (run->escape, 1);
}

void
jinja_out_of_steps (JinjaRun *run)
{
  jinja_raise (run, "the template does too much work (step limit); "
                    "it may loop over too much data");
}

void
jinja_too_deep (JinjaRun *run)
{
  jinja_raise (run, "nested deeper than %u levels (depth limit)",
               run->max_depth);
}

static JinjaChunk *
add_chunk (JinjaRun *run, gsize size)
{
  JinjaArena *arena = run->arena;
  gsize capacity = MAX (size, CHUNK_SIZE - sizeof (JinjaChunk));
  JinjaChunk *chunk;

  if (capacity > run->memory_limit
      || arena->used > run->memory_limit - capacity)
    jinja_raise (run, "the template needs more than %" G_GSIZE_FORMAT
                      " bytes (memory limit)", run->memory_limit);
  chunk = g_try_malloc (sizeof *chunk + capacity);
  if (chunk == NULL)
    jinja_raise (run, "no memory for %" G_GSIZE_FORMAT " bytes", capacity);
  chunk->capacity = capacity;
  chunk->used = 0;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->used += capacity;
  return chunk;
}

gpointer
jinja_alloc (JinjaRun *run, gsize size)
{
  JinjaChunk *chunk = run->arena->chunks;
  gsize rounded = (size + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1);
  gpointer block;

  if (size > G_MAXSIZE / 2)
    jinja_raise (run, "the template asks for an impossible amount of memory");
  if (chunk == NULL || chunk->capacity - chunk->used < rounded)
    chunk = add_chunk (run, rounded);
  block = chunk->data + chunk->used;
  chunk->used += rounded;
  return memset (block, 0, rounded);
}

gpointer
jinja_alloc_n (JinjaRun *run, gsize count, gsize size)
{
  gsize total;

  if (!g_size_checked_mul (&total, count, size))
    jinja_raise (run, "the template asks for an impossible amount of memory");
  return jinja_alloc (run, total);
}

gpointer
jinja_grow (JinjaRun *run, gpointer block, gsize old, gsize size)
{
  JinjaChunk *chunk = run->arena->chunks;
  gsize old_rounded = (old + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1);
  gsize rounded = (size + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1);
  gpointer larger;

  if (block != NULL && chunk != NULL && rounded >= old_rounded
      && (char *) block + old_rounded == chunk->data + chunk->used
      && rounded - old_rounded <= chunk->capacity - chunk->used)
    {
      memset (chunk->data + chunk->used, 0, rounded - old_rounded);
      chunk->used += rounded - old_rounded;
      return block;
    }
  larger = jinja_alloc (run, size);
  if (old > 0)
    memcpy (larger, block, MIN (old, size));
  return larger;
}

char *
jinja_printf (JinjaRun *run, const char *format, ...)
{
  va_list args;
  char *text;
  int length;

  va_start (args, format);
  length = g_vsnprintf (NULL, 0, format, args);
  va_end (args);
  text = jinja_alloc (run, (gsize) MAX (length, 0) + 1);
  va_start (args, format);
  g_vsnprintf (text, (gulong) MAX (length, 0) + 1, format, args);
  va_end (args);
  return text;
}
