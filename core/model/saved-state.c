/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Images of sequences. All numbers are little endian:
 *
 *   16 bytes  "RUNNEL-STATE", padded with zeros
 *   u32 × 11  version (2), KV type, context length, tokens, joined length,
 *             joined position, shifted, has hidden row, bytes of a row's keys
 *             and values, floats of a hidden row, bytes of draft states
 *   64 bytes  the model's content id
 *   i32 × tokens
 *   rows      tokens × bytes of a row
 *   hidden    floats, if there
 *   drafts    draft states: see drafts.h
 *   32 bytes  SHA-256 of all before
 *
 * An image is checked as a whole before anything is made of it.
 */
#include <string.h>
#include <sys/stat.h>

#include "../error.h"
#include "engine-private.h"

#define MAGIC "RUNNEL-STATE\0\0\0"
#define VERSION 2
#define N_NUMBERS 11
#define ID_BYTES 64
#define DIGEST_BYTES 32
#define MAX_BYTES ((gsize) G_MAXUINT32)
#define HEADER_BYTES (sizeof MAGIC + N_NUMBERS * 4 + ID_BYTES)

typedef struct {
  guint32 version;
  guint32 kv_type;
  guint32 context_length;
  guint32 n_tokens;
  guint32 joined_length;
  guint32 joined_position;
  guint32 shifted;
  guint32 has_hidden;
  guint32 row_bytes;
  guint32 n_embd;
  guint32 draft_bytes;
} Header;

static gsize
get_row_bytes (RunnelEngine *engine)
{
  RunnelPagePool *pool = runnel_engine_get_pool (engine);

  return runnel_page_pool_page_bytes (pool) / runnel_page_pool_rows (pool);
}

static void
append_digest (GByteArray *image)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  guint8 digest[DIGEST_BYTES];
  gsize size = sizeof digest;

  g_checksum_update (checksum, image->data, image->len);
  g_checksum_get_digest (checksum, digest, &size);
  g_byte_array_append (image, digest, size);
}

static void
append_header (GByteArray *image, RunnelEngine *engine,
               const RunnelHistory *history, guint context_length,
               guint draft_bytes)
{
  const guint32 numbers[N_NUMBERS] = {
    VERSION, runnel_engine_get_kv_type (engine), context_length,
    runnel_history_length (history), history->joined_length,
    history->joined_position, history->shifted, history->has_hidden,
    get_row_bytes (engine), history->n_embd, draft_bytes,
  };
  const char *content_id
      = runnel_model_get_content_id (runnel_engine_get_model (engine));
  char id[ID_BYTES] = { 0 };

  g_byte_array_append (image, (const guint8 *) MAGIC, sizeof MAGIC);
  for (guint i = 0; i < N_NUMBERS; i++) {
    guint32 number = GUINT32_TO_LE (numbers[i]);

    g_byte_array_append (image, (const guint8 *) &number, sizeof number);
  }
  /* 64 hexadecimal digits: no room for a NUL, and none is wanted. */
  memcpy (id, content_id, MIN (ID_BYTES, strlen (content_id)));
  g_byte_array_append (image, (const guint8 *) id, sizeof id);
}

static void
append_rows (GByteArray *image, RunnelEngine *engine,
             const RunnelHistory *history)
{
  RunnelBackend *backend = runnel_engine_get_backend (engine);
  const RunnelOps *ops = runnel_engine_get_weights (engine)->ops;
  gsize row_bytes = get_row_bytes (engine);

  for (guint row = 0; row < runnel_history_length (history); row++) {
    guint32 page_row;
    RunnelPage *page = runnel_history_find (history, row, &page_row);
    gsize at = image->len;

    g_byte_array_set_size (image, at + row_bytes);
    ops->kv_export (backend, runnel_engine_get_shape (engine),
        runnel_page_data (page), page_row, image->data + at);
  }
}

