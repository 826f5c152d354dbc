/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tokenizer-json.h"

#include <string.h>

#include "../error.h"

typedef const RunnelJsonNode Node;

#define member runnel_tokenizer_json_member

#define SUPPORTED "supported are those of Qwen2 and Qwen3, SmolLM2, GPT-2 " \
  "and Llama 3"
#define EXCERPT 200

char *
runnel_tokenizer_json_excerpt (const char *text)
{
  const char *end = text;

  for (guint i = 0; i < EXCERPT && *end != '\0'; i++)
    end = g_utf8_next_char (end);
  return g_strdup_printf ("%.*s%s", (int) (end - text), text,
                          *end != '\0' ? "..." : "");
}

static gboolean
unsupported (GError **error, const RunnelJson *json, const char *stage,
             const char *what)
{
  g_autofree char *excerpt = runnel_tokenizer_json_excerpt (what);

  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
               "%s: %s %s is not supported; " SUPPORTED,
               runnel_json_name (json), stage, excerpt);
  return FALSE;
}

/* The "type" of a stage; "null" when it is absent. */
static const char *
type_of (Node *stage)
{
  Node *type = member (stage, "type");

  if (stage == NULL || runnel_json_node_kind (stage) == RUNNEL_JSON_NULL)
    return "null";
  if (type == NULL || runnel_json_node_kind (type) != RUNNEL_JSON_STRING)
    return "without a type";
  return runnel_json_node_string (type, NULL);
}

static gboolean
is_type (Node *stage, const char *type)
{
  return strcmp (type_of (stage), type) == 0;
}

static gboolean
get_boolean (Node *stage, const char *key, gboolean fallback)
{
  Node *node = member (stage, key);

  if (node == NULL || runnel_json_node_kind (node) != RUNNEL_JSON_BOOLEAN)
    return fallback;
  return runnel_json_node_boolean (node);
}

/* The members of a Sequence, or the stage by itself. */
static gsize
count_stages (Node *stage, const char *list)
{
  if (is_type (stage, "null"))
    return 0;
  if (!is_type (stage, "Sequence"))
    return 1;
  stage = member (stage, list);
  if (stage == NULL || runnel_json_node_kind (stage) != RUNNEL_JSON_ARRAY)
    return 0;
  return runnel_json_node_size (stage);
}

static Node *
nth_stage (Node *stage, const char *list, gsize i)
{
  if (is_type (stage, "Sequence"))
    return runnel_json_node_item (member (stage, list), i);
  return stage;
}

static gboolean
read_normalizer (const RunnelJson *json, gboolean *ret_nfc, GError **error)
{
  Node *stage = member (runnel_json_root (json), "normalizer");
  gsize n = count_stages (stage, "normalizers");

  *ret_nfc = FALSE;
  for (gsize i = 0; i < n; i++) {
    Node *each = nth_stage (stage, "normalizers", i);

    if (!is_type (each, "NFC"))
      return unsupported (error, json, "normalizer", type_of (each));
    *ret_nfc = TRUE;
  }
  return TRUE;
}

static gboolean
is_byte_level (Node *stage, gboolean use_regex)
{
  return is_type (stage, "ByteLevel")
      && !get_boolean (stage, "add_prefix_space", TRUE)
      && get_boolean (stage, "use_regex", TRUE) == use_regex;
}

/* Split with an isolated regular expression; NULL for anything else. */
static const char *
split_pattern (Node *stage)
{
  Node *behavior = member (stage, "behavior");
  Node *regex = member (member (stage, "pattern"), "Regex");

  if (!is_type (stage, "Split") || get_boolean (stage, "invert", FALSE)
      || behavior == NULL
      || runnel_json_node_kind (behavior) != RUNNEL_JSON_STRING
      || strcmp (runnel_json_node_string (behavior, NULL), "Isolated") != 0
      || regex == NULL || runnel_json_node_kind (regex) != RUNNEL_JSON_STRING)
    return NULL;
  return runnel_json_node_string (regex, NULL);
}

