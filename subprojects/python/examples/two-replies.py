# One prompt, read once, and two replies to it that are made side by side.
import asyncio

import runnel
from gi.repository import Gst

pipeline = Gst.parse_launch(f"""
    lmprompt text="Write a line about the sea." ! lmchat !
    lmtokenize model="{runnel.find_default_model()}" ! lmprefill ! tee name=t
    t. ! queue ! lmdecode seed=1 max-tokens=30 ! lmdetokenize ! lmtextsink name=a
    t. ! queue ! lmdecode seed=2 max-tokens=30 ! lmdetokenize ! lmtextsink name=b
""")


async def main():
    replies = [pipeline.get_by_name(name).expect(0) for name in "ab"]
    pipeline.set_state(Gst.State.PLAYING)
    for text in await asyncio.gather(*replies):
        print(text, "\n")
    pipeline.set_state(Gst.State.NULL)


asyncio.run(main())
