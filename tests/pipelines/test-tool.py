#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""The runnel command, as a user meets it: test-tool.py RUNNEL MAKE-MODEL
MAKE-HEAD MAKE-DRAFT."""

import json
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

runnel, make_model, make_head, make_draft = sys.argv[1:5]
folder = tempfile.TemporaryDirectory (prefix='runnel-tool-')
tiny = os.path.join (folder.name, 'tiny.gguf')
scripted = os.path.join (folder.name, 'scripted.gguf')
reply = ['La', ' Seine', ' coule', ' à', ' Paris', '.\n', 'Et', ' le', ' Rhône.']
subprocess.run ([make_model, tiny], check=True)
subprocess.run ([make_model, scripted] + reply, check=True)
os.environ.pop ('RUNNEL_MODEL', None)
os.environ['XDG_STATE_HOME'] = folder.name
os.environ['XDG_DATA_HOME'] = folder.name

TIMEOUT = 120


class Result:
    def __init__ (self, arguments, process):
        self.arguments = arguments
        self.status = process.returncode
        self.out = process.stdout.decode ()
        self.err = process.stderr.decode ()


def tool (*arguments, stdin='', env=None):
    if not isinstance (stdin, bytes):
        stdin = stdin.encode ()
    process = subprocess.run ([runnel, *arguments], input=stdin,
                              capture_output=True, timeout=TIMEOUT,
                              env={**os.environ, **(env or {})})
    return Result (arguments, process)


def good (*arguments, **options):
    result = tool (*arguments, **options)
    assert result.status == 0, (arguments, result.status, result.err)
    assert result.err == '', (arguments, result.err)
    return result.out


def bad (status, *arguments, says, **options):
    """One line on stderr that says what is wrong, nothing on stdout."""
    result = tool (*arguments, **options)
    assert result.status == status, (arguments, result.status, result.err)
    assert result.out == '', (arguments, result.out)
    assert result.err.count ('\n') == 1, (arguments, result.err)
    assert re.search (says, result.err), (arguments, says, result.err)


VERBS = ['run', 'chat', 'convert', 'verify', 'inspect', 'tokenize',
         'detokenize', 'render', 'logits', 'perplexity', 'bench', 'graph',
         'compare', 'make-model']
VERBS += ['decide']
# Those that are not about one model.
NO_MODEL = ['convert', 'graph', 'compare', 'make-model']


def test_help ():
    usage = good ('--help')
    assert good ('help') == usage
    for verb in VERBS:
        assert f'  {verb} ' in usage
        text = good (verb, '--help')
        assert f'runnel {verb} ' in text
        assert '--help' in text
        assert good (verb, '-h') == text
    assert re.fullmatch (r'runnel \d+\.\d+\.\d+\n', good ('--version'))


def test_usage ():
    assert tool ().status == 2
    bad (2, 'sing', says="no verb 'sing'")
    for verb in VERBS:
        bad (2, verb, '--no-such-option', says=f"see 'runnel {verb} --help'")
    for verb in VERBS:
        if verb in NO_MODEL:
            continue
        bad (2, verb, says='-m FILE.*RUNNEL_MODEL')
        bad (1, verb, '-m', '/no/such/file', says='/no/such/file')
        bad (1, verb, '-m', '/dev/null', says='/dev/null')
    bad (2, 'tokenize', 'one', 'two', '-m', tiny, says='quotes')
    bad (2, 'bench', '--seed', 'x', '-m', tiny, says='--seed')
    bad (2, 'bench', '--threads', '-1', '-m', tiny, says='--threads')
    bad (1, 'bench', '--kernels', 'abacus', '-m', tiny, says='abacus')
    bad (2, 'bench', '--load-mode', 'swap', '-m', tiny, says='auto, map')


def test_common_options ():
    common = ['-t', '1', '--kernels', 'scalar', '--seed', '7', '--load-mode',
              'read']
    assert good ('tokenize', 'a', '-m', tiny, *common) \
        == good ('tokenize', 'a', env={'RUNNEL_MODEL': tiny})
    # -m counts before the environment.
    assert good ('tokenize', 'a', '-m', tiny, env={'RUNNEL_MODEL': '/none'})


def test_convert ():
    package = os.path.join (folder.name, 'tiny.runnel')
    report = good ('convert', tiny, package)
    assert 'INT4_32_OFFSET' in report and 'lossless' in report
    assert 'all digests agree' in good ('verify', package)
    assert 'all digests agree' in good ('verify', '-m', package)
    ids = ['--ids', '5,6,7', '-a']
    expected = json.loads (good ('logits', '-m', tiny, *ids))
    logits = json.loads (good ('logits', '-m', package, '--verify', *ids))
    assert logits['logits'] == expected['logits']
    assert good ('tokenize', '-m', package, 'the user and') \
        == good ('tokenize', '-m', tiny, 'the user and')
    text = good ('inspect', package)
    for word in ['Runnel package', 'tiny.gguf', 'sha256', 'lossless']:
        assert word in text, word
    described = json.loads (good ('inspect', '--json', package))['package']
    assert all (row[2] for row in described['record'])
    text = good ('inspect', '--tensors', package)
    for row in described['record']:
        assert re.search (f'{row[0]} +from {row[1]} +lossless +{row[4]}',
                          text), row
    with open (package, 'r+b') as file:
        file.seek (-64, os.SEEK_END)
        file.write (b'?')
    bad (1, 'verify', package, says="tensor 'output_norm.weight' differs")
    bad (1, 'logits', '--verify', '-m', package, *ids, says='output_norm')
    bad (1, 'run', '--verify', '-m', package, 'a', says='output_norm')
    good ('logits', '-m', package, *ids)
    bad (1, 'verify', tiny, says='has no digests')
    bad (1, 'logits', '--verify', '-m', tiny, *ids, says='has no digests')
    other = os.path.join (folder.name, 'other.runnel')
    report = json.loads (good ('convert', tiny, other, '--json', '--type',
                               'int8', '--keep', 'token_embd*=f16'))
    types = {row[0]: row[2] for row in report['tensors']}
    assert types['token_embd.weight'] == 'F16'
    assert types['blk.0.attn_q.weight'] == 'INT8_32_OFFSET'
    text = os.path.join (folder.name, 'calibration.txt')
    with open (text, 'w') as file:
        file.write ('the user and the rest is in the end ' * 20)
    errors = []
    for more in [], ['--calibrate', text]:
        report = json.loads (good ('convert', tiny, other, '--json', '--type',
                                   'int4', '--group', '64', *more))
        types = {row[0]: row[2] for row in report['tensors']}
        assert types['blk.1.ffn_up.weight'] == 'INT4_64_OFFSET'
        errors.append ([row[4] for row in report['tensors']])
    # What the outputs gain, the weights lose.
    assert sum (errors[1]) > sum (errors[0]) > 0
    bad (1, 'convert', tiny, other, '--calibrate', '/no/such/text',
         says='/no/such/text')
    bad (2, 'convert', tiny, says='a place for the package')
    bad (2, 'convert', tiny, other, '--type', 'int5', says="'int5' is no type")
    bad (2, 'convert', tiny, other, '--group', '48', says='neither 32 nor 64')
    bad (2, 'convert', tiny, other, '--keep', 'x', says='PATTERN=TYPE')
    bad (1, 'convert', tiny, tiny, says='is what the package is made of')
    bad (1, 'convert', '/no/such/file', other, says='/no/such/file')


def test_inspect ():
    text = good ('inspect', tiny)
    for word in ['llama', 'Q4_1', 'GGUF 3', 'chat template']:
        assert word in text, word
    described = json.loads (good ('inspect', '--json', '--tensors', tiny))
    assert described['architecture'] == 'llama'
    assert described['n_layers'] == 2
    assert described['n_embd'] == 64
    assert described['path'] == tiny
    assert len (described['content_id']) == 64
    types = described['tensor_types']
    assert sum (t['n'] for t in types.values ()) == len (described['tensors'])
    assert sum (t['bytes'] for t in types.values ()) \
        == described['tensor_bytes'] < os.path.getsize (tiny)
    assert 'im_start' in described['chat_template']
    assert described['tokenizer']['n_tokens'] == described['n_vocab']
    assert good ('inspect', '-m', tiny) == text


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


def test_run ():
    whole = ''.join (reply)
    assert good ('run', '-m', scripted, 'Which river?') == whole
    assert good ('run', '-m', scripted, 'reply', 'Which river?') == whole
    assert good ('run', '-m', scripted, stdin='Which river?\n') == whole
    assert good ('run', '-m', scripted, 'generate', stdin='Which?\n') == whole
    prompt = os.path.join (folder.name, 'prompt.txt')
    with open (prompt, 'w') as file:
        file.write ('Which river?\n')
    assert good ('run', '-m', scripted, '-f', prompt) == whole
    assert good ('run', '-m', scripted, 'Q', '-n', '2') == 'La Seine'
    assert good ('run', '-m', scripted, 'Q', '--stop', 'coule', '--stop', 'x') \
        == 'La Seine '
    assert good ('run', '-m', scripted, 'Q', '--set', 'decode.max-tokens=1') \
        == 'La'
    # A reply in a file stands where it was put.
    path = os.path.join (folder.name, 'out')
    with open (path, 'wb') as file:
        file.write (b'before ')
        file.flush ()
        subprocess.run ([runnel, 'run', '-m', scripted, 'Q', '-n', '1'],
                        stdout=file, check=True, timeout=TIMEOUT)
        file.seek (0, 2)
        file.write (b' after')
    with open (path) as file:
        assert file.read () == 'before La after'


def test_run_json ():
    parsed = json.loads (good ('run', '-m', scripted, '--json', 'Q'))
    one, = parsed['replies']
    assert parsed['preset'] == 'reply'
    assert one['text'] == ''.join (reply)
    assert one['finish_reason'] == 'stop'
    assert one['completion_tokens'] == len (reply)
    assert one['prompt_tokens'] > 0
    one, = json.loads (good ('run', '-m', scripted, '--json', '-n', '3',
                             'Q'))['replies']
    assert one['finish_reason'] == 'length' and one['completion_tokens'] == 3


def test_run_two_replies ():
    options = ['-m', tiny, '-n', '12', '--temperature', '1.5', '--top-k', '0',
               '--ignore-eos', 'true', '--json']
    first, second = json.loads (good ('run', 'two-replies', 'Hello', *options,
                                      '--seed', '5'))['replies']
    assert first['name'] == 'first' and second['name'] == 'second'
    for seed, branch in ((5, first), (6, second)):
        alone, = json.loads (good ('run', 'Hello', *options, '--seed',
                                   str (seed)))['replies']
        assert alone['text'] == branch['text']
    text = good ('run', 'two-replies', 'Q', '-m', scripted)
    assert text == ''.join (reply) + '\n\n' + ''.join (reply)


def test_run_draft ():
    options = ['-m', tiny, '-n', '40', '--temperature', '0', '--json',
               '--ignore-eos', 'true', '--set', 'logit-bias=bias,5=100']
    plain, = json.loads (good ('run', 'Hello', *options))['replies']
    assert plain['drafts']['blocks'] == 0
    options += ['--draft', 'lookup', '--set', 'draft-adaptive=false']
    for preset, more in (('reply', []), ('reply', ['--draft-max', '3']),
                         ('generate', []), ('reply', ['--draft', 'lookup'])):
        drafted, = json.loads (good ('run', preset, 'Hello', *options,
                                     *more))['replies']
        assert drafted['text'] == plain['text']
        drafts = drafted['drafts']
        assert 0 < drafts['accepted_tokens'] <= drafts['proposed_tokens']
        assert drafts['mean_accepted'] == (drafts['accepted_tokens']
                                           / drafts['blocks'])
        assert drafts['mean_accepted'] > (2 if more == [] else 1)
    result = tool ('run', '-m', tiny, 'Q', '--draft', 'lookup', '--speed',
                   '--set', 'draft-adaptive=false', '-n', '40', '--set',
                   'logit-bias=bias,5=100', '--temperature', '0')
    assert 'guesses right' in result.err
    bad (2, 'run', '-m', tiny, 'Q', '--draft', 'crystal-ball',
         says="'crystal-ball' is neither 'lookup' nor the file")
    bad (2, 'run', '-m', tiny, 'Q', '--draft', 'lookup', '--draft-max', '16',
         says='draft-max is a whole number from 0 to 15')


def test_run_presets ():
    names = [line.split ()[0] for line in good ('run', '--list').splitlines ()]
    assert names == sorted (names)
    for name in ['chat', 'complete', 'generate', 'reply', 'two-replies']:
        assert name in names
    own = os.path.join (folder.name, 'own.pipeline')
    with open (own, 'w') as file:
        file.write ('# Mine.\nlmprompt !\n  # inside\n lmtokenize ! lmprefill '
                    '! lmdecode max-tokens=1 ! lmdetokenize ! fdsink\n')
    assert good ('run', '-m', scripted, own, 'Q') == 'La'
    with open (own, 'w') as file:
        file.write ('lmprompt ! lmnosuch ! fdsink\n')
    bad (1, 'run', '-m', scripted, own, 'Q', says='own.pipeline.*lmnosuch')
    bad (2, 'run', '-m', scripted, 'nosuch', 'Q', says="'nosuch'.*--list")
    bad (2, 'run', '-m', scripted, 'chat', 'Q', says='runnel chat')
    bad (2, 'run', '-m', scripted, 'lines', 'Q', says='lmprompt')


def test_run_lines ():
    whole = ''.join (reply)
    lines = 'one?\ntwo?\nthree?'
    assert good ('run', '-m', scripted, 'lines', stdin=lines) \
        == '\n'.join ([whole] * 3)
    replies = json.loads (good ('run', '-m', scripted, 'lines', '--json',
                                stdin=lines))['replies']
    assert [r['text'] for r in replies] == [whole] * 3
    assert [r['finish_reason'] for r in replies] == ['stop'] * 3


def test_run_bad ():
    bad (2, 'run', '-m', tiny, 'Q', '--temperature', '-3',
         says='temperature is a number from 0')
    bad (2, 'run', '-m', tiny, 'Q', '--thinking', 'maybe',
         says='one of auto on off')
    bad (2, 'run', '-m', tiny, 'Q', '--kernels', 'abacus', says='scalar')
    bad (2, 'run', '-m', tiny, 'Q', '--set', 'nosuch=1', says='nosuch')
    bad (2, 'run', '-m', tiny, 'Q', '--set', 'x.seed=1', says='no element x')
    bad (2, 'run', '-m', tiny, 'Q', '--set', 'seed', says='PROPERTY=VALUE')
    for name in '.', 'decode.', '.seed':
        bad (2, 'run', '-m', tiny, 'Q', '--set', f'{name}=1',
             says='ELEMENT.PROPERTY')
    # An empty value is no 0.
    for option in '-n', '--temperature', '--kernels', '--ignore-eos':
        bad (2, 'run', '-m', tiny, 'Q', option, '', says=f"{option}: ''")
    bad (2, 'run', '-m', tiny, 'Q', '--stop', b'a\xff', says="--stop: 'a.' is")
    bad (2, 'run', '-m', tiny, 'Q', b'--system=\xff', says='--system.*UTF-8')
    for option in '--template', '--tools':
        bad (1, 'run', '-m', tiny, 'Q', option, '/dev/zero',
             says='/dev/zero: is not a regular file')
    bad (2, 'run', '-m', tiny, 'Q', '-f', '/dev/null', says='two prompts')
    bad (1, 'run', '-m', tiny, '-f', '/no/such', says='/no/such')
    bad (1, 'run', '-m', tiny, stdin=b'\xff', says='UTF-8')
    bad (1, 'run', '-m', tiny, stdin=b'a\0b', says='NUL')
    bad (1, 'run', '-m', tiny, 'long ' * 2000, says='512')


def test_run_bad_values ():
    run = ['run', '-m', tiny, 'Q', '--set']
    bad (2, *run, 'stop=x', says='stop is a list, such as')
    bad (2, *run, 'ignore-eos=maybe', says='ignore-eos is true or false')
    bad (2, *run, 'logit-bias=foo', says='logit-bias is a structure, such as')
    bad (1, *run, 'logit-bias=b,x=1.0', says="logit-bias: the field 'x'")
    bad (1, *run, 'logit-bias=b,5=y', says="token 5 has the bias 'y'")
    bad (1, *run, 'tokenize.model=', says='name of the model file is empty')
    # Another element's error names the element and the cause.
    bad (1, *run, 'reply.fd=77', says='reply: .* 77 .*: Bad file')
    empty = os.path.join (folder.name, 'empty.jinja')
    open (empty, 'w').close ()
    bad (1, 'run', '-m', tiny, 'Q', '--template', empty, says='no text')


def without_output (*arguments):
    """The status and stderr on a full disk, then with stdout closed."""
    with open ('/dev/full', 'w') as full:
        for how in {'stdout': full}, {'preexec_fn': lambda: os.close (1)}:
            process = subprocess.run ([runnel, *arguments], **how,
                                      stderr=subprocess.PIPE, timeout=TIMEOUT)
            yield process.returncode, process.stderr.decode ()


def test_output_lost ():
    # Input without an end is not read on.
    for verb in 'tokenize', 'detokenize':
        with open ('/dev/full', 'w') as full, \
                subprocess.Popen (['yes', '1'], stdout=subprocess.PIPE) as yes:
            process = subprocess.run ([runnel, verb, '-m', tiny, '--lines'],
                                      stdin=yes.stdout, stdout=full,
                                      stderr=subprocess.DEVNULL,
                                      timeout=TIMEOUT)
            yes.stdout.close ()
            assert process.returncode == 1
    for arguments in [['--help'], ['--version'], ['run', '--list'], ['graph'],
                      ['tokenize', '-m', tiny, 'Q'],
                      ['run', '-m', scripted, 'Q'],
                      ['logits', '-m', tiny, '--all', 'Q'],
                      ['run', '--json', '-m', scripted, 'Q']]:
        full, closed = without_output (*arguments)
        assert full[0] == 1 and 'No space left' in full[1], (arguments, full)
        assert closed[0] == 1 and 'Bad file' in closed[1], (arguments, closed)


def test_run_interrupted ():
    """Ctrl-C keeps what came, and says so by the exit code."""
    process = subprocess.Popen ([runnel, 'run', '-m', tiny, 'Q', '-n', '-1',
                                 '--ignore-eos', 'true', '--context-length',
                                 '128', '--overflow-policy', 'shift'],
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
    first = os.read (process.stdout.fileno (), 1)
    assert first
    process.send_signal (signal.SIGINT)
    out, err = process.communicate (timeout=TIMEOUT)
    assert process.returncode == 130, (process.returncode, err)
    assert err == b''


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


def test_perplexity ():
    path = os.path.join (folder.name, 'text.txt')
    with open (path, 'w') as file:
        file.write ('One window holds this text, and it is scored whole. ' * 4)
    one = json.loads (good ('perplexity', '-m', tiny, '--json', path))
    assert one['windows'] == 1 and one['scored'] == one['tokens'] - 1
    assert abs (math.exp (one['nll']) / one['perplexity'] - 1) < 1e-9
    for chunk in '1', '7':
        again = json.loads (good ('perplexity', '-m', tiny, '--json',
                                  '--chunk', chunk, path))
        assert again['perplexity'] == one['perplexity']
    # What logits say of the same ids.
    ids = json.loads (good ('tokenize', '-m', tiny, '--json', stdin=open (path)
                            .read ()))['ids']
    rows = json.loads (good ('logits', '-m', tiny, '--all', '--ids',
                             ' '.join (map (str, ids))))['logits']
    nll = [math.log (sum (math.exp (x) for x in row)) - row[token]
           for row, token in zip (rows, ids[1:])]
    assert abs (sum (nll) / len (nll) - one['nll']) < 1e-5
    several = json.loads (good ('perplexity', '-m', tiny, '--json', '-c', '16',
                                path))
    assert several['windows'] == len (ids) // 16
    assert several['scored'] == several['windows'] * 7
    text = good ('perplexity', '-m', tiny, stdin='some words')
    assert 'perplexity' in text and 'machine' in text
    bad (1, 'perplexity', '-m', tiny, '/no/such', says='/no/such')
    bad (1, 'perplexity', '-m', tiny, stdin='', says='two are the least')
    bad (2, 'perplexity', '-m', tiny, '--skip', '-1', path, says='--skip: -1')
    bad (1, 'perplexity', '-m', tiny, tiny, says='tiny.gguf: .*UTF-8')
    bad (2, 'perplexity', '-m', tiny, '-c', '513', path, says='512')
    bad (2, 'perplexity', '-m', tiny, '--chunk', '0', path, says='--chunk')
    bad (2, 'perplexity', '-m', tiny, '-c', '8', '--skip', '8', path,
         says='--skip')


def test_make_model_interrupted ():
    """Ctrl-C leaves nothing of a half-made model."""
    for kind in ('q4_1', 'int4'):
        with tempfile.TemporaryDirectory (dir=folder.name) as place:
            process = subprocess.Popen (
                [runnel, 'make-model', '300m-28', '--type', kind,
                 os.path.join (place, 'model')],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not os.listdir (place):
                assert process.poll () is None, process.communicate ()
                time.sleep (0.001)
            process.send_signal (signal.SIGINT)
            out, err = process.communicate (timeout=TIMEOUT)
            assert process.returncode == 130, (process.returncode, err)
            assert (out, err) == (b'', b''), (out, err)
            assert os.listdir (place) == [], (kind, os.listdir (place))


def log_softmax (row):
    largest = max (row)
    total = largest + math.log (sum (math.exp (x - largest) for x in row))
    return [x - total for x in row]


def test_make_model_and_compare ():
    a, b = (os.path.join (folder.name, name) for name in ('a.gguf', 'b.gguf'))
    made = json.loads (good ('make-model', '50m-28', a, '--json'))
    assert made['name'] == '50m-28 (random noise, seed 1)'
    assert 45e6 < made['n_parameters'] < 55e6
    assert 'random noise, seed 7' in good ('make-model', '50m-28', b, '--type',
                                           'q4_0', '--seed', '7')
    assert good ('inspect', b).startswith ('50m-28 (random noise, seed 7)\n')
    bad (2, 'make-model', says='pocket-0.3b, 50m-28')
    bad (1, 'make-model', 'huge', a, says="'huge'.*pocket-0.3b")
    bad (1, 'make-model', '50m-28', '/no/such/file', says='/no/such/file')

    result = json.loads (good ('compare', a, b, '--json', stdin='The sun is'))
    rows = [json.loads (good ('logits', '-m', path, '--all', 'The sun is'))
            for path in (a, b)]
    ids = rows[0]['ids']
    p, q = ([log_softmax (row) for row in one['logits']] for one in rows)
    n = len (ids) - 1
    kl = [sum (math.exp (x) * (x - y) for x, y in zip (p[i], q[i]))
          for i in range (n)]
    assert result['scored'] == n
    assert abs (result['kl']['mean'] / (sum (kl) / n) - 1) < 1e-4
    assert abs (result['kl_max'] / max (kl) - 1) < 1e-4
    nll = -sum (p[i][ids[i + 1]] for i in range (n)) / n
    assert abs (result['a']['nll']['mean'] - nll) < 1e-4
    assert result['worst'][0]['kl'] == result['kl_max']

    same = json.loads (good ('compare', tiny, tiny, '--json', stdin='ab cd'))
    assert same['kl']['mean'] == 0 and same['top_1_agreement']['mean'] == 1
    text = good ('compare', tiny, tiny, stdin='some words')
    assert 'KL (A || B)' in text and 'same guess' in text
    bad (2, 'compare', tiny, says='two models')
    bad (1, 'compare', tiny, '/no/such', says='/no/such')
    bad (1, 'compare', tiny, a, stdin='words', says='different vocabularies')
    bad (2, 'compare', tiny, tiny, '--chunk', '0', stdin='a', says='--chunk')
    os.remove (a)
    os.remove (b)


def answers (text):
    result = json.loads (text)
    assert result['seconds'] > 0
    return result['answers']


def test_decide ():
    ask = ['decide', '-m', tiny, '-i', 'What is it about?']
    decision = answers (good (*ask, '-o', 'bill,card, fraud', '--json',
                              stdin='Where is my card?\n'))['decision']
    assert list (decision['probabilities']) == ['bill', 'card', 'fraud']
    assert abs (sum (decision['probabilities'].values ()) - 1) < 1e-12
    assert decision['abstain'] is None
    # The same from a file of options, in another order, with other settings
    # that change nothing.
    path = os.path.join (folder.name, 'options.txt')
    with open (path, 'w') as file:
        file.write ('card\n\nfraud\nbill\n')
    again = answers (good (*ask, '--options-file', path, '--json', '-t', '2',
                           stdin='Where is my card?'))['decision']
    assert again['probabilities'] == decision['probabilities']
    assert again['choice'] == decision['choice']
    # Compared with itself, a text says nothing.
    with open (path, 'w') as file:
        file.write ('Where is my card?\n\n')
    equal = answers (good (*ask, '-o', 'bill,card', '--json', '--prior-texts',
                           path, stdin='Where is my card?'))['decision']
    assert equal['probabilities'] == {'bill': 0.5, 'card': 0.5}
    lines = good (*ask, '-o', 'bill,card,fraud',
                  stdin='Where is my card?').splitlines ()
    assert lines[0].split ()[1] == decision['choice']
    assert len (lines) == 3


def test_decide_questions ():
    path = os.path.join (folder.name, 'questions.json')
    with open (path, 'w') as file:
        json.dump ({'questions': {
            'urgent': {'type': 'yesno', 'instructions': 'Now?'},
            'tone': {'type': 'score', 'instructions': 'Warm?',
                     'criteria': ['cold', 'warm', 'hot']}}}, file)
    result = answers (good ('decide', '-m', tiny, '-q', path, '--json',
                            '--layout', 'shown', stdin='Hello'))
    assert 0 < result['urgent']['yesno'] < 1
    assert 0 < result['tone']['score'] < 2
    text = good ('decide', '-m', tiny, '-q', path, stdin='Hello')
    assert text.startswith ('urgent\n') and 'tone\n' in text


def test_decide_head ():
    """A head attached to a package is used as one that is named."""
    head = os.path.join (folder.name, 'head.gguf')
    package = os.path.join (folder.name, 'headed.runnel')
    plain = os.path.join (folder.name, 'plain.runnel')
    beside = os.path.join (folder.name, 'beside.gguf')
    ask = ['decide', '-i', 'What is it?', '-o', 'bill,card', '--json', '-m']

    def probabilities (*arguments):
        result = answers (good (*ask, *arguments, stdin='Where is it?'))
        return result['decision']['probabilities']

    for form in 'decision2', 'isolated':
        subprocess.run ([make_head, head, form], check=True)
        expected = probabilities (tiny, '--head', head)
        assert 'with its decision head' in good ('convert', tiny, package,
                                                 '--head', head)
        assert 'all digests agree' in good ('verify', package)
        assert probabilities (package) == expected
        text = good ('inspect', package)
        assert f'form {form}, 16 wide' in text and 'head.gguf' in text
        described = json.loads (good ('inspect', '--json', package))
        assert described['decision_head']['form'] == form
        assert described['decision_head']['can_abstain'] \
            == (form == 'isolated')
        # Beside the package, from the package that had it.
        report = json.loads (good ('convert', package, plain, '--json',
                                   '--head-output', beside))
        assert not report['has_decision_head']
        assert 'decision head' not in good ('inspect', plain)
        assert probabilities (plain, '--head', beside) == expected
        assert probabilities (plain) != expected
    bad (1, 'convert', tiny, plain, '--head', tiny, says='decision.type')
    bad (1, 'convert', tiny, plain, '--head-output', beside,
         says='decision.type')
    for name in tiny, plain, head:
        bad (2, 'convert', tiny, plain, '--head', head, '--head-output', name,
             says='another file')


def test_decide_bad ():
    options = ['decide', '-m', tiny]
    bad (2, *options, says='nothing to decide')
    bad (2, *options, '-i', 'Q', says='no options')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--type', 'guess', says='--type')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--layout', 'x', says='--layout')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--temperature', '-1',
         says='--temperature')
    for number in '3', 'nan', 'inf':
        bad (2, *options, '-i', 'Q', '-o', 'a,b', '--length-exponent', number,
             says='--length-exponent')
        bad (2, *options, '-i', 'Q', '-o', 'a,b', '--temperature',
             number + '000', says='--temperature')
    long = 'so ' * 600
    bad (1, *options, '-i', 'Q', '-o', 'a,' + long, says='context-length')
    bad (1, *options, '-i', long, '-o', 'a,b', says='context-length')
    bad (1, *options, '-i', 'Q', '-o', 'a,b', stdin=long, says='context')
    head = os.path.join (folder.name, 'bad-head.gguf')
    subprocess.run ([make_head, head, 'nan'], check=True)
    bad (1, *options, '-i', 'Q', '-o', 'a,b', '--head', head,
         says='query_mlp.weight.*not finite')
    labels = os.path.join (folder.name, 'labels.txt')
    for line, says in (b'a\nb\xff\n', 'UTF-8'), (b'a\n\tb\n', 'is empty'):
        with open (labels, 'wb') as file:
            file.write (line)
        bad (1, *options, '-i', 'Q', '--options-file', labels, says=says)
    bad (1, *options, '-i', 'Q', '-o', 'a,b', '--head', tiny,
         says='decision.type')
    bad (1, *options, '-i', 'Q', '-o', 'a', says='1 options')
    bad (1, *options, '-i', 'Q', '-o', 'a,a', says='twice')
    bad (1, *options, '-i', 'Q', '-o', 'a,,b', says='option 2 is empty')
    bad (1, *options, '-i', 'Q', '-o', ','.join (map (str, range (256))),
         says='256 options')
    bad (1, *options, '-i', 'Q', '-o', 'a,b', stdin=b'\xff', says='UTF-8')
    bad (1, *options, '-q', '/does/not/exist', says='/does/not/exist')


def test_decide_evaluate ():
    path = os.path.join (folder.name, 'set.csv')
    with open (path, 'w') as file:
        file.write ('text,label\n"Where, pray, is ""it""?",card_arrival\n'
                    'Why?,the_rate\nHow much?,the_rate\n')
    options = ['decide', '-m', tiny, '--evaluate', path]
    result = json.loads (good (*options, '--json'))
    assert result['n'] == 3 and result['options'] == 2
    assert result['n_right'] == sum (b['n_right'] for b in result['bins'])
    assert 0 <= result['accuracy_low'] <= result['accuracy'] <= 1
    # Of so few nothing is known.
    assert result['accuracy_high'] - result['accuracy_low'] > 0.4
    ece = sum (abs (b['n_right'] - b['sum_confidence'])
               for b in result['bins']) / 3
    assert abs (result['ece'] - ece) < 1e-12
    assert json.loads (good (*options, '-n', '2', '--json'))['n'] == 2
    for word in ['accuracy', 'ECE', 'reliability', 'by chance']:
        assert word in good (*options), word
    with open (path, 'w') as file:
        file.write ('text,label\nonly text\n')
    bad (1, *options, says='record 2')
    bad (2, *options, '-n', '-1', says='--limit')
    bad (1, *options, '--prior-texts', '/no/such', says='/no/such')


def test_bench_decide ():
    # It wants a context of some thousand tokens; test-tool-model.py has one.
    bad (1, 'bench', 'decide', '-m', tiny, '-r', '1', says='n_ctx 512')
    bad (2, 'bench', 'nothing', '-m', tiny, says="no bench 'nothing'")
    bad (2, 'bench', 'decide', '-m', tiny, '-r', '0', says='--repeats')


def test_run_decide ():
    options = ['-m', tiny]
    alone = answers (good ('run', 'decide', 'Hello', *options))
    text = good ('run', 'decide-and-reply', 'Hello', *options, '--set',
                 'decode.max-tokens=8')
    assert any (line.startswith ('{"answers"') and answers (line) == alone
                for line in text.splitlines ()), text
    for threshold, replies in (0, True), (1, False):
        text = good ('run', 'gate', 'Hello', '-m', scripted, '--set',
                     f'gate.threshold={threshold}', '--set', 'gate.text=No.')
        assert ('Seine' in text) == replies, text
        assert ('No.' in text) != replies, text


def test_graph ():
    dot = good ('graph', 'two-replies')
    assert dot.startswith ('digraph') and dot.endswith ('}\n')
    assert dot.count ('label="lmdecode') == 2
    assert '"prefill" -> "t" [label=" state "]' in dot
    assert 'seed=2' in dot
    assert good ('graph') == good ('graph', 'reply')
    assert 'GstLmPrefill' in good ('graph', '--full', 'reply')
    path = os.path.join (folder.name, 'graph.svg')
    result = tool ('graph', '-f', 'svg', '-o', path, 'reply')
    if result.status == 0:
        with open (path) as file:
            assert '<svg' in file.read ()
    else:
        assert 'graphviz' in result.err, result.err
    bad (2, 'graph', 'nosuch', says='nosuch.*--list')
    bad (2, 'graph', '-f', 'jpg', says='svg')
    bad (1, 'graph', '-o', '/no/such/folder/x', says='/no/such')
    # A device is written to, not replaced.
    assert good ('graph', '-o', '/dev/stdout') == good ('graph')
    bad (1, 'graph', '-o', '/dev/full', says='--output: /dev/full.*No space')
    bad (1, 'graph', '-f', 'svg', env={'PATH': ''}, says='graphviz')


def test_chat_in_a_pipe ():
    whole = ''.join (reply)
    out = good ('chat', '-m', scripted, stdin='Which river?\n\nAnd?')
    assert out == whole + '\n' + whole + '\n', out
    out = good ('chat', '-m', scripted, '-n', '1', stdin='a\\\nb\n/quit\nc\n')
    assert out == 'La\n'
    # Each prompt sees the turns before it, until they are forgotten.
    result = tool ('chat', '-m', scripted, '--speed',
                   stdin='a\na\n/clear\na\n/nosuch\n/help\n')
    assert result.status == 0 and result.out == (whole + '\n') * 3
    assert result.err.count ('tokens/s)') == 3
    assert 'no command /nosuch' in result.err and 'Ctrl-D' in result.err
    bad (2, 'chat', '-m', scripted, 'reply', says='no conversation')
    bad (1, 'chat', '-m', tiny, stdin=b'\xff\n', says='UTF-8')
    bad (1, 'chat', '-m', tiny, stdin=b'a\0b\n', says='NUL')
    # A turn that does not fit ends neither the session nor the conversation.
    result = tool ('chat', '-m', scripted, stdin='x ' * 1000 + '\nshort\n')
    assert result.status == 0, result.err
    assert result.out.endswith (whole + '\n')
    assert '512' in result.err and '/clear' in result.err


class Terminal:
    """A command in a terminal of its own."""

    def __init__ (self, *arguments):
        self.pid, self.fd = pty.fork ()
        if self.pid == 0:
            os.environ['TERM'] = 'vt100'
            os.execv (runnel, [runnel, *arguments])
        self.seen = b''

    def type (self, text):
        os.write (self.fd, text.encode ())

    def expect (self, text):
        """Waits for a text behind the last one that was waited for."""
        deadline = time.monotonic () + TIMEOUT
        while text.encode () not in self.seen:
            left = deadline - time.monotonic ()
            assert left > 0 and select.select ([self.fd], [], [], left)[0], \
                (text, self.seen)
            try:
                data = os.read (self.fd, 4096)
            except OSError:
                data = b''
            assert data, (text, self.seen)
            self.seen += data
        self.seen = self.seen.split (text.encode (), 1)[1]

    def drain (self, seconds):
        """Reads what comes: a terminal's mode changes only when it is empty."""
        deadline = time.monotonic () + seconds
        while (left := deadline - time.monotonic ()) > 0:
            if select.select ([self.fd], [], [], left)[0]:
                try:
                    os.read (self.fd, 4096)
                except OSError:     # closed at the other end
                    return

    def has_ended (self, seconds):
        """Its exit code, or None when it goes on for that long."""
        self.drain (seconds)
        pid, status = os.waitpid (self.pid, os.WNOHANG)
        if pid == 0:
            return None
        os.close (self.fd)
        return os.waitstatus_to_exitcode (status)

    def end (self, key=None):
        """Ctrl-D. libedit shows its prompt before it changes the mode of the
        terminal, and in between the key would be lost: again, as one does."""
        deadline = time.monotonic () + TIMEOUT / 4
        while time.monotonic () < deadline:
            if key is None:
                self.drain (0.2)
                self.type ('\x04')
            status = self.has_ended (2)
            if status is not None:
                return status
        assert False, 'it did not end'

    def wait (self):
        return self.end (key='none')


