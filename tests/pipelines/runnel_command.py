# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runs the runnel command as a user does, and reports by TAP what a program
finds that checks it. Such a program is called with RUNNEL, mostly followed by
MAKE-MODEL; its tests are its functions named test_..."""

import os
import re
import subprocess
import sys
import tempfile
import traceback

runnel = sys.argv[1]
folder = tempfile.TemporaryDirectory (prefix='runnel-tool-')
os.environ.pop ('RUNNEL_MODEL', None)
os.environ['XDG_STATE_HOME'] = folder.name
os.environ['XDG_DATA_HOME'] = folder.name

TIMEOUT = 120

# What a model says to every prompt that is made with these pieces.
reply = ['La', ' Seine', ' coule', ' à', ' Paris', '.\n', 'Et', ' le', ' Rhône.']


def make_model (name, *pieces):
    path = os.path.join (folder.name, name)
    subprocess.run ([sys.argv[2], path, *pieces], check=True)
    return path


class Result:
    def __init__ (self, arguments, process):
        self.arguments = arguments
        self.status = process.returncode
        self.out = process.stdout.decode ()
        self.err = process.stderr.decode ()


def tool (*arguments, stdin='', env=None, timeout=TIMEOUT):
    if not isinstance (stdin, bytes):
        stdin = stdin.encode ()
    process = subprocess.run ([runnel, *arguments], input=stdin,
                              capture_output=True, timeout=timeout,
                              env={**os.environ, **(env or {})})
    return Result (arguments, process)


def good (*arguments, **options):
    result = tool (*arguments, **options)
    assert result.status == 0, (arguments, result.status, result.err)
    assert result.err == '', (arguments, result.err)
    return result.out


def bad (status, *arguments, says, **options):
    """One line on stderr that says what is wrong, nothing on stdout."""
    result = tool (*arguments, **options)
    assert result.status == status, (arguments, result.status, result.err)
    assert result.out == '', (arguments, result.out)
    assert result.err.count ('\n') == 1, (arguments, result.err)
    assert re.search (says, result.err), (arguments, says, result.err)


def run_tests ():
    """Runs those of the program; returns whether any failed."""
    tests = [(name, f) for name, f in vars (sys.modules['__main__']).items ()
             if name.startswith ('test_')]
    print (f'1..{len (tests)}')
    failed = 0
    for i, (name, function) in enumerate (tests, 1):
        try:
            function ()
            print (f'ok {i} {name[5:]}', flush=True)
        except (AssertionError, ValueError, KeyError, OSError,
                subprocess.SubprocessError):
            failed += 1
            print (f'not ok {i} {name[5:]}')
            for line in traceback.format_exc ().splitlines ():
                print ('#', line, flush=True)
    return failed > 0
