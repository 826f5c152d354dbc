#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Decisions, of `runnel decide` and in pipelines: test-tool-decide.py RUNNEL
MAKE-MODEL MAKE-HEAD."""

import json
import os
import stat
import subprocess
import sys

from runnel_command import bad, folder, good, make_model, reply, run_tests

make_head = sys.argv[3]
tiny = make_model ('tiny.gguf')
scripted = make_model ('scripted.gguf', *reply)


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
    # What is there and is no file stays what it is, and nothing is converted.
    pipe = os.path.join (folder.name, 'pipe')
    os.mkfifo (pipe)
    os.unlink (plain)
    bad (1, 'convert', tiny, plain, '--head', head, '--head-output', pipe,
         says='no regular file')
    assert stat.S_ISFIFO (os.stat (pipe).st_mode) and not os.path.exists (plain)


def test_decide_bad ():
    options = ['decide', '-m', tiny]
    bad (2, *options, says='nothing to decide')
    bad (2, *options, '-i', 'Q', says='no options')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--type', 'guess', says='--type')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--layout', 'x', says='--layout')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--temperature', '-1',
         says='--temperature')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--temperature', '0',
         says='--temperature')
    bad (2, *options, '-i', 'Q', '-o', 'a,b', '--prior-texts', tiny,
         '--no-prior', says='exclude')
    bad (1, *options, '-i', 'Q', '-o', 'a,b', '--prior-texts', tiny,
         says='tiny.gguf')
    bad (1, *options, '-i', 'Q', '-o', 'a,b', '--prior-texts', '/dev/null',
         says='/dev/null.*no text')
    for number in '3', '-1', 'nan', 'inf':
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
    for line, says in (b'a\nb\xff\n', 'UTF-8'), (b'a\n\tb\n', 'is empty'), \
            (b'a\nb\n\0\nc\n', 'labels.txt holds a NUL'):
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
    for text, says in ('text,label\nonly text\n', 'record 2'), \
            ('text,label\na,b\nc,"d\ne,f\n', 'record 3.*never closed'), \
            ('text,label\na,b\n\0,d\n', 'set.csv holds a NUL'):
        with open (path, 'w') as file:
            file.write (text)
        bad (1, *options, says=says)
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


sys.exit (run_tests ())
