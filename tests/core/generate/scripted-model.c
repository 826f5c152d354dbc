/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scripted-model.h"

#include <math.h>
#include <string.h>

#include "error.h"
#include "model/engine-private.h"
#include "text/tokenizer-private.h"

struct _RunnelEngine {
  GObject parent;
  ScriptedModel *script;
  RunnelModel *model;
};
G_DEFINE_FINAL_TYPE (RunnelEngine, runnel_engine, G_TYPE_OBJECT)

struct _RunnelModel {
  GObject parent;
  ScriptedModel *script;
  RunnelTokenizer *tokenizer;
};
G_DEFINE_FINAL_TYPE (RunnelModel, runnel_model, G_TYPE_OBJECT)

struct _RunnelTokenizer {
  GObject parent;
  ScriptedModel *script;
};
G_DEFINE_FINAL_TYPE (RunnelTokenizer, runnel_tokenizer, G_TYPE_OBJECT)

struct _RunnelSequence {
  GObject parent;
  RunnelEngine *engine;
  GArray *tokens;
  guint context, n_prompt;
  guint n_shifted; /* tokens that shifts dropped */
  RunnelDrafts drafts;
};
G_DEFINE_FINAL_TYPE (RunnelSequence, runnel_sequence, G_TYPE_OBJECT)

static void
runnel_tokenizer_class_init (RunnelTokenizerClass *klass)
{
}

static void
runnel_tokenizer_init (RunnelTokenizer *self)
{
}

static void
runnel_model_finalize (GObject *object)
{
  g_object_unref (((RunnelModel *) object)->tokenizer);
  G_OBJECT_CLASS (runnel_model_parent_class)->finalize (object);
}

static void
runnel_model_class_init (RunnelModelClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_model_finalize;
}

static void
runnel_model_init (RunnelModel *self)
{
}

static void
runnel_engine_finalize (GObject *object)
{
  g_object_unref (((RunnelEngine *) object)->model);
  G_OBJECT_CLASS (runnel_engine_parent_class)->finalize (object);
}

static void
runnel_engine_class_init (RunnelEngineClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_engine_finalize;
}

static void
runnel_engine_init (RunnelEngine *self)
{
}

static void
runnel_sequence_finalize (GObject *object)
{
  RunnelSequence *self = (RunnelSequence *) object;

  g_object_unref (self->engine);
  g_array_unref (self->tokens);
  runnel_drafts_clear (&self->drafts);
  G_OBJECT_CLASS (runnel_sequence_parent_class)->finalize (object);
}

static void
runnel_sequence_class_init (RunnelSequenceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_sequence_finalize;
}

static void
runnel_sequence_init (RunnelSequence *self)
{
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
}

RunnelSequence *
scripted_sequence_new (ScriptedModel *script, guint context,
                       const gint32 *tokens, guint n_tokens, guint n_prompt)
{
  RunnelSequence *self = g_object_new (RUNNEL_TYPE_SEQUENCE, NULL);

  self->engine = g_object_new (RUNNEL_TYPE_ENGINE, NULL);
  self->engine->script = script;
  self->engine->model = g_object_new (RUNNEL_TYPE_MODEL, NULL);
  self->engine->model->script = script;
  self->engine->model->tokenizer = g_object_new (RUNNEL_TYPE_TOKENIZER, NULL);
  self->engine->model->tokenizer->script = script;
  self->context = context;
  self->n_prompt = n_prompt;
  g_assert_cmpuint (n_tokens, <=, context);
  g_array_append_vals (self->tokens, tokens, n_tokens);
  return self;
}

void
scripted_model_clear (ScriptedModel *model)
{
  g_assert_cmpuint (model->joined, ==, 0);
  g_clear_pointer (&model->cached, g_free);
  model->n_cached = model->rows = model->passes = model->shifts = 0;
}

/* Tokenizer */

const guint8 *
runnel_tokenizer_get_piece (RunnelTokenizer *self, gint32 token, gsize *length)
{
  if (token < 0 || (guint) token >= self->script->n_pieces)
    return NULL;
  *length = strlen (self->script->pieces[token]);
  return (const guint8 *) self->script->pieces[token];
}

gboolean
runnel_tokenizer_is_control (RunnelTokenizer *self, gint32 token)
{
  return token == self->script->stop_token;
}

gboolean
runnel_tokenizer_is_made (RunnelTokenizer *self)
{
  return self->script != NULL;
}

guint
runnel_tokenizer_get_n_tokens (RunnelTokenizer *self)
{
  return self->script->n_pieces;
}

const gint32 *
runnel_tokenizer_get_stop_tokens (RunnelTokenizer *self, gsize *n)
{
  *n = self->script->stop_token >= 0 ? 1 : 0;
  return &self->script->stop_token;
}

/* Model and engine */

guint
runnel_model_get_n_vocab (RunnelModel *self)
{
  return self->script->n_vocab;
}

