/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include "jinja-attribute.h"
#include "jinja-case.h"
#include "jinja-number.h"
#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-string.h"
#include "jinja-text.h"

/* The filters on sequences. Those that are generators in Jinja2 compute their
 * items at once here, but can be walked only once, too. */
#define FILTER(name)                                                          \
  static JinjaValue name (JinjaRun *run, const JinjaValue *self,              \
                          const JinjaValue *a)

/* "a.b.0": an attribute of an attribute; integers are looked up as such.
 * @fallback: absent, or what stands for an undefined part. */
static JinjaValue
get_path (JinjaRun *run, JinjaValue item, const JinjaValue *path,
          const JinjaValue *fallback)
{
  JinjaValue dot = jinja_string_c (run, ".");
  JinjaValue parts;

  if (jinja_is_absent (path))
    return item;
  if (path->kind == JINJA_STRING)
    parts = jinja_string_split (run, path, &dot, -1, FALSE);
  else
    {
      parts = jinja_list_new (run, JINJA_LIST, 1);
      jinja_list_append (run, &parts, *path);
    }
  for (guint32 i = 0; i < parts.length; i++)
    {
      JinjaValue part = parts.items->values[i];
      const char *bytes = part.kind == JINJA_STRING
                              ? jinja_string_bytes (&part)
                              : "";

      if (part.kind == JINJA_STRING && part.length > 0
          && strspn (bytes, "0123456789") >= part.length)
        part = jinja_integer_from_digits (run, bytes, part.length);
      item = jinja_get_item (run, &item, &part);
      if (item.kind == JINJA_UNDEFINED && !jinja_is_absent (fallback))
        item = *fallback;
    }
  return item;
}

static JinjaValue
fold_case (JinjaRun *run, JinjaValue value, gboolean case_sensitive)
{
  if (value.kind == JINJA_STRING && !case_sensitive)
    return jinja_change_case (run, &value, JINJA_CASE_LOWER);
  return value;
}

static JinjaValue
sort_key (JinjaRun *run, JinjaValue item, const JinjaValue *path,
          const JinjaValue *fallback, gboolean case_sensitive)
{
  return fold_case (run, get_path (run, item, path, fallback),
                    case_sensitive);
}

/* Simple ones */

FILTER (filter_length)
{
  gint64 length;

  jinja_step (run, self->length / 64);
  if (!jinja_length (self, &length))
    jinja_raise (run, "object of type '%s' has no len()",
                 jinja_type_name (self));
  return jinja_integer (length);
}

FILTER (filter_first)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  JinjaValue item;

  if (jinja_next (run, iterator, &item))
    return item;
  return jinja_undefined_message (run,
                                  "no first item, the sequence was empty");
}

FILTER (filter_last)
{
  JinjaValue list;

  if (self->kind == JINJA_ITERATOR || !jinja_is_iterable (self))
    jinja_raise (run, "'%s' object is not reversible",
                 jinja_type_name (self));
  list = jinja_is_list (self) ? *self : jinja_to_list (run, self);
  if (list.length > 0)
    return list.items->values[list.length - 1];
  return jinja_undefined_message (run, "no last item, the sequence was empty");
}

FILTER (filter_list) { return jinja_to_list (run, self); }

FILTER (filter_join)
{
  JinjaValue separator = a[0].kind == JINJA_MISSING
                             ? jinja_string_c (run, "")
                             : jinja_str (run, &a[0]);
  JinjaValue items = *self;
  JinjaValue fallback = jinja_missing ();

  if (!jinja_is_absent (&a[1]))
    {
      items = jinja_to_list (run, self);
      for (guint32 i = 0; i < items.length; i++)
        items.items->values[i] =
            get_path (run, items.items->values[i], &a[1], &fallback);
    }
  return jinja_string_join (run, &separator, &items, TRUE);
}

