# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Sessions and replies in Python: `test-python-session.py SCRIPT RANDOM`, a
model that says w1, to w300, to every prompt, and one of random weights."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
import unittest

import runnel
import tap
from gi.repository import Gio, GLib, GObject, Gst, GstRunnel, Runnel
from ticker import MAX_GAP, Ticker

SCRIPT, RANDOM = sys.argv[1:3]
N_WORDS = 300


def words(n):
    return "".join(f"w{i}," for i in range(1, n + 1))


def wait_until(condition, seconds=20):
    """Collects garbage and runs the main context until it holds."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        gc.collect()
        GLib.MainContext.default().iteration(False)
        time.sleep(0.005)
    return condition()


class Watched:
    """Notes when objects go, wherever their last reference is dropped."""

    def __init__(self):
        self.alive = 0

    def watch(self, *objects):
        for one in objects:
            self.alive += 1
            one.weak_ref(self._gone)

    def _gone(self):
        self.alive -= 1


class Replies(unittest.TestCase):
    def setUp(self):
        self.session = runnel.Session(SCRIPT, temperature=0)

    def tearDown(self):
        self.session.close()

    def test_text(self):
        reply = self.session.generate("Hello")
        pieces = list(reply)
        self.assertEqual(pieces, [f"w{i}," for i in range(1, N_WORDS + 1)])
        self.assertEqual(reply.finish_reason, "stop")
        self.assertEqual(reply.usage.completion_tokens, N_WORDS)
        self.assertEqual(list(reply), [])

    def test_prompt_buffer(self):
        prompt = Gst.Buffer.new_wrapped(b"Hello")
        GstRunnel.buffer_set_overrides(prompt, max_tokens=7)
        asked = GstRunnel.buffer_get_request_meta(prompt)
        self.assertEqual(asked.overrides.to_string(),
                         "overrides, max-tokens=(int)7;")
        reply = self.session.send(prompt)
        self.assertEqual(reply.get_id(), asked.id)
        self.assertEqual(reply.read(), words(7))

        last = GstRunnel.buffer_get_request_meta(reply.last_buffer)
        self.assertEqual(last.id, asked.id)
        self.assertEqual(last.finish_reason, Runnel.FinishReason.LENGTH)
        self.assertEqual(last.completion_tokens, 7)
        self.assertGreater(last.prompt_tokens, 5)
        self.assertEqual(reply.usage, (last.prompt_tokens, 7,
                                       last.cached_tokens))

    def test_raw_structure(self):
        prompt = Gst.Buffer.new_wrapped(b"Hello")
        overrides = Gst.Structure.new_empty("overrides")
        overrides.set_value("max-tokens", 3)
        GstRunnel.buffer_set_overrides(prompt, overrides)
        self.assertEqual(self.session.send(prompt).read(), words(3))

    def test_parameters(self):
        def ask(**parameters):
            return self.session.generate("Hello", **parameters).read()

        tokenizer = Runnel.Model(SCRIPT).tokenizer
        self.assertEqual(ask(max_tokens=2), words(2))
        self.assertEqual(ask(stop=["w5,", "w9"]), words(4))
        self.assertEqual(ask(stop_tokens=[tokenizer.find_token("w4,")]),
                         words(3))
        self.assertEqual(ask(max_tokens=2, overflow_policy="stop"), words(2))
        banned = ask(max_tokens=2, logit_bias={
            tokenizer.find_token("w1,"): float("-inf")})
        self.assertFalse(banned.startswith("w1,"))

    def test_properties(self):
        session = runnel.Session(SCRIPT, max_tokens=9, stop=["w5,"],
                                 overflow_policy="stop", logit_bias={3: -1.5})
        self.assertEqual(session.generate("Hello").read(), words(4))
        self.assertEqual(session.element.props.max_tokens, 9)
        self.assertEqual(session.element.props.overflow_policy,
                         Runnel.OverflowPolicy.STOP)

    def test_messages(self):
        reply = self.session.generate(
            [{"role": "system", "content": "Bé brief."},
             {"role": "user", "content": "Hello"}], max_tokens=4)
        self.assertEqual(reply.read(), words(4))

    def test_pipeline(self):
        session = runnel.Session(
            pipeline=f"lmtokenize model={SCRIPT} ! lmprefill ! "
                     "lmdecode name=decode temperature=0 ! lmdetokenize")
        self.assertEqual(session.generate("Hello", max_tokens=3).read(),
                         words(3))

    def test_mistakes(self):
        with self.assertRaisesRegex(GLib.Error, "no property max-token "):
            self.session.generate("Hello", max_token=3)
        with self.assertRaisesRegex(GLib.Error, "max-tokens=-7"):
            self.session.generate("Hello", max_tokens=-7).read()
        with self.assertRaisesRegex(TypeError, "no property max-token"):
            runnel.Session(SCRIPT, max_token=3)
        with self.assertRaisesRegex(GLib.Error, "/nowhere"):
            runnel.Session("/nowhere")
        # One bad request is not the end of the session.
        self.assertEqual(self.session.generate("Hi", max_tokens=1).read(),
                         words(1))

    def test_close(self):
        reply = self.session.generate("Hello")
        next(reply)
        self.session.close()
        self.session.close()
        with self.assertRaisesRegex(GLib.Error, "closed"):
            reply.read()
        with self.assertRaisesRegex(GLib.Error, "closed"):
            self.session.generate("Hello")

    def test_queue(self):
        replies = [self.session.generate("Hello", max_tokens=n)
                   for n in range(1, 9)]
        for n in reversed(range(1, 9)):
            self.assertEqual(replies[n - 1].read(), words(n))


class Cancelling(unittest.TestCase):
    def setUp(self):
        self.session = runnel.Session(SCRIPT, temperature=0)
        # One piece waits and one is being pushed: generation keeps step.
        sink = self.session.pipeline.get_by_name("replies")
        sink.props.max_pieces = 1

    def tearDown(self):
        self.session.close()

    def check_cancelled(self, reply, n_read):
        rest = reply.read()
        self.assertEqual(reply.finish_reason, "cancelled")
        used = reply.usage.completion_tokens
        # Those read, the two on their way, and at most two more.
        self.assertLessEqual(used, n_read + 4)
        self.assertTrue(words(used).endswith(rest))

    def test_reply(self):
        for n in range(4):
            reply = self.session.generate("Hello")
            for _ in range(n):
                next(reply)
            reply.cancel()
            reply.cancel()
            self.check_cancelled(reply, n)

    def test_queued(self):
        first = self.session.generate("Hello")
        second = self.session.generate("Hello")
        second.cancel()
        self.assertEqual(first.read(), words(N_WORDS))
        self.check_cancelled(second, 0)

    def test_with(self):
        with self.session.generate("Hello") as reply:
            next(reply)
        self.check_cancelled(reply, 1)

    def test_task(self):
        async def read(reply, pieces, hold):
            async for piece in reply:
                pieces.append(piece)
                if len(pieces) == 2:
                    hold.set()

        async def main():
            for _ in range(5):
                reply, pieces = self.session.generate("Hello"), []
                two = asyncio.Event()
                task = asyncio.create_task(read(reply, pieces, two))
                await two.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.check_cancelled(reply, len(pieces))

        asyncio.run(main())

    def test_async_with(self):
        async def main():
            async with self.session.generate("Hello") as reply:
                async for _ in reply:
                    break
            return reply

        self.check_cancelled(asyncio.run(main()), 1)

    def test_interrupt(self):
        def interrupt():
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        # Nothing comes, so that the wait itself is interrupted.
        sink = self.session.pipeline.get_by_name("replies")
        reply = sink.expect(GstRunnel.request_id_new())
        thread = threading.Thread(target=interrupt)
        with self.assertRaises(KeyboardInterrupt):
            thread.start()
            reply.read()
        thread.join()
        self.assertEqual(self.session.generate("Hi", max_tokens=1).read(),
                         words(1))

    def test_interrupt_of_asyncio(self):
        reply = self.session.generate("Hello")

        async def main():
            async for _ in reply:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(10)

        with self.assertRaises(KeyboardInterrupt):
            asyncio.run(main())
        del main
        reply.cancel()
        self.check_cancelled(reply, 1)

    def test_dropped_reply(self):
        reply = self.session.generate("Hello")
        next(reply)
        del reply
        following = self.session.generate("Hello", max_tokens=3)
        self.assertEqual(following.read(), words(3))


class Loops(unittest.TestCase):
    def test_asyncio_goes_on(self):
        session = runnel.Session(RANDOM, ignore_eos=True)
        ticker = Ticker()

        async def main():
            ticking = asyncio.create_task(ticker.run())
            n = 0
            for _ in range(4):
                async for _ in session.generate("Hello", max_tokens=300):
                    n += 1
            ticking.cancel()
            return n

        self.assertGreater(asyncio.run(main()), 400)
        self.assertGreater(ticker.n_ticks, 3)
        self.assertLess(ticker.max_gap, MAX_GAP)

    def test_ready_pieces_let_others_run(self):
        session = runnel.Session(SCRIPT, temperature=0)
        session.pipeline.get_by_name("replies").props.max_pieces = 1000
        turns = 0

        async def turn():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async def main():
            reply = session.generate("Hello")
            while reply.finish_reason is None:
                await asyncio.sleep(0.01)
            turning = asyncio.create_task(turn())
            text = await reply
            turning.cancel()
            return text

        self.assertEqual(asyncio.run(main()), words(N_WORDS))
        self.assertGreaterEqual(turns, N_WORDS - 1)

    def test_main_context(self):
        """GLib's way: callbacks come in the thread that asked."""
        session = runnel.Session(SCRIPT, temperature=0)
        reply = session.generate("Hello", max_tokens=20)
        loop, pieces, threads = GLib.MainLoop(), [], set()

        def on_piece(source, result):
            threads.add(threading.get_ident())
            piece = source.next_finish(result)
            if piece is None:
                loop.quit()
            else:
                pieces.append(piece)
                source.next_async(None, on_piece)

        reply.next_async(None, on_piece)
        loop.run()
        self.assertEqual("".join(pieces), words(20))
        self.assertEqual(threads, {threading.get_ident()})

    def test_cancellable_ends_the_wait(self):
        session = runnel.Session(SCRIPT, temperature=0)
        sink = session.pipeline.get_by_name("replies")
        reply = sink.expect(GstRunnel.request_id_new())
        cancellable, loop, errors = Gio.Cancellable(), GLib.MainLoop(), []

        def on_piece(source, result):
            try:
                source.next_finish(result)
            except GLib.Error as error:
                errors.append(error)
            loop.quit()

        for _ in range(2):
            reply.next_async(cancellable, on_piece)
            GLib.timeout_add(5, cancellable.cancel)
            loop.run()
        self.assertEqual(len(errors), 2)
        for error in errors:
            self.assertTrue(error.matches(Gio.io_error_quark(),
                                          Gio.IOErrorEnum.CANCELLED))

    def test_one_wait_at_a_time(self):
        session = runnel.Session(SCRIPT, temperature=0)
        sink = session.pipeline.get_by_name("replies")
        reply = sink.expect(GstRunnel.request_id_new())
        loop, errors = GLib.MainLoop(), []

        def on_piece(source, result):
            try:
                source.next_finish(result)
            except GLib.Error as error:
                errors.append(error.code)
            if len(errors) == 2:
                loop.quit()
            else:
                session.close()

        reply.next_async(None, on_piece)
        reply.next_async(None, on_piece)
        loop.run()
        self.assertEqual(errors, [Gio.IOErrorEnum.PENDING,
                                  Gio.IOErrorEnum.CLOSED])

    def test_stop_in_a_callback(self):
        session = runnel.Session(SCRIPT, temperature=0)
        reply = session.generate("Hello")
        loop, errors = GLib.MainLoop(), []

        def on_piece(source, result):
            try:
                source.next_finish(result)
            except GLib.Error as error:
                errors.append(error)
                loop.quit()
                return
            session.pipeline.set_state(Gst.State.NULL)
            source.next_async(None, on_piece)

        reply.next_async(None, on_piece)
        loop.run()
        self.assertIn("stopped", errors[0].message)

    def test_two_threads(self):
        results = {}

        async def main(n):
            session = runnel.Session(SCRIPT, temperature=0)
            ticker = Ticker()
            ticking = asyncio.create_task(ticker.run())
            texts = [await session.generate("Hello", max_tokens=n + i)
                     for i in range(10)]
            ticking.cancel()
            results[n] = texts, ticker.max_gap

        threads = [threading.Thread(target=asyncio.run, args=[main(n)])
                   for n in (20, 50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n in (20, 50):
            texts, gap = results[n]
            self.assertEqual(texts, [words(n + i) for i in range(10)])
            self.assertLess(gap, MAX_GAP)


class Lives(unittest.TestCase):
    def test_element_references(self):
        watched = Watched()
        element = Gst.ElementFactory.make("lmgenerate", None)
        pipeline = Gst.Pipeline()
        self.assertFalse(element.is_floating())
        pipeline.add(element)
        self.assertFalse(element.is_floating())
        watched.watch(element, pipeline)
        del element, pipeline
        self.assertTrue(wait_until(lambda: watched.alive == 0))

    def test_dropped_session(self):
        watched = Watched()
        session = runnel.Session(SCRIPT, temperature=0)
        reply = session.generate("Hello")
        next(reply)
        watched.watch(session._session, session.pipeline, session.element,
                      session.pipeline.get_by_name("replies"), reply)
        # The reply keeps what it needs.
        del session
        gc.collect()
        self.assertEqual(next(reply), "w2,")
        del reply
        self.assertTrue(wait_until(lambda: watched.alive == 0))

    def test_read_session(self):
        watched = Watched()
        session = runnel.Session(SCRIPT, temperature=0)
        reply = session.generate("Hello", max_tokens=5)
        watched.watch(session._session, session.pipeline)
        del session
        self.assertEqual(reply.read(), words(5))
        # Read to the end, it needs the session no more.
        self.assertTrue(wait_until(lambda: watched.alive == 0))
        self.assertEqual(reply.finish_reason, "length")

    def test_broken_session(self):
        watched = Watched()
        element = Gst.ElementFactory.make("lmgenerate", None)
        watched.watch(element)
        element.props.model = "/nowhere"
        with self.assertRaises(GLib.Error):
            GstRunnel.Session(element)
        del element
        self.assertTrue(wait_until(lambda: watched.alive == 0))

    def test_floating_once(self):
        element = GObject.new(Gst.ElementFactory.find("lmgenerate")
                              .get_element_type(), model=SCRIPT)
        session = GstRunnel.Session(element)
        self.assertIs(session.get_element(), element)
        self.assertFalse(element.is_floating())


if __name__ == "__main__":
    sys.argv[1:] = []
    tap.main()
