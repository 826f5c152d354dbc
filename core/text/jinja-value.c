/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-value.h"

#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-text.h"

const char *
jinja_type_name (const JinjaValue *value)
{
  static const char *const names[] = {
    [JINJA_MISSING] = "missing",
    [JINJA_UNDEFINED] = "Undefined",
    [JINJA_NONE] = "NoneType",
    [JINJA_BOOLEAN] = "bool",
    [JINJA_INTEGER] = "int",
    [JINJA_BIG] = "int",
    [JINJA_FLOAT] = "float",
    [JINJA_STRING] = "str",
    [JINJA_LIST] = "list",
    [JINJA_TUPLE] = "tuple",
    [JINJA_DICT] = "dict",
    [JINJA_RANGE] = "range",
    [JINJA_ITERATOR] = "generator",
    [JINJA_NAMESPACE] = "Namespace",
    [JINJA_MACRO] = "Macro",
    [JINJA_FUNCTION] = "function",
    [JINJA_LOOP] = "LoopContext",
    [JINJA_CYCLER] = "Cycler",
    [JINJA_JOINER] = "Joiner",
  };
  static const char *const views[] = { "dict_keys", "dict_values",
                                       "dict_items" };

  if (value->kind == JINJA_VIEW)
    return views[value->view->of];
  if (value->kind == JINJA_STRING && value->markup)
    return "Markup";
  return names[value->kind];
}

static JinjaValue
undefined (JinjaRun *run, JinjaHint hint)
{
  JinjaHint *copy = jinja_new (run, JinjaHint);

  *copy = hint;
  return (JinjaValue) { .kind = JINJA_UNDEFINED, .hint = copy };
}

JinjaValue
jinja_undefined_name (JinjaRun *run, JinjaValue name)
{
  return undefined (run,
                    (JinjaHint) { .reason = JINJA_HINT_NAME, .name = name });
}

JinjaValue
jinja_undefined_attribute (JinjaRun *run, const JinjaValue *object,
                           JinjaValue name)
{
  return undefined (run, (JinjaHint) { .reason = JINJA_HINT_ATTRIBUTE,
                                       .object = jinja_type_name (object),
                                       .name = name });
}

JinjaValue
jinja_undefined_unsafe (JinjaRun *run, const JinjaValue *object,
                        JinjaValue name)
{
  return undefined (run, (JinjaHint) { .reason = JINJA_HINT_UNSAFE,
                                       .object = jinja_type_name (object),
                                       .name = name });
}

JinjaValue
jinja_undefined_message (JinjaRun *run, const char *message)
{
  return undefined (run, (JinjaHint) { .reason = JINJA_HINT_MESSAGE,
                                       .message = message });
}

void
jinja_raise_undefined (JinjaRun *run, const JinjaValue *value)
{
  const JinjaHint *hint = value->hint;
  JinjaValue repr;
  gboolean none;

  if (hint == NULL)
    jinja_raise (run, "an undefined value is used");
  if (hint->reason == JINJA_HINT_MESSAGE)
    jinja_raise (run, "%s", hint->message);
  repr = jinja_repr (run, &hint->name);
  if (hint->reason == JINJA_HINT_NAME)
    jinja_raise (run, JINJA_STRING_FORMAT " is undefined",
                 JINJA_STRING_ARGS (&repr));
  if (hint->reason == JINJA_HINT_UNSAFE)
    jinja_raise (run, "access to attribute " JINJA_STRING_FORMAT
                      " of '%s' object is unsafe",
                 JINJA_STRING_ARGS (&repr), hint->object);
  none = strcmp (hint->object, "NoneType") == 0;
  if (hint->name.kind == JINJA_STRING)
    jinja_raise (run, "'%s%s' has no attribute " JINJA_STRING_FORMAT,
                 none ? "None" : hint->object, none ? "" : " object",
                 JINJA_STRING_ARGS (&repr));
  jinja_raise (run, "%s%s has no element " JINJA_STRING_FORMAT,
               none ? "None" : hint->object, none ? "" : " object",
               JINJA_STRING_ARGS (&repr));
}

