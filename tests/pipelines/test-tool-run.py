#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Replies of `runnel run`, from its presets and with its options:
test-tool-run.py RUNNEL MAKE-MODEL."""

import json
import os
import signal
import subprocess
import sys

from runnel_command import (
    TIMEOUT, bad, folder, good, make_model, reply, run_tests, runnel, tool)

tiny = make_model ('tiny.gguf')
scripted = make_model ('scripted.gguf', *reply)


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


sys.exit (run_tests ())
