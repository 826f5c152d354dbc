/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

typedef enum {
  JINJA_TOKEN_END,
  JINJA_TOKEN_DATA, /* text outside of tags, whitespace control applied */
  JINJA_TOKEN_VARIABLE_BEGIN,
  JINJA_TOKEN_VARIABLE_END,
  JINJA_TOKEN_BLOCK_BEGIN,
  JINJA_TOKEN_BLOCK_END,
  JINJA_TOKEN_NAME,
  JINJA_TOKEN_STRING,
  JINJA_TOKEN_INTEGER,
  JINJA_TOKEN_FLOAT,
  JINJA_TOKEN_ADD,
  JINJA_TOKEN_SUBTRACT,
  JINJA_TOKEN_DIVIDE,
  JINJA_TOKEN_FLOOR_DIVIDE,
  JINJA_TOKEN_MULTIPLY,
  JINJA_TOKEN_MODULO,
  JINJA_TOKEN_POWER,
  JINJA_TOKEN_TILDE,
  JINJA_TOKEN_LEFT_BRACKET,
  JINJA_TOKEN_RIGHT_BRACKET,
  JINJA_TOKEN_LEFT_PAREN,
  JINJA_TOKEN_RIGHT_PAREN,
  JINJA_TOKEN_LEFT_BRACE,
  JINJA_TOKEN_RIGHT_BRACE,
  JINJA_TOKEN_EQUAL,
  JINJA_TOKEN_NOT_EQUAL,
  JINJA_TOKEN_GREATER,
  JINJA_TOKEN_GREATER_EQUAL,
  JINJA_TOKEN_LESS,
  JINJA_TOKEN_LESS_EQUAL,
  JINJA_TOKEN_ASSIGN,
  JINJA_TOKEN_DOT,
  JINJA_TOKEN_COLON,
  JINJA_TOKEN_PIPE,
  JINJA_TOKEN_COMMA,
  JINJA_TOKEN_SEMICOLON,
} JinjaTokenKind;

typedef struct {
  JinjaTokenKind kind;
  guint line;
  JinjaValue value; /* text of data, names and strings; numbers */
} JinjaToken;

/* What messages call a kind of token: "end of print statement". */
const char *jinja_token_name (JinjaTokenKind kind);

/* All tokens of @source, the last one JINJA_TOKEN_END. @source must be valid
 * UTF-8 and live as long as the tokens. Raises on what is no token. */
JinjaToken *jinja_tokenize (JinjaRun *run, const char *source, gsize length);

G_END_DECLS
