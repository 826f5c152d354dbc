/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-lexer.h"

#include "jinja-number.h"
#include "jinja-text.h"

/*
 * The lexer of Jinja2 3.1 with trim_blocks (a newline after a block tag or a
 * comment goes) and lstrip_blocks (blanks between the start of the line and
 * such a tag go), without line statements.
 */
typedef struct {
  JinjaRun *run;
  const char *source; /* newlines normalised to \n */
  gsize length;
  gsize at;
  guint line;
  /* The last match ended a line, so that the next one starts one. */
  gboolean line_starting;
  JinjaToken *tokens;
  gsize n_tokens;
  gsize capacity;
  char *brackets; /* the closing ones that are awaited */
  gsize n_brackets;
  gsize brackets_capacity;
} Lexer;

typedef struct {
  char text[3];
  JinjaTokenKind kind;
} Operator;

/* The longer first. */
static const Operator operators[] = {
  { "//", JINJA_TOKEN_FLOOR_DIVIDE }, { "**", JINJA_TOKEN_POWER },
  { "==", JINJA_TOKEN_EQUAL },        { "!=", JINJA_TOKEN_NOT_EQUAL },
  { ">=", JINJA_TOKEN_GREATER_EQUAL }, { "<=", JINJA_TOKEN_LESS_EQUAL },
  { "+", JINJA_TOKEN_ADD },           { "-", JINJA_TOKEN_SUBTRACT },
  { "/", JINJA_TOKEN_DIVIDE },        { "*", JINJA_TOKEN_MULTIPLY },
  { "%", JINJA_TOKEN_MODULO },        { "~", JINJA_TOKEN_TILDE },
  { "[", JINJA_TOKEN_LEFT_BRACKET },  { "]", JINJA_TOKEN_RIGHT_BRACKET },
  { "(", JINJA_TOKEN_LEFT_PAREN },    { ")", JINJA_TOKEN_RIGHT_PAREN },
  { "{", JINJA_TOKEN_LEFT_BRACE },    { "}", JINJA_TOKEN_RIGHT_BRACE },
  { ">", JINJA_TOKEN_GREATER },       { "<", JINJA_TOKEN_LESS },
  { "=", JINJA_TOKEN_ASSIGN },        { ".", JINJA_TOKEN_DOT },
  { ":", JINJA_TOKEN_COLON },         { "|", JINJA_TOKEN_PIPE },
  { ",", JINJA_TOKEN_COMMA },         { ";", JINJA_TOKEN_SEMICOLON },
};

const char *
jinja_token_name (JinjaTokenKind kind)
{
  static const char *const names[] = {
    [JINJA_TOKEN_END] = "end of template",
    [JINJA_TOKEN_DATA] = "template data",
    [JINJA_TOKEN_VARIABLE_BEGIN] = "begin of print statement",
    [JINJA_TOKEN_VARIABLE_END] = "end of print statement",
    [JINJA_TOKEN_BLOCK_BEGIN] = "begin of statement block",
    [JINJA_TOKEN_BLOCK_END] = "end of statement block",
    [JINJA_TOKEN_NAME] = "name",
    [JINJA_TOKEN_STRING] = "string",
    [JINJA_TOKEN_INTEGER] = "integer",
    [JINJA_TOKEN_FLOAT] = "float",
  };

  if (kind < G_N_ELEMENTS (names))
    return names[kind];
  for (gsize i = 0; i < G_N_ELEMENTS (operators); i++)
    if (operators[i].kind == kind)
      return operators[i].text;
  return "token";
}

static void G_GNUC_NORETURN
raise_at (Lexer *self, guint line, const char *reason)
{
  self->run->line = line;
  jinja_raise (self->run, "%s", reason);
}

static void
add_token (Lexer *self, JinjaTokenKind kind, JinjaValue value)
{
  if (self->n_tokens == self->capacity)
    {
      gsize capacity = self->capacity * 2 + 64;

      self->tokens = jinja_grow (self->run, self->tokens,
                                 self->capacity * sizeof (JinjaToken),
                                 capacity * sizeof (JinjaToken));
      self->capacity = capacity;
    }
  self->tokens[self->n_tokens++] =
      (JinjaToken) { .kind = kind, .line = self->line, .value = value };
}

static gboolean
looking_at (const Lexer *self, gsize at, const char *text)
{
  gsize length = strlen (text);

  return at <= self->length && length <= self->length - at
         && memcmp (self->source + at, text, length) == 0;
}

