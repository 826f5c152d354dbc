# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""librunnel as Python would have it: constructors, properties, defaults."""

import json

from ..module import get_introspection_module
from ..overrides import override

Runnel = get_introspection_module("Runnel")

__all__ = []


def _export(cls):
    cls = override(cls)
    __all__.append(cls.__name__)
    return cls


@_export
class Model(Runnel.Model):
    """Model(path): opens a model file and checks its header."""

    def __new__(cls, path, mode=Runnel.LoadMode.MAP):
        return cls.open(path, mode)

    def __init__(self, path, mode=None):
        """Nothing is left to do."""

    def __repr__(self):
        return f"<Runnel.Model {self.name!r} ({self.architecture})>"

    name = property(Runnel.Model.get_name)
    path = property(Runnel.Model.get_path)
    content_id = property(Runnel.Model.get_content_id)
    architecture = property(Runnel.Model.get_architecture)
    context_length = property(Runnel.Model.get_context_length)
    n_layers = property(Runnel.Model.get_n_layers)
    n_parameters = property(Runnel.Model.get_n_parameters)
    n_vocab = property(Runnel.Model.get_n_vocab)
    tokenizer = property(Runnel.Model.get_tokenizer)
    chat_template = property(Runnel.Model.get_chat_template)


@_export
class Tokenizer(Runnel.Tokenizer):
    """Tokenizer(path), or the tokenizer of a model."""

    def __new__(cls, path):
        return cls.new_from_file(path)

    def __init__(self, path):
        """Nothing is left to do."""

    def __len__(self):
        return self.get_n_tokens()

    def encode(self, text, parse_special=False):
        """The ids of a str or of bytes, as a list."""
        if isinstance(text, str):
            text = text.encode()
        return list(super().encode(text, parse_special))

    def decode(self, tokens, render_special=False):
        """The text of ids; what is not UTF-8 becomes U+FFFD."""
        data = super().decode(tokens, render_special).get_data()
        return (data or b"").decode(errors="replace")

    def get_piece(self, token):
        """The bytes of one token; none of an id that does not exist."""
        return bytes(super().get_piece(token))

    def get_stop_tokens(self):
        """The ids that end a reply, as a list."""
        return list(super().get_stop_tokens())


@_export
class ChatTemplate(Runnel.ChatTemplate):
    """ChatTemplate(source): a parsed Jinja template."""

    def __new__(cls, source, name="template"):
        return cls.new(source, -1, name)

    def __init__(self, source, name=None):
        """Nothing is left to do."""

    def render(self, variables, now=None):
        """The text for a dict of variables; messages alone may be a list."""
        if isinstance(variables, list):
            variables = {"messages": variables, "add_generation_prompt": True}
        if not isinstance(variables, str):
            variables = json.dumps(variables, ensure_ascii=False)
        return super().render(variables, -1, now)


@_export
class RenderedText(Runnel.RenderedText):
    """What a template gave: str() of it, and the spans of its own text."""

    def __str__(self):
        return self.get_text()[0]

    @property
    def spans(self):
        """(start, length) in bytes of UTF-8, of each span."""
        return [(span.start, span.length) for span in self.get_spans()]


@_export
class Detokenizer(Runnel.Detokenizer):
    """Detokenizer(tokenizer): ids to text, whole characters only."""

    def __new__(cls, tokenizer, render_special=False):
        return cls.new(tokenizer, render_special)

    def __init__(self, tokenizer, render_special=None):
        """Nothing is left to do."""

    def flush(self, keep_incomplete=True):
        """Ends the text: what is left of it."""
        return super().flush(keep_incomplete)


@_export
class Backend(Runnel.Backend):
    """Backend(): who computes; n_threads 0 is as many as are good here."""

    def __new__(cls, name="cpu", n_threads=0, kernels=None):
        return cls.get(name, n_threads, kernels)

    def __init__(self, name=None, n_threads=None, kernels=None):
        """Nothing is left to do."""


@_export
class Engine(Runnel.Engine):
    """Engine(model): the model made ready on a backend; takes its time."""

    def __new__(cls, model, backend=None, kv_type=Runnel.KvType.F16,
                cancellable=None):
        return cls.get(model, backend or Backend(), kv_type, None, None,
                       cancellable)

    def __init__(self, model, backend=None, kv_type=None, cancellable=None):
        """Nothing is left to do."""

    model = property(Runnel.Engine.get_model)
    stats = property(Runnel.Engine.get_stats)


@_export
class Sequence(Runnel.Sequence):
    """Sequence(engine): tokens and their keys and values."""

    def __new__(cls, engine, context_length=0):
        return cls.new(engine, context_length)

    def __init__(self, engine, context_length=None):
        """Nothing is left to do."""

    def __len__(self):
        return self.get_length()

    @property
    def tokens(self):
        """The ids, as a list."""
        return list(self.get_tokens())

    def prefill(self, tokens, chunk=0, use_cache=True, cancellable=None):
        """Appends tokens; how many of them the cache had."""
        return super().prefill(tokens, chunk, use_cache, None, None,
                               cancellable)[1]

    def compute_logits(self):
        """The logits of the token that follows: a memoryview of floats."""
        return memoryview(super().compute_logits().get_data()).cast("f")


def _set_fields(params, fields):
    for name, value in fields.items():
        if not hasattr(params, name):
            raise TypeError(f"{type(params).__name__} has no field {name}")
        setattr(params, name, value)


@_export
class SamplerParams(Runnel.SamplerParams):
    """SamplerParams(temperature=0, biases={13: -1.0}): how tokens are drawn."""

    def __new__(cls, biases=None, **fields):
        params = cls.new()
        _set_fields(params, fields)
        if biases:
            params.set_biases([_new_bias(*item) for item in biases.items()])
        return params

    def __init__(self, biases=None, **fields):
        """Nothing is left to do."""


def _new_bias(token, value):
    bias = Runnel.LogitBias()
    bias.token = token
    bias.bias = value
    return bias


@_export
class GenerationParams(Runnel.GenerationParams):
    """GenerationParams(max_tokens=60, temperature=0, stops=["\\n"])."""

    def __new__(cls, stops=None, stop_tokens=None, **fields):
        params = cls.new()
        sampler = {name: fields.pop(name) for name in list(fields)
                   if name == "biases" or hasattr(params.sampler, name)}
        params.set_sampler(SamplerParams(**sampler))
        params.set_stops(stops)
        params.set_stop_tokens(stop_tokens)
        _set_fields(params, fields)
        return params

    def __init__(self, stops=None, stop_tokens=None, **fields):
        """Nothing is left to do."""


@_export
class Generation(Runnel.Generation):
    """Generation(sequence, params): an iterator over pieces of text."""

    def __new__(cls, sequence, params=None, **fields):
        return cls.new(sequence, params or GenerationParams(**fields))

    def __init__(self, sequence, params=None, **fields):
        """Nothing is left to do."""

    def __iter__(self):
        return self

    def __next__(self):
        while self.get_finish_reason() == Runnel.FinishReason.NONE:
            text = self.next()[1].text
            if text:
                return text
        raise StopIteration
