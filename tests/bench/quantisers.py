#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""What quantisation loses: Runnel's packages beside the files of llama.cpp's
quantiser, made of one model and judged by `runnel compare`.

SOURCE is a GGUF file with real precision (F32, F16, BF16, Q8_0), such as
train_small.py makes, CALIBRATION a text like those the model will meet, TEXT
another one that is judged. Of a source with some precise tensors, --tensors
names their types, and the others stay as they are. A file of Runnel's with a +
keeps the output matrix in 8 bits, as llama.cpp's have it in 6 or 8. Run by
`./dev bench quantisers SOURCE CALIBRATION TEXT`, in the virtual environment
that holds llama-cpp-python. The importance matrix that llama.cpp gets is that
of Runnel's calibration, read through its Python bindings. Formats that Runnel
does not read are judged after llama.cpp has made half floats of them.
"""

import argparse
import array
import ctypes
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GROUPS = [64, 32]
THEIRS = ["Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "IQ4_XS", "IQ4_NL"]
NOT_READ = ["IQ4_XS", "IQ4_NL"]

# Run by the system's Python, which has PyGObject: one JSON line with the names
# and lengths, then the floats.
READ_IMPORTANCE = """
import array, json, sys
import gi
gi.require_version("Runnel", "1.0")
from gi.repository import Runnel
source, text, threads = sys.argv[1:]
model = Runnel.Model.open(source, Runnel.LoadMode.MAP)
backend = Runnel.Backend.get("cpu", int(threads), None)
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


def read_importance(options):
    """{tensor: floats}."""
    command = ["/usr/bin/python3", "-c", READ_IMPORTANCE,
               options.source, options.calibration, str(options.threads)]
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


def list_kept(options):
    """{name: type} of the tensors that stay."""
    if not options.tensors:
        return {}
    wanted = options.tensors.split(",")
    output = subprocess.run(
        [options.runnel, "inspect", "--json", "--tensors", options.source], check=True,
        stdout=subprocess.PIPE).stdout
    tensors = [tensor[:3] for tensor in json.loads(output)["tensors"]]
    kept = {name: kind for name, kind, shape in tensors
            if kind not in wanted and len(shape) > 1}
    if len(kept) == len(tensors):
        sys.exit(f"quantisers: {options.source} has no tensors of the types "
                 f"{options.tensors}")
    return kept


def make_overrides(kept):
    """The array that llama.cpp wants, which ends with an entry of zeros."""
    import gguf
    import llama_cpp

    overrides = (llama_cpp.llama_model_tensor_override * (len(kept) + 1))()
    for entry, (name, kind) in zip(overrides, kept.items()):
        entry.pattern = f"^{re.escape(name)}$".encode()
        entry.type = gguf.GGMLQuantizationType[kind].value
    return overrides


def quantise_theirs(options, source, target, kind, matrix=None):
    import gguf
    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = options.threads
    params.allow_requantize = True
    if matrix is not None:
        params.imatrix = matrix
    if options.kept and kind != "F16":
        params.tt_overrides = make_overrides(options.kept)
        if "token_embd.weight" in options.kept:
            params.token_embedding_type = gguf.GGMLQuantizationType[
                options.kept["token_embd.weight"]].value
    status = llama_cpp.llama_model_quantize(
        os.fsencode(source), os.fsencode(target), ctypes.byref(params))
    if status != 0:
        sys.exit(f"quantisers: llama_model_quantize failed with {status}")


def quantise_ours(options, target, arguments):
    command = [options.runnel, "convert", options.source, target, "--threads",
               options.threads]
    arguments = [*arguments, *(f"--keep={name}=source"
                               for name in options.kept)]
    subprocess.run([*map(str, command), *map(str, arguments)], check=True,
                   stdout=subprocess.DEVNULL)


def list_jobs(options, matrix):
    """(name, a function that makes the file, whether Runnel reads it)."""
    wide = ["--keep", f"{options.wide}=int8"]
    for group, keep, text in itertools.product(
            GROUPS, ([], wide), ([], ["--calibrate", options.calibration])):
        name = f"Runnel int4/{group}{'+' * bool(keep)}"
        yield name + " calibrated" * bool(text), functools.partial(
            quantise_ours, options, arguments=[
                "--type", "int4", "--group", group, *keep, *text]), True
    for kind in THEIRS:
        for chosen in (None, matrix):
            label = f"{kind} imatrix" if chosen is not None else kind
            yield f"llama.cpp {label}", functools.partial(
                quantise_theirs, options, options.source, kind=kind,
                matrix=chosen), kind not in NOT_READ


def judge(options, target):
    command = [options.runnel, "compare", options.source, target, options.text,
               "--context", options.context, "--threads", options.threads,
               "--json"]
    output = subprocess.run([*map(str, command)], check=True,
                            stdout=subprocess.PIPE).stdout
    return json.loads(output)


def measure(options, name, make, is_read, folder):
    target = judged = os.path.join(folder, "quantised.gguf")
    print(f"quantisers: {name}", file=sys.stderr)
    make(target=target)
    n_bytes = os.path.getsize(target)
    if not is_read:
        judged = os.path.join(folder, "restored.gguf")
        quantise_theirs(options, target, judged, "F16")
        os.remove(target)
    result = judge(options, judged)
    row = {
        "name": name,
        "bytes": n_bytes,
        "kl": result["kl"]["mean"],
        "kl_standard_error": result["kl"]["standard_error"],
        "kl_99": result["kl_99"],
        "perplexity": result["b"]["perplexity"],
        "source_perplexity": result["a"]["perplexity"],
        "top_1_agreement": result["top_1_agreement"]["mean"],
    }
    os.remove(judged)
    return row


def make_row(row):
    return (f"| {row['name']} | {row['bytes'] / 1e6:.2f} "
            f"| {row['kl']:.5f} ± {row['kl_standard_error']:.5f} "
            f"| {row['kl_99']:.4f} | {row['perplexity']:.3f} "
            f"| {row['top_1_agreement']:.2%} |")


def make_table(rows):
    lines = ["| | MB | KL | 99 % | perplexity | same guess |",
             "|---|--:|--:|--:|--:|--:|"]
    lines += map(make_row, sorted(rows, key=lambda row: row["bytes"]))
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
    parser.add_argument("--wide", default="token_embd.weight", metavar="NAME",
                        help="the tensor that files with a + keep in 8 bits")
    parser.add_argument("--tensors", default="", metavar="TYPES",
                        help="quantise only tensors of these types of the "
                        "source, such as Q8_0,Q6_K")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="only those whose name fits")
    parser.add_argument("--output", type=pathlib.Path,
                        help="file for the rows, as JSON")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="runnel-quantisers-") as folder:
        options.kept = list_kept(options)
        matrix = make_matrix(read_importance(options))
        for name, make, is_read in list_jobs(options, matrix):
            if re.search(options.only, name):
                rows.append(measure(options, name, make, is_read, folder))
                print(make_row(rows[-1]), file=sys.stderr)
                if options.output is not None:
                    options.output.write_text(json.dumps(rows, indent=1)
                                              + "\n")
    print(make_table(rows), end="")


if __name__ == "__main__":
    main()
