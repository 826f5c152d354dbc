/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-text.h"

/* The sandbox's limit. */
#define MAX_RANGE 100000

static JinjaValue
global_range (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  gint64 start = 0;
  gint64 stop = jinja_index (run, &a[0]);
  gint64 step = jinja_integer_or (run, &a[2], 1);
  guint64 distance;
  JinjaRange *range = jinja_new (run, JinjaRange);

  if (a[1].kind != JINJA_MISSING)
    {
      start = stop;
      stop = jinja_index (run, &a[1]);
    }
  for (guint i = 0; i < 3; i++)
    if (a[i].kind == JINJA_BIG)
      jinja_raise (run, "range() takes integers of 64 bits");
  if (step == 0)
    jinja_raise (run, "range() arg 3 must not be zero");
  range->start = start;
  range->stop = stop;
  range->step = step;
  if (step > 0 ? start < stop : start > stop)
    {
      guint64 stride = step > 0 ? (guint64) step : -(guint64) step;

      distance = step > 0 ? (guint64) stop - (guint64) start
                          : (guint64) start - (guint64) stop;
      if ((distance - 1) / stride >= MAX_RANGE)
        jinja_raise (run, "range too big: the sandbox blocks ranges larger "
                          "than %d", MAX_RANGE);
      range->length = (gint64) ((distance - 1) / stride) + 1;
    }
  return (JinjaValue) { .kind = JINJA_RANGE, .range = range };
}

/* dict (mapping or pairs, **more) */
static JinjaDict *
make_dict (JinjaRun *run, const JinjaArguments *arguments)
{
  JinjaDict *dict = jinja_dict_new (run);
  const JinjaValue *from = arguments->values;
  JinjaIterator *iterator;
  JinjaValue item;

  if (arguments->n_values > 1)
    jinja_raise (run, "dict expected at most 1 argument, got %u",
                 arguments->n_values);
  if (arguments->n_values == 1
      && (from->kind == JINJA_DICT || from->kind == JINJA_NAMESPACE))
    for (guint32 i = 0; i < from->dict->n_entries; i++)
      jinja_dict_set (run, dict, from->dict->entries[i].key,
                      from->dict->entries[i].value);
  else if (arguments->n_values == 1)
    {
      iterator = jinja_iterate (run, from);
      while (jinja_next (run, iterator, &item))
        {
          JinjaValue pair = jinja_to_list (run, &item);

          if (pair.length != 2)
            jinja_raise (run, "dictionary update sequence element has length "
                              "%u; 2 is required", pair.length);
          jinja_dict_set (run, dict, pair.items->values[0],
                          pair.items->values[1]);
        }
    }
  for (guint i = 0; i < arguments->n_keywords; i++)
    jinja_dict_set (run, dict, arguments->keywords[i].name,
                    arguments->keywords[i].value);
  return dict;
}

static JinjaValue
global_dict (JinjaRun *run, const JinjaValue *self,
             const JinjaArguments *arguments)
{
  return jinja_dict_value (make_dict (run, arguments));
}

void
jinja_check_namespace_name (JinjaRun *run, const JinjaValue *name)
{
  if (name->kind == JINJA_STRING && name->length > 0
      && jinja_string_bytes (name)[0] == '_')
    jinja_raise (run,
                 "a namespace cannot store '" JINJA_STRING_FORMAT
                 "': it begins with an underscore",
                 JINJA_STRING_ARGS (name));
}

static JinjaValue
global_namespace (JinjaRun *run, const JinjaValue *self,
                  const JinjaArguments *arguments)
{
  JinjaDict *dict = make_dict (run, arguments);

  for (guint32 i = 0; i < dict->n_entries; i++)
    jinja_check_namespace_name (run, &dict->entries[i].key);
  return (JinjaValue) { .kind = JINJA_NAMESPACE, .dict = dict };
}

static JinjaValue
global_cycler (JinjaRun *run, const JinjaValue *self,
               const JinjaArguments *arguments)
{
  JinjaCycler *cycler = jinja_new (run, JinjaCycler);

  if (arguments->n_values == 0)
    jinja_raise (run, "at least one item has to be provided");
  cycler->items = jinja_list_new (run, JINJA_TUPLE, arguments->n_values);
  for (guint i = 0; i < arguments->n_values; i++)
    jinja_list_append (run, &cycler->items, arguments->values[i]);
  return (JinjaValue) { .kind = JINJA_CYCLER, .cycler = cycler };
}

