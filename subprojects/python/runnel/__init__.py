# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Prompts in, replies out, piece by piece.

    import runnel
    session = runnel.Session("SmolLM2-135M-Instruct.Q4_1.gguf")
    for piece in session.generate("Name three rivers of France."):
        print(piece, end="", flush=True)

In asyncio, `async for`, or `await session.generate(...)` for the whole text.
What is below is in gi.repository: Runnel (the computing), Gst and GstRunnel
(pipelines).
"""

import gi

gi.require_version("Gst", "1.0")
gi.require_version("Runnel", "1.0")
gi.require_version("GstRunnel", "1.0")

from gi.repository import Gst, GstRunnel  # noqa: E402

Gst.init(None)

from .model import find_default_model  # noqa: E402
from .session import Session  # noqa: E402

Reply = GstRunnel.Reply
Usage = GstRunnel.Usage

__all__ = ["Reply", "Session", "Usage", "find_default_model"]
