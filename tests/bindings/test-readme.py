# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runs the README as a reader would paste it: test-readme.py README RUNNEL.

A `console` block is a transcript: what follows a line `$ COMMAND` must be
what the command prints, to the letter. Blocks of sh, python and js must
succeed and print something. `./dev run` and `./dev shell --` stand for the
build that is being tested; `./dev test` is what runs this. The project's
other files are where a reader has them."""
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile (r'^```(\w+)\n(.*?)^```$', re.M | re.S)

DEV = '''#!/bin/sh
case $1 in
  run) shift; exec "$RUNNEL" run "$@" ;;
  shell) shift 2; exec "$@" ;;
  test) echo "0 failed" ;;
  *) echo "the README calls ./dev $1" >&2; exit 2 ;;
esac
'''

COMMANDS = {
    'sh': ['bash', '-euo', 'pipefail', '-c'],
    'python': ['/usr/bin/python3', '-c'],
    'js': ['gjs', '-m'],
}


def run (command, folder):
    return subprocess.run (command, cwd = folder, text = True, timeout = 300,
                           stdin = subprocess.DEVNULL,
                           stdout = subprocess.PIPE)


def run_transcript (text, folder):
    """Yields what is wrong with each command of a transcript."""
    for part in re.split (r'^\$ ', text, flags = re.M)[1:]:
        # A command goes on while its lines end in a backslash.
        command, expected = re.fullmatch (
            r'((?:[^\n]*\\\n)*[^\n]*)\n(.*)', part, re.S).groups ()
        result = run (COMMANDS['sh'] + [command], folder)
        if result.returncode != 0:
            yield f'{command}: exit status {result.returncode}'
        elif result.stdout.rstrip () != expected.rstrip ():
            yield f'{command}: printed\n{result.stdout}instead of\n{expected}'


def lay_out (folder, root):
    for name in os.listdir (root):
        if name != 'dev':
            os.symlink (os.path.join (root, name), os.path.join (folder, name))
    dev = os.path.join (folder, 'dev')
    with open (dev, 'w', encoding = 'utf-8') as file:
        file.write (DEV)
    os.chmod (dev, 0o755)


def run_block (language, text, folder):
    if language == 'console':
        return list (run_transcript (text, folder))
    if language == 'js':
        name = os.path.join (folder, 'block.js')
        with open (name, 'w', encoding = 'utf-8') as file:
            file.write (text)
        text = name
    result = run (COMMANDS[language] + [text], folder)
    if result.returncode != 0:
        return [f'exit status {result.returncode}']
    return [] if result.stdout.strip () else ['printed nothing']


def main (readme, runnel):
    with open (readme, encoding = 'utf-8') as file:
        blocks = BLOCK.findall (file.read ())
    blocks = [(language, text) for language, text in blocks
              if language in COMMANDS or language == 'console']
    model = os.environ['RUNNEL_DEFAULT_MODEL']
    os.environ.update (RUNNEL_MODEL = model, RUNNEL = os.path.abspath (runnel))
    failed = 0
    print (f'1..{len (blocks)}', flush = True)
    for number, (language, text) in enumerate (blocks, 1):
        with tempfile.TemporaryDirectory () as folder:
            lay_out (folder, os.path.dirname (os.path.abspath (readme)))
            wrong = run_block (language, text, folder)
        for line in '\n'.join (wrong).splitlines ():
            print (f'# {line}')
        title = text.strip ().splitlines ()[0].replace ('#', '')
        print (f'{"not " if wrong else ""}ok {number} - {language}: {title}',
               flush = True)
        failed += bool (wrong)
    return 1 if failed else 0


sys.exit (main (*sys.argv[1:]))
