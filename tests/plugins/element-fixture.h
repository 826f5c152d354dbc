/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What tests of single elements need: a tiny model, a harness around a launch
 * string, and short ways to put text in and to read what came out.
 */
#pragma once

#include <gst/check/gstharness.h>
#include <gstrunnel.h>

typedef struct {
  GstHarness *harness;
  GstBus *bus;
} ElementTest;

/* A tiny model's file; removed by element_test_run (). @seed makes others of
 * the same vocabulary. */
const char *element_test_model (guint64 seed);
/* The same with one more token: another vocabulary. */
const char *element_test_foreign_model (void);

/* @launch: a launch string with $MODEL for the tiny model. */
ElementTest *element_test_new (const char *launch, const char *caps);
void element_test_free (ElementTest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ElementTest, element_test_free)

GstFlowReturn element_test_push (ElementTest *self, const char *text);
GstBuffer *element_test_buffer (const char *text);
/* The next buffer, as text. */
char *element_test_pull (ElementTest *self);
char *element_test_text (GstBuffer *buffer);
/* Fails the test unless a message of @type with @part in it is there. */
void element_test_expect (ElementTest *self, GstMessageType type,
                          const char *part);
void element_test_expect_none (ElementTest *self, GstMessageType types);
/* The next `runnel/reply` that arrived upstream of the elements. */
GstEvent *element_test_pull_reply (ElementTest *self);

int element_test_run (int *argc, char ***argv, void (*add_tests) (void));
