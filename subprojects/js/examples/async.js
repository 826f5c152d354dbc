// Two questions to one session, and a clock that goes on meanwhile.
import GLib from 'gi://GLib';
import {Session} from '../runnel.js';

let ticks = 0;
const clock = GLib.timeout_add(GLib.PRIORITY_DEFAULT, 10, () => {
    ticks++;
    return GLib.SOURCE_CONTINUE;
});

const session = new Session(null, {maxTokens: 40, temperature: 0});
print(await session.generate('What is the capital of Italy?').text());

const reply = session.generate('Count to one hundred.');
const pieces = [];
for await (const piece of reply) {
    pieces.push(piece);
    if (piece.includes('5'))
        reply.cancel();
}
print(pieces.join(''));
print(`${reply.finishReason}, ${reply.usage.completionTokens} tokens`);
print(`(${ticks} ticks)`);
GLib.source_remove(clock);
