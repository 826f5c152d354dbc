/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The digests of a package. The file's own is that of its header with the
 * digits of the digest as zeros; the header holds the digest of every tensor,
 * and what lies between tensors has to be zero. So each byte is read once.
 */
#include "package.h"

#include <stdlib.h>
#include <string.h>

#include "../error-private.h"
#include "tensor-file.h"
#include "verify.h"

#define DIGEST RUNNEL_PACKAGE_DIGEST_BYTES
#define MAX_NAMED 3   /* tensors that a message names */

typedef struct {
  const RunnelGguf *gguf;
  RunnelTensorFile *file;
  RunnelProgressFunc progress;
  gpointer user_data;
  GCancellable *cancellable;
  gsize done, total;
  GString *bad;         /* names of tensors that differ */
  guint n_bad;
  GError **error;
} Verification;

#define fail(self, code, ...) \
  (runnel_set_error_about ((self)->error, code, \
      runnel_gguf_name ((self)->gguf), __VA_ARGS__), FALSE)

static gboolean
hash_range (Verification *self, gsize begin, gsize end, GChecksum *hash)
{
  if (!runnel_tensor_file_hash (self->file, begin, end - begin, hash,
          self->cancellable, self->error))
    return FALSE;
  self->done += end - begin;
  if (self->progress != NULL)
    self->progress ((double) self->done / self->total, self->user_data);
  return TRUE;
}

/* The header as it was when its digest was taken. */
static gboolean
verify_header (Verification *self)
{
  static const guint8 zeros[2 * DIGEST + 1] = "00000000000000000000000000000000"
      "00000000000000000000000000000000";
  g_autoptr (GChecksum) hash = g_checksum_new (G_CHECKSUM_SHA256);
  const guint8 *start = runnel_mapping_data (
      runnel_gguf_mapping (self->gguf));
  const char *digits;
  gsize length, at;

  if (!runnel_gguf_get_string (self->gguf, RUNNEL_PACKAGE_SHA256, &digits,
          &length, self->error))
    return FALSE;
  if (length != 2 * DIGEST)
    return fail (self, RUNNEL_ERROR_MALFORMED, "key '" RUNNEL_PACKAGE_SHA256
        "' has %" G_GSIZE_FORMAT " characters; a digest has %d", length,
        2 * DIGEST);
  at = (const guint8 *) digits - start;
  if (!hash_range (self, 0, at, hash))
    return FALSE;
  g_checksum_update (hash, zeros, 2 * DIGEST);
  if (!hash_range (self, at + 2 * DIGEST,
          runnel_gguf_data_offset (self->gguf), hash))
    return FALSE;
  if (memcmp (g_checksum_get_string (hash), digits, length) == 0)
    return TRUE;
  return fail (self, RUNNEL_ERROR_CORRUPT, "the header differs from its "
      "sha256 (key '" RUNNEL_PACKAGE_SHA256 "'); copy the file again");
}

static gboolean
verify_tensor (Verification *self, const RunnelTensor *tensor,
               const guint8 *expected)
{
  g_autoptr (GChecksum) hash = g_checksum_new (G_CHECKSUM_SHA256);
  guint8 digest[DIGEST];
  gsize size = sizeof digest;

  if (!hash_range (self, tensor->offset, tensor->offset + tensor->bytes,
          hash))
    return FALSE;
  g_checksum_get_digest (hash, digest, &size);
  if (memcmp (digest, expected, sizeof digest) == 0)
    return TRUE;
  if (self->n_bad < MAX_NAMED)
    g_string_append_printf (self->bad, "%s'%s'", self->n_bad > 0 ? ", " : "",
        tensor->name);
  self->n_bad++;
  return TRUE;
}

static int
compare_places (gconstpointer a, gconstpointer b)
{
  const RunnelTensor *s = *(const RunnelTensor *const *) a;
  const RunnelTensor *t = *(const RunnelTensor *const *) b;

  return (s->offset > t->offset) - (s->offset < t->offset);
}

