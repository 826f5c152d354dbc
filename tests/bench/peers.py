#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runnel beside llama.cpp: the same file, the same threads, one run.

Rounds of both engines alternate, so that what the machine does to one it does
to the other; a ratio is that of a round, and its median and spread are over
the rounds. Run by `./dev bench peers`, which makes the virtual environment
that holds llama-cpp-python.
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import time

import llama_cpp


class LlamaCpp:
    """llama.cpp through its C API: no Python in the timed part but the calls."""

    def __init__(self, path, threads, context):
        quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
        self.quiet = quiet
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        if hasattr(params, "flash_attn_type"):
            params.flash_attn_type = 1
        else:
            params.flash_attn = True
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(vocabulary)

    def forward(self, tokens):
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(array, len(tokens))
        status = llama_cpp.llama_decode(self.context, batch)
        if status != 0:
            sys.exit(f"peers: llama_decode failed with status {status}")

    def clear(self):
        memory = llama_cpp.llama_get_memory(self.context)
        llama_cpp.llama_memory_clear(memory, True)

    def prefill_speed(self, tokens):
        self.clear()
        start = time.perf_counter()
        for done in range(0, len(tokens), 512):
            self.forward(tokens[done : done + 512])
        return len(tokens) / (time.perf_counter() - start)

    def decode_speed(self, before, tokens):
        self.clear()
        for done in range(0, len(before), 512):
            self.forward(before[done : done + 512])
        start = time.perf_counter()
        for token in tokens:
            self.forward([token])
        return len(tokens) / (time.perf_counter() - start)


def measure_llama(engine, options, rng):
    """{test: tokens/s} of one round."""
    draw = lambda n: [rng.randrange(engine.n_vocab) for _ in range(n)]
    speeds = {}
    for n in options.pp:
        speeds[f"pp{n} depth 0"] = engine.prefill_speed(draw(n))
    for depth in options.depths:
        speeds[f"tg{options.tg} depth {depth}"] = engine.decode_speed(
            draw(depth), draw(options.tg)
        )
    return speeds


def measure_runnel(options, threads):
    command = [
        options.runnel, "bench", "--json", "--no-children", "--repeats", "1",
        "--model", options.model, "--threads", str(threads),
        "--seed", str(options.seed),
        "--pp", ",".join(map(str, options.pp)), "--tg", str(options.tg),
        "--depths", ",".join(map(str, options.depths)),
    ]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    results = json.loads(output)["results"]
    return {f"{r['test']} depth {r['depth']}": r["median"] for r in results}


def machine():
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def compare(options, threads):
    """Rounds of both engines in turn: {test: [(runnel, llama.cpp), …]}."""
    context = max(options.pp + [d + options.tg for d in options.depths]) + 8
    llama = LlamaCpp(options.model, threads, context)
    rng = random.Random(options.seed)
    measure_llama(llama, options, rng)
    rounds = {}
    for number in range(options.rounds):
        ours = measure_runnel(options, threads)
        theirs = measure_llama(llama, options, rng)
        for test, speed in theirs.items():
            rounds.setdefault(test, []).append((ours[test], speed))
        if sys.stderr.isatty():
            print(f"threads {threads}: round {number + 1}", file=sys.stderr)
    return rounds


def summarise(threads, test, pairs):
    ratios = [ours / theirs for ours, theirs in pairs]
    return {
        "threads": threads,
        "test": test,
        "runnel": statistics.median(ours for ours, _ in pairs),
        "llama.cpp": statistics.median(theirs for _, theirs in pairs),
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }


def print_table(options, rows):
    print(f"{machine()}, {os.cpu_count()} cores; seed {options.seed}; medians of")
    print(f"{options.rounds} rounds, engines in turn; {os.path.basename(options.model)}")
    print(f"llama.cpp of llama-cpp-python {llama_cpp.__version__}, flash attention, KV f16\n")
    print("| threads | test | Runnel tokens/s | llama.cpp tokens/s | ratio (spread) |")
    print("|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['threads']} | {row['test']} | {row['runnel']:.1f} "
            f"| {row['llama.cpp']:.1f} | {row['ratio']:.2f} "
            f"({row['ratio_min']:.2f} – {row['ratio_max']:.2f}) |"
        )


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=os.environ.get("RUNNEL_MODEL"))
    parser.add_argument("--runnel", default=os.environ.get("RUNNEL", "runnel"))
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--pp", type=numbers, default=[128, 512])
    parser.add_argument("--tg", type=int, default=64)
    parser.add_argument("--depths", type=numbers, default=[0, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.model:
        parser.error("name a model by --model or RUNNEL_MODEL")
    rows = []
    for threads in options.threads:
        for test, pairs in compare(options, threads).items():
            rows.append(summarise(threads, test, pairs))
    if options.json:
        print(json.dumps({"machine": machine(), "seed": options.seed, "results": rows}))
    else:
        print_table(options, rows)


if __name__ == "__main__":
    main()
