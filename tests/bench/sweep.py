#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Size, memory and speed over models of 50 million to 1.3 billion parameters,
each with 28 and with 36 layers: what depth costs at the same size.

Every model is noise, a package of 4 bits made when it is its turn and deleted
after it. The two depths of a size are measured in turn, round by round,
so that what the machine does to one it does to the other. Run by `./dev bench
sweep`, which also makes the virtual environment that draws the chart.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

SIZES = ["50m", "100m", "200m", "300m", "600m", "1.3b"]
DEPTHS = [28, 36]
# What is measured: its name in bench's JSON, its depth, and a heading.
SPEEDS = [("pp", 0, "prefill"), ("tg", 0, "decode"), ("tg", 1, "deep decode")]


def runnel(options, *arguments):
    command = [options.runnel, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def make_package(options, shape, folder):
    package = folder / f"{shape}.runnel"
    runnel(options, "make-model", shape, package, "--type", "int4")
    return package


def measure(options, package, children):
    arguments = [
        "bench", "--json", "--repeats", 1, "--model", package,
        "--threads", options.threads, "--pp", options.pp, "--tg", options.tg,
        "--depths", f"0,{options.depth}",
    ]
    if not children:
        arguments.append("--no-children")
    return json.loads(runnel(options, *arguments))


def get_speed(result, kind, deep):
    for test in result["results"]:
        if test["test"].startswith(kind) and (test["depth"] > 0) == bool(deep):
            return test["median"]
    sys.exit(f"sweep: bench gave no {kind}")


def describe(options, package):
    shape = json.loads(runnel(options, "inspect", "--json", package))
    keys = ["n_parameters", "n_layers", "n_embd", "n_ff", "n_heads"]
    return {**{key: shape[key] for key in keys},
            "file_bytes": package.stat().st_size}


def summarise(name, description, results):
    """A row of the table: medians over the rounds."""
    row = {"shape": name, **description, "samples": {}}
    for kind, deep, heading in SPEEDS:
        samples = [get_speed(result, kind, deep) for result in results]
        row["samples"][heading] = samples
        row[heading] = statistics.median(samples)
    row["peak_bytes"] = results[0]["memory"]["peak_bytes"]
    row["first_token_ms"] = results[0]["first_token_ms"]["median"]
    return row


def measure_size(options, size, folder):
    """The rows of a size, one for each depth, and its machine."""
    names = [f"{size}-{depth}" for depth in DEPTHS]
    packages = [make_package(options, name, folder) for name in names]
    results = [[] for _ in names]
    for number in range(options.rounds):
        for package, samples in zip(packages, results):
            samples.append(measure(options, package, number == 0))
    rows = []
    for name, package, samples in zip(names, packages, results):
        rows.append(summarise(name, describe(options, package), samples))
        package.unlink()
    return rows, results[0][0]["machine"]


def get_cost(shallow, deep, heading):
    """How much slower the deep model is, between rounds' middle values."""
    ratios = [a / b for a, b in zip(shallow["samples"][heading],
                                    deep["samples"][heading])]
    return statistics.median(ratios) - 1


def make_table(options, rows, machine):
    lines = [
        "| shape | parameters | layers | width | file MB | peak MB "
        f"| prefill {options.pp} | decode | decode behind {options.depth} "
        "| first token ms |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['shape']} | {row['n_parameters'] / 1e6:.1f} M "
            f"| {row['n_layers']} | {row['n_embd']} "
            f"| {row['file_bytes'] / 1e6:.1f} | {row['peak_bytes'] / 1e6:.1f} "
            f"| {row['prefill']:.1f} | {row['decode']:.1f} "
            f"| {row['deep decode']:.1f} | {row['first_token_ms']:.0f} |")
    lines += ["", f"Tokens per second with {machine['threads']} threads, "
              f"medians of {options.rounds} rounds; {machine['processor']}, "
              f"kernels {machine['kernels']}.", ""]
    for shallow, deep in zip(rows[::2], rows[1::2]):
        costs = ", ".join(f"{heading} {get_cost(shallow, deep, heading):+.1%}"
                          for _, _, heading in SPEEDS)
        size = shallow["shape"].rsplit("-", 1)[0]
        lines.append(f"- {size}: the speed of 28 layers over that of 36: "
                     f"{costs}")
    return "\n".join(lines) + "\n"


def draw(rows, path):
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot

    panels = [("file_bytes", "file, MB", 1e6), ("peak_bytes", "peak memory, MB",
                                               1e6),
              ("prefill", "prefill, tokens/s", 1),
              ("decode", "decode, tokens/s", 1)]
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.5))
    for axis, (key, title, unit) in zip(axes.flat, panels):
        for depth, marker in zip(DEPTHS, "os"):
            chosen = [row for row in rows if row["n_layers"] == depth]
            axis.plot([row["n_parameters"] / 1e6 for row in chosen],
                      [row[key] / unit for row in chosen], marker=marker,
                      label=f"{depth} layers")
        axis.set(xscale="log", yscale="log", title=title,
                 xlabel="parameters, millions")
        axis.grid(True, which="both", alpha=0.25)
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def write(options, rows, machine):
    table = make_table(options, rows, machine)
    print(table, end="")
    if options.output is None:
        return
    options.output.mkdir(parents=True, exist_ok=True)
    record = {"date": datetime.date.today().isoformat(), "machine": machine,
              "prefill_tokens": options.pp, "decode_tokens": options.tg,
              "depth": options.depth, "rounds": options.rounds, "rows": rows}
    (options.output / "sweep.json").write_text(json.dumps(record, indent=1)
                                               + "\n")
    (options.output / "sweep.md").write_text(
        "# The sweep\n\nModels of noise in packages of 4 bits, made and "
        "measured by `./dev bench sweep`.\n\n![Chart](sweep.png)\n\n" + table)
    draw(rows, options.output / "sweep.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runnel", default="runnel")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pp", type=int, default=256)
    parser.add_argument("--tg", type=int, default=32)
    parser.add_argument("--depth", type=int, default=1024)
    parser.add_argument("--output", type=pathlib.Path,
                        help="folder for sweep.json, sweep.md and sweep.png")
    options = parser.parse_args()
    sizes = options.sizes.split(",")
    if not set(sizes) <= set(SIZES):
        parser.error(f"--sizes: there are {', '.join(SIZES)}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="runnel-sweep-") as folder:
        for size in sizes:
            print(f"sweep: {size}", file=sys.stderr)
            more, machine = measure_size(options, size, pathlib.Path(folder))
            rows += more
    write(options, rows, machine)


if __name__ == "__main__":
    main()
