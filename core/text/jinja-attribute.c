/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-attribute.h"

#include "jinja-builtins.h"
#include "jinja-loop.h"
#include "jinja-macro.h"
#include "jinja-operators.h"
#include "jinja-text.h"

/* Methods that change a list or dict: the immutable sandbox forbids them. */
static gboolean
is_unsafe (const JinjaValue *object, const JinjaValue *name)
{
  static const char *const list_names[] = { "append", "clear", "pop",
                                            "reverse", "insert", "sort",
                                            "extend", "remove", NULL };
  static const char *const dict_names[] = { "clear", "pop", "popitem",
                                            "setdefault", "update", NULL };
  const char *const *names = object->kind == JINJA_LIST   ? list_names
                             : object->kind == JINJA_DICT ? dict_names
                                                          : NULL;

  if (name->length >= 2 && memcmp (jinja_string_bytes (name), "__", 2) == 0)
    return object->kind != JINJA_NAMESPACE;
  for (; names != NULL && *names != NULL; names++)
    if (jinja_string_is (name, *names))
      return TRUE;
  return FALSE;
}

static gboolean
find_group_attribute (const JinjaValue *tuple, const JinjaValue *name,
                      JinjaValue *ret)
{
  if (tuple->kind != JINJA_TUPLE || !tuple->items->group
      || tuple->length != 2)
    return FALSE;
  if (jinja_string_is (name, "grouper"))
    *ret = tuple->items->values[0];
  else if (jinja_string_is (name, "list"))
    *ret = tuple->items->values[1];
  else
    return FALSE;
  return TRUE;
}

static gboolean
find_range_attribute (const JinjaRange *range, const JinjaValue *name,
                      JinjaValue *ret)
{
  if (jinja_string_is (name, "start"))
    *ret = jinja_integer (range->start);
  else if (jinja_string_is (name, "stop"))
    *ret = jinja_integer (range->stop);
  else if (jinja_string_is (name, "step"))
    *ret = jinja_integer (range->step);
  else
    return FALSE;
  return TRUE;
}

static gboolean
find_cycler_attribute (JinjaRun *run, const JinjaValue *object,
                       const JinjaValue *name, JinjaValue *ret)
{
  const JinjaCycler *cycler = object->cycler;

  if (!jinja_string_is (name, "current"))
    return FALSE;
  *ret = cycler->items.items->values[cycler->position];
  return TRUE;
}

gboolean
jinja_find_attribute (JinjaRun *run, const JinjaValue *object,
                      const JinjaValue *name, JinjaValue *ret)
{
  const JinjaBuiltin *method;
  const JinjaValue *value;

  if (object->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, object);
  if (is_unsafe (object, name))
    {
      *ret = jinja_undefined_unsafe (run, object, *name);
      return TRUE;
    }
  switch (object->kind)
    {
    case JINJA_NAMESPACE:
      value = jinja_dict_get (run, object->dict, name);
      if (value != NULL)
        *ret = *value;
      return value != NULL;
    case JINJA_TUPLE:
      if (find_group_attribute (object, name, ret))
        return TRUE;
      break;
    case JINJA_RANGE:
      if (find_range_attribute (object->range, name, ret))
        return TRUE;
      break;
    case JINJA_LOOP:
      if (jinja_find_loop_attribute (run, object->loop, name, ret))
        return TRUE;
      break;
    case JINJA_MACRO:
      return jinja_find_macro_attribute (run, object->macro, name, ret);
    case JINJA_CYCLER:
      if (find_cycler_attribute (run, object, name, ret))
        return TRUE;
      break;
    default:
      break;
    }
  method = jinja_find_method (object, name);
  if (method != NULL)
    *ret = jinja_bind (run, method, object);
  return method != NULL;
}

/* object[key], or FALSE where Python raises LookupError or TypeError. */
static gboolean
find_item (JinjaRun *run, const JinjaValue *object, const JinjaValue *key,
           JinjaValue *ret)
{
  const JinjaValue *value;
  gint64 length;
  gint64 index;

  if (object->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, object);
  if (object->kind == JINJA_DICT)
    {
      if (!jinja_is_hashable (key))
        return FALSE;
      value = jinja_dict_get (run, object->dict, key);
      if (value != NULL)
        *ret = *value;
      return value != NULL;
    }
  if (!jinja_is_integer (key)
      || !(object->kind == JINJA_STRING || jinja_is_list (object)
           || object->kind == JINJA_RANGE))
    return FALSE;
  jinja_length (object, &length);
  index = jinja_index (run, key);
  if (index < 0)
    index += length;
  if (index < 0 || index >= length)
    return FALSE;
  if (jinja_is_list (object))
    *ret = object->items->values[index];
  else if (object->kind == JINJA_RANGE)
    *ret = jinja_integer (object->range->start + index * object->range->step);
  else
    {
      gsize offset = jinja_string_offset (object, (gsize) index);

      jinja_step (run, object->length / 64);
      *ret = jinja_string_sub (
          object, offset,
          jinja_utf8_size (jinja_string_bytes (object)[offset]));
    }
  return TRUE;
}

JinjaValue
jinja_get_attribute (JinjaRun *run, const JinjaValue *object,
                     const JinjaValue *name)
{
  JinjaValue value;

  if (jinja_find_attribute (run, object, name, &value)
      || find_item (run, object, name, &value))
    return value;
  return jinja_undefined_attribute (run, object, *name);
}

JinjaValue
jinja_get_item (JinjaRun *run, const JinjaValue *object, const JinjaValue *key)
{
  JinjaValue value;

  if (find_item (run, object, key, &value)
      || (key->kind == JINJA_STRING
          && jinja_find_attribute (run, object, key, &value)))
    return value;
  return jinja_undefined_attribute (run, object, *key);
}

void
jinja_set_attribute (JinjaRun *run, JinjaValue object, JinjaValue name,
                     JinjaValue value)
{
  if (object.kind != JINJA_NAMESPACE)
    jinja_raise (run, "cannot assign attribute on non-namespace object");
  jinja_check_namespace_name (run, &name);
  jinja_dict_set (run, object.dict, name, value);
}