JinjaValue
jinja_list_new (JinjaRun *run, JinjaKind kind, gsize reserve)
{
  JinjaItems *items = jinja_new (run, JinjaItems);

  if (reserve > G_MAXUINT32 / 2)
    jinja_raise (run, "a list is too long");
  items->capacity = (guint32) reserve;
  if (reserve > 0)
    items->values = jinja_new_n (run, JinjaValue, reserve);
  return (JinjaValue) { .kind = kind, .items = items };
}

static void
reserve_items (JinjaRun *run, JinjaItems *items, gsize needed)
{
  gsize capacity = needed + needed / 2 + 4;

  if (needed <= items->capacity)
    return;
  if (capacity > G_MAXUINT32 / 2)
    jinja_raise (run, "a list is too long");
  items->values =
      jinja_grow (run, items->values, items->used * sizeof (JinjaValue),
                  capacity * sizeof (JinjaValue));
  items->capacity = (guint32) capacity;
}

void
jinja_list_append (JinjaRun *run, JinjaValue *list, JinjaValue item)
{
  JinjaItems *items = list->items;

  reserve_items (run, items, (gsize) items->used + 1);
  items->values[items->used++] = item;
  list->length = items->used;
}

JinjaValue
jinja_list_concat (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  JinjaValue result = *a;
  gsize total = (gsize) a->length + b->length;

  if (b->length == 0)
    return *a;
  if (a->length != a->items->used || a->items->capacity == 0
      || a->items->group)
    {
      result = jinja_list_new (run, a->kind, total + total / 2);
      jinja_step (run, a->length);
      if (a->length > 0)
        memcpy (result.items->values, a->items->values,
                a->length * sizeof (JinjaValue));
      result.items->used = a->length;
    }
  jinja_step (run, b->length);
  reserve_items (run, result.items, total);
  /* After reserving: b may share the buffer. */
  memcpy (result.items->values + a->length, b->items->values,
          b->length * sizeof (JinjaValue));
  result.items->used = (guint32) total;
  result.length = (guint32) total;
  return result;
}

JinjaValue
jinja_pair (JinjaRun *run, JinjaValue first, JinjaValue second)
{
  JinjaValue pair = jinja_list_new (run, JINJA_TUPLE, 2);

  jinja_list_append (run, &pair, first);
  jinja_list_append (run, &pair, second);
  return pair;
}

gboolean
jinja_is_hashable (const JinjaValue *value)
{
  switch (value->kind)
    {
    case JINJA_LIST:
    case JINJA_DICT:
    case JINJA_VIEW:
      return FALSE;
    case JINJA_TUPLE:
      for (guint32 i = 0; i < value->length; i++)
        if (!jinja_is_hashable (&value->items->values[i]))
          return FALSE;
      return TRUE;
    default:
      return TRUE;
    }
}

static guint32
hash_bytes (const char *bytes, gsize length)
{
  guint32 hash = 2166136261u; /* FNV-1a */

  for (gsize i = 0; i < length; i++)
    hash = (hash ^ (guint8) bytes[i]) * 16777619u;
  return hash;
}

static guint32
hash_value (JinjaRun *run, const JinjaValue *value)
{
  guint32 hash = value->kind;
  double number;

  switch (value->kind)
    {
    case JINJA_STRING:
      jinja_step (run, value->length / 64);
      return hash_bytes (jinja_string_bytes (value), value->length);
    case JINJA_BOOLEAN:
    case JINJA_INTEGER:
    case JINJA_BIG:
    case JINJA_FLOAT: /* equal numbers are equal keys, whatever their type */
      number = jinja_to_double (run, value);
      return number == 0 ? 0 : hash_bytes ((const char *) &number,
                                           sizeof number);
    case JINJA_TUPLE:
      jinja_enter (run);
      for (guint32 i = 0; i < value->length; i++)
        hash = hash * 31 + hash_value (run, &value->items->values[i]);
      jinja_leave (run);
      return hash;
    case JINJA_LIST:
    case JINJA_DICT:
    case JINJA_VIEW:
      jinja_raise (run, "unhashable type: '%s'", jinja_type_name (value));
    default:
      return hash;
    }
}