/**
 * runnel_sequence_serialize:
 * @self: a sequence
 * @error: return location for a #GError
 *
 * Its image: tokens, keys, values, hidden row and draft states, with a
 * version, the model's content id and a checksum.
 *
 * Returns: (transfer full): the image, or %NULL with %RUNNEL_ERROR_LIMIT when
 *   it would be over 4 GiB, or with what keeps a draft state from catching up
 *
 * Since: 0.1
 */
GBytes *
runnel_sequence_serialize (RunnelSequence *self, GError **error)
{
  g_autoptr (GByteArray) image = NULL, drafts = g_byte_array_new ();
  const RunnelHistory *history;
  RunnelEngine *engine;
  guint64 bytes;

  g_return_val_if_fail (runnel_sequence_is_made (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  engine = runnel_sequence_get_engine (self);
  history = runnel_sequence_get_history (self);
  if (!runnel_drafts_catch_up (runnel_sequence_get_drafts (self),
          runnel_history_tokens (history), runnel_history_length (history),
          error))
    return NULL;
  runnel_drafts_append_image (runnel_sequence_get_drafts (self), drafts);
  bytes = HEADER_BYTES + DIGEST_BYTES + 4 * (guint64) history->n_embd
      + drafts->len + runnel_history_length (history)
      * (guint64) (get_row_bytes (engine) + sizeof (gint32));
  if (bytes > MAX_BYTES) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "an image of %u tokens takes %" G_GUINT64_FORMAT " bytes, more than "
        "4 GiB", runnel_history_length (history), bytes);
    return NULL;
  }
  image = g_byte_array_sized_new (bytes);
  append_header (image, engine, history,
      runnel_sequence_get_context_length (self), drafts->len);
  for (guint i = 0; i < runnel_history_length (history); i++) {
    gint32 token = GINT32_TO_LE (runnel_history_tokens (history)[i]);

    g_byte_array_append (image, (const guint8 *) &token, sizeof token);
  }
  append_rows (image, engine, history);
  if (history->has_hidden)
    g_byte_array_append (image, (const guint8 *) history->hidden,
        history->n_embd * sizeof (float));
  g_byte_array_append (image, drafts->data, drafts->len);
  append_digest (image);
  return g_byte_array_free_to_bytes (g_steal_pointer (&image));
}

/* ---- Reading ------------------------------------------------------------- */

static gboolean
check_digest (const guint8 *data, gsize size, const char *name,
              GError **error)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  guint8 digest[DIGEST_BYTES];
  gsize n = sizeof digest;

  if (size < HEADER_BYTES + DIGEST_BYTES
      || memcmp (data, MAGIC, sizeof MAGIC) != 0) {
    g_set_error (error, RUNNEL_ERROR,
        size < sizeof MAGIC || memcmp (data, MAGIC, sizeof MAGIC) == 0
        ? RUNNEL_ERROR_TRUNCATED : RUNNEL_ERROR_MALFORMED,
        "%s: this is no saved state (%" G_GSIZE_FORMAT " bytes)", name, size);
    return FALSE;
  }
  g_checksum_update (checksum, data, size - DIGEST_BYTES);
  g_checksum_get_digest (checksum, digest, &n);
  if (memcmp (digest, data + size - DIGEST_BYTES, DIGEST_BYTES) == 0)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT,
      "%s: the checksum of the saved state does not match: it is truncated or "
      "altered", name);
  return FALSE;
}

static gboolean
check_belongs (const Header *header, const guint8 *id, RunnelEngine *engine,
               const char *name, GError **error)
{
  RunnelModel *model = runnel_engine_get_model (engine);

  if (header->version != VERSION) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: the saved state has version %u; this is version %u", name,
        header->version, VERSION);
    return FALSE;
  }
  if (strncmp ((const char *) id, runnel_model_get_content_id (model),
          ID_BYTES) != 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: the saved state is of another model than %s", name,
        runnel_model_get_path (model));
    return FALSE;
  }
  if (header->kv_type != runnel_engine_get_kv_type (engine)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: the saved state has kv-type %u, the engine %u", name,
        header->kv_type, runnel_engine_get_kv_type (engine));
    return FALSE;
  }
  return TRUE;
}

