# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""librunnel in Python, without a pipeline: `test-python-overrides.py SCRIPT
RANDOM`."""

import sys
import unittest

import runnel  # noqa: F401, says which versions
import tap
from gi.repository import GLib, Runnel

SCRIPT, RANDOM = sys.argv[1:3]


class Core(unittest.TestCase):
    def setUp(self):
        self.model = Runnel.Model(SCRIPT)
        self.tokenizer = self.model.tokenizer

    def test_model(self):
        self.assertEqual(self.model.architecture, "llama")
        self.assertEqual(self.model.n_vocab, len(self.tokenizer))
        self.assertEqual(self.model.path, SCRIPT)
        self.assertIn("tiny", repr(self.model))
        with self.assertRaisesRegex(GLib.Error, "/nowhere") as caught:
            Runnel.Model("/nowhere")
        self.assertTrue(caught.exception.matches(Runnel.error_quark(),
                                                 Runnel.Error.IO))

    def test_tokenizer(self):
        text = "the café and 東京"
        ids = self.tokenizer.encode(text)
        self.assertEqual(ids, self.tokenizer.encode(text.encode()))
        self.assertEqual(self.tokenizer.decode(ids), text)
        self.assertEqual(b"".join(map(self.tokenizer.get_piece, ids)),
                         text.encode())
        self.assertEqual(self.tokenizer.get_piece(1 << 20), b"")
        self.assertEqual(self.tokenizer.encode(""), [])
        end = self.tokenizer.get_eos()
        self.assertIn(end, self.tokenizer.get_stop_tokens())
        special = "<|im_end|>"
        self.assertEqual(self.tokenizer.encode(special, True), [end])
        self.assertGreater(len(self.tokenizer.encode(special)), 1)
        self.assertEqual(self.tokenizer.decode([end], True), special)

    def test_detokenizer(self):
        detokenizer = Runnel.Detokenizer(self.tokenizer)
        ids = self.tokenizer.encode("é€")
        pieces = [detokenizer.push(token) for token in ids]
        self.assertEqual("".join(pieces), "é€")
        detokenizer.push(ids[0])
        self.assertEqual(detokenizer.flush(), "\ufffd")
        self.assertEqual(detokenizer.flush(), "")

    def test_chat_template(self):
        messages = [{"role": "user", "content": "Hi é <|im_end|>"}]
        rendered = self.model.chat_template.render(messages)
        text = str(rendered)
        self.assertIn("Hi é <|im_end|>", text)
        data = text.encode()
        own = b"".join(data[start:start + length]
                       for start, length in rendered.spans)
        self.assertNotIn(b"Hi", own)
        self.assertTrue(own.endswith(b"<|im_start|>assistant\n"))
        template = Runnel.ChatTemplate("{{ x }}-{{ y }}")
        self.assertEqual(str(template.render({"x": 1, "y": "b"})), "1-b")
        with self.assertRaisesRegex(GLib.Error, "template"):
            Runnel.ChatTemplate("{{ x")

    def test_generation(self):
        engine = Runnel.Engine(self.model)
        sequence = Runnel.Sequence(engine)
        self.assertEqual(sequence.prefill(self.tokenizer.encode("Hi")), 0)
        self.assertEqual(sequence.tokens, self.tokenizer.encode("Hi"))
        logits = sequence.compute_logits()
        self.assertEqual(len(logits), self.model.n_vocab)
        best = max(range(len(logits)), key=logits.__getitem__)
        self.assertEqual(best, self.tokenizer.find_token("w1,"))
        generation = Runnel.Generation(sequence.fork(), max_tokens=3,
                                       temperature=0)
        self.assertEqual(list(generation), ["w1,", "w2,", "w3,"])
        self.assertEqual(generation.get_finish_reason(),
                         Runnel.FinishReason.LENGTH)
        params = Runnel.GenerationParams(
            stops=["w9,"], stop_tokens=[self.tokenizer.find_token("w4,")],
            temperature=0, top_k=5)
        self.assertEqual(params.sampler.top_k, 5)
        generation = Runnel.Generation(sequence.fork(), params)
        self.assertEqual("".join(generation), "w1,w2,w3,")
        banned = Runnel.Generation(
            sequence.fork(), max_tokens=1, temperature=0,
            biases={self.tokenizer.find_token("w1,"): float("-inf")})
        self.assertNotIn("w1,", list(banned))
        self.assertEqual(len(sequence), len(self.tokenizer.encode("Hi")))
        self.assertGreater(engine.stats.rows, 5)

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "no field max_token"):
            Runnel.GenerationParams(max_token=3)
        sequence = Runnel.Sequence(Runnel.Engine(self.model))
        with self.assertRaises(GLib.Error):
            sequence.prefill([1 << 20])
        with self.assertRaisesRegex(GLib.Error, "temperature"):
            Runnel.Generation(sequence, temperature=-1)


if __name__ == "__main__":
    sys.argv[1:] = []
    tap.main()
