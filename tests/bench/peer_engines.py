# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""The engines of the race, each in a process of its own.

A worker loads one model and answers lines of JSON on stdin with lines of JSON
on stdout. It is this file run as a program:

    peer_engines.py ENGINE MODEL THREADS CONTEXT

Requests: {"op": "prefill", "tokens": [...], "marks": [512, ...]} from an empty
context gives the seconds to each mark; {"op": "decode", "depth": n, "tokens":
[...]} cuts the context down (or fills it up) to n tokens and gives the seconds
that the tokens take one by one; {"op": "memory"} gives the peak of the
resident size above that of the interpreter before the engine was loaded;
{"op": "limits"} gives the bytes a second that Runnel's threads read at best.
"""

import ctypes
import json
import os
import sys
import time

CHUNK = 512


class Runnel:
    """Runnel through its C API, called as llama.cpp is."""

    def __init__(self, path, threads, context):
        self.started = time.perf_counter()
        self.api = ctypes.CDLL("librunnel-1.0.so.0")
        for function in (
            "backend_get", "model_open", "engine_get", "sequence_new",
        ):
            getattr(self.api, f"runnel_{function}").restype = ctypes.c_void_p
        none = ctypes.c_void_p(None)
        self.error = ctypes.byref(ctypes.c_void_p(None))
        self.backend = ctypes.c_void_p(
            self.api.runnel_backend_get(b"cpu", threads, none, self.error)
        )
        model = self.check(self.api.runnel_model_open(path.encode(), 0, self.error))
        engine = self.check(
            self.api.runnel_engine_get(
                model, self.backend, 0, none, none, none, self.error
            )
        )
        self.sequence = self.check(
            self.api.runnel_sequence_new(engine, context, self.error)
        )
        n_vocab = self.api.runnel_model_get_n_vocab(model)
        self.logits = (ctypes.c_float * n_vocab)()

    @staticmethod
    def check(result):
        if not result:
            sys.exit("peers: Runnel refused")
        return ctypes.c_void_p(result)

    def forward(self, tokens):
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        none, count = ctypes.c_void_p(None), ctypes.c_size_t(len(tokens))
        row = self.logits, ctypes.c_size_t(len(self.logits))
        if len(tokens) == 1:
            self.check(
                self.api.runnel_sequence_forward(
                    self.sequence, array, count, *row, self.error
                )
            )
            return
        self.check(
            self.api.runnel_sequence_prefill(
                self.sequence, array, count, 0, 0, none, none, none, none, self.error
            )
        )
        self.check(
            self.api.runnel_sequence_compute_logits(self.sequence, *row, self.error)
        )

    def truncate(self, length):
        self.check(
            self.api.runnel_sequence_truncate(self.sequence, length, self.error)
        )

    def measure_limits(self):
        limits = [ctypes.c_double() for _ in range(3)]
        self.api.runnel_backend_measure_limits(
            self.backend, *map(ctypes.byref, limits)
        )
        return limits[0].value


class LlamaCpp:
    """llama.cpp through its C API: no Python in the timed part but the calls."""

    def __init__(self, path, threads, context):
        import llama_cpp

        self.api = llama_cpp
        self.started = time.perf_counter()
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = CHUNK
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1
        self.context = llama_cpp.llama_init_from_model(self.model, params)

    def forward(self, tokens):
        array = (self.api.llama_token * len(tokens))(*tokens)
        batch = self.api.llama_batch_get_one(array, len(tokens))
        status = self.api.llama_decode(self.context, batch)
        if status != 0:
            sys.exit(f"peers: llama_decode failed with status {status}")

    def truncate(self, length):
        memory = self.api.llama_get_memory(self.context)
        self.api.llama_memory_seq_rm(memory, -1, length, -1)


class Mnn:
    """MNN through its Python module."""

    def __init__(self, path, threads, context):
        import MNN.llm

        self.started = time.perf_counter()
        self.engine = MNN.llm.create(path)
        self.engine.set_config(
            {
                "thread_num": threads, "precision": "low", "memory": "low",
                "max_all_tokens": context, "reuse_kv": True,
            }
        )
        self.engine.load()

    def forward(self, tokens):
        self.engine.forward(tokens)

    def truncate(self, length):
        if length == 0:
            self.engine.reset()
            return
        have = self.engine._c_obj.get_context()["all_seq_len"]
        if have > length:
            self.engine._c_obj.erase_history(length, have)


ENGINES = {"Runnel": Runnel, "llama.cpp": LlamaCpp, "MNN": Mnn}


def status_kib(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    sys.exit(f"peers: no {field} in /proc/self/status")


def advance(engine, tokens):
    for done in range(0, len(tokens), CHUNK):
        engine.forward(tokens[done : done + CHUNK])


def prefill(engine, request):
    engine.truncate(0)
    start = time.perf_counter()
    done, seconds = 0, []
    for mark in request["marks"]:
        advance(engine, request["tokens"][done:mark])
        done = mark
        seconds.append(time.perf_counter() - start)
    return done, seconds


def decode(engine, length, request):
    depth = request["depth"]
    if length < depth:
        advance(engine, request["fill"][length:depth])
    else:
        engine.truncate(depth)
    start = time.perf_counter()
    for token in request["tokens"]:
        engine.forward([token])
    seconds = time.perf_counter() - start
    return depth + len(request["tokens"]), seconds


def main():
    name, path, threads, context = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # engines write on stdout
    before = status_kib("VmRSS")
    engine = ENGINES[name](path, int(threads), int(context))
    length = 0
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if request["op"] == "prefill":
            length, answer["seconds"] = prefill(engine, request)
        elif request["op"] == "decode":
            length, answer["seconds"] = decode(engine, length, request)
        elif request["op"] == "memory":
            answer["bytes"] = (status_kib("VmHWM") - before) * 1024
        elif request["op"] == "limits":
            answer["bytes"] = engine.measure_limits()
        elif request["op"] == "first_token":
            engine.forward(request["tokens"])
            answer["seconds"] = time.perf_counter() - engine.started
        answers.write(json.dumps(answer) + "\n")
    os._exit(0)  # MNN's module can crash while the interpreter ends


if __name__ == "__main__":
    main()