#define SMALL_DICT 8

JinjaDict *
jinja_dict_new (JinjaRun *run)
{
  return jinja_new (run, JinjaDict);
}

static JinjaEntry *
find_entry (JinjaRun *run, const JinjaDict *dict, const JinjaValue *key,
            guint32 hash)
{
  if (dict->slots == NULL)
    {
      for (guint32 i = 0; i < dict->n_entries; i++)
        if (dict->entries[i].hash == hash
            && jinja_equal (run, &dict->entries[i].key, key))
          return &dict->entries[i];
      return NULL;
    }
  for (guint32 i = hash & (dict->n_slots - 1); dict->slots[i] != 0;
       i = (i + 1) & (dict->n_slots - 1))
    {
      JinjaEntry *entry = &dict->entries[dict->slots[i] - 1];

      jinja_step (run, 1);
      if (entry->hash == hash && jinja_equal (run, &entry->key, key))
        return entry;
    }
  return NULL;
}

static void
fill_slot (JinjaDict *dict, guint32 entry)
{
  guint32 i = dict->entries[entry].hash & (dict->n_slots - 1);

  while (dict->slots[i] != 0)
    i = (i + 1) & (dict->n_slots - 1);
  dict->slots[i] = entry + 1;
}

static void
grow_dict (JinjaRun *run, JinjaDict *dict)
{
  guint32 capacity = dict->capacity == 0 ? 4 : dict->capacity * 2;

  if (capacity > (1u << 28))
    jinja_raise (run, "a dict is too large");
  dict->entries =
      jinja_grow (run, dict->entries, dict->capacity * sizeof (JinjaEntry),
                  capacity * sizeof (JinjaEntry));
  dict->capacity = capacity;
  if (capacity <= SMALL_DICT)
    return;
  dict->n_slots = capacity * 2;
  dict->slots = jinja_new_n (run, guint32, dict->n_slots);
  for (guint32 i = 0; i < dict->n_entries; i++)
    fill_slot (dict, i);
}

void
jinja_dict_set (JinjaRun *run, JinjaDict *dict, JinjaValue key,
                JinjaValue value)
{
  guint32 hash = hash_value (run, &key);
  JinjaEntry *entry = find_entry (run, dict, &key, hash);

  if (entry != NULL)
    {
      entry->value = value;
      return;
    }
  if (dict->n_entries == dict->capacity)
    grow_dict (run, dict);
  dict->entries[dict->n_entries++] =
      (JinjaEntry) { .key = key, .value = value, .hash = hash };
  if (dict->slots != NULL)
    fill_slot (dict, dict->n_entries - 1);
}

const JinjaValue *
jinja_dict_get (JinjaRun *run, const JinjaDict *dict, const JinjaValue *key)
{
  JinjaEntry *entry = find_entry (run, dict, key, hash_value (run, key));

  return entry != NULL ? &entry->value : NULL;
}

gboolean
jinja_is_iterable (const JinjaValue *value)
{
  switch (value->kind)
    {
    case JINJA_UNDEFINED:
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_ITERATOR:
    case JINJA_LOOP:
      return TRUE;
    default:
      return FALSE;
    }
}

JinjaValue
jinja_iterator_new (JinjaRun *run, JinjaValue over)
{
  JinjaIterator *iterator = jinja_new (run, JinjaIterator);

  iterator->over = over;
  return (JinjaValue) { .kind = JINJA_ITERATOR, .iterator = iterator };
}

