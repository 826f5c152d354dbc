#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runnel beside llama.cpp and MNN: the same weights and threads, one run.

All engines are loaded and take turns, so that what the machine does to one it
does to the others; a ratio is that of a round against the better of the others
in that round, and its median and spread are over the rounds. An engine that is
far behind in the first round is not in the others. Run by `./dev bench
peers`, which makes the virtual environment that holds the other engines.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DECODED = 48  # tokens of a decode measurement
FAR_BEHIND = 0.6  # of the better one's speed
PROMPT = 20  # tokens before the first one, for the time from exec


class Worker:
    """An engine of peer_engines.py in its process."""

    def __init__(self, engine, path, threads, context):
        command = [sys.executable, HERE / "peer_engines.py", engine, path]
        self.process = subprocess.Popen(
            command + [str(threads), str(context)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )
        self.engine = engine

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"peers: {self.engine} ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Contender:
    """One line of the tables: an engine with its own file of the weights."""

    def __init__(self, name, engine, path):
        self.name, self.engine, self.path = name, engine, str(path)

    def start(self, options, threads, tokens):
        """Loads, and once round for what only the first time costs."""
        context = max(options.pp + [d + DECODED for d in options.depths]) + 8
        self.worker = Worker(self.engine, self.path, threads, context)
        self.worker.ask(op="decode", depth=0, fill=[], tokens=tokens[:8])

    def prefill(self, options, tokens):
        """{test: tokens/s}"""
        answer = self.worker.ask(op="prefill", tokens=tokens, marks=options.pp)
        return {f"pp{n}": n / s for n, s in zip(options.pp, answer["seconds"])}

    def decode(self, depth, tokens):
        answer = self.worker.ask(
            op="decode", depth=depth, fill=tokens, tokens=tokens[-DECODED:]
        )
        return {f"tg at {depth}": DECODED / answer["seconds"]}

    def stop(self):
        self.worker.close()

    def measure_memory(self, threads, context, n_vocab):
        worker = Worker(self.engine, self.path, threads, context)
        rng = random.Random(1)
        tokens = [rng.randrange(n_vocab) for _ in range(context - DECODED)]
        worker.ask(op="prefill", tokens=tokens, marks=[len(tokens)])
        worker.ask(
            op="decode", depth=len(tokens), fill=tokens, tokens=tokens[-DECODED + 8 :]
        )
        answer = worker.ask(op="memory")
        worker.close()
        return answer["bytes"]

    def first_token(self, threads, n_vocab):
        rng = random.Random(1)
        worker = Worker(self.engine, self.path, threads, 512)
        tokens = [rng.randrange(n_vocab) for _ in range(PROMPT)]
        answer = worker.ask(op="first_token", tokens=tokens)
        worker.close()
        return answer["seconds"]


class Runnel(Contender):
    """Raced as a library like the others; memory and the time to the first
    token are those of the whole command."""

    def __init__(self, name, path, program):
        super().__init__(name, "Runnel", path)
        self.program = program

    def measure_limits(self):
        """Bytes/s that its threads read at best, at this moment."""
        return self.worker.ask(op="limits")["bytes"]

    def run(self, *arguments):
        command = [self.program, *arguments[:1], "--model", self.path]
        command += [*map(str, arguments[1:]), "--json"]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return json.loads(output)

    def measure_memory(self, threads, context, n_vocab, kv_type="f16"):
        """Peak of a process that fills the context, as the kernel says; it
        counts this one's size before the exec, too, which is why whatever
        takes memory here is done by processes of their own."""
        rng = random.Random(1)
        drawn = [str(rng.randrange(n_vocab)) for _ in range(context - 1)]
        command = [
            self.program, "logits", "--model", self.path, "--threads", str(threads),
            "--kv-type", kv_type, "--top", "1", "--ids", ",".join(drawn),
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"peers: {' '.join(command[:-1])} … failed")
        return usage.ru_maxrss * 1024

    def first_token(self, threads, n_vocab):
        output = self.run("bench", "--repeats", 1, "--threads", threads,
                          "--pp", 8, "--tg", 1, "--depths", 0)
        return output["first_token_ms"]["median"] / 1000

    def tensor_bytes(self):
        return self.run("inspect")["tensor_bytes"]


def machine():
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def note(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def quantise(source, target):
    """Q4_0 by llama.cpp's own quantiser."""
    program = (
        "import llama_cpp, sys\n"
        "params = llama_cpp.llama_model_quantize_default_params()\n"
        "params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0\n"
        "params.allow_requantize = params.pure = True\n"
        "source, target = (path.encode() for path in sys.argv[1:])\n"
        "sys.exit(llama_cpp.llama_model_quantize(source, target, params))\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, source, target], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


def prepare(options, model, folder):
    """The files of a model's contenders, made once in @folder."""
    folder.mkdir(parents=True, exist_ok=True)
    q4_1, q4_0 = folder / "q4_1.gguf", folder / "q4_0.gguf"
    package = folder / "package.runnel"
    mnn = folder / "mnn"
    runnel = options.runnel
    if model == "pocket":
        for kind, path in (("q4_1", q4_1), ("q4_0", q4_0)):
            if not path.exists():
                note(f"making the Pocket shape as {kind}")
                subprocess.run(
                    [runnel, "make-model", "pocket-0.3b", path, "--type", kind,
                     "--seed", str(options.seed)],
                    check=True, stdout=subprocess.DEVNULL,
                )
    else:
        if not q4_1.exists():
            q4_1.symlink_to(os.path.abspath(options.model))
        if not q4_0.exists():
            quantise(q4_1, q4_0)
    if not package.exists():
        subprocess.run(
            [runnel, "convert", q4_1.resolve(), package], check=True,
            stdout=subprocess.DEVNULL,
        )
    if not (mnn / "config.json").exists():
        note(f"writing {model} as an MNN package")
        subprocess.run(
            [sys.executable, HERE / "mnn_package.py", q4_1, mnn], check=True,
            stdout=subprocess.DEVNULL,
        )
    return [
        Runnel("Runnel", package, runnel),
        Contender("llama.cpp Q4_0", "llama.cpp", q4_0),
        Contender("llama.cpp Q4_1", "llama.cpp", q4_1),
        Contender("MNN 4-bit", "MNN", mnn / "config.json"),
    ]


def ratios_of(rounds):
    ours = next(iter(rounds[0]))
    return [
        r[ours] / max(speed for name, speed in r.items() if name != ours)
        for r in rounds
    ]


def is_far_behind(name, tests):
    """In each of the tests, by their first rounds."""
    return all(
        rounds[0][name] < FAR_BEHIND * max(list(rounds[0].values())[1:])
        for rounds in tests
    )


def median_ratio(rounds):
    return statistics.median(ratios_of(rounds))


def race(options, contenders, threads):
    """{test: [{contender: tokens/s} of a round, ...]}, [bytes/s of a round]"""
    rng = random.Random(options.seed)
    longest = max(options.pp + options.depths) + DECODED
    tokens = [rng.randrange(options.n_vocab) for _ in range(longest)]
    tests = {}

    def measure(names, number, func):
        for contender in contenders:
            if number > 0 and contender is not contenders[0] and is_far_behind(
                    contender.name, [tests[name] for name in names]):
                continue
            for test, speed in func(contender).items():
                rounds = tests.setdefault(test, [])
                if len(rounds) <= number:
                    rounds.append({})
                rounds[number][contender.name] = speed

    def tell(test):
        note(f"{threads} threads, {test}: {median_ratio(tests[test]):.2f} × the "
             "better of the others")

    for contender in contenders:
        contender.start(options, threads, tokens)
    names = [f"pp{n}" for n in options.pp]
    for number in range(options.rounds):
        measure(names, number, lambda c: c.prefill(options, tokens))
    for name in names:
        tell(name)
    # The context is filled once; from there on it is only cut.
    for depth in sorted(options.depths, reverse=True):
        for contender in contenders:
            contender.decode(depth, tokens)
        name, limits = f"tg at {depth}", []
        for number in range(options.rounds):
            limits.append(contenders[0].measure_limits())
            measure([name], number, lambda c: c.decode(depth, tokens))
        tell(name)
    for contender in contenders:
        contender.stop()
    return tests, limits


def summarise(threads, test, rounds, limits, tensor_bytes):
    names = list(rounds[0])
    ratios = ratios_of(rounds)
    row = {
        "threads": threads,
        "test": test,
        "speeds": {n: statistics.median(r[n] for r in rounds if n in r)
                   for n in names},
        "ratio": median_ratio(rounds),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }
    if test == "tg at 0":
        row["bandwidth_share"] = statistics.median(
            r[names[0]] * tensor_bytes / limit for r, limit in zip(rounds, limits)
        )
    return row


def measure_sizes(options, contenders, threads):
    """Peak memory and the time to the first token."""
    rows = []
    for context in options.contexts:
        peaks = {
            c.name: c.measure_memory(threads, context, options.n_vocab)
            for c in contenders
        }
        if context > 4096:
            peaks["Runnel, int8 KV"] = contenders[0].measure_memory(
                threads, context, options.n_vocab, "int8"
            )
        rows.append({"context": context, "peak_bytes": peaks})
        note(f"memory at context {context}")
    first = {c.name: [] for c in contenders}
    for _ in range(options.rounds):
        for contender in contenders:
            first[contender.name].append(
                contender.first_token(threads, options.n_vocab)
            )
    return {
        "memory": rows,
        "first_token": {n: statistics.median(v) for n, v in first.items()},
        "first_token_spread": {n: [min(v), max(v)] for n, v in first.items()},
    }


def table(result):
    names = list(result["rows"][0]["speeds"])
    lines = [
        f"### {result['model']}", "",
        "| threads | test | " + " | ".join(names) + " | ratio to the better (spread) |",
        "|---" * (len(names) + 3) + "|",
    ]
    for row in result["rows"]:
        speeds = " | ".join(f"{row['speeds'][name]:.1f}" for name in names)
        lines.append(
            f"| {row['threads']} | {row['test']} | {speeds} | {row['ratio']:.2f} "
            f"({row['ratio_min']:.2f} – {row['ratio_max']:.2f}) |"
        )
    for row in result["rows"]:
        if "bandwidth_share" in row:
            lines += ["", f"With {row['threads']} threads Runnel reads its weights at "
                      f"{row['bandwidth_share']:.0%} of the bandwidth measured beside."]
    for row in result["sizes"]["memory"]:
        peaks = ", ".join(f"{n} {b / 1e6:.0f}" for n, b in row["peak_bytes"].items())
        lines += ["", f"Peak memory at context {row['context']}, in MB: {peaks}."]
    first = ", ".join(
        f"{n} {s:.3f}" for n, s in result["sizes"]["first_token"].items()
    )
    lines += ["", f"Seconds to the first token ({PROMPT} before it; the others "
              f"without the start of Python): {first}."]
    return "\n".join(lines)


def chart(result, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    threads = sorted({row["threads"] for row in result["rows"]})
    figure, axes = pyplot.subplots(
        1, len(threads), figsize=(6 * len(threads), 4), squeeze=False
    )
    for axis, n in zip(axes[0], threads):
        rows = [row for row in result["rows"] if row["threads"] == n]
        names = list(rows[0]["speeds"])
        width = 0.8 / len(names)
        best = [max(list(row["speeds"].values())[1:]) for row in rows]
        for i, name in enumerate(names):
            bars = axis.bar(
                [x + i * width for x in range(len(rows))],
                [row["speeds"][name] / b for row, b in zip(rows, best)],
                width, label=name,
            )
            axis.bar_label(
                bars, [f"{row['speeds'][name]:.0f}" for row in rows], fontsize=7
            )
        axis.set_xticks(
            [x + 0.4 - width / 2 for x in range(len(rows))],
            [row["test"] for row in rows],
        )
        axis.set_ylabel("times the better of the others")
        axis.set_title(
            f"{result['model']}, {n} thread{'s' if n > 1 else ''} (tokens/s)"
        )
        axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def numbers(text):
    return sorted(int(part) for part in text.split(","))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=os.environ.get("RUNNEL_MODEL"),
                        help="SmolLM2-135M-Instruct as a Q4_1 GGUF file")
    parser.add_argument("--runnel", default=os.environ.get("RUNNEL", "runnel"))
    parser.add_argument("--models", default="pocket,smollm2")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--pp", type=numbers, default=[512, 2048])
    parser.add_argument("--depths", type=numbers, default=[0, 1024, 4096])
    parser.add_argument("--contexts", type=numbers, default=[2048, 8192])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "runnel-peers")
    parser.add_argument("--output", type=pathlib.Path,
                        help="folder for JSON, table and charts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.model:
        parser.error("name a model by --model or RUNNEL_MODEL")
    return options


def main():
    options = parse()
    vocabularies = {"pocket": 65000, "smollm2": 49000}
    results = []
    started = time.time()
    for model in options.models.split(","):
        options.n_vocab = vocabularies[model]
        contenders = prepare(options, model, options.files / model)
        rows = []
        for threads in options.threads:
            tests, limits = race(options, contenders, threads)
            for test, rounds in tests.items():
                rows.append(summarise(
                    threads, test, rounds, limits, contenders[0].tensor_bytes()
                ))
        sizes = measure_sizes(options, contenders, max(options.threads))
        results.append({"model": model, "rows": rows, "sizes": sizes})
    facts = {
        "machine": machine(), "cores": os.cpu_count(), "seed": options.seed,
        "rounds": options.rounds, "minutes": (time.time() - started) / 60,
    }
    head = (
        f"{facts['machine']}, {facts['cores']} cores; seed {options.seed}; medians "
        f"of {options.rounds} rounds, engines in turn; tokens/s. llama.cpp with "
        "flash attention and f16 KV; MNN with precision and memory low.\n\n"
    )
    for result in results:
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            stem = str(options.output / f"peers-{result['model']}")
            with open(stem + ".json", "w") as file:
                json.dump(facts | result, file, indent=1)
            with open(stem + ".md", "w") as file:
                file.write(head + table(result) + "\n")
            chart(result, stem + ".png")
        if not options.json:
            print(head + table(result))
    if options.json:
        print(json.dumps(facts | {"results": results}))


if __name__ == "__main__":
    main()
