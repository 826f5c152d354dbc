# A conversation: each line is answered, with all that was said before.
# Ctrl-C stops the reply and keeps the conversation; Ctrl-D ends it.
import sys

import runnel

session = runnel.Session(keep_turns=True, system="Be brief and friendly.",
                         overflow_policy="truncate")
while True:
    print("> ", end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        break
    try:
        for piece in session.generate(line.strip(), max_tokens=200):
            print(piece, end="", flush=True)
    except KeyboardInterrupt:
        pass
    print()
