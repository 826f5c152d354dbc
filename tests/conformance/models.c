/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Logits of tiny random models of every architecture and tensor type against
 * Hugging Face float32 on the same (dequantised) weights: DIR/tiny/MODEL with
 * hf/, gguf/ and ref/. Tolerances: float files with float keys and values
 * 1e-3; int8 activations rms 0.12 and max 0.9 (K types 0.16 and 1.0).
 */
#include <math.h>
#include <stdio.h>

#include "logits.h"

static guint passed, failed, not_run;

static const char *const models[] = {
  "llama-tiny", "llama3rope-tiny", "qwen2-tiny", "qwen3-pocketish",
  "qwen3-tiny",
};

static void
report (const char *name, const LogitsDeviation *deviation, double max,
        double rms)
{
  double got = sqrt (deviation->squares / deviation->n);
  gboolean ok = deviation->n > 0 && deviation->max <= max && got <= rms;

  printf ("  %-34s max %.3g (bound %.3g), rms %.3g (bound %.3g): %s\n", name,
      deviation->max, max, got, rms, ok ? "ok" : "FAILED");
  *(ok ? &passed : &failed) += 1;
}

static void
check (const char *name, const char *path, Npz *ids, const char *reference,
       RunnelKvType kv_type, double max, double rms)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Npz) npz = npz_open (reference, &error);
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  LogitsDeviation deviation = { 0 };

  if (npz == NULL) {
    printf ("  %-34s not run: %s\n", name, error->message);
    not_run++;
    return;
  }
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  if (model != NULL)
    backend = runnel_backend_get ("cpu", 2, NULL, &error);
  if (backend != NULL)
    engine = runnel_engine_get (model, backend, kv_type, NULL, NULL, NULL,
        &error);
  if (engine == NULL || !logits_compare (engine, ids, npz,
          runnel_model_get_n_vocab (model), &deviation, &error)) {
    printf ("  %-34s FAILED: %s\n", name, error->message);
    failed++;
    return;
  }
  report (name, &deviation, max, rms);
}

static gboolean
is_float_type (const char *type)
{
  return g_str_equal (type, "F32") || g_str_equal (type, "F16")
      || g_str_equal (type, "BF16");
}

static void
check_gguf (const char *model_dir, const char *model, const char *file,
            Npz *ids)
{
  g_autofree char *path = g_build_filename (model_dir, "gguf", file, NULL);
  g_autofree char *type = g_strndup (file + strlen (model) + 1,
      strlen (file) - strlen (model) - 1 - strlen (".gguf"));
  g_autofree char *npz_name = g_strconcat (type, ".npz", NULL);
  g_autofree char *npz = g_build_filename (model_dir, "ref", npz_name, NULL);
  g_autofree char *name = g_strdup_printf ("%s %s", model, type);
  gboolean k_type = strchr (type, 'K') != NULL;

  if (is_float_type (type))
    check (name, path, ids, npz, RUNNEL_KV_TYPE_F32, 1e-3, 1e-3);
  else
    check (name, path, ids, npz, RUNNEL_KV_TYPE_F16, k_type ? 1.0 : 0.9,
        k_type ? 0.16 : 0.12);
}

static void
check_model (const char *dir, const char *model)
{
  g_autofree char *model_dir = g_build_filename (dir, "tiny", model, NULL);
  g_autofree char *gguf_dir = g_build_filename (model_dir, "gguf", NULL);
  g_autofree char *hf = g_build_filename (model_dir, "hf", NULL);
  g_autofree char *hf_npz = g_build_filename (model_dir, "ref", "hf_f32.npz",
      NULL);
  g_autofree char *hf_name = g_strdup_printf ("%s safetensors", model);
  g_autoptr (GError) error = NULL;
  g_autoptr (Npz) ids = npz_open (hf_npz, &error);
  g_autoptr (GDir) files = g_dir_open (gguf_dir, 0, NULL);
  const char *file;

  if (ids == NULL || files == NULL) {
    printf ("  %-34s not run: %s\n", model,
        error != NULL ? error->message : gguf_dir);
    not_run++;
    return;
  }
  check (hf_name, hf, ids, hf_npz, RUNNEL_KV_TYPE_F32, 1e-3, 1e-3);
  while ((file = g_dir_read_name (files)) != NULL)
    if (g_str_has_suffix (file, ".gguf") && g_str_has_prefix (file, model))
      check_gguf (model_dir, model, file, ids);
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    check_model (argv[1], models[i]);
  printf ("conformance models: %u passed, %u failed, %u not run\n", passed,
      failed, not_run);
  return failed > 0;
}
