/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

/**
 * RunnelQuestionType:
 * @RUNNEL_QUESTION_TYPE_CHOICE: one of several options
 * @RUNNEL_QUESTION_TYPE_YESNO: yes or no
 * @RUNNEL_QUESTION_TYPE_SCORE: a level, of several in ascending order
 *
 * What kind of answer is wanted.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_QUESTION_TYPE_CHOICE,
  RUNNEL_QUESTION_TYPE_YESNO,
  RUNNEL_QUESTION_TYPE_SCORE,
} RunnelQuestionType;

#define RUNNEL_TYPE_QUESTION_TYPE (runnel_question_type_get_type ())
RUNNEL_API GType runnel_question_type_get_type (void);

/**
 * RUNNEL_MAX_OPTIONS:
 *
 * The largest number of options of a question; the least is two.
 *
 * Since: 0.1
 */
#define RUNNEL_MAX_OPTIONS 255

/**
 * RUNNEL_MAX_QUESTIONS:
 *
 * The largest number of questions about one state.
 *
 * Since: 0.1
 */
#define RUNNEL_MAX_QUESTIONS 256

#define RUNNEL_TYPE_QUESTION (runnel_question_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelQuestion, runnel_question, RUNNEL, QUESTION, GObject)

/**
 * RunnelQuestion:
 *
 * A question with its options, checked when it is made: 2 to 255 of them,
 * none empty, no two alike, all of them UTF-8. Immutable and safe to use from
 * several threads.
 *
 * Since: 0.1
 */
RUNNEL_API RunnelQuestion *
runnel_question_new (const char *id, RunnelQuestionType type,
                     const char *instructions, const char *const *labels,
                     const char *const *descriptions, gsize n_options,
                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API GPtrArray *runnel_question_parse_json (const char *json,
                                                  gssize length,
                                                  const char *name,
                                                  GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API const char *runnel_question_get_id (RunnelQuestion *self);
RUNNEL_API RunnelQuestionType
runnel_question_get_question_type (RunnelQuestion *self);
RUNNEL_API const char *
runnel_question_get_instructions (RunnelQuestion *self);
RUNNEL_API guint runnel_question_get_n_options (RunnelQuestion *self);
RUNNEL_API const char *runnel_question_get_label (RunnelQuestion *self,
                                                  guint i);
RUNNEL_API const char *
runnel_question_get_description (RunnelQuestion *self, guint i);

G_END_DECLS