def test_chat_on_a_terminal ():
    chat = Terminal ('chat', '-m', scripted)
    chat.expect ('> ')
    chat.type ('first prömpt\r')
    chat.expect ('Seine')
    chat.expect ('tokens/s)')
    chat.expect ('> ')
    # Ctrl-C drops the line, and no more.
    chat.type ('half a line')
    chat.expect ('half a line')
    chat.type ('\x03')
    chat.expect ('> ')
    # The line before, from the history.
    chat.type ('\x10')
    chat.expect ('first pr')
    chat.type ('\r')
    chat.expect ('Seine')
    chat.expect ('tokens/s)')
    chat.expect ('> ')
    assert chat.end () == 0
    path = os.path.join (folder.name, 'runnel', 'chat-history')
    assert os.stat (path).st_mode & 0o077 == 0
    again = Terminal ('chat', '-m', scripted)
    again.expect ('> ')
    again.type ('\x10')
    again.expect ('first pr')
    again.type ('\r')
    again.expect ('tokens/s)')
    again.expect ('> ')
    again.type ('/quit\r')
    assert again.wait () == 0


def test_chat_interrupted ():
    """Ctrl-C stops the reply and keeps the session."""
    chat = Terminal ('chat', '-m', tiny, '-n', '-1', '--ignore-eos', 'true',
                     '--overflow-policy', 'shift', '--no-history')
    for prompt in 'one', 'two':
        chat.expect ('> ')
        chat.type (prompt + '\r')
        chat.expect (prompt)
        time.sleep (0.3)
        chat.type ('\x03')
        chat.expect ('stopped)')
    chat.expect ('> ')
    assert chat.end () == 0