/* Zeros, and fewer than the alignment of tensors: nothing can hide there. */
static gboolean
verify_gap (Verification *self, gsize begin, gsize end)
{
  guint8 bytes[RUNNEL_PACKAGE_ALIGNMENT];

  if (end - begin >= sizeof bytes)
    return fail (self, RUNNEL_ERROR_CORRUPT, "%" G_GSIZE_FORMAT " bytes from "
        "byte %" G_GSIZE_FORMAT " on belong to no tensor", end - begin, begin);
  if (!runnel_tensor_file_read (self->file, begin, bytes, end - begin,
          self->error))
    return FALSE;
  for (gsize i = 0; i < end - begin; i++)
    if (bytes[i] != 0)
      return fail (self, RUNNEL_ERROR_CORRUPT, "byte %" G_GSIZE_FORMAT
          ", between two tensors, is not 0", begin + i);
  return TRUE;
}

static gboolean
verify_gaps (Verification *self)
{
  gsize n = runnel_gguf_n_tensors (self->gguf);
  gsize at = runnel_gguf_data_offset (self->gguf);
  g_autofree const RunnelTensor **order = g_new (const RunnelTensor *, n);

  for (gsize i = 0; i < n; i++)
    order[i] = runnel_gguf_tensor (self->gguf, i);
  qsort (order, n, sizeof *order, compare_places);
  for (gsize i = 0; i < n; i++) {
    if (!verify_gap (self, at, order[i]->offset))
      return FALSE;
    at = order[i]->offset + order[i]->bytes;
  }
  return n == 0 || verify_gap (self, at, runnel_tensor_file_size (self->file));
}

static gboolean
verify_tensors (Verification *self)
{
  gsize n = runnel_gguf_n_tensors (self->gguf);
  const guint8 *digests;

  if (!runnel_package_get_digests (self->gguf, &digests, self->error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    if (!verify_tensor (self, runnel_gguf_tensor (self->gguf, i),
            digests + i * DIGEST))
      return FALSE;
  if (self->n_bad == 0)
    return TRUE;
  if (self->n_bad > MAX_NAMED)
    g_string_append_printf (self->bad, " and %u more",
        self->n_bad - MAX_NAMED);
  return fail (self, RUNNEL_ERROR_CORRUPT, "tensor%s %s differ%s from %s "
      "sha256; copy the file again", self->n_bad > 1 ? "s" : "",
      self->bad->str, self->n_bad > 1 ? "" : "s",
      self->n_bad > 1 ? "their" : "its");
}

gboolean
runnel_package_verify (const RunnelGguf *gguf, gboolean from_file,
                       RunnelProgressFunc progress, gpointer user_data,
                       GCancellable *cancellable, GError **error)
{
  RunnelMapping *mapping = runnel_gguf_mapping (gguf);
  g_autoptr (RunnelTensorFile) file = NULL;
  g_autoptr (GString) bad = g_string_new (NULL);
  Verification self = { .gguf = gguf, .progress = progress,
    .user_data = user_data, .cancellable = cancellable,
    .total = MAX (runnel_mapping_size (mapping), 1), .bad = bad,
    .error = error };

  if (!runnel_package_is (gguf))
    return fail (&self, RUNNEL_ERROR_UNSUPPORTED, "has no digests to verify; "
        "packages have (see 'runnel convert')");
  if (!runnel_package_check (gguf, error))
    return FALSE;
  file = from_file ? runnel_tensor_file_new (mapping, error)
      : runnel_tensor_file_new_in_memory (mapping);
  self.file = file;
  return file != NULL && verify_header (&self) && verify_tensors (&self) &&
      verify_gaps (&self);
}

/**
 * runnel_verify_file:
 * @path: (type filename): a package
 * @progress: (nullable) (scope call): told how far it is
 * @user_data: for @progress
 * @cancellable: (nullable): stops it
 * @error: return location for a #GError
 *
 * Reads a package to its end and compares it with the digests it holds: of the
 * header, and of each tensor.
 *
 * Returns: %TRUE when all agree; else %FALSE with %RUNNEL_ERROR_CORRUPT, which
 *   names the tensors that differ, %RUNNEL_ERROR_UNSUPPORTED for a file
 *   without digests, %RUNNEL_ERROR_CANCELLED, or what else was wrong
 *
 * Since: 0.1
 */
gboolean
runnel_verify_file (const char *path, RunnelProgressFunc progress,
                    gpointer user_data, GCancellable *cancellable,
                    GError **error)
{
  g_autoptr (RunnelGguf) gguf = NULL;

  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  gguf = runnel_gguf_open (path, RUNNEL_LOAD_MODE_MAP, error);
  return gguf != NULL && runnel_package_verify (gguf, TRUE, progress,
      user_data, cancellable, error);
}
