/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A template and, behind a NUL, the variables it is rendered with (a fixed
 * conversation when there is no NUL). Either parse or render fails with an
 * error, or the text is valid UTF-8 and its spans lie in it, in order.
 */
#include <stdint.h>
#include <string.h>

#include "error.h"
#include "text/chat-template.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static const char conversation[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be terse.\"},"
    "{\"role\":\"user\",\"content\":\"\\u00c4 <b> 'x' \\\"y\\\"\\n\\u4f60\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":"
    "{\"name\":\"f\",\"arguments\":{\"a\":1,\"b\":[1.5,true,null]}}}]}],"
    "\"tools\":[{\"name\":\"f\"}],\"bos_token\":\"<s>\",\"n\":-7,"
    "\"big\":123456789012345678901234567890,\"add_generation_prompt\":true}";

static void
check_text (const RunnelRenderedText *rendered)
{
  gsize length;
  gsize n;
  gsize at = 0;
  const char *text = runnel_rendered_text_get_text (rendered, &length);
  const RunnelTextSpan *spans = runnel_rendered_text_get_spans (rendered, &n);

  g_assert_cmpint (text[length], ==, '\0');
  for (gsize i = 0; i < length; i += strlen (text + i) + 1)
    g_assert_true (g_utf8_validate (text + i, -1, NULL));
  for (gsize i = 0; i < n; i++)
    {
      g_assert_cmpuint (spans[i].length, >, 0);
      g_assert_true (i == 0 ? TRUE : spans[i].start > at);
      at = spans[i].start + spans[i].length;
    }
  g_assert_cmpuint (at, <=, length);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelChatTemplate) template = NULL;
  g_autoptr (RunnelRenderedText) rendered = NULL;
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autoptr (GDateTime) now = g_date_time_new (utc, 2026, 12, 1, 0, 0, 0);
  const char *source = (const char *) data;
  const char *end = size > 0 ? memchr (data, 0, size) : NULL;
  const char *variables = conversation;
  gsize length = size;
  gsize variables_length = strlen (conversation);

  if (end != NULL)
    {
      length = (gsize) (end - source);
      variables = end + 1;
      variables_length = size - length - 1;
    }
  template = runnel_chat_template_new (size > 0 ? source : "",
                                       (gssize) length, "fuzz", &error);
  g_assert_true ((template == NULL) == (error != NULL));
  if (template == NULL)
    {
      g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE);
      return 0;
    }
  rendered = runnel_chat_template_render (
      template, variables, (gssize) variables_length, now, &error);
  g_assert_true ((rendered == NULL) == (error != NULL));
  if (rendered != NULL)
    check_text (rendered);
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static const char *const seeds[] = {
    "{{ bos_token }}{% for m in messages if m.content %}{{ '<|' ~ m.role ~ "
    "'|>' + m['content'] | trim }}{% if loop.last %}!{% else %},{% endif %}"
    "{% else %}none{% endfor %}",
    "{%- set ns = namespace(n=0, l=[]) -%}\n{%- for m in messages[::-1] %}"
    "{%- set ns.n = ns.n + loop.index0 %}{%- set ns.l = ns.l + [m.role] %}"
    "{%- endfor %}{{ ns.l|sort|join(', ') }} {{ ns.n // 2 ** 3 % 5 }}",
    "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c|upper }}{{ caller() if "
    "caller }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, c='q') }}"
    "{% call(z) f(2) %}{{ z|d('-') }}{% endcall %}",
    "{{ messages|tojson(indent=2) }}{{ messages|map(attribute='role')|list }}"
    "{{ messages|selectattr('role', 'equalto', 'user')|map('tojson')|first }}"
    "{{ messages|groupby('role')|list }}",
    "{% for k, v in messages[2].tool_calls[0].function.arguments|items %}"
    "{{ k }}={{ v is string }}{{ v is iterable and v is not mapping }}"
    "{% break %}{% endfor %}{% raw %}{{ x }}{% endraw %}{# c #}",
    "{{ '%5.1f|%-6s|%(x)s' % {'x': 1} }}{{ '{0!r:>10}{a[0]}'.format('q', "
    "a=[1]) }}{{ big * big // n }}{{ big % 1000 }}{{ 1e16 }}{{ n|abs }}",
    "{% set x %}a{{ messages|length }}{% endset %}{% filter upper %}{{ x }}"
    "{% endfilter %}{% with a=1, b=x %}{{ a ~ b }}{% endwith %}"
    "{% generation %}g{% endgeneration %}{% block q %}b{% endblock %}",
    "{% for x in [1,[2,[3]]] recursive %}{{ loop(x) if x is iterable else x }}"
    "{{ loop.cycle('a','b') }}{{ loop.changed(x) }}{{ loop.nextitem }}"
    "{% endfor %}{{ range(10)[2:8:3]|list }}{{ 'abcdef'[-2::-2] }}",
    "{{ messages[1].content.split(' ')[0].lower().replace('\\u00e4', 'ae') }}"
    "{{ messages[1].content|e|title|wordcount }}{{ 'x\\ty\\x41' }}"
    "{{ strftime_now('%d %b %Y') }}{{ raise_exception('no') }}",
    "{{ a.b }}\0{\"a\":{\"b\":[1,2.5,\"x\",null]},\"eos_token\":\"</s>\"}",
    "{{ x['y'] if not z is defined else -z|int }}{{ 1 < 2 <= 3 in [3] }}",
  };
  static const gsize with_variables = 9;

  if (i >= G_N_ELEMENTS (seeds))
    return NULL;
  *size = strlen (seeds[i]);
  if (i == with_variables)
    *size += 1 + strlen (seeds[i] + *size + 1);
  return (const uint8_t *) seeds[i];
}
