#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""What is the same for all verbs of the runnel command, the pictures of graph,
and what becomes of lost output: test-tool-usage.py RUNNEL MAKE-MODEL."""

import os
import re
import subprocess
import sys

from runnel_command import (
    TIMEOUT, bad, folder, good, make_model, reply, run_tests, runnel, tool)

tiny = make_model ('tiny.gguf')
scripted = make_model ('scripted.gguf', *reply)

VERBS = ['run', 'chat', 'convert', 'verify', 'inspect', 'tokenize',
         'detokenize', 'render', 'logits', 'perplexity', 'bench', 'graph',
         'compare', 'make-model', 'decide']
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


sys.exit (run_tests ())
