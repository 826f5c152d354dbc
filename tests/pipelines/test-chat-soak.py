#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""A conversation of many turns, long past the end of its context: what it
takes in memory stays what it is.

    test-chat-soak.py RUNNEL MODEL|default CONTEXT CACHE-BYTES WARM-UP TURNS"""

import os
import select
import subprocess
import sys

RUNNEL, MODEL = sys.argv[1:3]
if MODEL == "default":
    MODEL = os.environ["RUNNEL_DEFAULT_MODEL"]
CONTEXT, CACHE_BYTES, N_WARM, N_TURNS = map(int, sys.argv[3:])
# Flat is within 1 % of what a conversation with the default model takes.
MAX_GROWTH = 1_200_000
PAGE = os.sysconf("SC_PAGE_SIZE")


class Chat:
    """`runnel chat`, a line in and a line out."""

    def __init__(self):
        self.process = subprocess.Popen(
            [RUNNEL, "chat", "--no-history", "--model", MODEL, "--threads", "1",
             "--max-tokens", "4", "--overflow-policy", "shift",
             "--context-length", str(CONTEXT),
             "--set", f"prefill.cache-budget={CACHE_BYTES}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            # Pieces that glibc keeps for each thread would look like growth.
            env={**os.environ, "MALLOC_ARENA_MAX": "1"})

    def turn(self, prompt):
        self.process.stdin.write(prompt.encode() + b"\n")
        self.process.stdin.flush()
        reply = b""
        while not reply.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], 60)
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert piece, f"no end of a reply after {reply}"
            reply += piece

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * PAGE

    def close(self):
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        return status


def main():
    chat, sizes = Chat(), []
    for turn in range(N_WARM + N_TURNS):
        chat.turn(f"Turn {turn}: name a colour.")
        sizes.append(chat.resident_bytes())
    status = chat.close()
    # What a turn takes for a moment differs from turn to turn.
    before, after = min(sizes[N_WARM - 20 : N_WARM]), min(sizes[-20:])
    print(f"# {before / 1e6:.1f} MB after {N_WARM} turns, {after / 1e6:.1f} MB "
          f"after {N_TURNS} more")
    good = status == 0 and after - before < MAX_GROWTH
    print(f"1..1\n{'ok' if good else 'not ok'} 1 - {N_TURNS} turns")
    return not good


sys.exit(main())
