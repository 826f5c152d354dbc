// Runnel: small language models on the device, as GStreamer pipelines.
// Copyright (C) 2026 The Runnel developers
// SPDX-License-Identifier: MIT
//
// Prompts in, replies out, piece by piece, for gjs:
//
//     import {Session} from './runnel.js';
//     const session = new Session('SmolLM2-135M-Instruct.Q4_1.gguf');
//     for await (const piece of session.generate('Name three rivers.'))
//         print(piece);

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import Gio from 'gi://Gio';
import Gst from 'gi://Gst?version=1.0';
import GstRunnel from 'gi://GstRunnel?version=1.0';
import Runnel from 'gi://Runnel?version=1.0';

Gst.init(null);
Gio._promisify(GstRunnel.Reply.prototype, 'next_async', 'next_finish');

const DEFAULT_MODEL = 'SmolLM2-135M-Instruct.Q4_1.gguf';

/**
 * The model of RUNNEL_DEFAULT_MODEL, or the one that `./dev run` fetched.
 *
 * @returns {string} its path
 */
export function findDefaultModel() {
    const named = GLib.getenv('RUNNEL_DEFAULT_MODEL');
    if (named)
        return named;
    const path = GLib.build_filenamev(
        [GLib.get_user_cache_dir(), 'runnel', DEFAULT_MODEL]);
    if (GLib.file_test(path, GLib.FileTest.EXISTS))
        return path;
    throw new Error(`${path} is not there: name a model, set ` +
        'RUNNEL_DEFAULT_MODEL, or let ./dev run fetch the default one');
}

// maxTokens and max_tokens are max-tokens.
function toPropertyName(name) {
    return name.replace(/_/g, '-').replace(/[A-Z]/g,
        letter => `-${letter.toLowerCase()}`);
}

function toArray(items) {
    const array = GObject.ValueArray.new(items.length);
    for (const item of items)
        array.append(item);
    return array;
}

function toStructure(name, fields) {
    const structure = Gst.Structure.new_empty(name);
    for (const [key, value] of Object.entries(fields)) {
        if (Array.isArray(value))
            structure.set_array(key, toArray(value));
        else if (value !== null && typeof value === 'object')
            structure.set_value(key, toStructure('values', value));
        else
            structure.set_value(key, value);
    }
    return structure;
}

function toOverrides(parameters) {
    return toStructure('overrides', Object.fromEntries(
        Object.entries(parameters).map(
            ([name, value]) => [toPropertyName(name), value])));
}

function setProperty(element, name, value) {
    name = toPropertyName(name);
    const spec = element.constructor.find_property.call(
        element.constructor, name);
    if (!spec)
        throw new TypeError(`${element.name} has no property ${name}`);
    if (Array.isArray(value))
        Gst.util_set_object_array(element, name, toArray(value));
    else if (value !== null && typeof value === 'object')
        element[name] = toStructure('values', value);
    else if (typeof value === 'string' &&
             spec.value_type !== GObject.TYPE_STRING)
        Gst.util_set_object_arg(element, name, value);
    else
        element[name] = value;
}

function makeGenerator(model) {
    const element = Gst.ElementFactory.make('lmgenerate', null);
    if (!element) {
        throw new Error('There is no element lmgenerate: GST_PLUGIN_PATH ' +
            'must name the folder of Runnel\'s plugin');
    }
    element.model = model ?? findDefaultModel();
    element.errorPolicy = GstRunnel.ErrorPolicy.REPORT;
    return element;
}

/** A reply as it arrives: an asynchronous iterator over pieces of text. */
export class Reply {
    #reply;
    #cancellable = null;
    #handler = 0;

    /**
     * @param {GstRunnel.Reply} reply - as lmtextsink's expect() gives it
     * @param {Gio.Cancellable?} cancellable - ends generation
     */
    constructor(reply, cancellable = null) {
        this.#reply = reply;
        if (cancellable) {
            this.#cancellable = cancellable;
            this.#handler = cancellable.connect(() => reply.cancel());
        }
    }

    [Symbol.asyncIterator]() {
        return this;
    }

