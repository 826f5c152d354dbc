#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""The numbers of test-decision-head.c: the head's formula in NumPy, in
binary64, on weights from a generator that the test has too."""

import math

import numpy as np

H, D, K = 64, 16, 5
state = 1


def draw (shape, scale):
    """Multiples of 2^-24, so that float32 holds them exactly."""
    global state
    values = []
    for _ in range (math.prod (shape)):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append (((state >> 8) / 2**24 - 0.5) * scale)
    return np.array (values).reshape (shape)


def layer_norm (x, weight, bias):
    mean = x.mean (-1, keepdims=True)
    variance = ((x - mean) ** 2).mean (-1, keepdims=True)
    return (x - mean) / np.sqrt (variance + 1e-5) * weight + bias


def gelu (x):
    return 0.5 * x * (1 + np.vectorize (math.erf) (x / math.sqrt (2)))


candidate_norm = draw ((H,), 4), draw ((H,), 1)
query_norm = draw ((H,), 4), draw ((H,), 1)
key, query = draw ((D, H), 2), draw ((D, H), 2)
candidate_mlp, candidate_mlp_bias = draw ((D, H), 1), draw ((D,), 1)
query_mlp, scalar = draw ((D, H), 1), draw ((1, D), 1)
null_weight, null_bias = draw ((1, H), 1), draw ((1,), 1)
candidates, deciding = draw ((K, H), 8), draw ((H,), 8)

c = layer_norm (candidates, *candidate_norm)
q = layer_norm (deciding, *query_norm)
logits = (c @ key.T) @ (query @ q) / math.sqrt (D)
logits += gelu (c @ candidate_mlp.T + candidate_mlp_bias
                + query_mlp @ q) @ scalar[0]
print ('logits', ', '.join (f'{x:.12g}' for x in logits))
print ('null', f'{(null_weight[0] @ q + null_bias[0]):.12g}')
