/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-operators.h"

#include "jinja-escape.h"
#include "jinja-format.h"
#include "jinja-text.h"

gboolean
jinja_truth (JinjaRun *run, const JinjaValue *value)
{
  gint64 length;

  switch (value->kind)
    {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
      return FALSE;
    case JINJA_BOOLEAN:
    case JINJA_INTEGER:
    case JINJA_FLOAT:
      return !jinja_number_is_zero (value);
    case JINJA_STRING:
      return value->length > 0;
    default:
      return !jinja_length (value, &length) || length > 0;
    }
}

static gboolean
equal_dicts (JinjaRun *run, const JinjaDict *a, const JinjaDict *b)
{
  if (a->n_entries != b->n_entries)
    return FALSE;
  for (guint32 i = 0; i < a->n_entries; i++)
    {
      const JinjaValue *other = jinja_dict_get (run, b, &a->entries[i].key);

      if (other == NULL || !jinja_equal (run, &a->entries[i].value, other))
        return FALSE;
    }
  return TRUE;
}

static gboolean
equal_lists (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  if (a->length != b->length)
    return FALSE;
  for (guint32 i = 0; i < a->length; i++)
    if (!jinja_equal (run, &a->items->values[i], &b->items->values[i]))
      return FALSE;
  return TRUE;
}

static gboolean
equal_ranges (const JinjaRange *a, const JinjaRange *b)
{
  return a->length == b->length
         && (a->length == 0
             || (a->start == b->start
                 && (a->length == 1 || a->step == b->step)));
}

gboolean
jinja_equal (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  gboolean equal;

  jinja_step (run, 1);
  if (jinja_is_number (a) && jinja_is_number (b))
    return jinja_number_compare (run, a, b) == 0;
  if (a->kind != b->kind)
    return FALSE;
  jinja_enter (run);
  switch (a->kind)
    {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
      equal = TRUE;
      break;
    case JINJA_STRING:
      jinja_step (run, a->length / 64);
      equal = jinja_string_same (a, b);
      break;
    case JINJA_LIST:
    case JINJA_TUPLE:
      equal = equal_lists (run, a, b);
      break;
    case JINJA_DICT:
      equal = equal_dicts (run, a->dict, b->dict);
      break;
    case JINJA_RANGE:
      equal = equal_ranges (a->range, b->range);
      break;
    default:
      equal = jinja_same (a, b);
      break;
    }
  jinja_leave (run);
  return equal;
}

gboolean
jinja_same (const JinjaValue *a, const JinjaValue *b)
{
  if (a->kind != b->kind)
    return FALSE;
  switch (a->kind)
    {
    case JINJA_MISSING:
    case JINJA_NONE:
      return TRUE;
    case JINJA_BOOLEAN:
      return a->boolean == b->boolean;
    case JINJA_INTEGER: /* CPython shares the small ones */
      return a->integer == b->integer && a->integer >= -5 && a->integer <= 256;
    case JINJA_FLOAT:
      return FALSE;
    case JINJA_STRING:
      return a->text == b->text && a->offset == b->offset
             && a->length == b->length;
    case JINJA_LIST:
    case JINJA_TUPLE:
      return a->items == b->items && a->length == b->length;
    default:
      return a->dict == b->dict;
    }
}

static const char *
comparison_sign (JinjaComparison comparison)
{
  static const char *const signs[] = { "==", "!=", "<", "<=", ">", ">=" };

  return signs[comparison];
}

/* -1, 0, 1; 2 when unordered (NaN). */
static int
order (JinjaRun *run, JinjaComparison comparison, const JinjaValue *a,
       const JinjaValue *b)
{
  int result = 0;

  if (a->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, a);
  if (b->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, b);
  if (jinja_is_number (a) && jinja_is_number (b))
    return jinja_number_compare (run, a, b);
  if (a->kind != b->kind || !(a->kind == JINJA_STRING || jinja_is_list (a)))
    jinja_raise (run, "'%s' not supported between instances of '%s' and '%s'",
                 comparison_sign (comparison), jinja_type_name (a),
                 jinja_type_name (b));
  jinja_enter (run);
  if (a->kind == JINJA_STRING)
    {
      /* UTF-8 sorts as its code points do. */
      jinja_step (run, MIN (a->length, b->length) / 64);
      result = memcmp (jinja_string_bytes (a), jinja_string_bytes (b),
                       MIN (a->length, b->length));
    }
  else
    for (guint32 i = 0; i < MIN (a->length, b->length); i++)
      if (!jinja_equal (run, &a->items->values[i], &b->items->values[i]))
        {
          result = order (run, comparison, &a->items->values[i],
                          &b->items->values[i]);
          jinja_leave (run);
          return result;
        }
  jinja_leave (run);
  if (result != 0)
    return result < 0 ? -1 : 1;
  return a->length < b->length ? -1 : a->length > b->length;
}

