/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* A pipeline at work: prompts go in, and what comes to its fdsinks of
 * standard output is taken and printed as it comes. */
#pragma once

#include <gst/gst.h>
#include <runnel.h>

#include "verb.h"

G_BEGIN_DECLS

/* What comes to one sink for one request. */
typedef struct {
  char *name;             /* of the sink */
  GstPad *pad;
  /* Under the session's lock. */
  GString *text;
  gsize n_printed;
  gboolean ended;
  guint64 request;        /* its id; 0 before it is known */
  RunnelFinishReason finish_reason;
  guint prompt_tokens, cached_tokens, completion_tokens;
  RunnelDraftStats drafts;
  gint64 first;           /* µs, when the first piece came; or 0 */
  gint64 last;
} Reply;

typedef struct _Session Session;

/* Loads the pipeline of this name and applies the options. */
Session *session_new (const char *pipeline, const Options *options,
                      GError **error);
void session_free (Session *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Session, session_free)

/* Whether replies are printed; else they are only kept. */
void session_set_print (Session *self, gboolean print);
/* Whether it begins with lmprompt, to which the prompt then goes before it
 * runs; else it brings its own. */
gboolean session_takes_prompt (Session *self);
void session_set_prompt (Session *self, const char *text);
/* Runs to the end of the stream. */
gboolean session_run (Session *self, GError **error);
gboolean session_start (Session *self, GError **error);
/* Whether it begins with appsrc and ends in one sink: whether it can be asked,
 * and asked again. */
gboolean session_check_turns (Session *self, GError **error);
/* A prompt, and its reply. */
gboolean session_ask (Session *self, const char *text, GError **error);
/* Forgets all turns. */
gboolean session_restart (Session *self, GError **error);

guint session_get_n_replies (Session *self);
const Reply *session_get_reply (Session *self, guint i);
/* Whether Ctrl-C ended the last replies. */
gboolean session_get_interrupted (Session *self);
/* µs, when the prompt went in. */
gint64 session_get_started (Session *self);
/* Tokens after the first one, for each second after it; 0: unknown. */
double reply_get_speed (const Reply *reply);

G_END_DECLS
