#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Text, tokens and logits: the verbs tokenize, detokenize, render and logits:
test-tool-text.py RUNNEL MAKE-MODEL."""

import json
import os
import sys

from runnel_command import bad, folder, good, make_model, run_tests, tool

tiny = make_model ('tiny.gguf')


def test_tokenize ():
    text = 'Hello wörld'
    ids = good ('tokenize', '-m', tiny, text).split ()
    assert ids and all (i.isdigit () for i in ids)
    assert good ('tokenize', '-m', tiny, stdin=text).split () == ids
    parsed = json.loads (good ('tokenize', '-m', tiny, '--json', text))
    assert parsed == {'text': text, 'ids': [int (i) for i in ids]}
    parsed = json.loads (good ('tokenize', '-m', tiny, '-p', '--json', text))
    assert len (parsed['pieces']) == len (ids)
    assert len (good ('tokenize', '-m', tiny, '-p', text).splitlines ()) \
        == len (ids)
    # A control token only when asked for.
    assert good ('tokenize', '-m', tiny, '-s', '<|im_end|>').split () == ['2']
    assert '2' not in good ('tokenize', '-m', tiny, '<|im_end|>').split ()
    lines = good ('tokenize', '-m', tiny, '--lines', stdin='a\n\nb').split ('\n')
    assert len (lines) == 4 and lines[1] == '' and lines[0] and lines[2]
    lines = good ('tokenize', '-m', tiny, '--json-lines',
                  stdin='"a b"\n{"text": "c\\nd"}\n').splitlines ()
    assert [json.loads (line)['text'] for line in lines] == ['a b', 'c\nd']
    bad (1, 'tokenize', '-m', tiny, '--json-lines', stdin='[1]\n',
         says='line 1 .*text')
    bad (1, 'tokenize', '-m', tiny, '--json-lines', stdin='{"text"\n',
         says='line 1')
    bad (1, 'tokenize', '-m', tiny, stdin=b'\xff\xfe', says='UTF-8')


def test_detokenize ():
    text = 'Hello wörld\n and more'
    ids = good ('tokenize', '-m', tiny, text)
    assert good ('detokenize', '-m', tiny, stdin=ids) == text
    assert good ('detokenize', '-m', tiny, ids) == text
    commas = '[' + ', '.join (ids.split ()) + ']'
    assert good ('detokenize', '-m', tiny, stdin=commas) == text
    assert good ('detokenize', '-m', tiny, stdin='') == ''
    assert good ('detokenize', '-m', tiny, '2') == ''
    assert good ('detokenize', '-m', tiny, '-s', '2') == '<|im_end|>'
    lines = good ('tokenize', '-m', tiny, '--lines', stdin='a\n\nbc\n')
    assert good ('detokenize', '-m', tiny, '--lines', stdin=lines) == 'a\n\nbc\n'
    # What tokenize writes as JSON lines, detokenize reads.
    lines = good ('tokenize', '-m', tiny, '--json-lines', stdin='"x y"\n"z"\n')
    back = good ('detokenize', '-m', tiny, '--json-lines', stdin=lines)
    assert [json.loads (line)['text'] for line in back.splitlines ()] \
        == ['x y', 'z']
    parsed = json.loads (good ('detokenize', '-m', tiny, '--json', '4 5'))
    assert parsed['ids'] == [4, 5]
    bad (1, 'detokenize', '-m', tiny, '1 x', says="'x' is no token id")
    bad (1, 'detokenize', '-m', tiny, '1.5', says='no token id')
    bad (1, 'detokenize', '-m', tiny, '99999', says='99999.*0 to')
    bad (1, 'detokenize', '-m', tiny, stdin='-1', says='-1 is no token')
    bad (1, 'detokenize', '-m', tiny, '99999999999999999999', says='0 to')
    result = tool ('detokenize', '-m', tiny, '--json-lines',
                   stdin='[4]\n{"a":1}\n')
    assert result.status == 1 and 'line 2' in result.err
    result = tool ('detokenize', '-m', tiny, '--json-lines', stdin='["a"]\n')
    assert result.status == 1 and 'line 1' in result.err


def test_render ():
    messages = '[{"role":"user","content":"Hi <|im_end|>"}]'
    text = good ('render', '-m', tiny, stdin=messages)
    assert 'Hi <|im_end|>' in text and 'assistant' in text
    path = os.path.join (folder.name, 'messages.json')
    with open (path, 'w') as file:
        file.write ('{"messages": %s}' % messages)
    assert good ('render', '-m', tiny, path) == text
    shorter = good ('render', '-m', tiny, '--no-generation-prompt', path)
    assert text.startswith (shorter) and len (shorter) < len (text)
    parsed = json.loads (good ('render', '-m', tiny, '--json', '--tokens',
                               path))
    assert parsed['text'] == text
    data = text.encode ()
    kept = b''.join (data[start:start + length]
                     for start, length in parsed['template_spans'])
    assert b'Hi <' not in kept and kept.count (b'<|im_end|>') \
        == text.count ('<|im_end|>') - 1
    # The user's words are no control token.
    assert parsed['ids'].count (2) == text.count ('<|im_end|>') - 1
    ids = good ('render', '-m', tiny, '--tokens', path)
    assert [int (i) for i in ids.split ()] == parsed['ids']


def test_render_template ():
    template = os.path.join (folder.name, 'own.jinja')
    with open (template, 'w') as file:
        file.write ('{% for m in messages %}[{{ m.role }}] {{ m.content }}'
                    '{% endfor %}{{ tools | tojson }}{{ enable_thinking }}'
                    '{{ strftime_now("%Y") }}{{ bos_token }}')
    tools = os.path.join (folder.name, 'tools.json')
    with open (tools, 'w') as file:
        file.write ('[{"name": "f", "n": 1.0}]')
    text = good ('render', '--template', template, '--tools', tools,
                 '--thinking', 'off', '--now', '2001-02-03T04:05:06',
                 stdin='[{"role":"a","content":"b"}]')
    assert text == '[a] b[{"name": "f", "n": 1.0}]False2001', text
    for stdin, says in (('{', 'standard input'), ('{}', "'messages'"),
                        ('3', 'neither'), ('[1', 'standard input')):
        bad (1, 'render', '-m', tiny, stdin=stdin, says=says)
    with open (template, 'w') as file:
        file.write ('{% for %}')
    bad (1, 'render', '--template', template, stdin='[]', says='own.jinja')
    bad (1, 'render', '--template', '/no/such', stdin='[]', says='/no/such')
    bad (2, 'render', '-m', tiny, '--now', 'soon', stdin='[]', says='--now')
    bad (2, 'render', '-m', tiny, '--thinking', 'x', stdin='[]', says='on nor')


def test_logits ():
    last = json.loads (good ('logits', '-m', tiny, '--ids', '5,6,7'))
    assert last['ids'] == [5, 6, 7]
    assert len (last['logits']) == last['n_vocab']
    # Bit for bit the same, whatever computes them.
    assert json.loads (good ('logits', '-m', tiny, '--ids', '5 6 7', '-t', '1',
                             '--kernels', 'scalar'))['logits'] \
        == last['logits']
    rows = json.loads (good ('logits', '-m', tiny, '-i', '[5,6,7]', '--all'))
    assert len (rows['logits']) == 3 and rows['logits'][2] == last['logits']
    top = json.loads (good ('logits', '-m', tiny, '--ids', '5,6,7', '--top',
                            '4'))['top']
    order = sorted (range (last['n_vocab']),
                    key=lambda i: (-last['logits'][i], i))
    assert [t['id'] for t in top] == order[:4]
    assert all (t['logprob'] < 0 for t in top)
    text = json.loads (good ('logits', '-m', tiny, 'Hello', '--top', '1'))
    assert len (text['top']) == 1
    bad (2, 'logits', '-m', tiny, says='--ids or a text')
    bad (2, 'logits', '-m', tiny, '--ids', '', says='no token')
    bad (2, 'logits', '-m', tiny, '--ids', '1', 'x', says='either')
    bad (2, 'logits', '-m', tiny, '--ids', '1', '--top', '-1', says='--top')
    bad (1, 'logits', '-m', tiny, '--ids', '1,x', says="'x'")
    bad (1, 'logits', '-m', tiny, '--ids', '1,99999', says='99999')
    bad (1, 'logits', '-m', tiny, '--ids', '5,' * 600, says='512')


sys.exit (run_tests ())
