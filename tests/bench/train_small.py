#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Trains a small model of floats from scratch, for `./dev bench quantisers`:
weights that were learnt and never rounded.

The model has Qwen 3's shape, with widths that are whole blocks of every format
of llama.cpp's, and 4.2 million parameters. TEXT is one or more files; the
tokenizer, byte-level BPE, is trained on them too. FILE becomes a GGUF file of
32-bit floats. Needs the PyPI packages torch, tokenizers and gguf:

    train_small.py FILE TEXT... [--steps 450] [--seed 1]
"""

import argparse
import json
import math
import pathlib
import sys
import time

import gguf
import torch
from tokenizers import (Tokenizer, decoders, models, pre_tokenizers,
                        trainers)
from torch import nn
from torch.nn import functional

N_VOCAB = 4096
N_EMBD = 256
N_FF = 768
N_LAYERS = 4
N_HEADS = 4
N_KV_HEADS = 2
HEAD_DIM = 64
CONTEXT = 128
BATCH = 8
ROPE_BASE = 1e4
NORM_EPSILON = 1e-6
END = "<|endoftext|>"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(N_EMBD, N_HEADS * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(N_EMBD, N_KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(N_EMBD, N_KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(N_HEADS * HEAD_DIM, N_EMBD, bias=False)
        self.q_norm = nn.RMSNorm(HEAD_DIM, NORM_EPSILON)
        self.k_norm = nn.RMSNorm(HEAD_DIM, NORM_EPSILON)

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape

        def split(rows, n):
            return rows.view(batch, length, n, HEAD_DIM).transpose(1, 2)

        def turn(rows):
            first, second = rows.chunk(2, dim=-1)
            return rows * cosine + torch.cat((-second, first), dim=-1) * sine

        q = turn(self.q_norm(split(self.q_proj(x), N_HEADS)))
        k = turn(self.k_norm(split(self.k_proj(x), N_KV_HEADS)))
        v = split(self.v_proj(x), N_KV_HEADS)
        shared = N_HEADS // N_KV_HEADS
        y = functional.scaled_dot_product_attention(
            q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1),
            is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(N_EMBD, N_FF, bias=False)
        self.up_proj = nn.Linear(N_EMBD, N_FF, bias=False)
        self.down_proj = nn.Linear(N_FF, N_EMBD, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x))
                              * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(N_EMBD, NORM_EPSILON)
        self.self_attn = Attention()
        self.post_attention_layernorm = nn.RMSNorm(N_EMBD, NORM_EPSILON)
        self.mlp = FeedForward()

    def forward(self, x, cosine, sine):
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        return x + self.mlp(self.post_attention_layernorm(x))


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(N_VOCAB, N_EMBD)
        self.layers = nn.ModuleList(Layer() for _ in range(N_LAYERS))
        self.norm = nn.RMSNorm(N_EMBD, NORM_EPSILON)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        turns = ROPE_BASE ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        angles = torch.outer(torch.arange(tokens.shape[1]), turns)
        angles = torch.cat((angles, angles), dim=-1)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.norm(x) @ self.embed_tokens.weight.T


def initialise(model):
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            deviation = 0.02
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                deviation /= math.sqrt(2 * N_LAYERS)
            nn.init.normal_(weight, 0, deviation)


def train_tokenizer(files):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(files, trainers.BpeTrainer(
        vocab_size=N_VOCAB, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if tokenizer.get_vocab_size() != N_VOCAB:
        sys.exit(f"train_small: these texts are too short for {N_VOCAB} words")
    return tokenizer


def draw_batch(tokens, generator):
    starts = torch.randint(len(tokens) - CONTEXT - 1, (BATCH,),
                           generator=generator)
    rows = torch.stack([tokens[at : at + CONTEXT + 1] for at in starts])
    return rows[:, :-1], rows[:, 1:]


def train(options, tokens):
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    model = Trunk()
    initialise(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate,
                                  betas=(0.9, 0.95), weight_decay=0.1)
    warm_up = max(1, options.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(
        (step + 1) / warm_up,
        0.05 + 0.95 * (1 + math.cos(math.pi * step / options.steps)) / 2))
    started, mean = time.monotonic(), 0.0
    for step in range(options.steps):
        given, wanted = draw_batch(tokens, generator)
        loss = functional.cross_entropy(model(given).flatten(0, 1),
                                        wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        mean += (loss.item() - mean) / min(step + 1, 25)
        if step % 25 == 24 or step + 1 == options.steps:
            print(f"train_small: step {step + 1} of {options.steps}, loss "
                  f"{mean:.3f}, {time.monotonic() - started:.0f} s",
                  file=sys.stderr, flush=True)
    return model


# What GGUF calls the parts of a layer.
PARTS = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def get_gguf_name(name):
    if name.startswith("layers."):
        _, number, part = name.removesuffix(".weight").split(".", 2)
        return f"blk.{number}.{PARTS[part]}.weight"
    return {"embed_tokens.weight": "token_embd.weight",
            "norm.weight": "output_norm.weight"}[name]


def add_tokenizer(writer, tokenizer):
    words = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    end = tokenizer.token_to_id(END)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([word for word, _ in words])
    writer.add_token_types([
        gguf.TokenType.CONTROL if number == end else gguf.TokenType.NORMAL
        for _, number in words])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair)
                             for pair in merges])
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


def write(path, weights, tokenizer, name):
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_name(name)
    writer.add_block_count(N_LAYERS)
    writer.add_context_length(4 * CONTEXT)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokenizer(writer, tokenizer)
    for key, weight in weights:
        writer.add_tensor(get_gguf_name(key), weight.detach().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--steps", type=int, default=450,
                        help=f"of {BATCH} times {CONTEXT} tokens")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = train_tokenizer(options.text)
    tokens = []
    for path in options.text:
        text = pathlib.Path(path).read_text(errors="replace")
        tokens += tokenizer.encode(text).ids + [tokenizer.token_to_id(END)]
    print(f"train_small: {len(tokens)} tokens", file=sys.stderr)
    model = train(options, torch.tensor(tokens))
    write(options.file, model.named_parameters(), tokenizer,
          f"{options.file.stem} (trained small, seed {options.seed})")


if __name__ == "__main__":
    main()