FILTER (filter_reverse)
{
  JinjaValue step = jinja_integer (-1);
  JinjaValue none = jinja_missing ();
  JinjaValue list;

  if (self->kind == JINJA_STRING)
    return jinja_slice (run, self, &none, &none, &step);
  list = jinja_to_list (run, self);
  list = jinja_slice (run, &list, &none, &none, &step);
  return self->kind == JINJA_ITERATOR ? list : jinja_iterator_new (run, list);
}

FILTER (filter_items)
{
  JinjaValue items = jinja_list_new (run, JINJA_LIST, 0);

  if (self->kind == JINJA_UNDEFINED)
    return jinja_iterator_new (run, items);
  if (self->kind != JINJA_DICT)
    jinja_raise (run, "can only get item pairs from a mapping");
  for (guint32 i = 0; i < self->dict->n_entries; i++)
    jinja_list_append (run, &items,
                       jinja_pair (run, self->dict->entries[i].key,
                                   self->dict->entries[i].value));
  return jinja_iterator_new (run, items);
}

FILTER (filter_sum)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  JinjaValue sum = a[1].kind == JINJA_MISSING ? jinja_integer (0) : a[1];
  JinjaValue fallback = jinja_missing ();
  JinjaValue item;

  if (sum.kind == JINJA_STRING)
    jinja_raise (run, "sum() can't sum strings [use ''.join(seq) instead]");
  while (jinja_next (run, iterator, &item))
    {
      item = get_path (run, item, &a[0], &fallback);
      sum = jinja_operate (run, JINJA_ADD, &sum, &item);
    }
  return sum;
}

/* Ordering */

static JinjaValue
list_of_keys (JinjaRun *run, const JinjaValue *list, const JinjaValue *path,
              const JinjaValue *fallback, gboolean case_sensitive)
{
  JinjaValue keys = jinja_list_new (run, JINJA_LIST, list->length);

  for (guint32 i = 0; i < list->length; i++)
    jinja_list_append (run, &keys,
                       sort_key (run, list->items->values[i], path, fallback,
                                 case_sensitive));
  return keys;
}

/* sort takes several paths with commas between them: a key is a list. */
static JinjaValue
list_of_key_lists (JinjaRun *run, const JinjaValue *list,
                   const JinjaValue *paths, gboolean case_sensitive)
{
  JinjaValue comma = jinja_string_c (run, ",");
  JinjaValue parts = jinja_list_new (run, JINJA_LIST, 1);
  JinjaValue keys = jinja_list_new (run, JINJA_LIST, list->length);
  JinjaValue fallback = jinja_missing ();

  if (paths->kind == JINJA_STRING)
    parts = jinja_string_split (run, paths, &comma, -1, FALSE);
  else
    jinja_list_append (run, &parts, *paths);
  for (guint32 i = 0; i < list->length; i++)
    {
      JinjaValue key = jinja_list_new (run, JINJA_LIST, parts.length);

      for (guint32 k = 0; k < parts.length; k++)
        jinja_list_append (run, &key,
                           sort_key (run, list->items->values[i],
                                     &parts.items->values[k], &fallback,
                                     case_sensitive));
      jinja_list_append (run, &keys, key);
    }
  return keys;
}

FILTER (filter_sort)
{
  JinjaValue list = jinja_to_list (run, self);
  JinjaValue keys = list_of_key_lists (
      run, &list, &a[2], jinja_boolean_or (run, &a[1], FALSE));

  jinja_sort (run, list.items->values, keys.items->values, list.length,
              jinja_boolean_or (run, &a[0], FALSE));
  return list;
}