static JinjaValue
global_joiner (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  JinjaCycler *joiner = jinja_new (run, JinjaCycler);

  joiner->items =
      a[0].kind == JINJA_MISSING ? jinja_string_c (run, ", ") : a[0];
  return (JinjaValue) { .kind = JINJA_JOINER, .cycler = joiner };
}

static JinjaValue
global_raise_exception (JinjaRun *run, const JinjaValue *self,
                        const JinjaValue *a)
{
  JinjaValue message = jinja_str (run, &a[0]);

  jinja_raise_verbatim (run, jinja_string_bytes (&message), message.length);
}

/* What strftime of the C locale says, whatever the locale of the process. */
static const char *
time_in_english (GDateTime *now, char conversion)
{
  static const char *const days[] = { "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday",
                                      "Sunday" };
  static const char *const months[] = { "January",   "February", "March",
                                        "April",     "May",      "June",
                                        "July",      "August",   "September",
                                        "October",   "November", "December" };

  switch (conversion)
    {
    case 'a':
    case 'A':
      return days[g_date_time_get_day_of_week (now) - 1];
    case 'b':
    case 'h':
    case 'B':
      return months[g_date_time_get_month (now) - 1];
    case 'p':
      return g_date_time_get_hour (now) < 12 ? "AM" : "PM";
    default:
      return NULL;
    }
}

static void
append_number (JinjaRun *run, JinjaText *text, int number, int width,
               char fill, gboolean pad)
{
  if (!pad)
    jinja_text_append_printf (run, text, "%d", number);
  else if (fill == ' ')
    jinja_text_append_printf (run, text, "%*d", width, number);
  else
    jinja_text_append_printf (run, text, "%0*d", width, number);
}

/* Weeks that begin on @first (0: Sunday, 1: Monday), as %U and %W count. */
static int
week_of_year (GDateTime *now, int first)
{
  int weekday = g_date_time_get_day_of_week (now) % 7; /* Sunday: 0 */

  weekday = (weekday - first + 7) % 7;
  return (g_date_time_get_day_of_year (now) - 1 + 7 - weekday) / 7;
}

static void append_time (JinjaRun *run, JinjaText *text, GDateTime *now,
                         const char *format, gsize length);

static void
append_c_time (JinjaRun *run, JinjaText *text, GDateTime *now,
               const char *format)
{
  append_time (run, text, now, format, strlen (format));
}

/* One conversion of strftime; FALSE for one that does not exist. Long, since
 * it is one flat switch. */
