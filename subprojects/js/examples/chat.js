// A conversation: each line is answered, with all that was said before.
// The end of the input ends it.
import Gio from 'gi://Gio';
import {Session} from '../runnel.js';

const session = new Session(null, {
    keepTurns: true,
    system: 'Be brief and friendly.',
    overflowPolicy: 'truncate',
});
const input = Gio.DataInputStream.new(Gio.UnixInputStream.new(0, false));
const output = Gio.UnixOutputStream.new(1, false);
const write = text => output.write_all(new TextEncoder().encode(text), null);
Gio._promisify(Gio.DataInputStream.prototype, 'read_line_async',
    'read_line_finish_utf8');

for (;;) {
    write('> ');
    const [line] = await input.read_line_async(0, null);
    if (line === null)
        break;
    for await (const piece of session.generate(line, {maxTokens: 200}))
        write(piece);
    write('\n');
}
