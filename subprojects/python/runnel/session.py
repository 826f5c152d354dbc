# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""A running pipeline that turns prompts into replies."""

import json
import os

from gi.repository import Gst, GstRunnel

from .model import find_default_model


def _make_generator(model):
    element = Gst.ElementFactory.make("lmgenerate", None)
    if element is None:
        raise RuntimeError(
            "There is no element lmgenerate: GST_PLUGIN_PATH must name the "
            "folder of Runnel's plugin")
    element.props.model = os.fspath(model or find_default_model())
    element.props.error_policy = GstRunnel.ErrorPolicy.REPORT
    return element


class Session:
    """Prompts in, replies out.

    With a model file and properties of the element lmgenerate:

        Session("model.gguf", system="Be brief.", keep_turns=True)

    or with a launch string of elements that take text and give text:

        Session(pipeline="lmchat ! lmtokenize model=m.gguf ! lmprefill ! …")

    A session that is dropped stops; its replies keep it while they are read.
    """

    def __init__(self, model=None, *, pipeline=None, **properties):
        if pipeline is None:
            element = _make_generator(model)
        else:
            element = Gst.parse_bin_from_description(pipeline, True)
        for name, value in properties.items():
            GstRunnel.set_property(element, name, value)
        self._session = GstRunnel.Session(element)

    @property
    def element(self):
        """What turns prompts into replies."""
        return self._session.get_element()

    @property
    def pipeline(self):
        """The Gst.Pipeline around it."""
        return self._session.get_pipeline()

    def generate(self, prompt, **parameters):
        """Sends a prompt: a text, or a list of chat messages (dicts).

        Parameters are properties of the elements, for this request alone:
        max_tokens=60, temperature=0, stop=["\\n"], logit_bias={13: -1}.
        """
        overrides = GstRunnel.new_overrides(parameters)
        if isinstance(prompt, str):
            return self._session.send_text(prompt, overrides)
        messages = json.dumps(prompt, ensure_ascii=False)
        return self._session.send_messages(messages, overrides)

    def send(self, buffer, is_messages=False):
        """Sends a Gst.Buffer, which may have a request meta of its own."""
        return self._session.send(buffer, is_messages)

    def close(self):
        """Stops now: replies that have not ended fail."""
        self._session.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
