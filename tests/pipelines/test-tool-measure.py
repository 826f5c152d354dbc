#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""What is measured of a model: the verbs bench, perplexity and compare, the
last of models that make-model makes: test-tool-measure.py RUNNEL MAKE-MODEL."""

import json
import math
import os
import sys

from runnel_command import bad, folder, good, make_model, run_tests

tiny = make_model ('tiny.gguf')


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


sys.exit (run_tests ())
