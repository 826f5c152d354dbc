// Runnel: small language models on the device, as GStreamer pipelines.
// Copyright (C) 2026 The Runnel developers
// SPDX-License-Identifier: MIT
//
// Sessions and replies in JavaScript: `test-gjs.js MODULE SCRIPT RANDOM`, the
// module, a model that says w1, to w300, to every prompt, and one of random
// weights.
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import Gio from 'gi://Gio';
import Gst from 'gi://Gst?version=1.0';
import GstRunnel from 'gi://GstRunnel?version=1.0';
import Runnel from 'gi://Runnel?version=1.0';
import System from 'system';
import {check, equal, run, throws} from './tap.js';

const [MODULE, SCRIPT, RANDOM, PART] = ARGV;
const {Reply, Session} = await import(`file://${MODULE}`);

const N_WORDS = 300;
const IS_LONG = GLib.getenv('RUNNEL_TEST_LONG') === '1';
// A tick that is due every 10 ms may be 50 ms late; a test has five times the
// patience.
const MAX_GAP = 250;

function words(n) {
    return Array.from({length: n}, (_, i) => `w${i + 1},`).join('');
}

function sleep(ms) {
    return new Promise(resolve => {
        GLib.timeout_add(GLib.PRIORITY_DEFAULT, ms, () => {
            resolve();
            return GLib.SOURCE_REMOVE;
        });
    });
}

function readFile(path) {
    return new TextDecoder().decode(GLib.file_get_contents(path)[1]);
}

// Milliseconds that this thread was ready and waited for a processor: what a
// busy machine does to a clock, and no fault of the program's.
function readQueued() {
    return readFile('/proc/self/schedstat').split(' ')[1] / 1e6;
}

class Clock {
    constructor() {
        this.ticks = 0;
        this.maxGap = 0;
        let last = GLib.get_monotonic_time(), queued = readQueued();
        this._source = GLib.timeout_add(GLib.PRIORITY_DEFAULT, 10, () => {
            const now = GLib.get_monotonic_time(), queuedNow = readQueued();
            const gap = (now - last) / 1000 - (queuedNow - queued);
            this.maxGap = Math.max(this.maxGap, gap);
            this.ticks++;
            [last, queued] = [now, queuedNow];
            return GLib.SOURCE_CONTINUE;
        });
    }

    stop() {
        GLib.source_remove(this._source);
    }
}

function readRss() {
    System.gc();
    return readFile('/proc/self/statm').split(' ')[1] * 4096;
}

function newSession() {
    const session = new Session(SCRIPT, {temperature: 0, cacheBudget: 0});
    // One piece waits and one is being pushed: generation keeps step.
    session.pipeline.get_by_name('replies').maxPieces = 1;
    return session;
}

async function checkCancelled(reply, nRead) {
    const rest = await reply.text();
    equal(reply.finishReason, 'cancelled');
    const used = reply.usage.completionTokens;
    // Those read, the two on their way, and at most two more.
    check(used <= nRead + 4, `${used} tokens, ${nRead} were read`);
    check(words(used).endsWith(rest), rest);
}

async function text() {
    const reply = new Session(SCRIPT, {temperature: 0}).generate('Hello');
    const pieces = [];
    for await (const piece of reply)
        pieces.push(piece);
    equal(pieces.length, N_WORDS);
    equal(pieces.join(''), words(N_WORDS));
    equal(reply.finishReason, 'stop');
    equal(reply.usage.completionTokens, N_WORDS);
    equal(await reply.text(), '');
}

async function promptBuffer() {
    const session = new Session(SCRIPT, {temperature: 0});
    const prompt = Gst.Buffer.new_wrapped('Hello');
    const overrides = Gst.Structure.new_empty('overrides');
    overrides.set_value('max-tokens', 7);
    GstRunnel.buffer_set_overrides(prompt, overrides);
    const asked = GstRunnel.buffer_get_request_meta(prompt);
    equal(asked.overrides.to_string(), 'overrides, max-tokens=(int)7;');

    const reply = session.send(prompt);
    equal(await reply.text(), words(7));
    const last = GstRunnel.buffer_get_request_meta(reply.lastBuffer);
    equal(last.id, asked.id);
    equal(last.finish_reason, Runnel.FinishReason.LENGTH);
    equal(last.completion_tokens, 7);
    check(last.prompt_tokens > 5, 'the prompt has tokens');
    equal(reply.usage, {
        promptTokens: last.prompt_tokens,
        completionTokens: 7,
        cachedTokens: last.cached_tokens,
    });
}

