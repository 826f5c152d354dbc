#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes character-ranges.c: the classes of characters the pre-tokenizers see.

The classes are asked of the engines that define the token ids: the regular
expressions, the Digits splitter and the normalizers of the PyPI package
`tokenizers`. Their Unicode versions differ: the normalizers know no character
that came after Unicode 9.

    python3 make-character-ranges.py > character-ranges.c
"""
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def isolated_by(splitter):
    """Code points that the splitter cuts out of "=c="."""
    return {c for c in CODE_POINTS if chr(c) != "="
            and len(splitter.pre_tokenize_str("=" + chr(c) + "=")) == 3}


def matched_by(pattern):
    return isolated_by(pre_tokenizers.Split(Regex(pattern), "isolated"))


def decomposed():
    nfd = normalizers.NFD()
    return {c for c in CODE_POINTS if nfd.normalize_str(chr(c)) != chr(c)}


def inert_under_nfc(decomposing):
    """Starters that NFC leaves alone and that never join the one before."""
    nfc = normalizers.NFC()
    seconds = set()
    for c in decomposing:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2:
            seconds.add(int(parts[1], 16))
    seconds.update(range(0x1161, 0x1176))  # Hangul vowels
    seconds.update(range(0x11A8, 0x11C3))  # Hangul final consonants

    def untouched(text):
        return nfc.normalize_str(text) == text

    # A mark trades places with one of a lower class after it (U+0334 has 1)
    # or of a higher class before it (U+0345 has 240).
    return {c for c in CODE_POINTS
            if c not in seconds and untouched(chr(c))
            and untouched("\u2190" + chr(c) + "\u0334")
            and untouched("\u2190\u0345" + chr(c))}


def ranges(code_points):
    found = []
    for c in sorted(code_points):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def write(name, code_points, out):
    found = ranges(code_points)
    out.write(f"\nconst RunnelCharacterRange {name}[] = {{\n")
    for i in range(0, len(found), 3):
        row = ["{ 0x%x, 0x%x }" % tuple(r) for r in found[i:i + 3]]
        out.write("  " + ", ".join(row) + ",\n")
    out.write("};\n")
    out.write(f"const gsize {name}_length =\n    G_N_ELEMENTS ({name});\n")


def main():
    out = sys.stdout
    letters = matched_by(r"\p{L}")
    numbers = matched_by(r"\p{N}")
    digits = isolated_by(pre_tokenizers.Digits(individual_digits=True))
    out.write(
        "/* Runnel: small language models on the device, "
        "as GStreamer pipelines.\n"
        " * Copyright (C) 2026 The Runnel developers\n"
        " * SPDX-License-Identifier: MIT\n */\n"
        "#include \"character-class.h\"\n\n"
        "/* Written by make-character-ranges.py with tokenizers "
        f"{tokenizers.__version__}. Not to be\n * edited. */\n")
    write("runnel_letter_ranges", letters, out)
    write("runnel_number_ranges", numbers, out)
    write("runnel_space_ranges", matched_by(r"\s"), out)
    assert numbers <= digits
    write("runnel_extra_digit_ranges", digits - numbers, out)
    decomposing = decomposed()
    write("runnel_decomposing_ranges", decomposing, out)
    write("runnel_inert_ranges", inert_under_nfc(decomposing), out)


if __name__ == "__main__":
    main()
