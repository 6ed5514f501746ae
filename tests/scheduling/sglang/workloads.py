"""Small workloads for SGLang's scheduler, and a loop that runs them."""

from kvsim.content import Content, Run
from kvsim.memory.radix.interface import NoTree
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.scheduler import SglangScheduler
from kvsim.scheduling.sglang.settings import Settings

OUTPUT_STREAM = 1000


def request(number, *prompt, max_new=4, **more):
    """One whose prompt is runs (stream, offset, tokens) and whose answer no other gives."""
    content = Content(Run(*run) for run in prompt)
    return Request(
        name=f"r{number}",
        content=content,
        prompt_tokens=content.tokens,
        max_new=max_new,
        output=Run(OUTPUT_STREAM + number, 0, 1),
        **more,
    )


def scheduler(slots=1000, *, page_size=1, radix=True, **settings):
    pool = SlotPool(slots, page_size=page_size)
    return SglangScheduler(RadixTree(pool) if radix else NoTree(pool), Settings(**settings))


def drain(engine, requests, *, also=(), after=lambda made, finished: None, most_passes=5000):
    """Submit `requests` and go on until they, and those in `also`, have finished; the passes made."""
    for one in requests:
        engine.submit(one)
    passes = []
    while not all(one.finished for one in [*requests, *also]):
        made = engine.plan()
        after(made, engine.settle())
        passes.append(made)
        assert len(passes) < most_passes, "no end in sight"
    return passes