async function parameters() {
    const session = new Session(SCRIPT, {temperature: 0});
    const tokenizer = Runnel.Model.open(SCRIPT, Runnel.LoadMode.MAP)
        .get_tokenizer();
    const ask = overrides => session.generate('Hello', overrides).text();
    equal(await ask({maxTokens: 2}), words(2));
    equal(await ask({'max_tokens': 3, overflowPolicy: 'stop'}), words(3));
    equal(await ask({stop: ['w5,', 'w9']}), words(4));
    equal(await ask({stopTokens: [tokenizer.find_token('w4,')]}), words(3));
    const banned = await ask({
        maxTokens: 1,
        logitBias: {[tokenizer.find_token('w1,')]: -1e30},
    });
    check(!banned.includes('w1,'), banned);
}

async function properties() {
    const session = new Session(SCRIPT,
        {maxTokens: 9, stop: ['w5,'], overflowPolicy: 'stop'});
    equal(await session.generate('Hello').text(), words(4));
    equal(session.element.maxTokens, 9);
    equal(session.element.overflowPolicy, Runnel.OverflowPolicy.STOP);
}

async function messages() {
    const reply = new Session(SCRIPT, {temperature: 0}).generate(
        [{role: 'system', content: 'Bé brief.'},
            {role: 'user', content: 'Hello'}], {maxTokens: 4});
    equal(await reply.text(), words(4));
}

async function mistakes() {
    const session = new Session(SCRIPT, {temperature: 0});
    await throws(/no property max-token /,
        () => session.generate('Hello', {maxToken: 3}));
    await throws(/max-tokens=-7/,
        () => session.generate('Hello', {maxTokens: -7}).text());
    await throws(/no property max-token/,
        () => new Session(SCRIPT, {maxToken: 3}));
    await throws(/nowhere/, () => new Session('/nowhere'));
    // One bad request is not the end of the session.
    equal(await session.generate('Hi', {maxTokens: 1}).text(), words(1));
    session.close();
    await throws(/closed/, () => session.generate('Hello'));
}

async function description() {
    const session = Session.fromDescription(
        `lmtokenize model=${SCRIPT} ! lmprefill ! lmdecode temperature=0 ! ` +
        'lmdetokenize');
    equal(await session.generate('Hello', {maxTokens: 3}).text(), words(3));
}

async function cancelByBreak() {
    const session = newSession();
    const reply = session.generate('Hello');
    let n = 0;
    for await (const piece of reply) {
        equal(piece, `w${++n},`);
        System.gc();
        if (n === 2)
            break;
    }
    await checkCancelled(reply, 2);
}

async function cancelByCancellable() {
    const session = newSession();
    const cancellable = new Gio.Cancellable();
    const reply = session.generate('Hello', {}, cancellable);
    let n = 0;
    for await (const piece of reply) {
        equal(piece, `w${++n},`);
        if (n === 2)
            cancellable.cancel();
    }
    await checkCancelled(reply, 2);
    // One that is cancelled already.
    await checkCancelled(session.generate('Hello', {}, cancellable), 0);
}

async function twoSessions() {
    const ask = async n => {
        const session = newSession();
        for (let i = 0; i < 5; i++) {
            equal(await session.generate('Hello', {maxTokens: n + i}).text(),
                words(n + i));
        }
    };
    await Promise.all([ask(20), ask(50)]);
}

async function clockGoesOn() {
    const session = new Session(RANDOM, {ignoreEos: true});
    const clock = new Clock();
    let n = 0;
    for (let i = 0; i < 4; i++) {
        for await (const piece of session.generate('Hi', {maxTokens: 300}))
            n += piece.length;
    }
    clock.stop();
    print(`# ${clock.ticks} ticks, largest gap ${clock.maxGap.toFixed()} ms`);
    check(n > 400, `only ${n} characters came`);
    check(clock.ticks > 3, `only ${clock.ticks} ticks`);
    check(clock.maxGap < MAX_GAP, `a gap of ${clock.maxGap} ms`);
}