def test_bench_profile ():
    options = ['-m', tiny, '-r', '1', '--pp', '24', '--tg', '4', '--depths',
               '0,40', '--no-children']
    result = json.loads (good ('bench', '--json', '--profile', *options))
    for kind in 'bytes', 'integer_macs', 'float_macs':
        assert result['limits_per_second'][kind]['median'] > 0
    n_layers = None
    for case in result['results']:
        assert case['share_of_limits']['bytes'] > 0
        ops = {op['op']: op for op in case['profile']}
        assert set (ops) == {'embed', 'project', 'rope_append', 'attend',
                             'project_add', 'mlp', 'output'}
        assert 0 < sum (op['share'] for op in ops.values ()) <= 1
        assert ops['mlp']['calls'] == ops['attend']['calls'] > 0
        assert ops['mlp']['bytes'] > ops['project_add']['bytes'] > 0
        # A prompt of n tokens: each sees those before it and itself.
        if case['test'] == 'pp24':
            n_layers = ops['mlp']['calls'] // ops['embed']['calls']
            seen = ops['attend']['float_macs'] / n_layers / (24 * 25 / 2)
            assert seen == int (seen) > 0
        if case['test'] == 'tg4' and case['depth'] == 40:
            assert ops['attend']['bytes'] > ops['rope_append']['bytes']
    result = json.loads (good ('bench', '--json', *options))
    assert 'profile' not in result['results'][0]
    text = good ('bench', '--profile', *options)
    assert 'roofline' in text and 'project_add' in text


