# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Writes a GGUF model as an MNN package, so that MNN can be measured on it.

The graph is the plain form of MNN's exporter, before it fuses projections,
for decoders of the llama and qwen3 shapes with tied embedding; it goes through
mnnconvert's JSON form. Weights are 4-bit in blocks of 64, as MNN's exporter
makes them by default: the scale and the offset of a block are refitted unless
the two groups of 32 of a Q4_1 file agree, which is the case for a file that
was made of such blocks.
"""

import json
import pathlib
import subprocess
import sys

import gguf
import numpy

BLOCK = 64


def field(reader, key, default=None):
    if key not in reader.fields:
        return default
    return reader.fields[key].contents()


class Shape:
    def __init__(self, reader):
        arch = field(reader, "general.architecture")
        get = lambda key, default=None: field(reader, f"{arch}.{key}", default)
        self.arch = arch
        self.layers = get("block_count")
        self.width = get("embedding_length")
        self.heads = get("attention.head_count")
        self.kv_heads = get("attention.head_count_kv", self.heads)
        self.head_dim = get("attention.key_length", self.width // self.heads)
        self.epsilon = get("attention.layer_norm_rms_epsilon")
        self.rope_base = get("rope.freq_base", 10000.0)
        self.context = get("context_length")


def half_split(rows, heads):
    """Rows of attn_q or attn_k as rotation by halves wants them: GGUF keeps
    those of llama as adjacent pairs."""
    n, columns = rows.shape
    pairs = rows.reshape(heads, n // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(n, columns)


class WeightFile:
    """llm.mnn.weight: blobs one behind the other."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.offset = 0

    def append(self, *parts):
        start = self.offset
        for part in parts:
            data = bytes(part)
            self.file.write(data)
            self.offset += len(data)
        return start

    def norm(self, gamma):
        gamma = numpy.asarray(gamma, "<f4")
        start = self.append(gamma.tobytes(), numpy.zeros_like(gamma).tobytes())
        return [start, gamma.nbytes, gamma.nbytes]

    def matrix(self, rows):
        """4-bit codes, the first of a pair in the high half; a (zero, scale)
        pair a block: w = (code - 8) * scale + zero."""
        n, columns = rows.shape
        block = BLOCK
        while columns % block:
            block //= 2
        blocks = rows.reshape(n, columns // block, block)
        low = blocks.min(axis=2, keepdims=True)
        high = blocks.max(axis=2, keepdims=True)
        scale = numpy.maximum((high - low) / 15, 1e-8)
        codes = numpy.clip(numpy.rint((blocks - low) / scale), 0, 15)
        scale = scale.astype("<f2")
        zero = (low + 8 * scale.astype("f4")).astype("<f2")
        codes = codes.astype("u1").reshape(n, columns)
        packed = codes[:, 0::2] << 4 | codes[:, 1::2]
        wide = n > 65535 or columns > 65535
        header = (
            b"\2"
            + numpy.array([n, columns], "<u4" if wide else "<u2").tobytes()
            + b"\x10"
            + numpy.arange(-8, 8, dtype="i1").tobytes()
        )
        alpha = numpy.concatenate([zero, scale], axis=2)
        start = self.append(header, packed.tobytes(), alpha.tobytes())
        return {
            "external": [start, len(header) + packed.nbytes, alpha.nbytes, 0, 0],
            "rows": n,
            "columns": columns,
            "blocks": n * (columns // block),
            "block": block,
            "wide": wide,
            "codes": start + len(header),
        }


class Graph:
    def __init__(self):
        self.ops = []
        self.tensors = []

    def tensor(self, name):
        self.tensors.append(name)
        return len(self.tensors) - 1

    def op(self, kind, name, inputs, main_type, main, outputs=1, layout="NHWC"):
        names = [name] + [f"{name}:{i}" for i in range(1, outputs)]
        indexes = [self.tensor(n) for n in names]
        op = {
            "main_type": main_type,
            "main": main,
            "name": name,
            "outputIndexes": indexes,
            "type": kind,
            "defaultDimentionFormat": layout,
        }
        if inputs:
            op["inputIndexes"] = inputs
        self.ops.append(op)
        return indexes[0] if outputs == 1 else indexes

    def input(self, name, dims, dtype):
        main = {"dims": dims, "dtype": dtype, "dformat": "NCHW"}
        return self.op("Input", name, None, "Input", main)

    def integers(self, name, values, scalar=False):
        main = {"dataFormat": "NCHW", "dataType": "DT_INT32", "int32s": values}
        if not scalar:
            main["dims"] = [len(values)]
        return self.op("Const", name, None, "Blob", main)

    def floats(self, name, array):
        main = {
            "dims": list(array.shape),
            "dataFormat": "NCHW",
            "dataType": "DT_FLOAT",
            "float32s": [float(x) for x in array.ravel()],
        }
        return self.op("Const", name, None, "Blob", main)

    def unsqueeze(self, name, x, axes):
        return self.op("Unsqueeze", name, [x], "SqueezeParam", {"squeezeDims": axes})

    def norm(self, name, inputs, external, epsilon):
        main = {
            "axis": [-1],
            "epsilon": epsilon,
            "group": 1,
            "external": external,
            "useRMSNorm": True,
        }
        return self.op(
            "LayerNorm", name, inputs, "LayerNorm", main, len(inputs), "NC4HW4"
        )

    def linear(self, name, x, weights):
        common = {
            "padX": 0, "padY": 0, "kernelX": 1, "kernelY": 1, "strideX": 1,
            "strideY": 1, "dilateX": 1, "dilateY": 1, "padMode": "CAFFE",
            "group": 1, "outputCount": weights["rows"],
            "inputCount": weights["columns"], "relu": False, "relu6": False,
            "hasOutputShape": False,
        }
        quantisation = {
            "type": 1, "useInt32": False, "quantScale": 1.0, "scaleIn": 0.0,
            "scaleOut": 0.0, "aMaxOrBits": 4, "aMin": 1,
            "readType": weights["blocks"], "has_scaleInt": False,
            "shapeInt32": weights["wide"], "weightSize": 0,
            "scaleStorage": "FP16",
        }
        main = {
            "common": common,
            "quanParameter": quantisation,
            "external": weights["external"],
        }
        return self.op("Convolution", name, [x], "Convolution2D", main)


def rotation(graph, shape, positions, context):
    """cos and sin of the positions, [1, rows, 1, head_dim] each."""
    half = shape.head_dim // 2
    frequencies = shape.rope_base ** (-numpy.arange(half) / half)
    angles = numpy.outer(numpy.arange(context), frequencies)
    flat = graph.op(
        "Reshape", "/rotary/positions", [positions, graph.integers("/rotary/flat", [-1])],
        "Reshape", {"dimType": "NCHW"},
    )
    zero = graph.integers("/rotary/axis", [0], scalar=True)
    tables = []
    for name, values in (("cos", numpy.cos(angles)), ("sin", numpy.sin(angles))):
        doubled = numpy.concatenate([values, values], axis=1).astype("f4")
        rows = graph.op(
            "GatherV2", f"/rotary/{name}",
            [graph.floats(f"/rotary/{name}_table", doubled), flat, zero],
            "GatherV2",
            {"Taxis": "DT_INVALID", "Tindices": "DT_INVALID", "Tparams": "DT_INVALID"},
        )
        tables.append(graph.unsqueeze(f"/rotary/{name}_rows", rows, [0, 2]))
    return tables


def attention(graph, shape, layer, x, weights, tensors, rotary, mask):
    prefix = f"/layers.{layer}/self_attn"
    q, k, v = (
        graph.linear(f"{prefix}/{name}_proj/Linear", x, weights[f"attn_{name}"])
        for name in "qkv"
    )
    main = {
        "rope_cut_head_dim": shape.head_dim, "num_head": shape.heads,
        "kv_num_head": shape.kv_heads, "head_dim": shape.head_dim,
    }
    for name in "qk":
        gamma = tensors.get(f"blk.{layer}.attn_{name}_norm.weight")
        if gamma is not None:
            main[f"{name}_norm"] = {
                "axis": [-1], "epsilon": shape.epsilon, "group": 1,
                "useRMSNorm": True, "gamma": [float(g) for g in gamma],
            }
    q, k = graph.op(
        "RoPE", f"{prefix}/FusedRoPE", [q, k, *rotary], "RoPEParam", main, 2
    )
    main = {
        "kv_cache": True, "layer_index": layer, "kv_shared_layer_index": -1,
        "output_c4": True, "attnScale": 0.0,
    }
    out = graph.op(
        "Attention", f"{prefix}/FusedAttention", [q, k, v, mask], "AttentionParam", main
    )
    return graph.linear(f"{prefix}/o_proj/Linear", out, weights["attn_output"])


def mlp(graph, layer, x, weights):
    prefix = f"/layers.{layer}/mlp"
    gate = graph.linear(f"{prefix}/gate_proj/Linear", x, weights["ffn_gate"])
    up = graph.linear(f"{prefix}/up_proj/Linear", x, weights["ffn_up"])
    product = graph.op(
        "BinaryOp", f"{prefix}/Mul", [up, gate], "BinaryOp",
        {"opType": "MUL_SILU", "T": "DT_FLOAT", "activationType": 0}, layout="NC4HW4",
    )
    return graph.linear(f"{prefix}/down_proj/Linear", product, weights["ffn_down"])


def build(shape, tensors, weight_file, context):
    """The graph; writes the weights as it goes. Also the place of the tied
    embedding in the weight file."""
    graph = Graph()
    positions = graph.input("position_ids", [1, -1], "DT_INT32")
    index = graph.input("logits_index", [1], "DT_INT32")
    embedded = graph.input("input_ids", [1, 1, shape.width], "DT_FLOAT")
    mask = graph.input("attention_mask", [1, 1, -1, -1], "DT_FLOAT")
    rotary = rotation(graph, shape, positions, context)
    x = graph.op(
        "Reshape", "/rows", [embedded], "Reshape",
        {"dims": [-1, shape.width, 1, 1], "dimType": "NCHW"}, layout="NCHW",
    )
    x = graph.op(
        "ConvertTensor", "/packed", [x], "TensorConvertInfo",
        {"source": "NCHW", "dest": "NC4HW4"}, layout="NCHW",
    )
    residual, branch = x, None
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        read = lambda name: weight_file.matrix(tensors[f"{block}.{name}.weight"])
        norm = weight_file.norm(tensors[f"{block}.attn_norm.weight"])
        name = f"/blocks.{layer}/input_layernorm"
        if branch is None:
            normed = graph.norm(name, [residual], norm, shape.epsilon)
        else:
            residual, normed = graph.norm(name, [residual, branch], norm, shape.epsilon)
        weights = {
            w: read(w) for w in ("attn_q", "attn_k", "attn_v", "attn_output")
        }
        branch = attention(graph, shape, layer, normed, weights, tensors, rotary, mask)
        norm = weight_file.norm(tensors[f"{block}.ffn_norm.weight"])
        residual, normed = graph.norm(
            f"/blocks.{layer}/post_attention_layernorm", [residual, branch], norm,
            shape.epsilon,
        )
        weights = {w: read(w) for w in ("ffn_gate", "ffn_up", "ffn_down")}
        branch = mlp(graph, layer, normed, weights)
    x = graph.op(
        "BinaryOp", "/Add", [residual, branch], "BinaryOp",
        {"opType": "ADD", "T": "DT_FLOAT", "activationType": 0}, layout="NC4HW4",
    )
    x = graph.op(
        "StridedSlice", "/Slice",
        [x, index, graph.integers("/Slice/end", [2147483647]),
         graph.integers("/Slice/axis", [0]), graph.integers("/Slice/step", [1])],
        "StridedSliceParam",
        {"Index": "DT_INVALID", "T": "DT_INVALID", "beginMask": 0, "endMask": 0,
         "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0, "fromType": 1},
        layout="NC4HW4",
    )
    norm = weight_file.norm(tensors["output_norm.weight"])
    x = graph.norm("hidden_states", [x], norm, shape.epsilon)
    output = weight_file.matrix(tensors["token_embd.weight"])
    x = graph.linear("/lm/lm_head/Linear", x, output)
    x = graph.op(
        "ConvertTensor", "/lm/unpacked", [x], "TensorConvertInfo",
        {"source": "NC4HW4", "dest": "NCHW"},
    )
    x = graph.op(
        "Reshape", "logits", [x], "Reshape",
        {"dims": [1, -1, output["rows"]], "dimType": "NCHW"},
    )
    return graph, output


def write_tokenizer(path, n_vocab):
    """Ids go in and ids come out: a token list that MNN can load, no more."""
    lines = ["430 3", "0 0 0", "", f"{n_vocab} 0"]
    lines += [f"t{i}" for i in range(n_vocab)]
    path.write_text("\n".join(lines) + "\n")


def read_tensors(reader, shape):
    tensors = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        values = values.astype("f4")
        if shape.arch == "llama" and tensor.name.endswith("attn_q.weight"):
            values = half_split(values, shape.heads)
        if shape.arch == "llama" and tensor.name.endswith("attn_k.weight"):
            values = half_split(values, shape.kv_heads)
        tensors[tensor.name] = values
    if "output.weight" in tensors:
        sys.exit("mnn_package: only models with a tied embedding")
    return tensors


def write_package(model, folder, context=8192):
    """Writes @model (GGUF) as a package into @folder and returns the path of
    its config.json."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reader = gguf.GGUFReader(model)
    shape = Shape(reader)
    tensors = read_tensors(reader, shape)
    weight_file = WeightFile(folder / "llm.mnn.weight")
    graph, output = build(shape, tensors, weight_file, context)
    weight_file.file.close()
    net = {
        "bizCode": "runnel", "oplists": graph.ops, "outputName": ["logits"],
        "preferForwardType": "CPU", "sourceType": "ONNX",
        "tensorName": graph.tensors, "tensorNumber": 0, "usage": "INFERENCE",
        "extraInfo": {"version": "3.6.1"},
    }
    dump = folder / "llm.json"
    dump.write_text(json.dumps(net))
    convert = pathlib.Path(sys.executable).parent / "mnnconvert"
    subprocess.run(
        [convert, "-f", "JSON", "--modelFile", dump, "--MNNModel", folder / "llm.mnn",
         "--bizCode", "runnel"],
        check=True, stdout=subprocess.DEVNULL,
    )
    dump.unlink()
    write_tokenizer(folder / "tokenizer.txt", output["rows"])
    facts = {
        "model_type": shape.arch, "hidden_size": shape.width,
        "layer_nums": shape.layers, "attention_mask": "float",
        "attention_type": "full", "is_mrope": False,
        "max_position_embeddings": context,
        "tie_embeddings": {
            "weight_offset": output["codes"],
            "alpha_offset": output["external"][0] + output["external"][1],
            "alpha_size": output["external"][2], "quant_bit": 4,
            "quant_block": output["block"], "alpha_dtype": "fp16",
        },
    }
    (folder / "llm_config.json").write_text(json.dumps(facts))
    config = {
        "llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight",
        "backend_type": "cpu", "tokenizer_file": "tokenizer.txt",
        "sampler_type": "greedy", "precision": "low", "memory": "low",
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


if __name__ == "__main__":
    print(write_package(sys.argv[1], sys.argv[2]))
