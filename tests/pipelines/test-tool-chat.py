#!/usr/bin/env python3
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Conversations with `runnel chat`, in a pipe and on a terminal:
test-tool-chat.py RUNNEL MAKE-MODEL."""

import os
import pty
import select
import sys
import time

from runnel_command import (
    TIMEOUT, bad, folder, good, make_model, reply, run_tests, runnel, tool)

tiny = make_model ('tiny.gguf')
scripted = make_model ('scripted.gguf', *reply)


def test_chat_in_a_pipe ():
    whole = ''.join (reply)
    out = good ('chat', '-m', scripted, stdin='Which river?\n\nAnd?')
    assert out == whole + '\n' + whole + '\n', out
    out = good ('chat', '-m', scripted, '-n', '1', stdin='a\\\nb\n/quit\nc\n')
    assert out == 'La\n'
    # Each prompt sees the turns before it, until they are forgotten.
    result = tool ('chat', '-m', scripted, '--speed',
                   stdin='a\na\n/clear\na\n/nosuch\n/help\n')
    assert result.status == 0 and result.out == (whole + '\n') * 3
    assert result.err.count ('tokens/s)') == 3
    assert 'no command /nosuch' in result.err and 'Ctrl-D' in result.err
    bad (2, 'chat', '-m', scripted, 'reply', says='no conversation')
    bad (1, 'chat', '-m', tiny, stdin=b'\xff\n', says='UTF-8')
    bad (1, 'chat', '-m', tiny, stdin=b'a\0b\n', says='NUL')
    # A turn that does not fit ends neither the session nor the conversation.
    result = tool ('chat', '-m', scripted, stdin='x ' * 1000 + '\nshort\n')
    assert result.status == 0, result.err
    assert result.out.endswith (whole + '\n')
    assert '512' in result.err and '/clear' in result.err


class Terminal:
    """A command in a terminal of its own."""

    def __init__ (self, *arguments):
        self.pid, self.fd = pty.fork ()
        if self.pid == 0:
            os.environ['TERM'] = 'vt100'
            os.execv (runnel, [runnel, *arguments])
        self.seen = b''

    def type (self, text):
        os.write (self.fd, text.encode ())

    def expect (self, text):
        """Waits for a text behind the last one that was waited for."""
        deadline = time.monotonic () + TIMEOUT
        while text.encode () not in self.seen:
            left = deadline - time.monotonic ()
            assert left > 0 and select.select ([self.fd], [], [], left)[0], \
                (text, self.seen)
            try:
                data = os.read (self.fd, 4096)
            except OSError:
                data = b''
            assert data, (text, self.seen)
            self.seen += data
        self.seen = self.seen.split (text.encode (), 1)[1]

    def drain (self, seconds):
        """Reads what comes: a terminal's mode changes only when it is empty."""
        deadline = time.monotonic () + seconds
        while (left := deadline - time.monotonic ()) > 0:
            if select.select ([self.fd], [], [], left)[0]:
                try:
                    os.read (self.fd, 4096)
                except OSError:     # closed at the other end
                    return

    def has_ended (self, seconds):
        """Its exit code, or None when it goes on for that long."""
        self.drain (seconds)
        pid, status = os.waitpid (self.pid, os.WNOHANG)
        if pid == 0:
            return None
        os.close (self.fd)
        return os.waitstatus_to_exitcode (status)

    def end (self, key=None):
        """Ctrl-D. libedit shows its prompt before it changes the mode of the
        terminal, and in between the key would be lost: again, as one does."""
        deadline = time.monotonic () + TIMEOUT / 4
        while time.monotonic () < deadline:
            if key is None:
                self.drain (0.2)
                self.type ('\x04')
            status = self.has_ended (2)
            if status is not None:
                return status
        assert False, 'it did not end'

    def wait (self):
        return self.end (key='none')


def test_chat_on_a_terminal ():
    chat = Terminal ('chat', '-m', scripted)
    chat.expect ('> ')
    chat.type ('first prömpt\r')
    chat.expect ('Seine')
    chat.expect ('tokens/s)')
    chat.expect ('> ')
    # Ctrl-C drops the line, and no more.
    chat.type ('half a line')
    chat.expect ('half a line')
    chat.type ('\x03')
    chat.expect ('> ')
    # The line before, from the history.
    chat.type ('\x10')
    chat.expect ('first pr')
    chat.type ('\r')
    chat.expect ('Seine')
    chat.expect ('tokens/s)')
    chat.expect ('> ')
    assert chat.end () == 0
    path = os.path.join (folder.name, 'runnel', 'chat-history')
    assert os.stat (path).st_mode & 0o077 == 0
    again = Terminal ('chat', '-m', scripted)
    again.expect ('> ')
    again.type ('\x10')
    again.expect ('first pr')
    again.type ('\r')
    again.expect ('tokens/s)')
    again.expect ('> ')
    again.type ('/quit\r')
    assert again.wait () == 0


def test_chat_interrupted ():
    """Ctrl-C stops the reply and keeps the session."""
    chat = Terminal ('chat', '-m', tiny, '-n', '-1', '--ignore-eos', 'true',
                     '--overflow-policy', 'shift', '--no-history')
    for prompt in 'one', 'two':
        chat.expect ('> ')
        chat.type (prompt + '\r')
        chat.expect (prompt)
        time.sleep (0.3)
        chat.type ('\x03')
        chat.expect ('stopped)')
    chat.expect ('> ')
    assert chat.end () == 0


sys.exit (run_tests ())
