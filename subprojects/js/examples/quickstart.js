import {Session} from '../runnel.js';

const session = new Session();
for await (const piece of session.generate('Name three rivers of France.'))
    print(piece);