FILTER (filter_dictsort)
{
  gboolean case_sensitive = jinja_boolean_or (run, &a[0], FALSE);
  gboolean by_value = jinja_string_is (&a[1], "value");
  JinjaValue list = jinja_list_new (run, JINJA_LIST, 0);
  JinjaValue keys = jinja_list_new (run, JINJA_LIST, 0);

  if (!by_value && a[1].kind != JINJA_MISSING
      && !jinja_string_is (&a[1], "key"))
    jinja_raise (run, "you can only sort by either \"key\" or \"value\"");
  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (self->kind != JINJA_DICT)
    jinja_raise (run, "'%s' object has no attribute 'items'",
                 jinja_type_name (self));
  for (guint32 i = 0; i < self->dict->n_entries; i++)
    {
      const JinjaEntry *entry = &self->dict->entries[i];

      jinja_list_append (run, &list,
                         jinja_pair (run, entry->key, entry->value));
      jinja_list_append (run, &keys,
                         fold_case (run, by_value ? entry->value : entry->key,
                                    case_sensitive));
    }
  jinja_sort (run, list.items->values, keys.items->values, list.length,
              jinja_boolean_or (run, &a[2], FALSE));
  return list;
}

static JinjaValue
extreme (JinjaRun *run, const JinjaValue *self, const JinjaValue *a,
         JinjaComparison better)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  gboolean case_sensitive = jinja_boolean_or (run, &a[0], FALSE);
  JinjaValue fallback = jinja_missing ();
  JinjaValue best;
  JinjaValue best_key;
  JinjaValue item;

  if (!jinja_next (run, iterator, &best))
    return jinja_undefined_message (
        run, "no aggregated item, the sequence was empty");
  best_key = sort_key (run, best, &a[1], &fallback, case_sensitive);
  while (jinja_next (run, iterator, &item))
    {
      JinjaValue key = sort_key (run, item, &a[1], &fallback, case_sensitive);

      if (!jinja_compare (run, better, &key, &best_key))
        continue;
      best = item;
      best_key = key;
    }
  return best;
}

FILTER (filter_min) { return extreme (run, self, a, JINJA_LESS); }
FILTER (filter_max) { return extreme (run, self, a, JINJA_GREATER); }

FILTER (filter_unique)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  gboolean case_sensitive = jinja_boolean_or (run, &a[0], FALSE);
  JinjaDict *seen = jinja_dict_new (run);
  JinjaValue unique = jinja_list_new (run, JINJA_LIST, 0);
  JinjaValue fallback = jinja_missing ();
  JinjaValue item;

  while (jinja_next (run, iterator, &item))
    {
      JinjaValue key = sort_key (run, item, &a[1], &fallback, case_sensitive);

      if (jinja_dict_get (run, seen, &key) != NULL)
        continue;
      jinja_dict_set (run, seen, key, jinja_none ());
      jinja_list_append (run, &unique, item);
    }
  return jinja_iterator_new (run, unique);
}

FILTER (filter_groupby)
{
  gboolean case_sensitive = jinja_boolean_or (run, &a[2], FALSE);
  JinjaValue list = jinja_to_list (run, self);
  JinjaValue keys = list_of_keys (run, &list, &a[0], &a[1], case_sensitive);
  JinjaValue groups = jinja_list_new (run, JINJA_LIST, 0);
  JinjaValue members = jinja_missing ();

  jinja_sort (run, list.items->values, keys.items->values, list.length, FALSE);
  for (guint32 i = 0; i < list.length; i++)
    {
      JinjaValue group;

      if (i == 0
          || !jinja_equal (run, &keys.items->values[i],
                           &keys.items->values[i - 1]))
        {
          /* The first member's own spelling names the group. */
          members = jinja_list_new (run, JINJA_LIST, 0);
          group = jinja_pair (
              run, get_path (run, list.items->values[i], &a[0], &a[1]),
              members);
          group.items->group = TRUE;
          jinja_list_append (run, &groups, group);
        }
      jinja_list_append (run, &members, list.items->values[i]);
      groups.items->values[groups.length - 1].items->values[1] = members;
    }
  return groups;
}

/* Cutting */

