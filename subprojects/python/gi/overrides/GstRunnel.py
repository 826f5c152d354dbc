# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""libgstrunnel as Python would have it: replies are iterators."""

import asyncio
import collections
import select

from gi.repository import GObject, Gst, Runnel

from ..module import get_introspection_module
from ..overrides import override

GstRunnel = get_introspection_module("GstRunnel")

__all__ = ["Usage", "buffer_get_request_meta", "buffer_set_overrides",
           "new_overrides", "set_property"]

Usage = collections.namedtuple(
    "Usage", "prompt_tokens completion_tokens cached_tokens")


# ---- Values ---------------------------------------------------------------

def _to_array(items):
    array = GObject.ValueArray.new(len(items))
    for item in items:
        array.append(item)
    return array


def _to_structure(name, fields):
    structure = Gst.Structure.new_empty(name)
    for key, value in fields.items():
        if isinstance(value, (list, tuple)):
            structure.set_array(key, _to_array(value))
        elif isinstance(value, dict):
            structure.set_value(key, _to_biases(value))
        else:
            structure.set_value(key, value)
    return structure


def _to_biases(biases):
    return _to_structure("biases", {str(token): float(bias)
                                    for token, bias in biases.items()})


def new_overrides(parameters):
    """A structure of a dict: {"max_tokens": 5} becomes max-tokens=5."""
    return _to_structure("overrides", {
        name.replace("_", "-"): value for name, value in parameters.items()})


def set_property(element, name, value):
    """Sets a property by the names and values that overrides have."""
    name = name.replace("_", "-")
    spec = element.find_property(name)
    if spec is None:
        raise TypeError(f"{element.get_name()} has no property {name}")
    if isinstance(value, (list, tuple)):
        Gst.util_set_object_array(element, name, _to_array(value))
    elif isinstance(value, dict):
        element.set_property(name, _to_biases(value))
    elif isinstance(value, str) and spec.value_type != GObject.TYPE_STRING:
        Gst.util_set_object_arg(element, name, value)
    else:
        element.set_property(name, value)


# ---- Metas ----------------------------------------------------------------

def buffer_get_request_meta(buffer):
    """A copy of the request meta, which outlives the buffer; or None."""
    meta = GstRunnel.buffer_get_request_meta(buffer)
    return None if meta is None else meta.copy()


def buffer_set_overrides(buffer, overrides=None, **parameters):
    """Sets parameters of the request that a prompt buffer is."""
    if overrides is None:
        overrides = new_overrides(parameters)
    GstRunnel.buffer_set_overrides(buffer, overrides)


# ---- Sessions -------------------------------------------------------------

@override
class Session(GstRunnel.Session):
    """Session(element): a running pipeline around an element."""

    def __new__(cls, element):
        return cls.new(element)

    def __init__(self, element):
        """Nothing is left to do."""


__all__.append("Session")


# ---- Replies --------------------------------------------------------------

def _wake(future):
    if not future.done():
        future.set_result(None)


@override
class Reply(GstRunnel.Reply):
    """An iterator and an asynchronous iterator over pieces of text.

    `await reply` is the whole text, `reply.read()` the same where there is no
    event loop. A reply that is dropped before its end is cancelled, and so is
    one whose task is cancelled while it waits for a piece; `with` and `async
    with` cancel at the end of the block.
    """

    @property
    def finish_reason(self):
        """"stop", "length", "cancelled" or "error"; None until the end."""
        reason = self.get_finish_reason()
        if reason == Runnel.FinishReason.NONE:
            return None
        return reason.value_nick

    @property
    def usage(self):
        """Tokens used; zeros until the end."""
        return Usage(self.get_prompt_tokens(), self.get_completion_tokens(),
                     self.get_cached_tokens())

    @property
    def last_buffer(self):
        """The buffer that ended the reply, with its request meta, or None."""
        return self.dup_last_buffer()

    # Without an event loop. The wait is Python's, so that Ctrl-C ends it.

    def __iter__(self):
        return self

    def __next__(self):
        try:
            while True:
                ready, piece = self.try_next()
                if ready:
                    break
                poll = select.poll()
                poll.register(self.get_fd(), select.POLLIN)
                poll.poll()
        except KeyboardInterrupt:
            self.cancel()
            raise
        if piece is None:
            raise StopIteration
        return piece

    def read(self):
        """The text that has not been read yet, when it is complete."""
        return "".join(self)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.cancel()

    # In asyncio.

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            # Pieces that are there already must not keep others waiting.
            await asyncio.sleep(0)
            while True:
                ready, piece = self.try_next()
                if ready:
                    break
                await self._wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def _wait(self):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        fd = self.get_fd()
        loop.add_reader(fd, _wake, future)
        try:
            await future
        finally:
            loop.remove_reader(fd)

    async def _read(self):
        return "".join([piece async for piece in self])

    def __await__(self):
        return self._read().__await__()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        self.cancel()


__all__.append("Reply")