static gboolean
recognize (Node *stage, RunnelPretokenizer *ret)
{
  gsize n = count_stages (stage, "pretokenizers");
  Node *first = n > 0 ? nth_stage (stage, "pretokenizers", 0) : NULL;
  Node *second = n > 1 ? nth_stage (stage, "pretokenizers", 1) : NULL;
  const char *pattern = first != NULL ? split_pattern (first) : NULL;

  if (n == 1 && is_byte_level (first, TRUE)) {
    *ret = RUNNEL_PRETOKENIZER_GPT2;
    return TRUE;
  }
  if (n != 2)
    return FALSE;
  if (is_type (first, "Digits") && is_byte_level (second, TRUE)
      && get_boolean (first, "individual_digits", FALSE)) {
    *ret = RUNNEL_PRETOKENIZER_SMOLLM;
    return TRUE;
  }
  if (pattern == NULL || !is_byte_level (second, FALSE))
    return FALSE;
  return runnel_pretokenizer_from_pattern (pattern, strlen (pattern), ret);
}

/* What to call a pre-tokenizer that is none of ours: the pattern if it has
 * one, else the first stage that no other file has. */
static const char *
describe (Node *stage)
{
  gsize n = count_stages (stage, "pretokenizers");

  for (gsize i = 0; i < n; i++) {
    Node *each = nth_stage (stage, "pretokenizers", i);
    const char *pattern = split_pattern (each);

    if (pattern != NULL)
      return pattern;
    if (!is_type (each, "ByteLevel") && !is_type (each, "Digits"))
      return type_of (each);
  }
  return n == 1 ? type_of (nth_stage (stage, "pretokenizers", 0))
                : type_of (stage);
}

gboolean
runnel_tokenizer_json_pretokenizer (const RunnelJson *json,
                                    RunnelPretokenizer *ret, GError **error)
{
  Node *root = runnel_json_root (json);
  Node *stage, *decoder;
  gboolean nfc;

  if (runnel_json_node_kind (root) != RUNNEL_JSON_OBJECT) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: is no object", runnel_json_name (json));
    return FALSE;
  }
  stage = member (root, "pre_tokenizer");
  decoder = member (root, "decoder");
  if (!read_normalizer (json, &nfc, error))
    return FALSE;
  if (!recognize (stage, ret))
    return unsupported (error, json, "pre_tokenizer", describe (stage));
  if (nfc != runnel_pretokenizer_wants_nfc (*ret))
    return unsupported (error, json, "normalizer",
                        nfc ? "NFC with this pre_tokenizer"
                            : "null with this pre_tokenizer");
  if (!is_type (decoder, "ByteLevel") && !is_type (decoder, "null"))
    return unsupported (error, json, "decoder", type_of (decoder));
  return TRUE;
}

/* TemplateProcessing whose "single" is the text, or one token and the text. */
static gboolean
read_template_processing (const RunnelJson *json, Node *stage,
                          RunnelTokenizerParts *parts, GError **error)
{
  Node *single = member (stage, "single");
  gsize n = single != NULL
          && runnel_json_node_kind (single) == RUNNEL_JSON_ARRAY
      ? runnel_json_node_size (single) : 0;
  Node *special, *id;
  const char *text;
  gsize length;

  if (n < 1 || n > 2
      || member (runnel_json_node_item (single, n - 1), "Sequence") == NULL)
    return unsupported (error, json, "post_processor",
                        "TemplateProcessing of this form");
  if (n == 1)
    return TRUE;
  special = member (runnel_json_node_item (single, 0), "SpecialToken");
  id = special != NULL ? member (special, "id") : NULL;
  if (id == NULL || runnel_json_node_kind (id) != RUNNEL_JSON_STRING)
    return unsupported (error, json, "post_processor",
                        "TemplateProcessing of this form");
  text = runnel_json_node_string (id, &length);
  parts->bos = runnel_tokenizer_parts_find (parts, text, length);
  if (parts->bos < 0) {
    g_autofree char *excerpt = runnel_tokenizer_json_excerpt (text);

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: post_processor names \"%s\", which is no token",
                 runnel_json_name (json), excerpt);
    return FALSE;
  }
  parts->add_bos = TRUE;
  return TRUE;
}

gboolean
runnel_tokenizer_json_postprocessor (const RunnelJson *json,
                                     RunnelTokenizerParts *parts,
                                     GError **error)
{
  Node *stage = member (runnel_json_root (json), "post_processor");
  gsize n = count_stages (stage, "processors");

  for (gsize i = 0; i < n; i++) {
    Node *each = nth_stage (stage, "processors", i);

    if (is_type (each, "TemplateProcessing")) {
      if (!read_template_processing (json, each, parts, error))
        return FALSE;
    } else if (!is_type (each, "ByteLevel")) {
      return unsupported (error, json, "post_processor", type_of (each));
    }
  }
  return TRUE;
}
