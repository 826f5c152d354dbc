/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-head.h"

#include <glib/gstdio.h>
#include <math.h>

#include "formats/gguf.h"
#include "tiny-model.h"

#define WIDTH TINY_HEAD_WIDTH

/* The generator of head-reference.py. */
static float
draw (guint32 *state, double scale)
{
  *state = *state * 1664525u + 1013904223u;
  return (float) (((*state >> 8) / 16777216.0 - 0.5) * scale);
}

float *
tiny_head_draw (guint32 *state, gsize n, double scale)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = draw (state, scale);
  return values;
}

static const struct {
  const char *name;
  guint rows, columns;
  double scale;
  gboolean is_null;
} tensors[] = {
  { "candidate_norm.weight", 1, WIDTH, 4, FALSE },
  { "candidate_norm.bias", 1, WIDTH, 1, FALSE },
  { "query_norm.weight", 1, WIDTH, 4, FALSE },
  { "query_norm.bias", 1, WIDTH, 1, FALSE },
  { "key.weight", TINY_HEAD_DIM, WIDTH, 2, FALSE },
  { "query.weight", TINY_HEAD_DIM, WIDTH, 2, FALSE },
  { "candidate_mlp.weight", TINY_HEAD_DIM, WIDTH, 1, FALSE },
  { "candidate_mlp.bias", 1, TINY_HEAD_DIM, 1, FALSE },
  { "query_mlp.weight", TINY_HEAD_DIM, WIDTH, 1, FALSE },
  { "scalar.weight", 1, TINY_HEAD_DIM, 1, FALSE },
  { "null.weight", 1, WIDTH, 1, TRUE },
  { "null.bias", 1, 1, 1, TRUE },
};

void
tiny_head_skip (guint32 *state)
{
  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
    g_free (tiny_head_draw (state,
            (gsize) tensors[i].rows * tensors[i].columns, 1));
}

static void
add_tensors (RunnelGgufWriter *writer, const TinyHead *head, guint32 *state)
{
  gboolean isolated = head->form == RUNNEL_DECISION_FORM_ISOLATED;

  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++) {
    gsize n = (gsize) tensors[i].rows * tensors[i].columns;
    guint64 dims[2] = { tensors[i].columns, tensors[i].rows };
    float *values = tiny_head_draw (state, n, tensors[i].scale);
    g_autoptr (GBytes) data = NULL;
    g_autofree char *name = g_strconcat (isolated ? "decision."
        : "decision2.", tensors[i].name, NULL);

    if (g_strcmp0 (head->not_finite, tensors[i].name) == 0)
      values[n - 1] = NAN;
    data = g_bytes_new_take (values, n * sizeof (float));
    if (g_strcmp0 (head->left_out, tensors[i].name) != 0
        && (isolated || !tensors[i].is_null))
      runnel_gguf_writer_add_tensor (writer, name, RUNNEL_TENSOR_F32, dims,
          tensors[i].rows == 1 && tensors[i].columns != TINY_HEAD_DIM ? 1 : 2,
          data);
  }
}

static void
add_keys (RunnelGgufWriter *writer, const TinyHead *head)
{
  const gint32 tokens[] = { TINY_FIRST_BYTE + 1, TINY_FIRST_BYTE + 2,
    TINY_FIRST_BYTE + 3, head->decide ? head->decide : TINY_FIRST_BYTE + 4 };

  runnel_gguf_writer_add_string (writer, "general.architecture", "llama", -1);
  if (g_strcmp0 (head->left_out, "type") != 0)
    runnel_gguf_writer_add_string (writer, "llama.decision.type",
        head->type ? head->type
        : head->form == RUNNEL_DECISION_FORM_ISOLATED ? "isolated"
        : "decision2", -1);
  runnel_gguf_writer_add_uint32 (writer, "llama.decision.head_dim",
      head->head_dim ? head->head_dim : TINY_HEAD_DIM);
  for (guint i = 0; i < head->score_levels; i++) {
    g_autofree char *key = g_strdup_printf ("llama.decision.score_bias.%u.%u",
        head->score_levels, i);

    runnel_gguf_writer_add_float32 (writer, key, i * 0.5f);
  }
  if (head->form != RUNNEL_DECISION_FORM_ISOLATED)
    return;
  runnel_gguf_writer_add_boolean (writer, "llama.decision.null_option", TRUE);
  if (g_strcmp0 (head->left_out, "tokens") != 0)
    runnel_gguf_writer_add_int32s (writer, "llama.decision.tokens", tokens, 4);
  runnel_gguf_writer_add_float32 (writer, "llama.decision.temperature.choice",
      2);
}

char *
tiny_head_write (const TinyHead *head)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (g_get_tmp_dir (), "runnel-head-XXXXXX", NULL);
  guint32 state = 1;

  g_close (g_mkstemp (path), NULL);
  add_keys (writer, head);
  add_tensors (writer, head, &state);
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return path;
}
