/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "state-memory.h"

struct _GstLmStateAllocator {
  GstAllocator parent_instance;
};

typedef struct {
  GstMemory memory;
  GMutex lock;              /* a sequence is one thread's: held by forks */
  RunnelSequence *sequence; /* NULL after gst_lm_state_take() */
} StateMemory;

G_DEFINE_FINAL_TYPE (GstLmStateAllocator, gst_lm_state_allocator,
                     GST_TYPE_ALLOCATOR)

static GstMemory *
state_memory_new (GstAllocator *allocator, RunnelSequence *sequence)
{
  StateMemory *state = g_new0 (StateMemory, 1);
  /* gst_buffer_copy_into() skips memories of no bytes, and an empty sequence
   * has no pages. */
  gsize size = MAX (runnel_sequence_get_kv_bytes (sequence), 1);

  gst_memory_init (GST_MEMORY_CAST (state),
                   GST_MEMORY_FLAG_NO_SHARE | GST_MEMORY_FLAG_NOT_MAPPABLE,
                   allocator, NULL, size, 0, 0, size);
  g_mutex_init (&state->lock);
  state->sequence = sequence;
  return GST_MEMORY_CAST (state);
}

static RunnelSequence *
state_memory_fork (StateMemory *state)
{
  RunnelSequence *fork;

  g_mutex_lock (&state->lock);
  fork = runnel_sequence_fork (state->sequence);
  g_mutex_unlock (&state->lock);
  return fork;
}

static GstMemory *
state_memory_copy (GstMemory *memory, gssize offset, gssize size)
{
  /* A part of a state is no state. */
  if (offset != 0 || (size != -1 && (gsize) size != memory->size))
    return NULL;
  return state_memory_new (memory->allocator,
                           state_memory_fork ((StateMemory *) memory));
}

static gpointer
state_memory_map (GstMemory *memory, GstMapInfo *info, gsize size)
{
  return NULL;
}

static void
state_memory_unmap (GstMemory *memory, GstMapInfo *info)
{
}

static GstMemory *
state_memory_share (GstMemory *memory, gssize offset, gssize size)
{
  return NULL;
}

static GstMemory *
gst_lm_state_allocator_alloc (GstAllocator *allocator, gsize size,
                              GstAllocationParams *params)
{
  g_warning ("%s makes memories of sequences only: "
             "use gst_lm_state_memory_new ()", GST_LM_ALLOCATOR_STATE);
  return NULL;
}

static void
gst_lm_state_allocator_free (GstAllocator *allocator, GstMemory *memory)
{
  StateMemory *state = (StateMemory *) memory;

  g_clear_object (&state->sequence);
  g_mutex_clear (&state->lock);
  g_free (state);
}

static void
gst_lm_state_allocator_class_init (GstLmStateAllocatorClass *klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  allocator_class->alloc = gst_lm_state_allocator_alloc;
  allocator_class->free = gst_lm_state_allocator_free;
}

static void
gst_lm_state_allocator_init (GstLmStateAllocator *self)
{
  GstAllocator *allocator = GST_ALLOCATOR (self);

  allocator->mem_type = GST_LM_ALLOCATOR_STATE;
  allocator->mem_map_full = state_memory_map;
  allocator->mem_unmap_full = state_memory_unmap;
  allocator->mem_copy = state_memory_copy;
  allocator->mem_share = state_memory_share;
  GST_OBJECT_FLAG_SET (self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

static GstAllocator *
state_allocator (void)
{
  static gsize allocator = 0;

  if (g_once_init_enter (&allocator))
    {
      GstAllocator *made = g_object_new (GST_TYPE_LM_STATE_ALLOCATOR, NULL);

      gst_object_ref_sink (made);
      GST_OBJECT_FLAG_SET (made, GST_OBJECT_FLAG_MAY_BE_LEAKED);
      gst_allocator_register (GST_LM_ALLOCATOR_STATE, gst_object_ref (made));
      g_once_init_leave (&allocator, (gsize) made);
    }
  return (GstAllocator *) allocator;
}

/**
 * gst_lm_state_memory_new:
 * @sequence: (transfer full): a sequence that nobody else will change
 *
 * A memory that holds a sequence.
 *
 * Returns: (transfer full): the memory
 *
 * Since: 0.1
 */
GstMemory *
gst_lm_state_memory_new (RunnelSequence *sequence)
{
  g_return_val_if_fail (RUNNEL_IS_SEQUENCE (sequence), NULL);

  return state_memory_new (state_allocator (), sequence);
}

/**
 * gst_lm_is_state_memory:
 * @memory: a memory
 *
 * Whether a memory holds a sequence.
 *
 * Returns: %TRUE if it was made by gst_lm_state_memory_new() or copied from
 *   one that was
 *
 * Since: 0.1
 */
gboolean
gst_lm_is_state_memory (GstMemory *memory)
{
  g_return_val_if_fail (memory != NULL, FALSE);

  return GST_IS_LM_STATE_ALLOCATOR (memory->allocator);
}

/**
 * gst_lm_buffer_new_state:
 * @sequence: (transfer full): a sequence that nobody else will change
 *
 * A buffer with one state memory.
 *
 * Returns: (transfer full): the buffer
 *
 * Since: 0.1
 */
GstBuffer *
gst_lm_buffer_new_state (RunnelSequence *sequence)
{
  GstBuffer *buffer = gst_buffer_new ();

  gst_buffer_append_memory (buffer, gst_lm_state_memory_new (sequence));
  return buffer;
}

static StateMemory *
find_state (GstBuffer *buffer)
{
  GstMemory *memory;

  if (gst_buffer_n_memory (buffer) != 1)
    return NULL;
  memory = gst_buffer_peek_memory (buffer, 0);
  return gst_lm_is_state_memory (memory) ? (StateMemory *) memory : NULL;
}

/**
 * gst_lm_buffer_peek_state:
 * @buffer: a buffer
 *
 * The sequence inside a buffer, for looking only: its length, its tokens, its
 * model. Another thread may fork it meanwhile, so nothing may change it.
 *
 * Returns: (transfer none) (nullable): the sequence, or %NULL when the buffer
 *   holds none
 *
 * Since: 0.1
 */
RunnelSequence *
gst_lm_buffer_peek_state (GstBuffer *buffer)
{
  StateMemory *state;

  g_return_val_if_fail (GST_IS_BUFFER (buffer), NULL);

  state = find_state (buffer);
  return state != NULL ? state->sequence : NULL;
}

/**
 * gst_lm_state_take:
 * @buffer: (transfer full): a buffer
 *
 * The sequence of a buffer, for the caller to change: itself when nobody else
 * holds the buffer, its memory or the sequence, a fork otherwise. So a tee
 * shares a prefill, safely.
 *
 * Returns: (transfer full) (nullable): the sequence, or %NULL when the buffer
 *   holds none
 *
 * Since: 0.1
 */
RunnelSequence *
gst_lm_state_take (GstBuffer *buffer)
{
  StateMemory *state;
  RunnelSequence *sequence = NULL;

  g_return_val_if_fail (GST_IS_BUFFER (buffer), NULL);

  state = find_state (buffer);
  if (state != NULL)
    {
      if (gst_buffer_is_writable (buffer) &&
          gst_memory_is_writable (GST_MEMORY_CAST (state)) &&
          g_atomic_int_get (&G_OBJECT (state->sequence)->ref_count) == 1)
        sequence = g_steal_pointer (&state->sequence);
      else
        sequence = state_memory_fork (state);
    }
  gst_buffer_unref (buffer);
  return sequence;
}
