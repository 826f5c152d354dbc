/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "bpe.h"

/* Some files list the tokens of byte pair encoding by rank and leave out the
 * merges that made them. A token's merge is that of the two parts which remain
 * when its bytes are merged by the tokens of lower rank. Source: the tiktoken
 * project, which encodes from such lists. */

G_BEGIN_DECLS

#define RUNNEL_MAX_RANKED 256   /* bytes of a token */

/* The parts of the normal token @token, whose id is its rank; FALSE when it
 * has one byte or no merge leads to it. At most RUNNEL_MAX_RANKED bytes. */
gboolean runnel_rank_merge_find (const RunnelVocabulary *vocabulary,
                                 guint token, guint32 ret_parts[2]);

G_END_DECLS
