/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-run.h"

G_BEGIN_DECLS

/*
 * The values of the template language: those of Python that a chat template
 * can meet. Values are small and passed by value; what they point to lies in
 * the arena of the run (or of the parsed template, for constants) and is
 * immutable, but for namespaces, iterators and loops.
 */
typedef enum {
  JINJA_MISSING, /* no value: an argument not given, a name not yet set */
  JINJA_UNDEFINED,
  JINJA_NONE,
  JINJA_BOOLEAN,
  JINJA_INTEGER,
  JINJA_BIG, /* an integer beyond 64 bits */
  JINJA_FLOAT,
  JINJA_STRING,
  JINJA_LIST,
  JINJA_TUPLE,
  JINJA_DICT,
  JINJA_VIEW, /* keys, values or items of a dict */
  JINJA_RANGE,
  JINJA_ITERATOR, /* a generator: can be walked once */
  JINJA_NAMESPACE,
  JINJA_MACRO,
  JINJA_FUNCTION, /* a builtin, maybe bound to an object */
  JINJA_LOOP,
  JINJA_CYCLER,
  JINJA_JOINER,
} JinjaKind;

typedef enum {
  JINJA_DATA,     /* from a variable, or made by the engine */
  JINJA_TEMPLATE, /* written in the template, or a *_token variable */
} JinjaOrigin;

typedef struct _JinjaText JinjaText;
typedef struct _JinjaHint JinjaHint;
typedef struct _JinjaBig JinjaBig;
typedef struct _JinjaItems JinjaItems;
typedef struct _JinjaDict JinjaDict;
typedef struct _JinjaView JinjaView;
typedef struct _JinjaRange JinjaRange;
typedef struct _JinjaIterator JinjaIterator;
typedef struct _JinjaMacro JinjaMacro;
typedef struct _JinjaFunction JinjaFunction;
typedef struct _JinjaLoop JinjaLoop;
typedef struct _JinjaCycler JinjaCycler;

typedef struct {
  guint8 kind;    /* JinjaKind */
  guint8 markup;  /* string: came from safe or escape (Python's Markup) */
  guint32 offset; /* string: its first byte in text */
  guint32 length; /* string: bytes; list and tuple: items */
  union {
    gboolean boolean;
    gint64 integer;
    double number;
    JinjaText *text;
    const JinjaHint *hint; /* undefined: why, or NULL */
    const JinjaBig *big;
    JinjaItems *items; /* list, tuple */
    JinjaDict *dict;   /* dict, namespace */
    const JinjaView *view;
    const JinjaRange *range;
    JinjaIterator *iterator;
    const JinjaMacro *macro;
    const JinjaFunction *function;
    JinjaLoop *loop;
    JinjaCycler *cycler; /* cycler, joiner */
  };
} JinjaValue;

/* Items of lists and tuples. Several lists may share a buffer as long as each
 * is a prefix of it, so that appending in a loop is not quadratic. */
struct _JinjaItems {
  JinjaValue *values;
  guint32 used;
  guint32 capacity; /* 0: never appended to in place */
  gboolean group;   /* a (grouper, list) pair of groupby */
};

typedef struct {
  JinjaValue key;
  JinjaValue value;
  guint32 hash;
} JinjaEntry;

/* Keeps the order of insertion. */
struct _JinjaDict {
  JinjaEntry *entries;
  guint32 n_entries;
  guint32 capacity;
  guint32 *slots; /* entry index + 1, open addressing; NULL when small */
  guint32 n_slots;
};

typedef enum { JINJA_KEYS, JINJA_VALUES, JINJA_ITEMS } JinjaViewOf;

struct _JinjaView {
  const JinjaDict *dict;
  JinjaViewOf of;
};

struct _JinjaRange {
  gint64 start;
  gint64 stop; /* as it is printed */
  gint64 step;
  gint64 length;
};

/* The items a generator gives, computed at once, and how far it got. */
struct _JinjaIterator {
  JinjaValue over; /* anything iterable but an iterator */
  gsize next;      /* item, or byte of a string */
};

typedef enum {
  JINJA_HINT_NAME,
  JINJA_HINT_ATTRIBUTE,
  JINJA_HINT_UNSAFE,
  JINJA_HINT_MESSAGE,
} JinjaHintReason;

struct _JinjaHint {
  JinjaHintReason reason;
  const char *object;  /* type of what lacks the attribute */
  JinjaValue name;     /* of variable, attribute or element */
  const char *message; /* JINJA_HINT_MESSAGE */
};

typedef struct {
  JinjaValue name;
  JinjaValue value;
} JinjaKeyword;

typedef struct {
  const JinjaValue *values;
  guint n_values;
  const JinjaKeyword *keywords;
  guint n_keywords;
} JinjaArguments;

#define JINJA_MAX_PARAMETERS 6

