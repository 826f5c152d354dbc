# What a text is about, and whether it hurries, with probabilities. The text is
# read once; any model can decide.
import json

import runnel
from gi.repository import Gst

QUESTIONS = {"questions": {
    "intent": {"instructions": "What is the message about?",
               "criteria": ["delivery", "payment", "fraud"]},
    "urgent": {"type": "yesno", "instructions": "Does it need an answer today?"},
}}

pipeline = Gst.parse_launch(f"""
    lmprompt text="My card has not come yet, and I travel tomorrow." ! lmchat !
    lmtokenize model="{runnel.find_default_model()}" ! lmprefill !
    lmdecide name=decide ! lmtextsink name=answers
""")
pipeline.get_by_name("decide").set_property("questions", json.dumps(QUESTIONS))

reply = pipeline.get_by_name("answers").expect(0)
pipeline.set_state(Gst.State.PLAYING)
for name, answer in json.loads(reply.read())["answers"].items():
    for option, probability in answer["probabilities"].items():
        print(f"{name}: {option} {probability:.3f}")
pipeline.set_state(Gst.State.NULL)
