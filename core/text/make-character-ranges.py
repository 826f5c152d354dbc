#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes character-ranges.c: the classes of characters the pre-tokenizers see.

The classes are asked of the engines that define the token ids: the regular
expressions and the Digits splitter of the PyPI package `tokenizers`. The
NFC class is from Python's own Unicode data; it holds only assigned
characters, for which the Unicode stability policy keeps it fixed.

    python3 make-character-ranges.py > character-ranges.c
"""
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def isolated_by(splitter):
    """Code points that the splitter cuts out of "=c="."""
    return {c for c in CODE_POINTS if chr(c) != "="
            and len(splitter.pre_tokenize_str("=" + chr(c) + "=")) == 3}


def matched_by(pattern):
    return isolated_by(pre_tokenizers.Split(Regex(pattern), "isolated"))


def inert_under_nfc():
    """Starters that NFC leaves alone and that never join the one before."""
    seconds = set()
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and parts[0][0] != "<":
            seconds.add(int(parts[1], 16))
    seconds.update(range(0x1161, 0x1176))  # Hangul vowels
    seconds.update(range(0x11A8, 0x11C3))  # Hangul final consonants
    return {c for c in CODE_POINTS
            if unicodedata.category(chr(c)) != "Cn"
            and unicodedata.combining(chr(c)) == 0
            and unicodedata.normalize("NFC", chr(c)) == chr(c)
            and c not in seconds}


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
        f"{tokenizers.__version__} and Unicode\n"
        f" * {unicodedata.unidata_version} for NFC. Not to be edited. */\n")
    write("runnel_letter_ranges", letters, out)
    write("runnel_number_ranges", numbers, out)
    write("runnel_space_ranges", matched_by(r"\s"), out)
    assert numbers <= digits
    write("runnel_extra_digit_ranges", digits - numbers, out)
    write("runnel_inert_ranges", inert_under_nfc(), out)


if __name__ == "__main__":
    main()