def test_bench_energy ():
    options = ['-m', tiny, '-r', '2', '--pp', '8', '--tg', '2', '--depths',
               '0', '--no-children', '--energy']
    sysfs = os.path.join (folder.name, 'sysfs')
    monitor = os.path.join (sysfs, 'class', 'hwmon', 'hwmon0')
    os.makedirs (monitor)
    measured = lambda *more: json.loads (
        good ('bench', '--json', '--sysfs', sysfs, *options, *more))['energy']
    unmeasured = measured ()
    assert set (unmeasured) == {'unavailable'}
    assert 'class/hwmon' in unmeasured['unavailable']
    assert 'not measured' in good ('bench', '--sysfs', sysfs, *options)
    with open (os.path.join (monitor, 'power1_input'), 'w') as power:
        power.write ('3000000\n')
    energy = measured ('--battery-mah', '1000', '--battery-volts', '4')
    assert monitor in energy['source']
    assert (energy['prompt_tokens'], energy['completion_tokens']) == (256, 64)
    # Three watts all the time.
    assert abs (energy['idle_watts'] - 3) < 0.2, energy
    for joules, seconds in zip (energy['joules']['samples'],
                                energy['seconds']['samples']):
        assert abs (joules / seconds - 3) < 0.3, energy
    assert energy['battery_joules'] == 14400
    assert abs (energy['battery_share'] * 14400 / energy['joules']['median']
                - 1) < 1e-6
    assert abs (energy['by_card'] / energy['battery_share'] / 1e4 - 1) < 1e-6
    assert 'J an inference' in good ('bench', '--sysfs', sysfs, *options)
    bad (2, 'bench', *options, '--battery-mah', '-1', says='--battery-mah')


