/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>
#include <setjmp.h>
#include <string.h>

G_BEGIN_DECLS

/*
 * One run of the template engine, a parse or a render: its memory, its limits
 * and the way out of it.
 *
 * Everything a run makes lies in an arena that is freed as a whole, and
 * nothing else is held while template code is evaluated. So an error leaves
 * from any depth by one longjmp to the entry point, and values can be passed
 * by return instead of through out-parameters. Code that holds memory of GLib
 * must not call anything that can raise.
 */
typedef struct _JinjaRun JinjaRun;
typedef struct _JinjaChunk JinjaChunk;

typedef struct {
  JinjaChunk *chunks; /* the newest first */
  gsize used;         /* bytes taken from the system */
} JinjaArena;

void jinja_arena_clear (JinjaArena *arena);

/* Nesting of expressions, statements and calls. A level costs at most some
 * hundred bytes of stack. */
#define JINJA_MAX_DEPTH 800
/* Nesting of the source; the parser needs more stack a level. */
#define JINJA_MAX_PARSE_DEPTH 250
/* A render may take this much, and so much more for each byte of template and
 * variables. Text is the largest thing, and has its own limit. */
#define JINJA_BASE_MEMORY (8u << 20)
#define JINJA_MEMORY_PER_BYTE 96
#define JINJA_BASE_TEXT (2u << 20)
#define JINJA_TEXT_PER_BYTE 16
#define JINJA_BASE_STEPS 300000
#define JINJA_STEPS_PER_BYTE 64

struct _JinjaRun {
  JinjaArena *arena;
  gsize memory_limit;
  gsize text_limit; /* bytes of one string */
  guint64 steps_left;
  guint depth;
  guint max_depth;

  const char *name; /* of the template, for errors */
  guint line;
  GError *error; /* set by whatever raised */
  jmp_buf escape;

  /* What only a render has. */
  const struct _JinjaTemplate *source;
  const struct _JinjaDict *variables;
  struct _JinjaScope *root;
  GDateTime *now;
};

/* Limits for input of @size bytes in all. */
void jinja_run_init (JinjaRun *run, JinjaArena *arena, const char *name,
                     gsize size);

/* "NAME, line N: reason" */
void jinja_raise (JinjaRun *run, const char *format, ...) G_GNUC_PRINTF (2, 3)
    G_GNUC_NORETURN;
/* raise_exception: the message is exactly this text. */
void jinja_raise_verbatim (JinjaRun *run, const char *text, gsize length)
    G_GNUC_NORETURN;

/* Memory of the arena, zeroed, aligned for anything. */
gpointer jinja_alloc (JinjaRun *run, gsize size);
/* @count items; the product is checked. */
gpointer jinja_alloc_n (JinjaRun *run, gsize count, gsize size);
/* The first @old bytes in a block of @size; in place where possible. */
gpointer jinja_grow (JinjaRun *run, gpointer block, gsize old, gsize size);
char *jinja_printf (JinjaRun *run, const char *format, ...)
    G_GNUC_PRINTF (2, 3);

#define jinja_new(run, Type) ((Type *) jinja_alloc (run, sizeof (Type)))
#define jinja_new_n(run, Type, n)                                             \
  ((Type *) jinja_alloc_n (run, n, sizeof (Type)))

/* Accounts for work; a template that does too much of it is stopped. */
void jinja_out_of_steps (JinjaRun *run) G_GNUC_NORETURN;

static inline void
jinja_step (JinjaRun *run, gsize work)
{
  if (run->steps_left < work)
    jinja_out_of_steps (run);
  run->steps_left -= work;
}

void jinja_too_deep (JinjaRun *run) G_GNUC_NORETURN;

static inline void
jinja_enter (JinjaRun *run)
{
  if (++run->depth > run->max_depth)
    jinja_too_deep (run);
  jinja_step (run, 1);
}

static inline void
jinja_leave (JinjaRun *run)
{
  run->depth--;
}

G_END_DECLS