gboolean
jinja_compare (JinjaRun *run, JinjaComparison comparison, const JinjaValue *a,
               const JinjaValue *b)
{
  int result;

  switch (comparison)
    {
    case JINJA_EQUAL:
      return jinja_equal (run, a, b);
    case JINJA_NOT_EQUAL:
      return !jinja_equal (run, a, b);
    case JINJA_IN:
      return jinja_contains (run, b, a);
    case JINJA_NOT_IN:
      return !jinja_contains (run, b, a);
    default:
      break;
    }
  result = order (run, comparison, a, b);
  if (result == 2)
    return FALSE;
  switch (comparison)
    {
    case JINJA_LESS:
      return result < 0;
    case JINJA_LESS_EQUAL:
      return result <= 0;
    case JINJA_GREATER:
      return result > 0;
    default:
      return result >= 0;
    }
}

gboolean
jinja_contains (JinjaRun *run, const JinjaValue *container,
                const JinjaValue *item)
{
  JinjaIterator *iterator;
  JinjaValue candidate;

  if (container->kind == JINJA_STRING)
    {
      if (item->kind != JINJA_STRING)
        jinja_raise (run,
                     "'in <string>' requires string as left operand, not %s",
                     jinja_type_name (item));
      return jinja_string_find (run, container, 0, item) >= 0;
    }
  if (container->kind == JINJA_DICT)
    return jinja_dict_get (run, container->dict, item) != NULL;
  if (!jinja_is_iterable (container))
    jinja_raise (run, "argument of type '%s' is not iterable",
                 jinja_type_name (container));
  iterator = jinja_iterate (run, container);
  while (jinja_next (run, iterator, &candidate))
    if (jinja_equal (run, &candidate, item))
      return TRUE;
  return FALSE;
}

gint64
jinja_index (JinjaRun *run, const JinjaValue *value)
{
  if (value->kind == JINJA_INTEGER)
    return value->integer;
  if (value->kind == JINJA_BOOLEAN)
    return value->boolean;
  if (value->kind == JINJA_BIG)
    return value->big->negative ? G_MININT64 : G_MAXINT64;
  if (value->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, value);
  jinja_raise (run, "'%s' object cannot be interpreted as an integer",
               jinja_type_name (value));
}

static JinjaValue
repeat (JinjaRun *run, const JinjaValue *value, const JinjaValue *count)
{
  gint64 times = jinja_index (run, count);
  JinjaValue result;

  if (count->kind == JINJA_BIG)
    jinja_raise (run, "cannot fit 'int' into an index-sized integer");
  times = MAX (times, 0);
  if (value->kind == JINJA_STRING)
    {
      JinjaText *text;

      if (times == 1)
        return *value;
      if (value->length > 0
          && (guint64) times > run->text_limit / value->length)
        jinja_raise (run, "a text is longer than %" G_GSIZE_FORMAT
                          " bytes (output limit)", run->text_limit);
      if (value->length == 0)
        times = 0;
      text = jinja_text_new (run, (gsize) times * value->length);
      jinja_step (run, (gsize) times);
      for (gint64 i = 0; i < times; i++)
        jinja_text_append_string (run, text, value);
      result = jinja_text_string (text);
      result.markup = value->markup;
      return result;
    }
  if (value->length > 0
      && (guint64) times > run->steps_left / value->length)
    jinja_out_of_steps (run);
  result = jinja_list_new (run, value->kind,
                           value->length == 0 ? 0
                                              : (gsize) times * value->length);
  for (gint64 i = 0; value->length > 0 && i < times; i++)
    {
      jinja_step (run, value->length);
      for (guint32 k = 0; k < value->length; k++)
        jinja_list_append (run, &result, value->items->values[k]);
    }
  return result;
}

