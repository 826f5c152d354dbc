#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""What quantisation loses: Runnel's packages beside the files of llama.cpp's
quantiser, made of one model and judged by `runnel compare`.

SOURCE is a GGUF file with real precision (F32, F16, BF16, Q8_0), CALIBRATION a
text like those the model will meet, TEXT another one that is judged. Run by
`./dev bench quantisers SOURCE CALIBRATION TEXT`, in the virtual environment
that holds llama-cpp-python. The importance matrix that llama.cpp gets is that
of Runnel's calibration, read through its Python bindings.
"""

import argparse
import array
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# What is made: a name, and the options of `runnel convert`.
OURS = [
    ("int4/64", ["--type", "int4", "--group", "64"]),
    ("int4/32", ["--type", "int4", "--group", "32"]),
]
THEIRS = ["Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M"]

# Run by the system's Python, which has PyGObject: one JSON line with the names
# and lengths, then the floats.
READ_IMPORTANCE = """
import array, json, sys
import gi
gi.require_version("Runnel", "1.0")
from gi.repository import Runnel
source, text = sys.argv[1:]
model = Runnel.Model.open(source, Runnel.LoadMode.MAP)
backend = Runnel.Backend.get("cpu", 0, None)
engine = Runnel.Engine.get(model, backend, Runnel.KvType.F16, None, None)
calibration = Runnel.Calibration.new(engine)
tokens = model.get_tokenizer().encode(open(text).read().encode(), False)
calibration.feed(list(tokens), None, None)
values = {}
for entry in model.describe()["tensors"]:
    importance = calibration.dup_importance(entry[0])
    if importance:
        values[entry[0]] = array.array("f", importance)
print(json.dumps([[name, len(data)] for name, data in values.items()]),
      flush=True)
for data in values.values():
    sys.stdout.buffer.write(data.tobytes())
"""


def read_importance(source, text):
    """{tensor: floats}."""
    command = ["/usr/bin/python3", "-c", READ_IMPORTANCE, source, text]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    header, _, data = output.partition(b"\n")
    values, at = {}, 0
    for name, n in json.loads(header):
        values[name] = array.array("f", data[at : at + 4 * n])
        at += 4 * n
    return values


def make_matrix(importance):
    """The array that llama.cpp wants, which ends with an entry of zeros."""
    import llama_cpp

    matrix = (llama_cpp.llama_model_imatrix_data * (len(importance) + 1))()
    for entry, (name, values) in zip(matrix, importance.items()):
        entry.name = name.encode()
        entry.data = (ctypes.c_float * len(values))(*values)
        entry.size = len(values)
    return matrix


def quantise_theirs(source, target, kind, matrix):
    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.allow_requantize = True
    if matrix is not None:
        params.imatrix = matrix
    status = llama_cpp.llama_model_quantize(
        os.fsencode(source), os.fsencode(target), ctypes.byref(params))
    if status != 0:
        sys.exit(f"quantisers: llama_model_quantize failed with {status}")


def list_jobs(options, matrix):
    """(name, a function that makes the file)."""
    for name, arguments in OURS:
        for calibrate in (False, True):
            more = ["--calibrate", options.calibration] if calibrate else []
            keep = [f"--keep={rule}" for rule in options.keep]

            def make(target, arguments=arguments, more=more, keep=keep):
                subprocess.run(
                    [options.runnel, "convert", options.source, target,
                     *arguments, *more, *keep],
                    check=True, stdout=subprocess.DEVNULL)

            label = f"{name} calibrated" if calibrate else name
            yield f"Runnel {label}", make
    for kind in THEIRS:
        for chosen in (None, matrix):

            def make(target, kind=kind, chosen=chosen):
                quantise_theirs(options.source, target, kind, chosen)

            label = f"{kind} imatrix" if chosen is not None else kind
            yield f"llama.cpp {label}", make


def judge(options, target):
    command = [options.runnel, "compare", options.source, target, options.text,
               "--context", str(options.context), "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def measure(options, name, make, folder):
    target = os.path.join(folder, "quantised.gguf")
    print(f"quantisers: {name}", file=sys.stderr)
    make(target)
    result = judge(options, target)
    row = {
        "name": name,
        "bytes": os.path.getsize(target),
        "kl": result["kl"]["mean"],
        "kl_standard_error": result["kl"]["standard_error"],
        "kl_99": result["kl_99"],
        "perplexity": result["b"]["perplexity"],
        "source_perplexity": result["a"]["perplexity"],
        "top_1_agreement": result["top_1_agreement"]["mean"],
    }
    os.remove(target)
    return row


def make_table(rows):
    lines = ["| | MB | KL | 99 % | perplexity | same guess |",
             "|---|--:|--:|--:|--:|--:|"]
    for row in sorted(rows, key=lambda row: row["bytes"]):
        lines.append(
            f"| {row['name']} | {row['bytes'] / 1e6:.1f} "
            f"| {row['kl']:.4f} ± {row['kl_standard_error']:.4f} "
            f"| {row['kl_99']:.3f} | {row['perplexity']:.3f} "
            f"| {row['top_1_agreement']:.2%} |")
    lines += ["", "The source's perplexity is "
              f"{rows[0]['source_perplexity']:.3f}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("calibration")
    parser.add_argument("text")
    parser.add_argument("--runnel", default="runnel")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--keep", action="append", default=[],
                        help="passed on to `runnel convert`")
    parser.add_argument("--only", default="",
                        help="only those whose name holds this")
    parser.add_argument("--output", type=pathlib.Path,
                        help="file for the rows, as JSON")
    options = parser.parse_args()
    matrix = make_matrix(read_importance(options.source, options.calibration))
    rows = []
    with tempfile.TemporaryDirectory(prefix="runnel-quantisers-") as folder:
        for name, make in list_jobs(options, matrix):
            if options.only in name:
                rows.append(measure(options, name, make, folder))
    print(make_table(rows), end="")
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
