#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runs an example as a user would, with two lines of input for those that
read some: it must end well, say something, and complain about nothing."""

import subprocess
import sys

LINES = "Hello, my name is Ann.\nWhat is the capital of France?\n"

ran = subprocess.run(sys.argv[1:], input=LINES, capture_output=True,
                     encoding="utf-8", check=False)
sys.stdout.write(ran.stdout)
sys.stderr.write(ran.stderr)
letters = sum(c.isalnum() for c in ran.stdout)
if ran.returncode != 0 or ran.stderr or letters < 10:
    sys.exit(f"exit status {ran.returncode}, {letters} letters")
