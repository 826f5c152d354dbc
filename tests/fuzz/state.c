/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A saved state: as it comes, and with its checksum made right so that what
 * lies behind is reached. What is accepted must be usable and leave nothing
 * behind.
 */
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>

#include "model/sequence.h"
#include "tiny-model.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

#define DIGEST_BYTES 32

static RunnelEngine *
get_engine (void)
{
  static RunnelEngine *engine;
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autofree char *path = NULL;

  if (engine != NULL)
    return engine;
  tiny.n_layers = 1;
  path = tiny_model_write (&tiny);
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, NULL);
  g_unlink (path);
  backend = runnel_backend_get ("cpu", 1, NULL, NULL);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, NULL);
  g_assert_nonnull (engine);
  return engine;
}

static void
use (RunnelEngine *engine, const uint8_t *data, size_t size)
{
  g_autoptr (GBytes) image = g_bytes_new_static (data, size);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_deserialize (engine, image, "image", &error);
  RunnelEngineStats stats;

  g_assert_true ((sequence == NULL) == (error != NULL));
  if (sequence != NULL && runnel_sequence_get_length (sequence) > 0) {
    gsize n = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
    g_autofree float *logits = g_new (float, n);

    /* May be refused: the values are whatever they are. */
    runnel_sequence_compute_logits (sequence, logits, n, NULL);
  }
  g_clear_object (&sequence);
  runnel_engine_get_stats (engine, &stats);
  g_assert_cmpuint (stats.kv_bytes, ==, 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  RunnelEngine *engine = get_engine ();
  g_autoptr (GChecksum) checksum = NULL;
  g_autofree uint8_t *sealed = NULL;
  gsize n = DIGEST_BYTES;

  use (engine, data, size);
  if (size < DIGEST_BYTES)
    return 0;
  sealed = g_memdup2 (data, size);
  checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (checksum, sealed, size - DIGEST_BYTES);
  g_checksum_get_digest (checksum, sealed + size - DIGEST_BYTES, &n);
  use (engine, sealed, size);
  return 0;
}

/* States of no, one and some tokens, and a shifted one. */
const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static GBytes *images[4];
  static const gint32 tokens[] = { 5, 80, 81, 82, 83, 84, 85, 86, 87 };
  const gsize lengths[] = { 0, 1, 9, 9 };
  g_autoptr (RunnelSequence) sequence = NULL;

  if (i >= G_N_ELEMENTS (images))
    return NULL;
  if (images[i] == NULL) {
    sequence = runnel_sequence_new (get_engine (), 16, NULL);
    runnel_sequence_prefill (sequence, tokens, lengths[i], 0, FALSE, NULL,
        NULL, NULL, NULL, NULL);
    if (i == 3)
      runnel_sequence_shift (sequence, 1, 2, NULL);
    images[i] = runnel_sequence_serialize (sequence, NULL);
  }
  return g_bytes_get_data (images[i], size);
}