static void G_GNUC_NORETURN
raise_operands (JinjaRun *run, JinjaArithmetic operation, const JinjaValue *a,
                const JinjaValue *b)
{
  static const char *const signs[] = { "+", "-", "*", "/", "//", "%",
                                       "** or pow()" };

  if (operation == JINJA_ADD
      && (a->kind == JINJA_STRING || jinja_is_list (a)))
    jinja_raise (run, "can only concatenate %s (not \"%s\") to %s",
                 jinja_type_name (a), jinja_type_name (b),
                 jinja_type_name (a));
  jinja_raise (run, "unsupported operand type(s) for %s: '%s' and '%s'",
               signs[operation], jinja_type_name (a), jinja_type_name (b));
}

static JinjaValue
add_strings (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  JinjaValue left = *a;
  JinjaValue right = *b;

  if (a->markup != b->markup)
    {
      left = jinja_escape (run, a);
      right = jinja_escape (run, b);
    }
  left = jinja_string_concat (run, &left, &right);
  left.markup = a->markup || b->markup;
  return left;
}

JinjaValue
jinja_operate (JinjaRun *run, JinjaArithmetic operation, const JinjaValue *a,
               const JinjaValue *b)
{
  if (jinja_is_number (a) && jinja_is_number (b))
    return jinja_calculate (run, operation, a, b);
  if (operation == JINJA_MODULO && a->kind == JINJA_STRING)
    return jinja_format_percent (run, a, b);
  if (a->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, a);
  if (b->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, b);
  if (operation == JINJA_ADD && a->kind == b->kind)
    {
      if (a->kind == JINJA_STRING)
        return add_strings (run, a, b);
      if (jinja_is_list (a))
        return jinja_list_concat (run, a, b);
    }
  if (operation == JINJA_MULTIPLY)
    {
      if ((a->kind == JINJA_STRING || jinja_is_list (a))
          && jinja_is_integer (b))
        return repeat (run, a, b);
      if ((b->kind == JINJA_STRING || jinja_is_list (b))
          && jinja_is_integer (a))
        return repeat (run, b, a);
    }
  raise_operands (run, operation, a, b);
}

/* slice.indices (): where a slice of a sequence of @length begins and ends,
 * and how many items it has. */
static void
slice_indices (JinjaRun *run, gint64 length, const JinjaValue *start,
               const JinjaValue *stop, gint64 step, gint64 *first,
               gint64 *last, gint64 *count)
{
  gint64 lower = step > 0 ? 0 : -1;
  gint64 upper = step > 0 ? length : length - 1;
  gint64 from = step > 0 ? lower : upper;
  gint64 to = step > 0 ? upper : lower;

  if (!jinja_is_absent (start))
    {
      from = jinja_index (run, start);
      from = from < 0 ? MAX (from + length, lower) : MIN (from, upper);
    }
  if (!jinja_is_absent (stop))
    {
      to = jinja_index (run, stop);
      to = to < 0 ? MAX (to + length, lower) : MIN (to, upper);
    }
  *first = from;
  *last = to;
  if (step > 0)
    *count = from < to ? (to - from - 1) / step + 1 : 0;
  else
    *count = to < from ? (from - to - 1) / -step + 1 : 0;
}

static JinjaValue
slice_string (JinjaRun *run, const JinjaValue *string, gint64 length,
              gint64 first, gint64 count, gint64 step)
{
  gboolean ascii = length == (gint64) string->length;
  guint32 *offsets = NULL;
  JinjaText *text;
  JinjaValue result;

  if (count == 0)
    return jinja_string_sub (string, 0, 0);
  if (step == 1)
    {
      gsize from = ascii ? (gsize) first
                         : jinja_string_offset (string, (gsize) first);
      gsize to = ascii ? (gsize) (first + count)
                       : jinja_string_offset (string, (gsize) (first + count));

      return jinja_string_sub (string, from, to - from);
    }
  jinja_step (run, (gsize) count);
  if (!ascii)
    {
      gsize offset = 0;

      offsets = jinja_new_n (run, guint32, (gsize) length);
      for (gint64 i = 0; i < length; i++)
        {
          offsets[i] = (guint32) offset;
          offset += jinja_utf8_size (jinja_string_bytes (string)[offset]);
        }
    }
  text = jinja_text_new (run, (gsize) count);
  for (gint64 i = 0; i < count; i++)
    {
      gsize offset = (gsize) (first + i * step);

      if (!ascii)
        offset = offsets[offset];
      jinja_text_append_sub (
          run, text, string, offset,
          jinja_utf8_size (jinja_string_bytes (string)[offset]));
    }
  result = jinja_text_string (text);
  result.markup = string->markup;
  return result;
}

