// One prompt, read once, and two replies to it that are made side by side.
import Gst from 'gi://Gst?version=1.0';
import {findDefaultModel, Reply} from '../runnel.js';

const pipeline = Gst.parse_launch(`
    lmprompt text="Write a line about the sea." ! lmchat !
    lmtokenize model="${findDefaultModel()}" ! lmprefill ! tee name=t
    t. ! queue ! lmdecode seed=1 max-tokens=30 ! lmdetokenize ! lmtextsink name=a
    t. ! queue ! lmdecode seed=2 max-tokens=30 ! lmdetokenize ! lmtextsink name=b
`);
const replies = ['a', 'b'].map(
    name => new Reply(pipeline.get_by_name(name).expect(0)));
pipeline.set_state(Gst.State.PLAYING);
for (const text of await Promise.all(replies.map(reply => reply.text())))
    print(text, '\n');
pipeline.set_state(Gst.State.NULL);
