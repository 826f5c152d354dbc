/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A JSON text: whatever is accepted is written again, and what was written
 * reads back as the same.
 */
#include <stdint.h>
#include <string.h>

#include "../core/formats/hostile-json.h"
#include "formats/json.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static void
append_node (GString *out, const RunnelJsonNode *node)
{
  gsize n = runnel_json_node_size (node), length;
  const char *text;

  switch (runnel_json_node_kind (node)) {
    case RUNNEL_JSON_NULL:
      g_string_append (out, "null");
      break;
    case RUNNEL_JSON_BOOLEAN:
      g_string_append (out, runnel_json_node_boolean (node) ? "true" :
          "false");
      break;
    case RUNNEL_JSON_INTEGER:
      g_string_append (out, runnel_json_node_digits (node));
      break;
    case RUNNEL_JSON_FLOAT:
      runnel_json_append_double (out, runnel_json_node_double (node));
      break;
    case RUNNEL_JSON_STRING:
      text = runnel_json_node_string (node, &length);
      runnel_json_append_string (out, text, length);
      break;
    case RUNNEL_JSON_ARRAY:
      g_string_append_c (out, '[');
      for (gsize i = 0; i < n; i++) {
        g_string_append (out, i > 0 ? "," : "");
        append_node (out, runnel_json_node_item (node, i));
      }
      g_string_append_c (out, ']');
      break;
    case RUNNEL_JSON_OBJECT:
      g_string_append_c (out, '{');
      for (gsize i = 0; i < n; i++) {
        g_string_append (out, i > 0 ? "," : "");
        text = runnel_json_node_key (node, i, &length);
        runnel_json_append_string (out, text, length);
        g_string_append_c (out, ':');
        append_node (out, runnel_json_node_value (node, i));
        if (strlen (text) == length)
          g_assert_true (runnel_json_node_member (node, text) ==
              runnel_json_node_value (node, i));
      }
      g_string_append_c (out, '}');
      break;
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) first = runnel_json_parse ((const char *) data, size,
      "fuzz", &error);
  g_autoptr (RunnelJson) second = NULL;
  g_autoptr (GString) written = g_string_new (NULL);
  g_autoptr (GString) again = g_string_new (NULL);

  g_assert_true ((first == NULL) == (error != NULL));
  if (first == NULL)
    return 0;
  append_node (written, runnel_json_root (first));
  second = runnel_json_parse (written->str, written->len, "again", &error);
  g_assert_no_error (error);
  append_node (again, runnel_json_root (second));
  g_assert_true (g_string_equal (written, again));
  return 0;
}

/* Every other one is good: what is deep is reached from there. */
const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static const char *const good[] = {
    "{\"a\":[1,-2.5e-3,true,false,null,\"\\u00e9\\ud83d\\ude00\\n\"],"
        "\"b\":{\"a\":{}},\"b\":[]}",
    "[0,-0,0.0,1e5,123456789012345678901234567890,1E-7]",
    "{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,"
        "\"9\":9,\"10\":10,\"1\":11,\"10\":12}",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    " \"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\" ",
  };

  const HostileJson *hostile = &hostile_json[i / 2];

  if (i / 2 >= G_N_ELEMENTS (hostile_json))
    return NULL;
  if (i % 2 == 0) {
    const char *text = good[i / 2 % G_N_ELEMENTS (good)];

    *size = strlen (text);
    return (const uint8_t *) text;
  }
  *size = hostile->length;
  return (const uint8_t *) hostile->text;
}