static gboolean
append_conversion (JinjaRun *run, JinjaText *text, GDateTime *now,
                   char conversion, gboolean pad)
{
  const char *english = time_in_english (now, conversion);
  int hour = g_date_time_get_hour (now);

  jinja_step (run, 10);
  if (english != NULL)
    {
      gsize length = conversion == 'a' || conversion == 'b'
                             || conversion == 'h'
                         ? 3
                         : strlen (english);

      jinja_text_append (run, text, english, length, JINJA_DATA);
      return TRUE;
    }
  switch (conversion)
    {
    case 'Y':
      append_number (run, text, g_date_time_get_year (now), 1, '0', pad);
      break;
    case 'C':
      append_number (run, text, g_date_time_get_year (now) / 100, 2, '0', pad);
      break;
    case 'y':
      append_number (run, text, g_date_time_get_year (now) % 100, 2, '0', pad);
      break;
    case 'G':
      append_number (run, text, g_date_time_get_week_numbering_year (now), 1,
                     '0', pad);
      break;
    case 'g':
      append_number (run, text, g_date_time_get_week_numbering_year (now) % 100,
                     2, '0', pad);
      break;
    case 'm':
      append_number (run, text, g_date_time_get_month (now), 2, '0', pad);
      break;
    case 'd':
      append_number (run, text, g_date_time_get_day_of_month (now), 2, '0',
                     pad);
      break;
    case 'e':
      append_number (run, text, g_date_time_get_day_of_month (now), 2, ' ',
                     pad);
      break;
    case 'H':
      append_number (run, text, hour, 2, '0', pad);
      break;
    case 'k':
      append_number (run, text, hour, 2, ' ', pad);
      break;
    case 'I':
      append_number (run, text, (hour + 11) % 12 + 1, 2, '0', pad);
      break;
    case 'l':
      append_number (run, text, (hour + 11) % 12 + 1, 2, ' ', pad);
      break;
    case 'M':
      append_number (run, text, g_date_time_get_minute (now), 2, '0', pad);
      break;
    case 'S':
      append_number (run, text, g_date_time_get_second (now), 2, '0', pad);
      break;
    case 'f':
      append_number (run, text, g_date_time_get_microsecond (now), 6, '0',
                     TRUE);
      break;
    case 'j':
      append_number (run, text, g_date_time_get_day_of_year (now), 3, '0',
                     pad);
      break;
    case 'U':
      append_number (run, text, week_of_year (now, 0), 2, '0', pad);
      break;
    case 'W':
      append_number (run, text, week_of_year (now, 1), 2, '0', pad);
      break;
    case 'V':
      append_number (run, text, g_date_time_get_week_of_year (now), 2, '0',
                     pad);
      break;
    case 'u':
      append_number (run, text, g_date_time_get_day_of_week (now), 1, '0',
                     pad);
      break;
    case 'w':
      append_number (run, text, g_date_time_get_day_of_week (now) % 7, 1, '0',
                     pad);
      break;
    case 's':
      jinja_text_append_printf (run, text, "%" G_GINT64_FORMAT,
                                g_date_time_to_unix (now));
      break;
    case 'P':
      jinja_text_append_c (run, text, hour < 12 ? "am" : "pm");
      break;
    case 'c':
      append_c_time (run, text, now, "%a %b %e %H:%M:%S %Y");
      break;
    case 'D':
    case 'x':
      append_c_time (run, text, now, "%m/%d/%y");
      break;
    case 'F':
      append_c_time (run, text, now, "%Y-%m-%d");
      break;
    case 'T':
    case 'X':
      append_c_time (run, text, now, "%H:%M:%S");
      break;
    case 'R':
      append_c_time (run, text, now, "%H:%M");
      break;
    case 'r':
      append_c_time (run, text, now, "%I:%M:%S %p");
      break;
    case 'n':
      jinja_text_append_c (run, text, "\n");
      break;
    case 't':
      jinja_text_append_c (run, text, "\t");
      break;
    case '%':
      jinja_text_append_c (run, text, "%");
      break;
    case 'z':
    case 'Z':
      break; /* datetime.now () knows no time zone */
    default:
      return FALSE;
    }
  return TRUE;
}

static void
append_time (JinjaRun *run, JinjaText *text, GDateTime *now,
             const char *format, gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      gboolean pad = TRUE;
      gsize start = i;

      if (format[i] != '%' || i + 1 == length)
        {
          jinja_text_append (run, text, &format[i], 1, JINJA_DATA);
          continue;
        }
      i++;
      if (format[i] == '-' && i + 1 < length)
        {
          pad = FALSE;
          i++;
        }
      if (!append_conversion (run, text, now, format[i], pad))
        jinja_text_append (run, text, format + start, i + 1 - start,
                           JINJA_DATA);
    }
}

static JinjaValue
global_strftime_now (JinjaRun *run, const JinjaValue *self,
                     const JinjaValue *a)
{
  const JinjaValue *format = jinja_check_string (run, &a[0]);
  JinjaText *text = jinja_text_new (run, 32);

  append_time (run, text, run->now, jinja_string_bytes (format),
               format->length);
  /* A format that is all template gives template text. */
  return jinja_string_new (run, text->bytes, text->used,
                           jinja_string_common_origin (format));
}

const JinjaBuiltin jinja_globals[] = {
  { "range", "start,stop,step", 1, .call = global_range },
  { "dict", .call_any = global_dict },
  { "namespace", .call_any = global_namespace },
  { "cycler", .call_any = global_cycler },
  { "joiner", "sep", .call = global_joiner },
  { "raise_exception", "message", 1, .call = global_raise_exception },
  { "strftime_now", "format", 1, .call = global_strftime_now },
  { NULL },
};

static JinjaValue
cycler_next (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  JinjaCycler *cycler = self->cycler;
  JinjaValue item = cycler->items.items->values[cycler->position];

  cycler->position = (cycler->position + 1) % cycler->items.length;
  return item;
}

static JinjaValue
cycler_reset (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  self->cycler->position = 0;
  return jinja_none ();
}

const JinjaBuiltin jinja_cycler_methods[] = {
  { "next", "", .call = cycler_next },
  { "reset", "", .call = cycler_reset },
  { NULL },
};
