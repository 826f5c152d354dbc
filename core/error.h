/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "api.h"

G_BEGIN_DECLS

/**
 * RUNNEL_ERROR:
 *
 * The error domain of everything in Runnel. A message names the file or the
 * object, the field, the limit that was broken and the remedy.
 *
 * Since: 0.1
 */
#define RUNNEL_ERROR (runnel_error_quark ())

/**
 * RunnelError:
 * @RUNNEL_ERROR_IO: a file could not be opened, read, written or mapped
 * @RUNNEL_ERROR_TRUNCATED: a file or buffer ends before its content does
 * @RUNNEL_ERROR_MALFORMED: the content breaks the rules of its format
 * @RUNNEL_ERROR_UNSUPPORTED: well-formed, but not something Runnel handles
 * @RUNNEL_ERROR_LIMIT: a count, size or depth is over a stated limit
 * @RUNNEL_ERROR_MISMATCH: two things do not belong together (vocabulary,
 *   model, saved state)
 * @RUNNEL_ERROR_CORRUPT: a checksum does not match
 * @RUNNEL_ERROR_INVALID_ARGUMENT: a parameter is out of its range
 * @RUNNEL_ERROR_TEMPLATE: a chat template failed or raised an exception
 * @RUNNEL_ERROR_CONTEXT_OVERFLOW: the tokens do not fit into the context
 * @RUNNEL_ERROR_NOT_ENOUGH_MEMORY: a memory limit forbids the operation
 * @RUNNEL_ERROR_BAD_LOGITS: the model produced a non-finite value
 * @RUNNEL_ERROR_NO_VALID_TOKEN: constraints leave no token to choose
 * @RUNNEL_ERROR_CANCELLED: the operation was cancelled
 *
 * What went wrong, for programs; the message is for people.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_ERROR_IO,
  RUNNEL_ERROR_TRUNCATED,
  RUNNEL_ERROR_MALFORMED,
  RUNNEL_ERROR_UNSUPPORTED,
  RUNNEL_ERROR_LIMIT,
  RUNNEL_ERROR_MISMATCH,
  RUNNEL_ERROR_CORRUPT,
  RUNNEL_ERROR_INVALID_ARGUMENT,
  RUNNEL_ERROR_TEMPLATE,
  RUNNEL_ERROR_CONTEXT_OVERFLOW,
  RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
  RUNNEL_ERROR_BAD_LOGITS,
  RUNNEL_ERROR_NO_VALID_TOKEN,
  RUNNEL_ERROR_CANCELLED,
} RunnelError;

/**
 * runnel_error_quark:
 *
 * The quark that names the domain of Runnel's errors.
 *
 * Returns: the quark of the error domain
 *
 * Since: 0.1
 */
RUNNEL_API GQuark runnel_error_quark (void);

#define RUNNEL_TYPE_ERROR (runnel_error_get_type ())
RUNNEL_API GType runnel_error_get_type (void);

G_END_DECLS