FILTER (filter_batch)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  gint64 size = jinja_index (run, &a[0]);
  JinjaValue batches = jinja_list_new (run, JINJA_LIST, 0);
  JinjaValue batch = jinja_list_new (run, JINJA_LIST, 0);
  JinjaValue item;

  while (jinja_next (run, iterator, &item))
    {
      if (batch.length == size)
        {
          jinja_list_append (run, &batches, batch);
          batch = jinja_list_new (run, JINJA_LIST, 0);
        }
      jinja_list_append (run, &batch, item);
    }
  if (batch.length > 0)
    {
      while (!jinja_is_absent (&a[1]) && batch.length < size)
        {
          jinja_step (run, 1);
          jinja_list_append (run, &batch, a[1]);
        }
      jinja_list_append (run, &batches, batch);
    }
  return jinja_iterator_new (run, batches);
}

FILTER (filter_slice)
{
  JinjaValue list = jinja_to_list (run, self);
  gint64 slices = jinja_index (run, &a[0]);
  JinjaValue result = jinja_list_new (run, JINJA_LIST, 0);
  gint64 at = 0;

  if (slices == 0)
    jinja_raise (run, "integer division or modulo by zero");
  for (gint64 i = 0; i < slices; i++)
    {
      gboolean extra = i < list.length % slices;
      gint64 count = list.length / slices + extra;
      JinjaValue slice = jinja_list_new (run, JINJA_LIST, 0);

      jinja_step (run, 1);
      for (gint64 k = 0; k < count; k++)
        jinja_list_append (run, &slice, list.items->values[at++]);
      if (!jinja_is_absent (&a[1]) && !extra)
        jinja_list_append (run, &slice, a[1]);
      jinja_list_append (run, &result, slice);
    }
  return jinja_iterator_new (run, result);
}

/* Applying filters and tests to each item */

static JinjaArguments
without_first (const JinjaArguments *arguments, guint n)
{
  JinjaArguments rest = *arguments;

  n = MIN (n, rest.n_values);
  rest.values += n;
  rest.n_values -= n;
  return rest;
}

static const JinjaBuiltin *
named_builtin (JinjaRun *run, const JinjaValue *name, gboolean filter)
{
  const JinjaBuiltin *builtin =
      name->kind != JINJA_STRING ? NULL
      : filter                   ? jinja_find_filter (name)
                                 : jinja_find_test (name);
  JinjaValue text;

  if (builtin == NULL)
    {
      text = jinja_str (run, name);
      jinja_raise (run, "no %s named '" JINJA_STRING_FORMAT "'",
                   filter ? "filter" : "test", JINJA_STRING_ARGS (&text));
    }
  return builtin;
}

/* map (attribute=..., default=...) */
static void
map_attribute (JinjaRun *run, const JinjaArguments *arguments,
               JinjaIterator *iterator, JinjaValue *result)
{
  JinjaValue path = jinja_missing ();
  JinjaValue fallback = jinja_missing ();
  JinjaValue item;

  for (guint i = 0; i < arguments->n_keywords; i++)
    {
      const JinjaKeyword *keyword = &arguments->keywords[i];

      if (jinja_string_is (&keyword->name, "attribute"))
        path = keyword->value;
      else if (jinja_string_is (&keyword->name, "default"))
        fallback = keyword->value;
      else
        jinja_raise (run,
                     "unexpected keyword argument '" JINJA_STRING_FORMAT "'",
                     JINJA_STRING_ARGS (&keyword->name));
    }
  if (path.kind == JINJA_MISSING)
    jinja_raise (run, "map requires a filter argument");
  while (jinja_next (run, iterator, &item))
    jinja_list_append (run, result, get_path (run, item, &path, &fallback));
}