/* Moves to @stop, counting lines. */
static void
advance (Lexer *self, gsize stop)
{
  for (; self->at < stop; self->at++)
    self->line += self->source[self->at] == '\n';
  self->line_starting = stop > 0 && self->source[stop - 1] == '\n';
}

static gsize
skip_space (const Lexer *self, gsize at)
{
  while (at < self->length
         && jinja_is_space (g_utf8_get_char (self->source + at)))
    at += jinja_utf8_size (self->source[at]);
  return at;
}

/* Where the blanks that end [start, stop) begin. */
static gsize
rstrip (const Lexer *self, gsize start, gsize stop)
{
  while (stop > start)
    {
      const char *last = g_utf8_prev_char (self->source + stop);

      if (!jinja_is_space (g_utf8_get_char (last)))
        break;
      stop = (gsize) (last - self->source);
    }
  return stop;
}

/* The end of the text before a tag after whitespace control: @sign is what
 * follows the tag's opening. */
static gsize
trimmed_end (const Lexer *self, gsize start, gsize stop, char sign,
             gboolean variable)
{
  gsize line = stop;

  if (sign == '-')
    return rstrip (self, start, stop);
  if (sign == '+' || variable)
    return stop;
  while (line > start && self->source[line - 1] != '\n')
    line--;
  if ((line > start || self->line_starting)
      && rstrip (self, line, stop) == line)
    return line;
  return stop;
}

static void
add_data (Lexer *self, gsize start, gsize stop)
{
  if (stop > start)
    add_token (self, JINJA_TOKEN_DATA,
               jinja_string_borrow (self->run, self->source + start,
                                    stop - start, JINJA_TEMPLATE));
}

static char
sign_at (const Lexer *self, gsize at)
{
  if (at < self->length
      && (self->source[at] == '-' || self->source[at] == '+'))
    return self->source[at];
  return '\0';
}

/* Where a closing tag that stands at @at, maybe after a sign, ends together
 * with the whitespace it takes; 0 when there is none. */
static gsize
closing_end (const Lexer *self, gsize at, const char *tag, gboolean plus,
             gboolean newline)
{
  char sign = sign_at (self, at);

  if (looking_at (self, at, tag))
    {
      at += strlen (tag);
      return newline && looking_at (self, at, "\n") ? at + 1 : at;
    }
  if (sign == '\0' || (sign == '+' && !plus)
      || !looking_at (self, at + 1, tag))
    return 0;
  at += 1 + strlen (tag);
  return sign == '-' ? skip_space (self, at) : at;
}

static void
lex_comment (Lexer *self)
{
  guint line = self->line;
  gsize at = self->at + 2;

  at += sign_at (self, at) != '\0';
  for (; at < self->length; at++)
    {
      gsize end = closing_end (self, at, "#}", TRUE, TRUE);

      if (end > 0)
        {
          advance (self, end);
          return;
        }
    }
  raise_at (self, line, "missing end of comment tag");
}

/* {% raw %} at @at: where it ends, or 0. */
static gsize
raw_begin_end (const Lexer *self, gsize at)
{
  at += 2;
  at += sign_at (self, at) != '\0';
  at = skip_space (self, at);
  if (!looking_at (self, at, "raw"))
    return 0;
  return closing_end (self, skip_space (self, at + 3), "%}", FALSE, FALSE);
}

static gsize
raw_close_end (const Lexer *self, gsize at)
{
  at += 2;
  at += sign_at (self, at) != '\0';
  at = skip_space (self, at);
  if (!looking_at (self, at, "endraw"))
    return 0;
  return closing_end (self, skip_space (self, at + 6), "%}", TRUE, TRUE);
}

static void
lex_raw (Lexer *self, gsize begin_end)
{
  guint line = self->line;
  gsize start = begin_end;

  advance (self, begin_end);
  for (gsize at = start; at < self->length; at++)
    {
      gsize end = looking_at (self, at, "{%") ? raw_close_end (self, at) : 0;

      if (end > 0)
        {
          add_data (self, start,
                    trimmed_end (self, start, at, sign_at (self, at + 2),
                                 FALSE));
          advance (self, end);
          return;
        }
    }
  raise_at (self, line, "missing end of raw directive");
}

/* Numbers */

/* (\d+_)*\d+ */
static gsize
skip_digits (const Lexer *self, gsize at)
{
  while (at < self->length
         && (g_ascii_isdigit (self->source[at])
             || (self->source[at] == '_' && at + 1 < self->length
                 && g_ascii_isdigit (self->source[at + 1])
                 && g_ascii_isdigit (self->source[at - 1]))))
    at++;
  return at;
}