/* The counts against each other, the model and the size of the image. */
static gboolean
check_counts (const Header *header, RunnelEngine *engine, gsize size,
              const char *name, GError **error)
{
  guint trained
      = runnel_model_get_context_length (runnel_engine_get_model (engine));
  gsize need = HEADER_BYTES + DIGEST_BYTES;
  gsize per_token = get_row_bytes (engine) + sizeof (gint32);
  gsize rows;

  if (header->row_bytes == get_row_bytes (engine)
      && header->n_embd == runnel_engine_get_shape (engine)->n_embd
      && header->context_length > 0 && header->context_length <= trained
      && header->n_tokens <= header->context_length
      && header->joined_length <= header->n_tokens
      && header->joined_position <= header->joined_length
      && header->shifted <= 1
      && header->has_hidden <= (header->n_tokens > header->joined_length)
      && g_size_checked_mul (&rows, header->n_tokens, per_token)
      && g_size_checked_add (&need, need, rows)
      && g_size_checked_add (&need, need, header->has_hidden
          * (gsize) header->n_embd * sizeof (float))
      && g_size_checked_add (&need, need, header->draft_bytes)
      && need == size)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: the saved state's counts (%u tokens of %u, %u joined) do not fit "
      "its size of %" G_GSIZE_FORMAT " bytes or the model", name,
      header->n_tokens, header->context_length, header->joined_length, size);
  return FALSE;
}

static gboolean
read_tokens (const guint8 *data, const Header *header, guint n_vocab,
             gint32 *tokens, const char *name, GError **error)
{
  for (guint i = 0; i < header->n_tokens; i++) {
    guint32 token;

    memcpy (&token, data + i * sizeof token, sizeof token);
    tokens[i] = (gint32) GUINT32_FROM_LE (token);
    if (tokens[i] >= 0 && (guint) tokens[i] < n_vocab)
      continue;
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: token %d at position %u of the saved state is not in the "
        "vocabulary", name, tokens[i], i);
    return FALSE;
  }
  return TRUE;
}

static void
read_rows (const guint8 *data, RunnelEngine *engine,
           const RunnelHistory *history, guint n_rows)
{
  RunnelBackend *backend = runnel_engine_get_backend (engine);
  const RunnelOps *ops = runnel_engine_get_weights (engine)->ops;

  for (guint row = 0; row < n_rows; row++) {
    guint32 page_row;
    RunnelPage *page = runnel_history_find (history, row, &page_row);

    ops->kv_import (backend, runnel_engine_get_shape (engine),
        runnel_page_data (page), page_row,
        data + row * get_row_bytes (engine));
  }
}

static Header
read_header (const guint8 *data)
{
  guint32 numbers[N_NUMBERS];
  Header header;

  memcpy (numbers, data + sizeof MAGIC, sizeof numbers);
  for (guint i = 0; i < N_NUMBERS; i++)
    numbers[i] = GUINT32_FROM_LE (numbers[i]);
  memcpy (&header, numbers, sizeof header);
  return header;
}

