# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Many prompts, half of them cancelled, sessions dropped in the middle, and a
clock meanwhile: nothing stays, nothing grows, nothing stalls. 100 prompts, or
1,000 with RUNNEL_TEST_LONG=1. `test-python-soak.py SCRIPT RANDOM`."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import runnel
import tap
from gi.repository import GLib, Gst
from ticker import MAX_GAP, Ticker

SCRIPT = sys.argv[1]
N_PROMPTS = 1000 if os.environ.get("RUNNEL_TEST_LONG") == "1" else 100
N_WARM = N_PROMPTS // 2

alive = 0


def gone():
    global alive
    alive -= 1


def watch(*objects):
    global alive
    for one in objects:
        alive += 1
        one.weak_ref(gone)


def new_session():
    session = runnel.Session(SCRIPT, temperature=0, cache_budget=0)
    session.pipeline.get_by_name("replies").props.max_pieces = 1
    watch(session._session, session.pipeline, session.element)
    return session


def read_rss():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def read(reply, pieces, two):
    async for piece in reply:
        pieces.append(piece)
        if len(pieces) == 2:
            two.set()


async def ask(session, n):
    """One prompt; every second one is cancelled after two pieces."""
    reply, pieces, two = session.generate(f"{n}", max_tokens=12), [], \
        asyncio.Event()
    watch(reply)
    task = asyncio.create_task(read(reply, pieces, two))
    if n % 2:
        await two.wait()
        task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    text = "".join(pieces) + await reply
    expected = "".join(f"w{i}," for i in range(1, 13))
    assert expected.startswith(text), text
    if n % 2:
        assert reply.finish_reason == "cancelled", (
            n, pieces, reply.usage)
        assert reply.usage.completion_tokens <= len(pieces) + 4
    else:
        assert text == expected, text


async def drop_in_the_middle():
    async for _ in new_session().generate("Hello"):
        return


async def run(n_prompts, ticker):
    """The growth of the resident set after the first prompts."""
    ticking = asyncio.create_task(ticker.run())
    session, before = new_session(), 0
    for n in range(N_WARM + n_prompts):
        if n == N_WARM:
            before = read_rss()
        if n % 10 == 9:
            await drop_in_the_middle()
        if n % 25 == 24:
            session = new_session()
        await ask(session, n)
    growth = read_rss() / before - 1
    ticking.cancel()
    return growth


def settle():
    end = time.monotonic() + 20
    while alive and time.monotonic() < end:
        gc.collect()
        GLib.MainContext.default().iteration(False)
        time.sleep(0.01)
    return alive


class Soak(unittest.TestCase):
    def test_prompts(self):
        ticker = Ticker()
        growth = asyncio.run(run(N_PROMPTS, ticker))
        print(f"# resident set {growth:+.2%}, largest gap "
              f"{ticker.max_gap * 1000:.0f} ms")
        self.assertLess(growth, 0.02)
        self.assertLess(ticker.max_gap, MAX_GAP)
        self.assertEqual(settle(), 0)

    def test_leaks_tracer(self):
        with tempfile.NamedTemporaryFile() as log:
            subprocess.run(
                [sys.executable, __file__, SCRIPT, "traced"], check=True,
                env={**os.environ, "GST_TRACERS": "leaks",
                     "GST_DEBUG": "GST_TRACER:7", "GST_DEBUG_NO_COLOR": "1",
                     "GST_DEBUG_FILE": log.name, "G_DEBUG": ""})
            text = log.read().decode(errors="replace")
        self.assertIn("leaks", text)
        leaked = re.findall(
            r"object-alive, type-name=\(string\)(\w+)", text)
        # Factories and templates live as long as the registry.
        leaked = [name for name in leaked
                  if not re.search("Factory|Plugin|PadTemplate", name)]
        self.assertEqual(leaked, [])


def run_traced():
    asyncio.run(run(10, Ticker()))
    settle()
    Gst.deinit()


if __name__ == "__main__":
    if sys.argv[2] == "traced":
        run_traced()
    else:
        sys.argv[1:] = []
        tap.main()
