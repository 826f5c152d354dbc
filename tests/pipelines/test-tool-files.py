#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Files of models and packages: the verbs convert, verify, inspect and
make-model: test-tool-files.py RUNNEL MAKE-MODEL MAKE-DRAFT."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from runnel_command import (
    TIMEOUT, bad, folder, good, make_model, reply, run_tests, runnel)

make_draft = sys.argv[3]
tiny = make_model ('tiny.gguf')
scripted = make_model ('scripted.gguf', *reply)


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
    bad (1, 'convert', tiny, other, '--calibrate', '/dev/null',
         says='/dev/null: 0 tokens')
    bad (2, 'convert', tiny, text, '--calibrate', text, says='--calibrate')
    link = os.path.join (folder.name, 'link.txt')
    os.symlink (text, link)
    bad (2, 'convert', tiny, link, '--calibrate', text, says='--calibrate')
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


sys.exit (run_tests ())