static JinjaValue
filter_map (JinjaRun *run, const JinjaValue *self,
            const JinjaArguments *arguments)
{
  JinjaValue result = jinja_list_new (run, JINJA_LIST, 0);
  JinjaArguments rest = without_first (arguments, 1);
  const JinjaBuiltin *builtin;
  JinjaIterator *iterator;
  JinjaValue item;

  if (!jinja_truth (run, self))
    return jinja_iterator_new (run, result);
  iterator = jinja_iterate (run, self);
  if (arguments->n_values == 0)
    map_attribute (run, arguments, iterator, &result);
  else
    {
      builtin = named_builtin (run, &arguments->values[0], TRUE);
      jinja_enter (run);
      while (jinja_next (run, iterator, &item))
        jinja_list_append (run, &result,
                           jinja_call_builtin (run, builtin, &item, &rest));
      jinja_leave (run);
    }
  return jinja_iterator_new (run, result);
}

static JinjaValue
select_items (JinjaRun *run, const JinjaValue *self,
              const JinjaArguments *arguments, gboolean attribute,
              gboolean wanted)
{
  JinjaValue result = jinja_list_new (run, JINJA_LIST, 0);
  JinjaArguments rest = without_first (arguments, attribute ? 2 : 1);
  const JinjaBuiltin *test = NULL;
  JinjaValue fallback = jinja_missing ();
  JinjaIterator *iterator;
  JinjaValue item;

  if (!jinja_truth (run, self))
    return jinja_iterator_new (run, result);
  if (attribute && arguments->n_values == 0)
    jinja_raise (run, "missing parameter for attribute name");
  if (arguments->n_values > attribute)
    test = named_builtin (run, &arguments->values[attribute], FALSE);
  iterator = jinja_iterate (run, self);
  while (jinja_next (run, iterator, &item))
    {
      JinjaValue value = attribute ? get_path (run, item,
                                               &arguments->values[0],
                                               &fallback)
                                   : item;

      if (test != NULL)
        value = jinja_call_builtin (run, test, &value, &rest);
      if (jinja_truth (run, &value) == wanted)
        jinja_list_append (run, &result, item);
    }
  return jinja_iterator_new (run, result);
}

static JinjaValue
filter_select (JinjaRun *run, const JinjaValue *self,
               const JinjaArguments *arguments)
{
  return select_items (run, self, arguments, FALSE, TRUE);
}

static JinjaValue
filter_reject (JinjaRun *run, const JinjaValue *self,
               const JinjaArguments *arguments)
{
  return select_items (run, self, arguments, FALSE, FALSE);
}

static JinjaValue
filter_selectattr (JinjaRun *run, const JinjaValue *self,
                   const JinjaArguments *arguments)
{
  return select_items (run, self, arguments, TRUE, TRUE);
}

static JinjaValue
filter_rejectattr (JinjaRun *run, const JinjaValue *self,
                   const JinjaArguments *arguments)
{
  return select_items (run, self, arguments, TRUE, FALSE);
}

const JinjaBuiltin jinja_sequence_filters[] = {
  { "length", "", .call = filter_length },
  { "count", "", .call = filter_length },
  { "first", "", .call = filter_first },
  { "last", "", .call = filter_last },
  { "list", "", .call = filter_list },
  { "join", "d,attribute", .call = filter_join },
  { "reverse", "", .call = filter_reverse },
  { "items", "", .call = filter_items },
  { "sum", "attribute,start", .call = filter_sum },
  { "sort", "reverse,case_sensitive,attribute", .call = filter_sort },
  { "dictsort", "case_sensitive,by,reverse", .call = filter_dictsort },
  { "min", "case_sensitive,attribute", .call = filter_min },
  { "max", "case_sensitive,attribute", .call = filter_max },
  { "unique", "case_sensitive,attribute", .call = filter_unique },
  { "groupby", "attribute,default,case_sensitive", 1, .call = filter_groupby },
  { "batch", "linecount,fill_with", 1, .call = filter_batch },
  { "slice", "slices,fill_with", 1, .call = filter_slice },
  { "map", .call_any = filter_map },
  { "select", .call_any = filter_select },
  { "reject", .call_any = filter_reject },
  { "selectattr", .call_any = filter_selectattr },
  { "rejectattr", .call_any = filter_rejectattr },
  { NULL },
};
