# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Where models are."""

import os

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def find_default_model():
    """The model of RUNNEL_DEFAULT_MODEL, or the one that `./dev run` fetched."""
    path = os.environ.get("RUNNEL_DEFAULT_MODEL")
    if path:
        return path
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(cache, "runnel", NAME)
    if os.path.exists(path):
        return path
    raise FileNotFoundError(
        f"{path} is not there: name a model, set RUNNEL_DEFAULT_MODEL, or let "
        "./dev run fetch the default one")
