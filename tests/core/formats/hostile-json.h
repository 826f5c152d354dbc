/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Texts that are no JSON, for the unit test and as seeds of the fuzz target.
 */
#pragma once

#include <glib.h>

#include "error.h"

typedef struct {
  const char *text;
  gsize length;
  RunnelError code;
  const char *message;    /* a part of it */
} HostileJson;

#define BAD(text, message) \
  { text, sizeof text - 1, RUNNEL_ERROR_MALFORMED, message }
#define CUT(text, message) \
  { text, sizeof text - 1, RUNNEL_ERROR_TRUNCATED, message }

static const HostileJson hostile_json[] = {
  CUT ("", "line 1, column 1: the text ends where a value"),
  CUT (" \n ", "line 2, column 2"),
  CUT ("[", "a value is expected"),
  CUT ("[1", "',' or ']'"),
  CUT ("[1,", "a value"),
  CUT ("{", "a key"),
  CUT ("{\"a\"", "':'"),
  CUT ("{\"a\":", "a value"),
  CUT ("{\"a\":1", "',' or '}'"),
  CUT ("{\"a\":1,", "a key"),
  CUT ("\"abc", "column 1: the string that begins here does not end"),
  CUT ("\"\\", "an escape"),
  CUT ("\"\\u12", "a hexadecimal digit"),
  CUT ("-", "a digit"),
  CUT ("1.", "a digit"),
  CUT ("1e", "a digit"),
  CUT ("1e+", "a digit"),
  CUT ("tru", "a value"),
  BAD ("[1,]", "']' where a value"),
  BAD ("[,1]", "',' where a value"),
  BAD ("[1 2]", "'2' where ',' or ']'"),
  BAD ("{\"a\" 1}", "'1' where ':'"),
  BAD ("{\"a\":1,}", "'}' where a key"),
  BAD ("{a:1}", "'a' where a key"),
  BAD ("{'a':1}", "where a key"),
  BAD ("{1:1}", "'1' where a key"),
  BAD ("[1}", "'}' where ',' or ']'"),
  BAD ("{\"a\":1]", "']' where ',' or '}'"),
  BAD ("]", "']' where a value"),
  BAD ("1 2", "'2' where the end"),
  BAD ("{} x", "'x' where the end"),
  BAD ("[]\0", "byte 0x00 where the end"),
  BAD ("// c\n1", "'/' where a value"),
  BAD ("\xef\xbb\xbf{}", "byte 0xef where a value"),
  BAD ("01", "leading zero"),
  BAD ("-01", "leading zero"),
  BAD ("+1", "'+' where a value"),
  BAD (".5", "'.' where a value"),
  BAD ("1.e5", "'e' where a digit"),
  BAD ("0x10", "'x' where the end"),
  BAD ("1_000", "'_' where the end"),
  BAD ("- 1", "where a digit"),
  BAD ("NaN", "'N' where a value"),
  BAD ("Infinity", "'I' where a value"),
  BAD ("-Infinity", "'I' where a digit"),
  CUT ("nul", "the text ends where a value"),
  BAD ("True", "'T' where a value"),
  BAD ("truex", "'x' where the end"),
  BAD ("\"\n\"", "control character 0x0a"),
  BAD ("\"\t\"", "control character 0x09"),
  BAD ("\"a\0b\"", "control character 0x00"),
  BAD ("\"\\x41\"", "'x' where an escape"),
  BAD ("\"\\'\"", "where an escape"),
  BAD ("\"\\\0\"", "byte 0x00 where an escape"),
  BAD ("\"\\u12g4\"", "'g' where a hexadecimal digit"),
  BAD ("\"\\ud800\"", "half of a surrogate pair (\\ud800)"),
  BAD ("\"\\udc00\"", "half of a surrogate pair (\\udc00)"),
  BAD ("\"\\ud800x\"", "half of a surrogate pair"),
  BAD ("\"\\ud800\\n\"", "half of a surrogate pair"),
  BAD ("\"\\ud800\\ud800\"", "half of a surrogate pair"),
  BAD ("\"\\ud800\\u0041\"", "half of a surrogate pair"),
  BAD ("\"\xff\"", "byte 0xff is not UTF-8"),
  BAD ("\"\x80\"", "byte 0x80 is not UTF-8"),
  BAD ("\"\xc3\"", "byte 0xc3 is not UTF-8"),
  BAD ("\"\xc0\x80\"", "byte 0xc0 is not UTF-8"),
  BAD ("\"\xe0\x80\x80\"", "byte 0xe0 is not UTF-8"),
  BAD ("\"\xed\xa0\x80\"", "byte 0xed is not UTF-8"),
  BAD ("\"\xf0\x80\x80\x80\"", "byte 0xf0 is not UTF-8"),
  BAD ("\"\xf4\x90\x80\x80\"", "byte 0xf4 is not UTF-8"),
  BAD ("\"\xf5\x80\x80\x80\"", "byte 0xf5 is not UTF-8"),
  BAD ("[\n  1,\n  \"\xc3\xa9\xe6\x97\xa5\", x]", "line 3, column 9: 'x'"),
  { "1e999", 5, RUNNEL_ERROR_LIMIT, "beyond the range" },
  { "[-1e999]", 8, RUNNEL_ERROR_LIMIT, "column 2: a number beyond" },
};
