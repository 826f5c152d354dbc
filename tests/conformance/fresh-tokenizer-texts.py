#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a tokenizer set of fresh random texts, with the ids of `tokenizers`.

    python3 fresh-tokenizer-texts.py REFERENCE OUT [SEED [COUNT]]
    conformance-tokenizer OUT

REFERENCE is the folder of reference values, whose models are used; OUT gets
the same shape. Besides those models, SmolLM2's vocabulary is tried with the
pre-tokenizers of GPT-2 and Llama 3, and with added tokens that are matched in
normalised text. Needs the PyPI package `tokenizers`.
"""
import copy
import gzip
import json
import os
import random
import shutil
import sys
import unicodedata

from tokenizers import Tokenizer

WORDS = ("the of and to in a is that for it as was with be by on not he I "
         "don't Can'T it's we'LL they'Ve I'm you'Re she'd 'ſ o'clock naïve "
         "coöperate Straße fiancée Größe").split()
SCRIPTS = [(0x20, 0x7E), (0xA0, 0x17F), (0x180, 0x24F), (0x300, 0x36F),
           (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5F4), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE00, 0xE5B), (0x1100, 0x11FF),
           (0x1E00, 0x1EFF), (0x1F00, 0x1FFE), (0x2000, 0x206F),
           (0x2070, 0x218B), (0x2190, 0x23FF), (0x2E80, 0x2FD5),
           (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xA000, 0xABFF),
           (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFDFF),
           (0xFE00, 0xFFFD), (0x10000, 0x10FFF), (0x1D100, 0x1D7FF),
           (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01EF),
           (0, 0x1F), (0x11000, 0x11FFF), (0x1E000, 0x1EFFF)]
MARKS = [0x300, 0x301, 0x302, 0x308, 0x30A, 0x323, 0x327, 0x328, 0x338,
         0x345, 0x5B0, 0x5C1, 0x64E, 0x651, 0x93C, 0x1161, 0x11A8, 0x3099,
         0x309A]
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u200b"


def piece(rng, added):
    kind = rng.randrange(12)
    if kind < 3:
        return " ".join(rng.choices(WORDS, k=rng.randrange(1, 8)))
    if kind == 3:
        return "".join(rng.choices(SPACES, k=rng.randrange(1, 7)))
    if kind == 4:
        return "".join(rng.choices("0123456789٣½²Ⅷ𝟘", k=rng.randrange(1, 9)))
    if kind == 5:
        return "".join(rng.choices("'\"!?.,;:-_=+*/\\()[]{}<>|#$%&@^~`…、。",
                                   k=rng.randrange(1, 8)))
    if kind == 6:
        token = rng.choice(added)
        cut = rng.randrange(len(token) + 1)
        return rng.choice([token, token[:cut], token[cut:], token + token])
    if kind == 7:
        base = rng.choice("aeiouAEIOUcCnNsS가하ᄒあかはΑαωיש")
        return base + "".join(chr(c) for c in
                              rng.choices(MARKS, k=rng.randrange(1, 5)))
    if kind == 8:
        return rng.choice("aA =-你 \n") * rng.randrange(2, 90)
    low, high = rng.choice(SCRIPTS)
    return "".join(chr(rng.randint(low, high))
                   for _ in range(rng.randrange(1, 10)))


def text(rng, added):
    made = "".join(piece(rng, added) for _ in range(rng.randrange(0, 9)))
    if rng.randrange(4) == 0:
        made = unicodedata.normalize("NFD", made)
    return made


def line(tokenizer, plain, fresh):
    ids = tokenizer.encode(fresh, add_special_tokens=False).ids
    ids_plain = plain.encode(fresh, add_special_tokens=False).ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    entry = {"kind": "fresh", "text": fresh, "ids": ids}
    if ids_plain != ids:
        entry["ids_plain"] = ids_plain
    if decoded != fresh:
        entry["decoded"] = decoded
    return json.dumps(entry)


def variants(models):
    """Name and parsed tokenizer.json of every model to try."""
    for file in sorted(os.listdir(models)):
        if file.endswith(".tokenizer.json.gz"):
            with gzip.open(os.path.join(models, file)) as f:
                yield file[:-len(".tokenizer.json.gz")], json.load(f)
    with gzip.open(os.path.join(models, "qwen3.tokenizer.json.gz")) as f:
        qwen = json.load(f)
    with gzip.open(os.path.join(models, "smollm2.tokenizer.json.gz")) as f:
        base = json.load(f)
    with open(os.path.join(models, "qwen2.5.added_tokens.json")) as f:
        added = json.load(f)["added_tokens"]
    yield "qwen2.5", dict(qwen, added_tokens=added)

    gpt2 = copy.deepcopy(base)
    gpt2["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False,
                             "trim_offsets": True, "use_regex": True}
    yield "fresh-gpt2", gpt2

    llama = copy.deepcopy(base)
    llama["pre_tokenizer"] = copy.deepcopy(qwen["pre_tokenizer"])
    regex = llama["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    regex["Regex"] = regex["Regex"].replace(r"\p{N}|", r"\p{N}{1,3}|")
    llama["model"]["ignore_merges"] = True
    yield "fresh-llama", llama

    normal = copy.deepcopy(qwen)
    top = max(t["id"] for t in normal["added_tokens"])
    # None is in the vocabulary: `tokenizers` would give it its id there. And
    # each has a character outside the byte-level alphabet or is ASCII: else
    # `tokenizers` decodes it as if it were bytes.
    for i, content in enumerate(["<日ü>", "o'clock 1", "<|im", "日"]):
        normal["added_tokens"].append({
            "id": top + 1 + i, "content": content, "single_word": False,
            "lstrip": False, "rstrip": False, "normalized": True,
            "special": False})
    yield "fresh-normalized", normal


def main():
    reference, out = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 2000
    models = os.path.join(reference, "tokenizer", "models")
    target = os.path.join(out, "tokenizer", "models")
    os.makedirs(target, exist_ok=True)
    shutil.copy(os.path.join(models, "qwen2.5.added_tokens.json"), target)
    print(f"seed {seed}, {count} texts for each model")
    for name, description in variants(models):
        rng = random.Random(f"{seed} {name}")
        added = [t["content"] for t in description["added_tokens"]]
        source = json.dumps(description)
        tokenizer = Tokenizer.from_str(source)
        plain = Tokenizer.from_str(
            json.dumps(dict(description, added_tokens=[])))
        if name != "qwen2.5":
            with gzip.open(os.path.join(target, name + ".tokenizer.json.gz"),
                           "wt", compresslevel=1) as f:
                f.write(source)
        with open(os.path.join(out, "tokenizer", name + ".jsonl"), "w") as f:
            for _ in range(count):
                f.write(line(tokenizer, plain, text(rng, added)) + "\n")


if __name__ == "__main__":
    main()