async function stopInACallback() {
    const session = newSession();
    const reply = session.generate('Hello');
    await throws(/stopped/, async () => {
        for await (const piece of reply) {
            check(piece, 'a piece');
            session.pipeline.set_state(Gst.State.NULL);
        }
    });
}

async function floatingOnce() {
    const element = Gst.ElementFactory.make('lmgenerate', null);
    element.model = SCRIPT;
    const session = GstRunnel.Session.new(element);
    check(session.get_element() === element, 'the same element');
    check(!GObject.Object.prototype.is_floating.call(element), 'sunk');
    const reply = new Reply(session.send_text('Hello', null));
    equal(await reply.text(), words(N_WORDS));
}

// Half of them cancelled, sessions and replies dropped in the middle, garbage
// collected all the time.
async function ask(session, n) {
    const reply = session.generate(`${n}`, {maxTokens: 12});
    if (n % 10 === 9) {
        // Dropped: what follows waits until the collector has noticed.
        await reply.next();
        GLib.idle_add(GLib.PRIORITY_DEFAULT, System.gc);
        return;
    }
    let read = 0;
    for await (const piece of reply) {
        equal(piece, `w${++read},`);
        if (n % 20 === 0)
            System.gc();
        if (n % 2 && read === 2)
            break;
    }
    if (n % 2)
        await checkCancelled(reply, 2);
}

async function askMany(nWarm, nPrompts) {
    let session = newSession(), before = 0;
    for (let n = 0; n < nWarm + nPrompts; n++) {
        if (n === nWarm)
            before = readRss();
        if (n % 25 === 24)
            session = newSession();
        await ask(session, n);
    }
    return readRss() / before - 1;
}

async function soak() {
    const clock = new Clock();
    const nPrompts = IS_LONG ? 1000 : 100;
    const growth = await askMany(nPrompts / 2, nPrompts);
    clock.stop();
    print(`# resident set ${(growth * 100).toFixed(2)} %, largest gap ` +
        `${clock.maxGap.toFixed()} ms`);
    check(growth < 0.02, `memory grew by ${growth}`);
    check(clock.maxGap < MAX_GAP, `a gap of ${clock.maxGap} ms`);
}

// In a process of its own: what is alive when everything was dropped.
async function traced() {
    await askMany(0, 60);
    for (let i = 0; i < 20; i++) {
        System.gc();
        await sleep(20);
    }
    Gst.deinit();
}

async function leaksTracer() {
    const [file, stream] = Gio.File.new_tmp('runnel-leaks-XXXXXX');
    stream.close(null);
    const launcher = new Gio.SubprocessLauncher();
    for (const [name, value] of [['GST_TRACERS', 'leaks'], ['G_DEBUG', ''],
        ['GST_DEBUG', 'GST_TRACER:7'], ['GST_DEBUG_NO_COLOR', '1'],
        ['GST_DEBUG_FILE', file.get_path()]])
        launcher.setenv(name, value, true);
    const child = launcher.spawnv(['gjs', '-m',
        System.programPath, MODULE, SCRIPT, RANDOM, 'traced']);
    Gio._promisify(Gio.Subprocess.prototype, 'wait_check_async');
    await child.wait_check_async(null);
    const log = readFile(file.get_path());
    file.delete(null);
    check(log.includes('leaks'), 'the tracer was not there');
    const leaked = [...log.matchAll(/object-alive, type-name=\(string\)(\w+)/g)]
        .map(match => match[1])
        // Those live as long as the registry.
        .filter(name => !/Factory|Plugin|PadTemplate/.test(name));
    equal(leaked, []);
}

if (PART === 'traced')
    await traced();
else {
    await run([text, promptBuffer, parameters, properties, messages, mistakes,
        description, cancelByBreak, cancelByCancellable, twoSessions,
        clockGoesOn, stopInACallback, floatingOnce, soak, leaksTracer]);
}