JinjaValue
jinja_slice (JinjaRun *run, const JinjaValue *object, const JinjaValue *start,
             const JinjaValue *stop, const JinjaValue *step)
{
  gint64 length;
  gint64 first;
  gint64 last;
  gint64 count;
  gint64 stride = jinja_is_absent (step) ? 1 : jinja_index (run, step);
  JinjaValue result;
  JinjaRange *range;

  if (object->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, object);
  if (object->kind != JINJA_STRING && !jinja_is_list (object)
      && object->kind != JINJA_RANGE)
    jinja_raise (run, "'%s' object cannot be sliced",
                 jinja_type_name (object));
  if (stride == 0)
    jinja_raise (run, "slice step cannot be zero");
  jinja_length (object, &length);
  jinja_step (run, object->length / 64);
  /* A larger stride than the length takes one item, like the length does. */
  stride = CLAMP (stride, -length - 1, length + 1);
  slice_indices (run, length, start, stop, stride, &first, &last, &count);
  if (object->kind == JINJA_STRING)
    return slice_string (run, object, length, first, count, stride);
  if (object->kind == JINJA_RANGE)
    {
      range = jinja_new (run, JinjaRange);
      /* What wraps here is never reached by an item. */
      range->start = (gint64) ((guint64) object->range->start
                               + (guint64) first
                                     * (guint64) object->range->step);
      range->step = (gint64) ((guint64) object->range->step
                              * (guint64) stride);
      range->length = count;
      range->stop = (gint64) ((guint64) object->range->start
                              + (guint64) last
                                    * (guint64) object->range->step);
      return (JinjaValue) { .kind = JINJA_RANGE, .range = range };
    }
  if (first == 0 && stride == 1)
    {
      result = *object; /* a prefix shares the items */
      result.length = (guint32) count;
      return result;
    }
  jinja_step (run, (gsize) count);
  result = jinja_list_new (run, object->kind, (gsize) count);
  for (gint64 i = 0; i < count; i++)
    jinja_list_append (run, &result,
                       object->items->values[first + i * stride]);
  return result;
}

/* Merges the sorted halves [0, middle) and [middle, n). Stable also in
 * reverse, as sorted (reverse=True) is. */
static void
merge (JinjaRun *run, JinjaValue *values, JinjaValue *keys, gsize middle,
       gsize n, gboolean reverse, JinjaValue *spare)
{
  gsize left = 0;
  gsize right = middle;

  for (gsize i = 0; i < n; i++)
    {
      gboolean take_right =
          left == middle
          || (right < n
              && (reverse ? order (run, JINJA_LESS, &keys[left], &keys[right])
                                == -1
                          : order (run, JINJA_LESS, &keys[right], &keys[left])
                                == -1));
      gsize from = take_right ? right++ : left++;

      jinja_step (run, 1);
      spare[i] = values[from];
      spare[n + i] = keys[from];
    }
  memcpy (values, spare, n * sizeof *values);
  memcpy (keys, spare + n, n * sizeof *keys);
}

static void
sort_part (JinjaRun *run, JinjaValue *values, JinjaValue *keys, gsize n,
           gboolean reverse, JinjaValue *spare)
{
  if (n < 2)
    return;
  sort_part (run, values, keys, n / 2, reverse, spare);
  sort_part (run, values + n / 2, keys + n / 2, n - n / 2, reverse, spare);
  merge (run, values, keys, n / 2, n, reverse, spare);
}

void
jinja_sort (JinjaRun *run, JinjaValue *values, JinjaValue *keys, gsize n,
            gboolean reverse)
{
  sort_part (run, values, keys, n, reverse,
             jinja_new_n (run, JinjaValue, n * 2));
}