    /**
     * The next piece.
     *
     * @returns {Promise<{done: boolean, value: string?}>} as iterators do
     */
    async next() {
        let value = null;
        try {
            value = await this.#reply.next_async(null);
        } finally {
            if (value === null)
                this.#disconnect();
        }
        return value === null ? {done: true, value: undefined}
            : {done: false, value};
    }

    /**
     * What leaving a loop early does: the rest is not wanted.
     *
     * @param {any} value - given back
     * @returns {Promise<{done: boolean, value: any}>} the end
     */
    async return(value) {
        this.cancel();
        return {done: true, value};
    }

    /** Ends generation; what came can still be read. */
    cancel() {
        this.#disconnect();
        this.#reply.cancel();
    }

    /**
     * The text that has not been read yet, when it is complete.
     *
     * @returns {Promise<string>} the text
     */
    async text() {
        let text = '';
        for await (const piece of this)
            text += piece;
        return text;
    }

    /** 'stop', 'length', 'cancelled' or 'error'; null until the end. */
    get finishReason() {
        const names = {
            [Runnel.FinishReason.STOP]: 'stop',
            [Runnel.FinishReason.LENGTH]: 'length',
            [Runnel.FinishReason.CANCELLED]: 'cancelled',
            [Runnel.FinishReason.ERROR]: 'error',
        };
        return names[this.#reply.get_finish_reason()] ?? null;
    }

    /** Tokens used; zeros until the end. */
    get usage() {
        return {
            promptTokens: this.#reply.get_prompt_tokens(),
            completionTokens: this.#reply.get_completion_tokens(),
            cachedTokens: this.#reply.get_cached_tokens(),
        };
    }

    /** The buffer that ended the reply, with its request meta, or null. */
    get lastBuffer() {
        return this.#reply.dup_last_buffer();
    }

    // Not from inside the cancellable's own signal, which would wait for
    // itself: that handler calls the reply and not this.
    #disconnect() {
        if (this.#handler)
            this.#cancellable.disconnect(this.#handler);
        this.#handler = 0;
        this.#cancellable = null;
    }
}

/**
 * A running pipeline that turns prompts into replies. When it is garbage, it
 * stops; its replies keep it while they are read.
 */
export class Session {
    #session;

    /**
     * @param {string?} model - a model file; null: findDefaultModel()
     * @param {object} properties - of the element lmgenerate: {maxTokens: 60}
     */
    constructor(model = null, properties = {}) {
        const element = model instanceof Gst.Element
            ? model : makeGenerator(model);
        for (const [name, value] of Object.entries(properties))
            setProperty(element, name, value);
        this.#session = GstRunnel.Session.new(element);
    }

    /**
     * A session over elements of a launch string that take and give text.
     *
     * @param {string} description - 'lmchat ! lmtokenize model=m.gguf ! …'
     * @returns {Session} the session
     */
    static fromDescription(description) {
        return new Session(Gst.parse_bin_from_description(description, true));
    }

    /** What turns prompts into replies. */
    get element() {
        return this.#session.get_element();
    }

    /** The Gst.Pipeline around it. */
    get pipeline() {
        return this.#session.get_pipeline();
    }

    /**
     * Sends a prompt.
     *
     * @param {string|object[]} prompt - a text, or chat messages
     * @param {object} parameters - properties of the elements, for this
     *   request alone: {maxTokens: 60, temperature: 0, stop: ['\n']}
     * @param {Gio.Cancellable?} cancellable - ends generation
     * @returns {Reply} its reply
     */
    generate(prompt, parameters = {}, cancellable = null) {
        const overrides = toOverrides(parameters);
        const reply = typeof prompt === 'string'
            ? this.#session.send_text(prompt, overrides)
            : this.#session.send_messages(JSON.stringify(prompt), overrides);
        return new Reply(reply, cancellable);
    }

    /**
     * Sends a buffer, which may have a request meta of its own.
     *
     * @param {Gst.Buffer} buffer - the prompt
     * @param {boolean} isMessages - whether it is JSON
     * @returns {Reply} its reply
     */
    send(buffer, isMessages = false) {
        return new Reply(this.#session.send(buffer, isMessages));
    }

    /** Stops now: replies that have not ended fail. */
    close() {
        this.#session.close();
    }
}
