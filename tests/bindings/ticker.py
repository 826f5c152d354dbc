# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""A clock that is due every 10 ms and notes how late it is."""

import asyncio
import time

# 50 ms is what a user may notice; five times that is a test's patience.
MAX_GAP = 0.25


def _read_queued():
    """Seconds that this thread was ready and waited for a processor: what a
    busy machine does to a clock, and no fault of the program's."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0


class Ticker:
    """Ticks in the running loop's task `run()`, until that is cancelled."""

    def __init__(self):
        self.n_ticks = 0
        self.max_gap = 0

    async def run(self):
        last, queued = time.monotonic(), _read_queued()
        while True:
            await asyncio.sleep(0.01)
            now, queued_now = time.monotonic(), _read_queued()
            gap = now - last - (queued_now - queued)
            self.max_gap = max(self.max_gap, gap)
            self.n_ticks += 1
            last, queued = now, queued_now
