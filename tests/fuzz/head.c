/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A decision head: what opens holds finite numbers of the sizes it says, and
 * can be written again.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <glib/gstdio.h>

#include "formats/decision-head-private.h"
#include "tiny-head.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static char *path;

static void
remove_file (void)
{
  g_unlink (path);
}

static void
make_path (void)
{
  path = g_build_filename (g_get_tmp_dir (), "runnel-fuzz-XXXXXX", NULL);
  g_close (g_mkstemp (path), NULL);
  atexit (remove_file);
}

static void
check (RunnelDecisionHead *head)
{
  g_autoptr (GArray) tensors = runnel_decision_head_make_tensors (head);

  for (guint i = 0; i < tensors->len; i++) {
    const RunnelTensor *tensor = &g_array_index (tensors, RunnelTensor, i);
    const float *values = (const float *) runnel_tensor_data (tensor);

    g_assert_true (runnel_head_owns_tensor (tensor->name));
    for (gsize k = 0; k < tensor->bytes / sizeof (float); k++)
      g_assert_true (isfinite (values[k]));
  }
  for (guint i = 0; i < RUNNEL_HEAD_N_TYPES; i++)
    g_assert_true (runnel_decision_head_get_temperature (head, i) > 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (RunnelDecisionHead) head = NULL;
  g_autoptr (GError) error = NULL;

  if (path == NULL)
    make_path ();
  g_assert_true (g_file_set_contents_full (path, (const char *) data, size,
      G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  head = runnel_decision_head_open (path, &error);
  g_assert_true ((head == NULL) == (error != NULL));
  if (head != NULL)
    check (head);
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static const TinyHead heads[] = {
    { RUNNEL_DECISION_FORM_ISOLATED },
    { RUNNEL_DECISION_FORM_DECISION2, .score_levels = 3 },
    { RUNNEL_DECISION_FORM_ISOLATED, .left_out = "null.bias" },
    { RUNNEL_DECISION_FORM_DECISION2, .not_finite = "key.weight" },
  };
  static char *contents[G_N_ELEMENTS (heads)];
  static gsize sizes[G_N_ELEMENTS (heads)];

  if (i >= G_N_ELEMENTS (heads))
    return NULL;
  if (contents[i] == NULL) {
    g_autofree char *file = tiny_head_write (&heads[i]);

    g_assert_true (g_file_get_contents (file, &contents[i], &sizes[i], NULL));
    g_unlink (file);
  }
  *size = sizes[i];
  return (const uint8_t *) contents[i];
}