def test_bench ():
    options = ['-m', tiny, '-r', '2', '--pp', '8,16', '--tg', '4', '--depths',
               '0,5']
    result = json.loads (good ('bench', '--json', '--seed', '3', '-t', '1',
                               '--kernels', 'scalar', *options))
    assert result['machine']['threads'] == 1
    assert result['machine']['kernels'] == 'scalar'
    assert result['machine']['cores'] >= 1 and result['machine']['processor']
    assert result['seed'] == 3 and result['repeats'] == 2
    assert result['model']['file_bytes'] == os.path.getsize (tiny)
    assert [(r['test'], r['depth']) for r in result['results']] \
        == [('pp8', 0), ('pp16', 0), ('tg4', 0), ('tg4', 5), ('tg4 x 2', 0)]
    for case in result['results'] + [result['load_ms'],
                                     result['first_token_ms']]:
        assert len (case['samples']) == 2
        assert 0 < case['min'] <= case['median'] <= case['max']
    assert result['memory']['peak_bytes'] > 0
    assert result['memory']['kv_bytes'] > 0
    assert result['memory']['completion_tokens'] == 60
    assert result['first_token_ms']['prompt_tokens'] == 20
    text = good ('bench', *options)
    for word in ['tokens/s', 'pp16', 'first token', 'peak memory', 'seed 0']:
        assert word in text, word
    bad (2, 'bench', '-m', tiny, '--pp', '8,x', says='--pp')
    bad (2, 'bench', '-m', tiny, '-r', '0', says='--repeats')
    bad (1, 'bench', '-m', tiny, '--no-children', '--pp', '4096', says='512')


