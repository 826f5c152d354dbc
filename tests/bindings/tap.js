// Runnel: small language models on the device, as GStreamer pipelines.
// Copyright (C) 2026 The Runnel developers
// SPDX-License-Identifier: MIT
//
// Runs test functions one after the other and reports them by TAP.
import System from 'system';

export function equal(got, expected) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
    if (a !== b)
        throw new Error(`got ${a}, expected ${b}`);
}

export function check(condition, what) {
    if (!condition)
        throw new Error(what);
}

export async function throws(pattern, action) {
    try {
        await action();
    } catch (error) {
        check(pattern.test(error.message), `wrong error: ${error.message}`);
        return error;
    }
    throw new Error(`nothing was thrown, expected ${pattern}`);
}

export async function run(tests) {
    let failed = 0;
    print(`1..${tests.length}`);
    for (const [i, test] of tests.entries()) {
        try {
            await test();
            print(`ok ${i + 1} - ${test.name}`);
        } catch (error) {
            failed++;
            print(`not ok ${i + 1} - ${test.name}`);
            print(`# ${error.message}\n${error.stack}`.replace(/\n/g, '\n# '));
        }
    }
    System.exit(failed ? 1 : 0);
}