/**
 * runnel_sequence_deserialize:
 * @engine: who is to forward it
 * @image: what runnel_sequence_serialize() gave
 * @name: what errors call it
 * @error: return location for a #GError
 *
 * Makes a sequence of an image, bit for bit. The image is checked as a whole
 * first; nothing else changes when it is refused.
 *
 * Returns: (transfer full): the sequence, or %NULL with
 *   %RUNNEL_ERROR_TRUNCATED, %RUNNEL_ERROR_CORRUPT, %RUNNEL_ERROR_MALFORMED,
 *   %RUNNEL_ERROR_UNSUPPORTED (version), %RUNNEL_ERROR_MISMATCH (another model
 *   or KV type) or %RUNNEL_ERROR_NOT_ENOUGH_MEMORY
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_sequence_deserialize (RunnelEngine *engine, GBytes *image,
                             const char *name, GError **error)
{
  g_autoptr (RunnelSequence) self = NULL;
  g_autofree gint32 *tokens = NULL;
  RunnelHistory *history;
  const guint8 *data, *rows;
  gsize size;
  Header header;

  g_return_val_if_fail (runnel_engine_is_made (engine), NULL);
  g_return_val_if_fail (image != NULL && name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  data = g_bytes_get_data (image, &size);
  if (!check_digest (data, size, name, error))
    return NULL;
  header = read_header (data);
  if (!check_belongs (&header, data + HEADER_BYTES - ID_BYTES, engine, name,
          error)
      || !check_counts (&header, engine, size, name, error))
    return NULL;
  tokens = g_new (gint32, MAX (header.n_tokens, 1));
  if (!read_tokens (data + HEADER_BYTES, &header,
          runnel_engine_get_shape (engine)->n_vocab, tokens, name, error))
    return NULL;
  self = runnel_sequence_new_empty (engine, header.context_length);
  history = runnel_sequence_get_history (self);
  if (!runnel_engine_reserve (engine, history, header.n_tokens, error))
    return NULL;
  rows = data + HEADER_BYTES + header.n_tokens * sizeof (gint32);
  read_rows (rows, engine, history, header.n_tokens);
  runnel_history_commit (history, tokens);
  history->joined_length = header.joined_length;
  history->joined_position = header.joined_position;
  history->shifted = header.shifted;
  history->has_hidden = header.has_hidden;
  if (header.has_hidden)
    memcpy (history->hidden,
        rows + (gsize) header.n_tokens * header.row_bytes,
        header.n_embd * sizeof (float));
  if (!runnel_drafts_read_image (runnel_sequence_get_drafts (self),
          data + size - DIGEST_BYTES - header.draft_bytes, header.draft_bytes,
          header.n_tokens)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: the saved state's %u bytes of draft states are no list of such",
        name, header.draft_bytes);
    return NULL;
  }
  return g_steal_pointer (&self);
}

/**
 * runnel_sequence_save:
 * @self: a sequence
 * @path: (type filename): where to
 * @error: return location for a #GError
 *
 * Writes its image into a file, which is replaced by rename: there is never
 * half a file.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_IO or %RUNNEL_ERROR_LIMIT
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_save (RunnelSequence *self, const char *path, GError **error)
{
  g_autoptr (GBytes) image = NULL;
  g_autoptr (GError) cause = NULL;
  struct stat status;
  gsize size;
  const char *data;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (stat (path, &status) == 0 && !S_ISREG (status.st_mode)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: is not a regular file, which a state would replace", path);
    return FALSE;
  }
  image = runnel_sequence_serialize (self, error);
  if (image == NULL)
    return FALSE;
  data = g_bytes_get_data (image, &size);
  if (g_file_set_contents_full (path, data, size,
          G_FILE_SET_CONTENTS_CONSISTENT, 0600, &cause))
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
      "%s: the state cannot be written: %s", path, cause->message);
  return FALSE;
}

/**
 * runnel_sequence_load:
 * @engine: who is to forward it
 * @path: (type filename): what runnel_sequence_save() wrote
 * @error: return location for a #GError
 *
 * Reads a sequence from a file.
 *
 * Returns: (transfer full): the sequence, or %NULL with %RUNNEL_ERROR_IO,
 *   %RUNNEL_ERROR_LIMIT for a file over 4 GiB, or an error of
 *   runnel_sequence_deserialize()
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_sequence_load (RunnelEngine *engine, const char *path, GError **error)
{
  g_autoptr (RunnelMapping) mapping = NULL;
  g_autoptr (GBytes) image = NULL;

  g_return_val_if_fail (runnel_engine_is_made (engine), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  mapping = runnel_mapping_read (path, MAX_BYTES, error);
  if (mapping == NULL)
    return NULL;
  image = g_bytes_new_static (runnel_mapping_data (mapping),
      runnel_mapping_size (mapping));
  return runnel_sequence_deserialize (engine, image, path, error);
}