RunnelTokenizer *
runnel_model_get_tokenizer (RunnelModel *self, GError **error)
{
  return self->tokenizer;
}

RunnelModel *
runnel_engine_get_model (RunnelEngine *self)
{
  return self->model;
}

RunnelParticipant *
runnel_engine_join (RunnelEngine *self)
{
  self->script->joined++;
  return (RunnelParticipant *) self;
}

void
runnel_engine_leave (RunnelEngine *self, RunnelParticipant *participant)
{
  g_assert_true (participant == (RunnelParticipant *) self);
  g_assert_cmpuint (self->script->joined, >, 0);
  self->script->joined--;
}

void
runnel_engine_cache_sequence (RunnelEngine *self, RunnelSequence *sequence)
{
  ScriptedModel *script = self->script;

  g_assert_cmpuint (sequence->n_shifted, ==, 0);
  g_free (script->cached);
  script->n_cached = sequence->tokens->len;
  script->cached =
    g_memdup2 (sequence->tokens->data, script->n_cached * sizeof (gint32));
}

/* What follows its first @length tokens. */
static void
speak (RunnelSequence *self, guint length, float *logits)
{
  const ScriptedModel *script = self->engine->script;
  const guint at = self->n_shifted + length - self->n_prompt;

  for (guint i = 0; i < script->n_vocab; i++) {
    logits[i] = i < script->n_pieces ? 0 : 100;
    if (script->bad)
      logits[i] = NAN;
  }
  if (!script->flat && !script->bad)
    logits[script->replies[at % script->n_replies]] = 20;
}

gboolean
runnel_engine_forward (RunnelEngine *self, RunnelBatchItem *items,
                       guint n_items, RunnelParticipant *participant,
                       GError **error)
{
  RunnelSequence *sequence = items->sequence;

  g_assert_cmpuint (n_items, ==, 1);
  g_assert_cmpuint (sequence->tokens->len + items->n_tokens, <=,
                    sequence->context);
  self->script->rows += items->n_tokens;
  if (self->script->fail_at > 0 &&
      self->script->rows >= self->script->fail_at) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
                 "scripted");
    return FALSE;
  }
  g_array_append_vals (sequence->tokens, items->tokens, items->n_tokens);
  for (guint i = 0; i < items->n_logits; i++)
    speak (sequence, sequence->tokens->len - items->n_logits + i + 1,
           items->logits + (gsize) i * self->script->n_vocab);
  self->script->passes++;
  return TRUE;
}

const RunnelShape *
runnel_engine_get_shape (RunnelEngine *self)
{
  static const RunnelShape shape = { .n_layers = 1, .n_embd = 1 };

  return &shape;
}

const char *
runnel_model_get_path (RunnelModel *self)
{
  return "script";
}

/* Sequence */

RunnelDrafts *
runnel_sequence_get_drafts (RunnelSequence *self)
{
  return &self->drafts;
}

gboolean
runnel_sequence_attach (RunnelSequence *self, RunnelDrafter *drafter,
                        GError **error)
{
  runnel_drafts_add (&self->drafts, runnel_drafter_new_state (
                                      drafter, self->engine, error));
  return TRUE;
}

RunnelEngine *
runnel_sequence_get_engine (RunnelSequence *self)
{
  return self->engine;
}

guint
runnel_sequence_get_length (RunnelSequence *self)
{
  return self->tokens->len;
}

guint
runnel_sequence_get_context_length (RunnelSequence *self)
{
  return self->context;
}

const gint32 *
runnel_sequence_get_tokens (RunnelSequence *self, gsize *n_tokens)
{
  *n_tokens = self->tokens->len;
  return (const gint32 *) self->tokens->data;
}

gboolean
runnel_sequence_get_shifted (RunnelSequence *self)
{
  return self->n_shifted > 0;
}

gboolean
runnel_sequence_truncate (RunnelSequence *self, guint n_tokens, GError **error)
{
  g_assert_cmpuint (n_tokens, <=, self->tokens->len);
  g_array_set_size (self->tokens, n_tokens);
  runnel_drafts_settle (&self->drafts, n_tokens);
  return TRUE;
}

gboolean
runnel_sequence_shift (RunnelSequence *self, guint n_keep, guint n_drop,
                       GError **error)
{
  g_assert_cmpuint (n_drop * 4, >=, self->context);
  g_assert_cmpuint (n_keep + n_drop, <=, self->tokens->len);
  g_array_remove_range (self->tokens, n_keep, n_drop);
  self->n_shifted += n_drop;
  self->engine->script->shifts++;
  runnel_drafts_shift (&self->drafts, n_keep);
  return TRUE;
}

gboolean
runnel_sequence_compute_logits (RunnelSequence *self, float *logits,
                                gsize n_logits, GError **error)
{
  g_assert_cmpuint (n_logits, ==, self->engine->script->n_vocab);
  speak (self, self->tokens->len, logits);
  return TRUE;
}