/* A filter, test, method or global function. */
typedef struct {
  const char *name;
  /* "first,second": arguments are bound to these and passed as an array, with
   * JINJA_MISSING for what was not given. NULL: takes them as they come. */
  const char *parameters;
  guint n_required;
  JinjaValue (*call) (JinjaRun *run, const JinjaValue *self,
                      const JinjaValue *arguments);
  JinjaValue (*call_any) (JinjaRun *run, const JinjaValue *self,
                          const JinjaArguments *arguments);
} JinjaBuiltin;

struct _JinjaFunction {
  const JinjaBuiltin *builtin;
  JinjaValue self; /* JINJA_MISSING for a global function */
};

struct _JinjaCycler {
  JinjaValue items; /* cycler: a tuple; joiner: its separator */
  gsize position;
};

static inline JinjaValue
jinja_missing (void)
{
  return (JinjaValue) { .kind = JINJA_MISSING };
}

static inline JinjaValue
jinja_none (void)
{
  return (JinjaValue) { .kind = JINJA_NONE };
}

static inline JinjaValue
jinja_boolean (gboolean value)
{
  return (JinjaValue) { .kind = JINJA_BOOLEAN, .boolean = !!value };
}

static inline JinjaValue
jinja_integer (gint64 value)
{
  return (JinjaValue) { .kind = JINJA_INTEGER, .integer = value };
}

static inline JinjaValue
jinja_float (double value)
{
  return (JinjaValue) { .kind = JINJA_FLOAT, .number = value };
}

/* A value of the class int: bool is one. */
static inline gboolean
jinja_is_integer (const JinjaValue *value)
{
  return value->kind == JINJA_BOOLEAN || value->kind == JINJA_INTEGER
         || value->kind == JINJA_BIG;
}

static inline gboolean
jinja_is_number (const JinjaValue *value)
{
  return jinja_is_integer (value) || value->kind == JINJA_FLOAT;
}

static inline gboolean
jinja_is_list (const JinjaValue *value)
{
  return value->kind == JINJA_LIST || value->kind == JINJA_TUPLE;
}

/* Not given, or None. */
static inline gboolean
jinja_is_absent (const JinjaValue *value)
{
  return value->kind == JINJA_MISSING || value->kind == JINJA_NONE;
}

/* Python's name of the type: "str". */
const char *jinja_type_name (const JinjaValue *value);

/* Undefined values. */
JinjaValue jinja_undefined_name (JinjaRun *run, JinjaValue name);
JinjaValue jinja_undefined_attribute (JinjaRun *run, const JinjaValue *object,
                                      JinjaValue name);
JinjaValue jinja_undefined_unsafe (JinjaRun *run, const JinjaValue *object,
                                   JinjaValue name);
JinjaValue jinja_undefined_message (JinjaRun *run, const char *message);
/* The error of using an undefined value. */
void jinja_raise_undefined (JinjaRun *run, const JinjaValue *value)
    G_GNUC_NORETURN;

/* Lists and tuples. */
JinjaValue jinja_list_new (JinjaRun *run, JinjaKind kind, gsize reserve);
/* Only for a list that is still being made. */
void jinja_list_append (JinjaRun *run, JinjaValue *list, JinjaValue item);
JinjaValue jinja_list_concat (JinjaRun *run, const JinjaValue *a,
                              const JinjaValue *b);
JinjaValue jinja_pair (JinjaRun *run, JinjaValue first, JinjaValue second);

/* Dicts. Raise for keys that have no hash. */
JinjaDict *jinja_dict_new (JinjaRun *run);
void jinja_dict_set (JinjaRun *run, JinjaDict *dict, JinjaValue key,
                     JinjaValue value);
/* NULL when absent. */
const JinjaValue *jinja_dict_get (JinjaRun *run, const JinjaDict *dict,
                                  const JinjaValue *key);
gboolean jinja_is_hashable (const JinjaValue *value);
static inline JinjaValue
jinja_dict_value (JinjaDict *dict)
{
  return (JinjaValue) { .kind = JINJA_DICT, .dict = dict };
}

/* Iterators. */
JinjaValue jinja_iterator_new (JinjaRun *run, JinjaValue over);
/* An iterator over anything iterable (an iterator itself as it is); raises
 * when @value is not. */
JinjaIterator *jinja_iterate (JinjaRun *run, const JinjaValue *value);
gboolean jinja_next (JinjaRun *run, JinjaIterator *iterator, JinjaValue *item);
gboolean jinja_is_iterable (const JinjaValue *value);
/* len (): FALSE when the type has none. */
gboolean jinja_length (const JinjaValue *value, gint64 *length);
/* A fresh list of all items. */
JinjaValue jinja_to_list (JinjaRun *run, const JinjaValue *value);

JinjaValue jinja_bind (JinjaRun *run, const JinjaBuiltin *builtin,
                       const JinjaValue *self);

G_END_DECLS
