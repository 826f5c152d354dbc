/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-evaluate.h"

G_BEGIN_DECLS

/* A running for loop, which its body sees as the variable loop. */
struct _JinjaLoop {
  const JinjaStatement *statement;
  JinjaScope *scope; /* around the loop */
  JinjaValue iterable;
  JinjaIterator *iterator;
  gboolean tested; /* the rest of the items has passed the loop's test */
  gint64 index0;
  gint64 depth0;
  gint64 length; /* -1: not asked for yet */
  JinjaValue current;
  JinjaValue before;
  JinjaValue after; /* the item peeked at, or missing */
  JinjaValue last_changed;
};

JinjaFlow jinja_run_loop (JinjaRun *run, JinjaScope *scope,
                          const JinjaStatement *statement, JinjaValue iterable,
                          gint64 depth0, JinjaText *out);
/* loop (items), in a recursive loop. */
JinjaValue jinja_call_loop (JinjaRun *run, JinjaLoop *loop,
                            const JinjaArguments *arguments);
gboolean jinja_find_loop_attribute (JinjaRun *run, JinjaLoop *loop,
                                    const JinjaValue *name, JinjaValue *ret);
/* loop.cycle, loop.changed */
extern const JinjaBuiltin jinja_loop_methods[];
void jinja_append_loop_repr (JinjaRun *run, JinjaText *text, JinjaLoop *loop);

G_END_DECLS