def test_draft_packages ():
    draft = os.path.join (folder.name, 'draft.gguf')
    package = os.path.join (folder.name, 'draft.runnel')
    subprocess.run ([make_draft, draft, tiny], check=True)
    good ('convert', draft, package, '--type', 'int8')
    good ('verify', package)
    said = good ('inspect', package)
    for words in 'DFlash 2, blocks of 4', 'mask token', 'made of        GGUF':
        assert words in said, words
    run = ['run', '-m', tiny, '--temperature', '0', '--max-tokens', '20',
           'Name a river.']
    assert good (*run, '--draft', package) == good (*run)
    bad (1, *run, '--draft', scripted, says='scripted.gguf.*not a DFlash draft')
    bench = json.loads (good ('bench', '-m', tiny, '--draft', package, '-r',
                              '1', '--pp', '24', '--tg', '4', '--depths', '0',
                              '--no-children', '--json', '--profile'))
    ops = [op['op'] for op in bench['results'][0]['profile']]
    assert 'fuse' in ops and 'append_context' in ops


def main ():
    tests = [(name, f) for name, f in list (globals ().items ())
             if name.startswith ('test_')]
    print (f'1..{len (tests)}')
    failed = 0
    for i, (name, function) in enumerate (tests, 1):
        try:
            function ()
            print (f'ok {i} {name[5:]}', flush=True)
        except (AssertionError, ValueError, KeyError, OSError,
                subprocess.SubprocessError):
            failed += 1
            print (f'not ok {i} {name[5:]}')
            for line in traceback.format_exc ().splitlines ():
                print ('#', line, flush=True)
    return failed > 0


sys.exit (main ())
