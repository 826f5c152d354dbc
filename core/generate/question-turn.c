/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "question-turn.h"

#include <string.h>

#include "../formats/json.h"
#include "question-private.h"

#define OPTIONS_BEGIN "\n\nOptions:"
#define OPTIONS_END "\n\nAnswer with one of the options."

/* Text, and where in it control tokens may be seen. */
typedef struct {
  char *text;
  gsize length;
  GArray *spans;             /* RunnelTextSpan */
  gsize options_at;          /* where the options stand */
  gsize closes_at;           /* where the turn ends that began before them */
  gsize replies_at;          /* where the beginning of a reply begins */
  const char *reply_prefix;  /* what a reply begins with */
} Turn;

static void
turn_clear (Turn *self)
{
  g_free (self->text);
  g_clear_pointer (&self->spans, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Turn, turn_clear)

/* ---- By the chat template ------------------------------------------------ */

static void
append_token (GString *json, RunnelTokenizer *tokenizer, const char *name,
              gint32 token)
{
  gsize length;
  const guint8 *piece = token < 0 ? NULL
      : runnel_tokenizer_get_piece (tokenizer, token, &length);

  if (piece == NULL)
    return;
  g_string_append_printf (json, "\"%s\":", name);
  runnel_json_append_string (json, (const char *) piece, length);
  g_string_append_c (json, ',');
}

static RunnelRenderedText *
render (RunnelModel *model, const char *messages, gboolean prompts_reply,
        GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  RunnelChatTemplate *template = tokenizer ?
      runnel_model_get_chat_template (model, error) : NULL;
  g_autoptr (GString) json = NULL;

  if (template == NULL)
    return NULL;
  json = g_string_new ("{");
  append_token (json, tokenizer, "bos_token",
      runnel_tokenizer_get_bos (tokenizer));
  append_token (json, tokenizer, "eos_token",
      runnel_tokenizer_get_eos (tokenizer));
  g_string_append_printf (json, "\"enable_thinking\":false,"
      "\"add_generation_prompt\":%s,\"messages\":[%s]}",
      prompts_reply ? "true" : "false", messages);
  return runnel_chat_template_render (template, json->str, json->len, NULL,
      error);
}

static void
append_message (GString *messages, const char *role, const char *text,
                gssize length)
{
  if (messages->len > 0)
    g_string_append_c (messages, ',');
  g_string_append_printf (messages, "{\"role\":\"%s\",\"content\":", role);
  runnel_json_append_string (messages, text, length);
  g_string_append_c (messages, '}');
}

/* What comes behind @before in @whole, or FALSE when it does not begin so. */
static gboolean
cut_turn (const RunnelRenderedText *before, const RunnelRenderedText *whole,
          Turn *turn)
{
  gsize start, length, n_spans;
  const char *head = runnel_rendered_text_get_text (before, &start);
  const char *text = runnel_rendered_text_get_text (whole, &length);
  const RunnelTextSpan *spans
      = runnel_rendered_text_get_spans (whole, &n_spans);

  if (length <= start || memcmp (head, text, start) != 0)
    return FALSE;
  turn->length = length - start;
  turn->text = g_strndup (text + start, turn->length);
  turn->spans = g_array_new (FALSE, FALSE, sizeof (RunnelTextSpan));
  for (gsize i = 0; i < n_spans; i++) {
    gsize from = MAX (spans[i].start, start);
    gsize to = spans[i].start + spans[i].length;
    RunnelTextSpan span = { from - start, to - from };

    if (to > from)
      g_array_append_val (turn->spans, span);
  }
  return TRUE;
}

/* Where the turn ends and a reply begins; the end of the text when the
 * template does not tell. */
static void
find_end (const RunnelRenderedText *before, const RunnelRenderedText *closed,
          Turn *turn)
{
  gsize start, length;
  const char *text;

  runnel_rendered_text_get_text (before, &start);
  turn->closes_at = turn->length;
  text = closed ? runnel_rendered_text_get_text (closed, &length) : NULL;
  if (text != NULL && length > start && length - start < turn->length
      && memcmp (text + start, turn->text, length - start) == 0)
    turn->closes_at = length - start;
}

/* Tries the turn behind a turn of the user, then, for templates that want
 * roles to alternate, behind a reply. FALSE when the template can do
 * neither. */
static gboolean
render_turn (RunnelModel *model, const char *content, Turn *turn)
{
  static const char *const roles[] = { "user", "assistant" };
  g_autoptr (GString) messages = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (roles); i++) {
    g_autoptr (RunnelRenderedText) before = NULL;
    g_autoptr (RunnelRenderedText) whole = NULL;
    g_autoptr (RunnelRenderedText) closed = NULL;
    gsize length;

    append_message (messages, roles[i], "-", -1);
    length = messages->len;
    before = render (model, messages->str, FALSE, NULL);
    append_message (messages, "user", content, -1);
    whole = before ? render (model, messages->str, TRUE, NULL) : NULL;
    closed = whole ? render (model, messages->str, FALSE, NULL) : NULL;
    g_string_truncate (messages, length);
    if (whole != NULL && cut_turn (before, whole, turn)) {
      find_end (before, closed, turn);
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
make_chat_turn (RunnelModel *model, const char *instructions, Turn *turn)
{
  g_autofree char *content
      = g_strconcat (instructions, OPTIONS_BEGIN, OPTIONS_END, NULL);
  const char *at;

  if (!render_turn (model, content, turn))
    return FALSE;
  at = g_strrstr_len (turn->text, turn->length, OPTIONS_BEGIN OPTIONS_END);
  if (at == NULL) {
    turn_clear (turn);
    return FALSE;
  }
  turn->options_at = at + strlen (OPTIONS_BEGIN) - turn->text;
  if (turn->closes_at == turn->length
      || turn->closes_at < turn->options_at + strlen (OPTIONS_END))
    turn->closes_at = turn->options_at + strlen (OPTIONS_END);
  turn->replies_at = turn->closes_at;
  turn->reply_prefix = "";
  return TRUE;
}

static void
make_plain_turn (const char *instructions, Turn *turn)
{
  g_autofree char *before
      = g_strconcat ("\n\nQuestion: ", instructions, OPTIONS_BEGIN, NULL);

  turn->options_at = strlen (before);
  turn->closes_at = turn->options_at + strlen ("\n\n");
  turn->replies_at = turn->options_at;
  turn->text = g_strconcat (before, "\n\nAnswer:", NULL);
  turn->length = strlen (turn->text);
  turn->spans = g_array_new (FALSE, FALSE, sizeof (RunnelTextSpan));
  turn->reply_prefix = " ";
}

static gboolean
has_template (RunnelTokenizer *tokenizer)
{
  return runnel_tokenizer_get_chat_template (tokenizer) != NULL;
}

/* ---- To tokens ----------------------------------------------------------- */

/* Bytes [from, to) of a turn. */
static gboolean
encode_part (RunnelTokenizer *tokenizer, const Turn *turn, gsize from,
             gsize to, RunnelTokenRun *ret_run, GError **error)
{
  g_autoptr (GArray) spans = g_array_new (FALSE, FALSE,
      sizeof (RunnelTextSpan));
  gsize n = 0;

  for (guint i = 0; i < turn->spans->len; i++) {
    RunnelTextSpan span = g_array_index (turn->spans, RunnelTextSpan, i);
    gsize start = MAX (span.start, from);
    gsize end = MIN (span.start + span.length, to);

    if (start >= end)
      continue;
    span.start = start - from;
    span.length = end - start;
    g_array_append_val (spans, span);
  }
  ret_run->tokens = runnel_tokenizer_encode_spans (tokenizer,
      turn->text + from, to - from, (const RunnelTextSpan *) spans->data,
      spans->len, &n, error);
  ret_run->n = n;
  return ret_run->tokens != NULL;
}

static gboolean
encode_text (RunnelTokenizer *tokenizer, const char *text, gssize length,
             RunnelTokenRun *ret_run, GError **error)
{
  gsize n = 0;

  ret_run->tokens = runnel_tokenizer_encode (tokenizer, text, length, FALSE,
      &n, error);
  ret_run->n = n;
  return ret_run->tokens != NULL;
}

/* Yes and no as a reply would begin. */
static const char *
get_reply (RunnelQuestion *question, guint option)
{
  if (runnel_question_get_question_type (question)
      == RUNNEL_QUESTION_TYPE_YESNO)
    return option == 0 ? "Yes" : "No";
  return runnel_question_get_label (question, option);
}

static gboolean
encode_option (RunnelTokenizer *tokenizer, RunnelQuestion *question,
               guint option, const char *reply_prefix,
               RunnelTokenRun *ret_shown, RunnelTokenRun *ret_label,
               GError **error)
{
  const char *reply = get_reply (question, option);
  const char *description
      = runnel_question_get_description (question, option);
  g_autofree char *shown = g_strconcat ("\n- ", reply,
      description ? ": " : NULL, description, NULL);
  g_autofree char *label = g_strconcat (reply_prefix, reply, NULL);

  return encode_text (tokenizer, shown, -1, ret_shown, error)
      && encode_text (tokenizer, label, -1, ret_label, error);
}

static gboolean
encode_options (RunnelQuestionTurn *self, RunnelTokenizer *tokenizer,
                RunnelQuestion *question, const char *reply_prefix,
                GError **error)
{
  const guint *order = runnel_question_get_order (question);

  self->n = runnel_question_get_n_options (question);
  self->shown = g_new0 (RunnelTokenRun, self->n);
  self->labels = g_new0 (RunnelTokenRun, self->n);
  for (guint i = 0; i < self->n; i++)
    if (!encode_option (tokenizer, question, order[i], reply_prefix,
            &self->shown[i], &self->labels[i], error))
      return FALSE;
  return TRUE;
}

RunnelQuestionTurn *
runnel_question_turn_new (RunnelModel *model, RunnelQuestion *question,
                          GError **error)
{
  g_autoptr (RunnelQuestionTurn) self = g_new0 (RunnelQuestionTurn, 1);
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  const char *instructions = runnel_question_get_instructions (question);
  g_auto (Turn) turn = { NULL };

  if (tokenizer == NULL)
    return NULL;
  if (!has_template (tokenizer)
      || !make_chat_turn (model, instructions, &turn))
    make_plain_turn (instructions, &turn);
  if (!encode_part (tokenizer, &turn, 0, turn.options_at, &self->before,
          error)
      || !encode_part (tokenizer, &turn, turn.options_at, turn.length,
          &self->after, error)
      || !encode_part (tokenizer, &turn, turn.options_at, turn.closes_at,
          &self->closes, error)
      || !encode_part (tokenizer, &turn, turn.replies_at, turn.length,
          &self->replies, error)
      || !encode_options (self, tokenizer, question, turn.reply_prefix, error))
    return NULL;
  return g_steal_pointer (&self);
}

void
runnel_question_turn_free (RunnelQuestionTurn *self)
{
  if (self == NULL)
    return;
  runnel_token_run_clear (&self->before);
  runnel_token_run_clear (&self->after);
  runnel_token_run_clear (&self->closes);
  runnel_token_run_clear (&self->replies);
  for (guint i = 0; i < self->n; i++) {
    runnel_token_run_clear (&self->shown[i]);
    runnel_token_run_clear (&self->labels[i]);
  }
  g_free (self->shown);
  g_free (self->labels);
  g_free (self);
}

/* ---- The state ----------------------------------------------------------- */

static gboolean
read_plain (RunnelTokenizer *tokenizer, const char *text, gssize length,
            RunnelTokenRun *ret_run, GError **error)
{
  gint32 bos = runnel_tokenizer_get_add_bos (tokenizer) ?
      runnel_tokenizer_get_bos (tokenizer) : -1;
  RunnelTokenRun run;

  if (!encode_text (tokenizer, text, length, &run, error))
    return FALSE;
  if (bos >= 0 && (run.n == 0 || run.tokens[0] != bos)) {
    run.tokens = g_renew (gint32, run.tokens, run.n + 1);
    memmove (run.tokens + 1, run.tokens, run.n * sizeof *run.tokens);
    run.tokens[0] = bos;
    run.n++;
  }
  *ret_run = run;
  return TRUE;
}

gboolean
runnel_question_turn_read (RunnelModel *model, const char *text, gssize length,
                           RunnelTokenRun *ret_run, GError **error)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  g_autoptr (GString) messages = g_string_new (NULL);
  g_autoptr (RunnelRenderedText) rendered = NULL;
  const RunnelTextSpan *spans;
  gsize n_text, n_spans, n = 0;
  const char *chat;

  if (tokenizer == NULL)
    return FALSE;
  if (!has_template (tokenizer))
    return read_plain (tokenizer, text, length, ret_run, error);
  append_message (messages, "user", text, length);
  rendered = render (model, messages->str, FALSE, error);
  if (rendered == NULL)
    return FALSE;
  chat = runnel_rendered_text_get_text (rendered, &n_text);
  spans = runnel_rendered_text_get_spans (rendered, &n_spans);
  ret_run->tokens = runnel_tokenizer_encode_spans (tokenizer, chat, n_text,
      spans, n_spans, &n, error);
  ret_run->n = n;
  return ret_run->tokens != NULL;
}
