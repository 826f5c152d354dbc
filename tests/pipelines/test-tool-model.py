#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""The runnel command with the default model: test-tool-model.py RUNNEL, the
model from the environment variable RUNNEL_DEFAULT_MODEL."""

import functools
import json
import os
import sys

from runnel_command import good, run_tests

os.environ['RUNNEL_MODEL'] = os.environ['RUNNEL_DEFAULT_MODEL']
PROMPT = 'Name three rivers of France.'
TEXT = ('The sun had gone down behind the hills when the two of them came to '
        'the bridge. Nobody was there. They waited for a while, and then they '
        'went home through the fields, because it was getting cold.')

# A large model on a busy machine takes its time.
tool = functools.partial (good, timeout=400)


def test_reply ():
    greedy = '-n', '60', '--temperature', '0'
    text = tool ('run', PROMPT, *greedy)
    assert any (river in text for river in ('Seine', 'Loire', 'Rh', 'Garonne')), text
    assert tool ('run', 'generate', PROMPT, *greedy) == text
    said = tool ('chat', *greedy, stdin=PROMPT + '\n')
    assert said.rstrip ('\n') == text.rstrip ('\n')


def test_turns ():
    said = tool ('chat', '-n', '24', '--temperature', '0',
                 stdin='My name is Bob.\nWhat is my name?\n')
    alone = tool ('run', 'What is my name?', '-n', '24', '--temperature', '0')
    assert alone.strip () not in said


def test_text_and_back ():
    ids = tool ('tokenize', stdin=TEXT)
    assert len (ids.split ()) < 60
    assert tool ('detokenize', stdin=ids) == TEXT
    ids = tool ('render', '--tokens', stdin=json.dumps (
        [{'role': 'user', 'content': PROMPT}])).split ()
    one, = json.loads (tool ('run', '--json', '-n', '1', PROMPT))['replies']
    assert one['prompt_tokens'] == len (ids)
    top = json.loads (tool ('logits', '--ids', ' '.join (ids), '--top', '1'))
    greedy = tool ('run', PROMPT, '-n', '1', '--temperature', '0')
    assert top['top'][0]['piece'] == greedy


def test_perplexity ():
    result = json.loads (tool ('perplexity', '--json', stdin=TEXT))
    assert 3 < result['perplexity'] < 60, result


def test_memory_and_first_token ():
    result = json.loads (tool ('bench', '--json', '-r', '3', '--pp', '16',
                               '--tg', '4', '--depths', '0'))
    memory = result['memory']
    assert memory['completion_tokens'] == 60
    assert memory['peak_bytes'] <= memory['budget_bytes'], memory
    # Half a second, and five times as much for a busy machine.
    assert result['first_token_ms']['prompt_tokens'] == 20
    assert result['first_token_ms']['min'] < 2500, result['first_token_ms']


sys.exit (run_tests ())