JinjaIterator *
jinja_iterate (JinjaRun *run, const JinjaValue *value)
{
  if (value->kind == JINJA_ITERATOR)
    return value->iterator;
  if (value->kind == JINJA_LOOP)
    jinja_raise (run, "a loop cannot be iterated over inside of itself");
  if (!jinja_is_iterable (value))
    jinja_raise (run, "'%s' object is not iterable", jinja_type_name (value));
  return jinja_iterator_new (run, *value).iterator;
}

static JinjaValue
view_item (JinjaRun *run, const JinjaView *view, gsize i)
{
  const JinjaEntry *entry = &view->dict->entries[i];

  if (view->of == JINJA_KEYS)
    return entry->key;
  if (view->of == JINJA_VALUES)
    return entry->value;
  return jinja_pair (run, entry->key, entry->value);
}

static gboolean
next_character (JinjaIterator *iterator, JinjaValue *item)
{
  const JinjaValue *over = &iterator->over;
  gsize size;

  if (iterator->next >= over->length)
    return FALSE;
  size = jinja_utf8_size (jinja_string_bytes (over)[iterator->next]);
  *item = jinja_string_sub (over, iterator->next,
                            MIN (size, over->length - iterator->next));
  item->markup = FALSE; /* only a subscript keeps it */
  iterator->next += size;
  return TRUE;
}

gboolean
jinja_next (JinjaRun *run, JinjaIterator *iterator, JinjaValue *item)
{
  const JinjaValue *over = &iterator->over;
  gint64 length;

  jinja_step (run, 1);
  if (over->kind == JINJA_STRING)
    return next_character (iterator, item);
  if (!jinja_length (over, &length) || (gint64) iterator->next >= length)
    return FALSE;
  switch (over->kind)
    {
    case JINJA_LIST:
    case JINJA_TUPLE:
      *item = over->items->values[iterator->next];
      break;
    case JINJA_DICT:
      *item = over->dict->entries[iterator->next].key;
      break;
    case JINJA_VIEW:
      *item = view_item (run, over->view, iterator->next);
      break;
    case JINJA_RANGE:
      *item = jinja_integer (over->range->start
                             + (gint64) iterator->next * over->range->step);
      break;
    default:
      return FALSE;
    }
  iterator->next++;
  return TRUE;
}

gboolean
jinja_length (const JinjaValue *value, gint64 *length)
{
  switch (value->kind)
    {
    case JINJA_UNDEFINED:
      *length = 0;
      return TRUE;
    case JINJA_STRING:
      *length = (gint64) jinja_string_count (value);
      return TRUE;
    case JINJA_LIST:
    case JINJA_TUPLE:
      *length = value->length;
      return TRUE;
    case JINJA_DICT:
      *length = value->dict->n_entries;
      return TRUE;
    case JINJA_VIEW:
      *length = value->view->dict->n_entries;
      return TRUE;
    case JINJA_RANGE:
      *length = value->range->length;
      return TRUE;
    default:
      return FALSE;
    }
}

JinjaValue
jinja_to_list (JinjaRun *run, const JinjaValue *value)
{
  JinjaIterator *iterator = jinja_iterate (run, value);
  JinjaValue list;
  JinjaValue item;
  gint64 length;

  if (!jinja_length (value, &length))
    length = 0;
  list = jinja_list_new (run, JINJA_LIST, (gsize) length);

  while (jinja_next (run, iterator, &item))
    jinja_list_append (run, &list, item);
  return list;
}

JinjaValue
jinja_bind (JinjaRun *run, const JinjaBuiltin *builtin, const JinjaValue *self)
{
  JinjaFunction *function = jinja_new (run, JinjaFunction);

  function->builtin = builtin;
  function->self = self != NULL ? *self : jinja_missing ();
  return (JinjaValue) { .kind = JINJA_FUNCTION, .function = function };
}