static gboolean
is_digit_at (const Lexer *self, gsize at)
{
  return at < self->length && g_ascii_isdigit (self->source[at]);
}

static gsize
float_end (const Lexer *self, gsize at)
{
  gsize end;
  gsize exponent;
  gboolean fraction = FALSE;

  if (at > 0 && self->source[at - 1] == '.')
    return 0;
  end = skip_digits (self, at);
  if (looking_at (self, end, ".") && is_digit_at (self, end + 1))
    {
      end = skip_digits (self, end + 1);
      fraction = TRUE;
    }
  if (end < self->length && g_ascii_tolower (self->source[end]) == 'e')
    {
      exponent = end + 1;
      exponent += sign_at (self, exponent) != '\0';
      if (is_digit_at (self, exponent))
        return skip_digits (self, exponent);
    }
  return fraction ? end : 0;
}

/* 0x, 0o, 0b with digits: where they end, or 0. */
static gsize
based_end (const Lexer *self, gsize at, guint *base)
{
  gsize end = at + 2;
  gsize seen = 0;

  if (self->source[at] != '0' || at + 2 >= self->length)
    return 0;
  switch (g_ascii_tolower (self->source[at + 1]))
    {
    case 'x':
      *base = 16;
      break;
    case 'o':
      *base = 8;
      break;
    case 'b':
      *base = 2;
      break;
    default:
      return 0;
    }
  while (end < self->length)
    {
      gsize digit = end + (self->source[end] == '_');
      int value;

      value = digit < self->length ? g_ascii_xdigit_value (self->source[digit])
                                   : -1;
      if (value < 0 || value >= (int) *base)
        break;
      end = digit + 1;
      seen++;
    }
  return seen > 0 ? end : 0;
}

/* A copy without underscores. */
static char *
plain_digits (Lexer *self, gsize start, gsize stop, gsize *length)
{
  char *digits = jinja_alloc (self->run, stop - start + 1);

  *length = 0;
  for (gsize i = start; i < stop; i++)
    if (self->source[i] != '_')
      digits[(*length)++] = self->source[i];
  return digits;
}

static void
lex_number (Lexer *self)
{
  gsize start = self->at;
  gsize end = float_end (self, start);
  guint base = 10;
  gsize length;
  char *digits;

  if (end > 0)
    {
      digits = plain_digits (self, start, end, &length);
      add_token (self, JINJA_TOKEN_FLOAT,
                 jinja_float (g_ascii_strtod (digits, NULL)));
      advance (self, end);
      return;
    }
  end = based_end (self, start, &base);
  if (end > 0)
    digits = plain_digits (self, start + 2, end, &length);
  else
    {
      end = skip_digits (self, start);
      if (self->source[start] == '0')
        for (end = start + 1; end < self->length
                              && (self->source[end] == '0'
                                  || (self->source[end] == '_'
                                      && looking_at (self, end + 1, "0")));)
          end++;
      digits = plain_digits (self, start, end, &length);
    }
  add_token (self, JINJA_TOKEN_INTEGER,
             base == 10
                 ? jinja_integer_from_digits (self->run, digits, length)
                 : jinja_integer_from_base (self->run, digits, length, base));
  advance (self, end);
}

/* Strings */

/* \xHH, \uHHHH, \UHHHHHHHH: the character; @at is behind the letter. */
static gunichar
hex_escape (Lexer *self, gsize at, gsize stop, gsize n_digits)
{
  gunichar c = 0;

  if (stop - at < n_digits)
    raise_at (self, self->line, "a string ends within an escape");
  for (gsize i = 0; i < n_digits; i++)
    {
      int digit = g_ascii_xdigit_value (self->source[at + i]);

      if (digit < 0)
        raise_at (self, self->line, "a string holds a malformed escape");
      c = c * 16 + (gunichar) digit;
    }
  if (!g_unichar_validate (c))
    raise_at (self, self->line, "a string escapes what is no character");
  return c;
}

/* One escape, @at behind the backslash. As Python's unicode-escape: unknown
 * ones stand for themselves. Returns where it ends. */
