#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""How often a decision without a head is right, and how well it knows: the
test set of Banking77 (Casanueva et al. 2020, CC BY 4.0), 3,080 messages to a
bank and 77 intents, by `runnel decide --evaluate`, beside what others report.
Run by `./dev bench banking77 FOLDER`, where FOLDER holds banking77-test.csv or
the test.csv of the published data, and the set for training beside it; options
for `runnel decide` may follow. Some texts of the set for training, without
their labels, tell what options score anyhow; nothing else of it is used."""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import tempfile

FILES = ["banking77-{}.csv", "{}.csv"]

# Zero-shot, by their own reports; none was measured here.
PUBLISHED = [
    ("gpt-oss-120b, 77-way (DMB)", 81.3, "DMB, by nibzard"),
    ("Jev, 77-way (DMB)", 76.3, "DMB, by nibzard"),
    ("gpt-5.4-nano, 77-way (DMB)", 70.9, "DMB, by nibzard"),
    ("Qwen3-8B by generation, 200 texts", 68.0,
     "the QLoRA write-up of minhthien"),
    ("keyword baseline (DMB)", 29.3, "DMB, by nibzard"),
    ("CLM-8B, frozen Qwen3-8B", 13.4, "the model card of CLM"),
    ("Llama-3.2-1B by exact match", 0.0,
     "the write-up of a fine-tuned Llama-3.2-1B"),
]


def find_set(folder, part):
    paths = [folder / name.format(part) for name in FILES]
    for path in paths:
        if path.is_file():
            return path
    raise SystemExit(f"none of {', '.join(map(str, paths))} is there")


def draw_texts(path, n, seed):
    """Some texts of a set, one a line."""
    with open(path, encoding="utf-8", newline="") as file:
        texts = [" ".join(row[0].split()) for row in list(csv.reader(file))[1:]]
    return random.Random(seed).sample(texts, min(n, len(texts)))


def evaluate(arguments, path):
    if arguments.prior_texts == 0:
        return run(arguments, path, [])
    texts = draw_texts(find_set(arguments.folder, "train"),
                       arguments.prior_texts, arguments.seed)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("\n".join(texts))
        file.flush()
        return run(arguments, path, ["--prior-texts", file.name])


def run(arguments, path, more):
    command = [arguments.runnel, "decide", "--evaluate", str(path), "--json",
               "--seed", str(arguments.seed), *more, *arguments.options]
    if arguments.limit:
        command += ["--limit", str(arguments.limit)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8",
                         check=False)
    if ran.returncode != 0:
        raise SystemExit(ran.returncode)
    return json.loads(ran.stdout)


def report(result):
    low, high = result["accuracy_low"], result["accuracy_high"]
    print(f"accuracy   {100 * result['accuracy']:.2f} % (95 % between "
          f"{100 * low:.2f} and {100 * high:.2f}), {result['n_right']} of "
          f"{result['n']} right, {result['options']} options")
    print(f"prior      of {result['prior_texts']} unlabelled texts of the set "
          "for training" if result["prior_texts"] else
          "prior      of a text that says nothing")
    print(f"ECE        {result['ece']:.4f} in {len(result['bins'])} bins, "
          f"NLL {result['nll']:.4f} nats, Brier {result['brier']:.4f}")
    print(f"speed      {result['decisions_per_second']:.2f} decisions/s")
    print("\nzero-shot, as excerpts of other reports have it (not measured here)")
    for name, accuracy, source in PUBLISHED:
        print(f"  {accuracy:5.1f} %  {name}: {source}")


def chart(result, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bins = [row for row in result["bins"] if row["n"] > 0]
    said = [row["sum_confidence"] / row["n"] for row in bins]
    right = [row["n_right"] / row["n"] for row in bins]
    figure, axis = pyplot.subplots(figsize=(5, 5))
    axis.plot([0, 1], [0, 1], linestyle="--", color="grey",
              label="as often as said")
    axis.bar(said, right, width=0.8 / len(result["bins"]), alpha=0.7,
             label="right")
    for x, y, row in zip(said, right, bins):
        axis.annotate(str(row["n"]), (x, y), ha="center", va="bottom",
                      fontsize="x-small")
    axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the choice",
             ylabel="how often it was right",
             title=f"Banking77, {result['n']} texts: "
             f"{100 * result['accuracy']:.1f} %, ECE {result['ece']:.3f}")
    axis.legend(fontsize="small", loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench banking77")
    parser.add_argument("--runnel", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=pathlib.Path, required=True,
                        help=argparse.SUPPRESS)
    parser.add_argument("folder", type=pathlib.Path,
                        help="where the test set is")
    parser.add_argument("--limit", type=int, default=0,
                        help="only so many texts, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prior-texts", type=int, default=64, metavar="N",
                        help="unlabelled texts for the prior; 0: a text that "
                        "says nothing (default: %(default)s)")
    arguments, arguments.options = parser.parse_known_args()
    if min(arguments.limit, arguments.prior_texts) < 0:
        parser.error("--limit and --prior-texts are numbers of texts")
    result = evaluate(arguments, find_set(arguments.folder, "test"))
    result["prior_texts"] = arguments.prior_texts
    report(result)
    # What part of the set says is not kept beside what all of it does.
    name = f"banking77-{arguments.limit}" if arguments.limit else "banking77"
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / f"{name}.json").write_text(
        json.dumps(result, indent=1) + "\n")
    chart(result, arguments.output / f"{name}.png")
    print(f"\n{arguments.output / name}.json, .png")


if __name__ == "__main__":
    main()
