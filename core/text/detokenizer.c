/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "detokenizer.h"

#include "../error.h"
#include "tokenizer-private.h"

#define REPLACEMENT "\357\277\275"   /* U+FFFD */

struct _RunnelDetokenizer {
  GObject parent_instance;

  RunnelTokenizer *tokenizer;
  gboolean render_special;
  /* The beginning of a character, and what may follow it. */
  guint8 held[4];
  guint n_held, n_wanted;
  guint8 low, high;
};

G_DEFINE_FINAL_TYPE (RunnelDetokenizer, runnel_detokenizer, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) \
  (RUNNEL_IS_DETOKENIZER (self) && (self)->tokenizer != NULL)

static void
runnel_detokenizer_finalize (GObject *object)
{
  RunnelDetokenizer *self = RUNNEL_DETOKENIZER (object);

  g_clear_object (&self->tokenizer);
  G_OBJECT_CLASS (runnel_detokenizer_parent_class)->finalize (object);
}

static void
runnel_detokenizer_class_init (RunnelDetokenizerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_detokenizer_finalize;
}

static void
runnel_detokenizer_init (RunnelDetokenizer *self)
{
}

/**
 * runnel_detokenizer_new:
 * @tokenizer: whose tokens will come
 * @render_special: whether control tokens give their literal text or nothing
 *
 * Makes a detokenizer at the beginning of a text.
 *
 * Returns: (transfer full): a detokenizer
 *
 * Since: 0.1
 */
RunnelDetokenizer *
runnel_detokenizer_new (RunnelTokenizer *tokenizer, gboolean render_special)
{
  RunnelDetokenizer *self;

  g_return_val_if_fail (runnel_tokenizer_is_made (tokenizer), NULL);

  self = g_object_new (RUNNEL_TYPE_DETOKENIZER, NULL);
  self->tokenizer = g_object_ref (tokenizer);
  self->render_special = render_special;
  return self;
}

/* The first byte of a character says how many bytes it has and, in four
 * cases, narrows the second (Unicode 15, table 3-7). FALSE: no first byte. */
static gboolean
begin_character (RunnelDetokenizer *self, guint8 byte)
{
  if (byte < 0xc2 || byte > 0xf4)
    return FALSE;
  self->held[0] = byte;
  self->n_held = 1;
  self->n_wanted = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  self->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
  self->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  return TRUE;
}

static void
push_byte (RunnelDetokenizer *self, guint8 byte, GString *out)
{
  if (self->n_held > 0) {
    if (byte >= self->low && byte <= self->high) {
      self->held[self->n_held++] = byte;
      self->low = 0x80;
      self->high = 0xbf;
      if (self->n_held == self->n_wanted) {
        g_string_append_len (out, (const char *) self->held, self->n_held);
        self->n_held = 0;
      }
      return;
    }
    /* What is held is a maximal part; the byte is looked at afresh. */
    g_string_append (out, REPLACEMENT);
    self->n_held = 0;
  }
  if (byte < 0x80)
    g_string_append_c (out, (char) byte);
  else if (!begin_character (self, byte))
    g_string_append (out, REPLACEMENT);
}

/**
 * runnel_detokenizer_push_to:
 * @self: a detokenizer
 * @token: the next id
 * @out: what is complete is appended here
 * @error: return location
 *
 * Like [method@Runnel.Detokenizer.push], into a buffer of the caller, and
 * without allocating when that has room. Text with NUL, which is a character
 * like others, comes out whole only this way.
 *
 * Returns: %TRUE, or %FALSE with @error when @token is out of range
 *
 * Since: 0.1
 */
gboolean
runnel_detokenizer_push_to (RunnelDetokenizer *self, gint32 token,
                            GString *out, GError **error)
{
  const guint8 *piece;
  gsize length;

  g_return_val_if_fail (IS_MADE (self), FALSE);
  g_return_val_if_fail (out != NULL, FALSE);

  piece = runnel_tokenizer_get_piece (self->tokenizer, token, &length);
  if (piece == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "token %d is not below the vocabulary's %u tokens", token,
                 runnel_tokenizer_get_n_tokens (self->tokenizer));
    return FALSE;
  }
  if (!self->render_special
      && runnel_tokenizer_is_control (self->tokenizer, token))
    return TRUE;
  for (gsize i = 0; i < length; i++)
    push_byte (self, piece[i], out);
  return TRUE;
}

/**
 * runnel_detokenizer_push:
 * @self: a detokenizer
 * @token: the next id
 * @error: return location
 *
 * Takes a token and gives the text that is complete with it. A character
 * whose last byte has not come is held back.
 *
 * Returns: (transfer full): valid UTF-8, maybe empty, or %NULL with @error
 *   when @token is out of range
 *
 * Since: 0.1
 */
char *
runnel_detokenizer_push (RunnelDetokenizer *self, gint32 token, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);

  if (!runnel_detokenizer_push_to (self, token, out, error))
    return NULL;
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/**
 * runnel_detokenizer_flush:
 * @self: a detokenizer
 * @keep_incomplete: whether an unfinished character gives one U+FFFD or
 *   nothing
 *
 * Ends the text. The detokenizer is at the beginning of a text afterwards.
 *
 * Returns: (transfer full): valid UTF-8, maybe empty
 *
 * Since: 0.1
 */
char *
runnel_detokenizer_flush (RunnelDetokenizer *self, gboolean keep_incomplete)
{
  gboolean unfinished;

  g_return_val_if_fail (IS_MADE (self), NULL);

  unfinished = self->n_held > 0;
  self->n_held = 0;
  return g_strdup (unfinished && keep_incomplete ? REPLACEMENT : "");
}

/**
 * runnel_detokenizer_get_incomplete:
 * @self: a detokenizer
 *
 * Whether the last token ended inside a character, whose bytes are held back.
 *
 * Returns: %TRUE when flush would end an unfinished character
 *
 * Since: 0.1
 */
gboolean
runnel_detokenizer_get_incomplete (RunnelDetokenizer *self)
{
  g_return_val_if_fail (IS_MADE (self), FALSE);

  return self->n_held > 0;
}

/**
 * runnel_detokenizer_reset:
 * @self: a detokenizer
 *
 * Forgets what is held back: the next token begins a text.
 *
 * Since: 0.1
 */
void
runnel_detokenizer_reset (RunnelDetokenizer *self)
{
  g_return_if_fail (IS_MADE (self));

  self->n_held = 0;
}