static gsize
lex_escape (Lexer *self, JinjaText *text, gsize at, gsize stop)
{
  static const char plain[] = "\\'\"abfnrtv";
  static const char meaning[] = "\\'\"\a\b\f\n\r\t\v";
  char letter = self->source[at];
  const char *known = letter != '\0' ? strchr (plain, letter) : NULL;
  gsize n_digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
  gunichar c = 0;

  if (letter == '\n')
    return at + 1;
  if (known != NULL)
    {
      jinja_text_append (self->run, text, &meaning[known - plain], 1,
                         JINJA_TEMPLATE);
      return at + 1;
    }
  if (letter == 'x' || letter == 'u' || letter == 'U')
    {
      c = hex_escape (self, at + 1, stop, n_digits);
      jinja_text_append_unichar (self->run, text, c, JINJA_TEMPLATE);
      return at + 1 + n_digits;
    }
  if (letter >= '0' && letter <= '7')
    {
      gsize end = at;

      while (end < stop && end < at + 3 && self->source[end] >= '0'
             && self->source[end] <= '7')
        c = c * 8 + (gunichar) (self->source[end++] - '0');
      jinja_text_append_unichar (self->run, text, c, JINJA_TEMPLATE);
      return end;
    }
  if (letter == 'N')
    raise_at (self, self->line, "\\N{...} escapes are not supported");
  jinja_text_append (self->run, text, "\\", 1, JINJA_TEMPLATE);
  if ((guint8) letter >= 0x80)
    {
      /* Jinja2 spells characters beyond ASCII as escapes first, which then
       * lose their backslash to the one before. */
      char *spelled;

      c = g_utf8_get_char (self->source + at);
      spelled = jinja_printf (self->run, c < 0x100     ? "x%02x"
                                         : c < 0x10000 ? "u%04x"
                                                       : "U%08x", c);
      jinja_text_append (self->run, text, spelled, strlen (spelled),
                         JINJA_TEMPLATE);
      return at + jinja_utf8_size (letter);
    }
  return at;
}

static void
lex_string (Lexer *self)
{
  char quote = self->source[self->at];
  gsize start = self->at + 1;
  gsize stop = start;
  gsize plain = start;
  JinjaText *text;

  while (stop < self->length && self->source[stop] != quote)
    stop += self->source[stop] == '\\' ? 2 : 1;
  if (stop >= self->length)
    raise_at (self, self->line, "a string has no end");
  if (memchr (self->source + start, '\\', stop - start) == NULL)
    {
      add_token (self, JINJA_TOKEN_STRING,
                 jinja_string_borrow (self->run, self->source + start,
                                      stop - start, JINJA_TEMPLATE));
      advance (self, stop + 1);
      return;
    }
  text = jinja_text_new (self->run, stop - start);
  for (gsize at = start; at < stop;)
    {
      if (self->source[at] != '\\')
        {
          at++;
          continue;
        }
      jinja_text_append (self->run, text, self->source + plain, at - plain,
                         JINJA_TEMPLATE);
      at = lex_escape (self, text, at + 1, stop);
      plain = at;
    }
  jinja_text_append (self->run, text, self->source + plain, stop - plain,
                     JINJA_TEMPLATE);
  text->capacity = 0; /* a constant is never appended to */
  add_token (self, JINJA_TOKEN_STRING, jinja_text_string (text));
  advance (self, stop + 1);
}

/* Names and operators */

static gboolean
is_name_character (gunichar c)
{
  return c == '_' || g_unichar_isalnum (c)
         || (c >= 0x80 && g_unichar_ismark (c));
}

static void
lex_name (Lexer *self)
{
  gsize end = self->at;

  while (end < self->length
         && is_name_character (g_utf8_get_char (self->source + end)))
    end += jinja_utf8_size (self->source[end]);
  add_token (self, JINJA_TOKEN_NAME,
             jinja_string_borrow (self->run, self->source + self->at,
                                  end - self->at, JINJA_TEMPLATE));
  advance (self, end);
}

static void
balance (Lexer *self, char bracket)
{
  const char *opening = strchr ("([{", bracket);
  JinjaRun *run = self->run;

  if (opening != NULL)
    {
      if (self->n_brackets == self->brackets_capacity)
        {
          gsize capacity = self->brackets_capacity * 2 + 32;

          self->brackets = jinja_grow (run, self->brackets, self->n_brackets,
                                       capacity);
          self->brackets_capacity = capacity;
        }
      self->brackets[self->n_brackets++] = bracket == '('   ? ')'
                                           : bracket == '[' ? ']'
                                                            : '}';
    }
  else if (strchr (")]}", bracket) != NULL)
    {
      run->line = self->line;
      if (self->n_brackets == 0)
        jinja_raise (run, "unexpected '%c'", bracket);
      if (self->brackets[--self->n_brackets] != bracket)
        jinja_raise (run, "unexpected '%c', expected '%c'", bracket,
                     self->brackets[self->n_brackets]);
    }
}

