# Two questions to one session, and a clock that goes on meanwhile.
import asyncio

import runnel


async def tick():
    ticks = 0
    try:
        while True:
            await asyncio.sleep(0.01)
            ticks += 1
    finally:
        print(f"({ticks} ticks)")


async def main():
    session = runnel.Session(max_tokens=40, temperature=0)
    clock = asyncio.create_task(tick())
    async for piece in session.generate("What is the capital of Italy?"):
        print(piece, end="", flush=True)
    print()

    reply = session.generate("Count to one hundred.")
    async for piece in reply:
        print(piece, end="", flush=True)
        if "5" in piece:
            reply.cancel()
    print(f"\n{reply.finish_reason}, {reply.usage.completion_tokens} tokens")
    clock.cancel()
    await asyncio.gather(clock, return_exceptions=True)


asyncio.run(main())