static void
lex_operator (Lexer *self)
{
  for (gsize i = 0; i < G_N_ELEMENTS (operators); i++)
    if (looking_at (self, self->at, operators[i].text))
      {
        gsize size = strlen (operators[i].text);

        if (size == 1)
          balance (self, operators[i].text[0]);
        add_token (self, operators[i].kind, jinja_missing ());
        advance (self, self->at + size);
        return;
      }
  self->run->line = self->line;
  jinja_raise (self->run, "unexpected character '%.*s'",
               (int) jinja_utf8_size (self->source[self->at]),
               self->source + self->at);
}

/* From behind the opening of a tag to behind its end. */
static void
lex_tag (Lexer *self, gboolean variable)
{
  while (TRUE)
    {
      gunichar c;
      gsize end = 0;

      advance (self, skip_space (self, self->at));
      if (self->at >= self->length)
        return; /* the parser names what is missing */
      if (self->n_brackets == 0)
        end = variable ? closing_end (self, self->at, "}}", FALSE, FALSE)
                       : closing_end (self, self->at, "%}", TRUE, TRUE);
      if (end > 0)
        {
          add_token (self, variable ? JINJA_TOKEN_VARIABLE_END
                                    : JINJA_TOKEN_BLOCK_END,
                     jinja_missing ());
          advance (self, end);
          return;
        }
      jinja_step (self->run, 1);
      c = g_utf8_get_char (self->source + self->at);
      if (c < 0x80 && g_ascii_isdigit ((char) c))
        lex_number (self);
      else if (is_name_character (c) && !g_unichar_isdigit (c))
        lex_name (self);
      else if (c == '"' || c == '\'')
        lex_string (self);
      else
        lex_operator (self);
    }
}

/* The next opening of a tag at or after @at, or the end of the source. */
static gsize
next_tag (const Lexer *self, gsize at)
{
  while (at < self->length)
    {
      const char *brace = memchr (self->source + at, '{', self->length - at);

      if (brace == NULL)
        break;
      at = (gsize) (brace - self->source);
      if (looking_at (self, at, "{{") || looking_at (self, at, "{%")
          || looking_at (self, at, "{#"))
        return at;
      at++;
    }
  return self->length;
}

static void
lex_template (Lexer *self)
{
  while (self->at < self->length)
    {
      gsize start = self->at;
      gsize tag = next_tag (self, start);
      gsize raw;
      char sign;
      gboolean variable;

      if (tag == self->length)
        {
          add_data (self, start, tag);
          advance (self, tag);
          return;
        }
      sign = sign_at (self, tag + 2);
      variable = self->source[tag + 1] == '{';
      add_data (self, start, trimmed_end (self, start, tag, sign, variable));
      advance (self, tag);
      raw = self->source[tag + 1] == '%' ? raw_begin_end (self, tag) : 0;
      if (raw > 0)
        lex_raw (self, raw);
      else if (self->source[tag + 1] == '#')
        lex_comment (self);
      else
        {
          add_token (self, variable ? JINJA_TOKEN_VARIABLE_BEGIN
                                    : JINJA_TOKEN_BLOCK_BEGIN,
                     jinja_missing ());
          advance (self, tag + 2 + (sign != '\0'));
          lex_tag (self, variable);
        }
    }
}

/* \r\n and \r become \n, and one newline at the end goes. */
static char *
normalise_newlines (JinjaRun *run, const char *source, gsize length,
                    gsize *normalised)
{
  char *copy = jinja_alloc (run, length + 1);
  gsize n = 0;

  for (gsize i = 0; i < length; i++)
    {
      if (source[i] == '\r' && i + 1 < length && source[i + 1] == '\n')
        continue;
      copy[n++] = source[i] == '\r' ? '\n' : source[i];
    }
  if (n > 0 && copy[n - 1] == '\n')
    n--;
  *normalised = n;
  return copy;
}

JinjaToken *
jinja_tokenize (JinjaRun *run, const char *source, gsize length)
{
  Lexer lexer = { .run = run, .line = 1, .line_starting = TRUE };

  lexer.source = normalise_newlines (run, source, length, &lexer.length);
  lex_template (&lexer);
  add_token (&lexer, JINJA_TOKEN_END, jinja_missing ());
  return lexer.tokens;
}
