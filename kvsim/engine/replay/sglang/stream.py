"""Requests through SGLang's scheduler, step by step and without a clock."""

from collections.abc import Iterator

from kvsim.engine.replay.case import FIRST_OUTPUT_STREAM, MOST, Record, stream_run
from kvsim.engine.replay.sglang.case import content_of, field_of
from kvsim.engine.replay.sglang.ops import pool_state
from kvsim.errors import InputError
from kvsim.memory.radix.interface import NoTree, PrefixTree
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.scheduling.sglang.request import Request, most_output
from kvsim.scheduling.sglang.scheduler import Pass, SglangScheduler
from kvsim.scheduling.sglang.settings import Settings


class Stream:
    """One case in progress."""

    def __init__(self, settings: Record, requests: list[Record]) -> None:
        pool = SlotPool(settings["max_total_num_tokens"], page_size=settings["page_size"])
        eviction = settings["eviction_policy"]
        self.tree: PrefixTree = NoTree(pool) if settings["disable_radix_cache"] else RadixTree(pool, eviction=eviction)
        chunk = settings["chunked_prefill_size"]
        flags = {
            key: settings[key]
            for key in (
                "max_prefill_tokens",
                "max_running_requests",
                "schedule_policy",
                "schedule_conservativeness",
                "enable_mixed_chunk",
                "overlap",
            )
        }
        self.scheduler = SglangScheduler(
            self.tree, Settings(chunked_prefill_size=chunk if chunk > 0 else None, **flags), eviction=eviction
        )
        self.max_steps = settings["max_steps"]
        self.tellings: dict[str, Telling] = {}
        for index, entry in enumerate(requests):
            telling = Telling(entry, index, settings, pool)
            if telling.request.name in self.tellings:
                raise InputError(
                    f"request {index} of the case: id is {telling.request.name!r}, which another has already"
                )
            self.tellings[telling.request.name] = telling
        self.totals = dict.fromkeys(
            ("prefill_tokens", "decode_tokens", "hit_tokens", "retractions", "evicted", "peak_used"), 0
        )

    def records(self) -> Iterator[Record]:
        """A record for each step, then the summary."""
        coming = sorted(self.tellings.values(), key=lambda telling: telling.arrival)
        step, steps, at, live = 0, 0, 0, 0
        while steps < self.max_steps:
            if not live:
                if at == len(coming):
                    break
                if coming[at].arrival > step:
                    step = coming[at].arrival
                    self.scheduler.ratio.reset()
            while at < len(coming) and coming[at].arrival <= step:
                self.scheduler.submit(coming[at].request)
                at, live = at + 1, live + 1
            record = self._step(step)
            live -= len(record["finished"])
            yield record
            step, steps = step + 1, steps + 1
        yield {
            "summary": {"steps": steps, **self.totals},
            "requests": {name: telling.record() for name, telling in self.tellings.items()},
        }

    def _step(self, step: int) -> Record:
        scheduler, totals = self.scheduler, self.totals
        evicted = scheduler.rows.evicted
        made = scheduler.plan()
        state = pool_state(self.tree)
        used = self.tree.pool.slots - self.tree.pool.free
        record: Record = {
            "step": step,
            "mode": made.mode,
            "sched": [[request.name, tokens] for request, tokens in made.scheduled],
            "hits": [[request.name, tokens] for request, tokens in made.admitted],
            "retracted": [request.name for request in made.retracted],
            "evicted": scheduler.rows.evicted - evicted,
            "chunked": scheduler.cut and scheduler.cut.name,
            "running": [request.name for request in scheduler.running.requests],
            "waiting": [request.name for request in scheduler.waiting],
            "new_token_ratio": round(scheduler.ratio.value, 6),
            "used_after_schedule": used,
            "after_schedule": state,
        }
        served = scheduler.settle()
        finished = made.aborted + [request for request in served if request.finished]
        self._tell(made, served, finished, step)
        totals["prefill_tokens"] += made.prefill_tokens
        totals["decode_tokens"] += sum(tokens for _, tokens in made.scheduled) - made.prefill_tokens
        totals["evicted"] += record["evicted"]
        totals["retractions"] += len(made.retracted)
        totals["hit_tokens"] += sum(tokens for _, tokens in made.admitted)
        totals["peak_used"] = max(totals["peak_used"], used)
        return record | {"finished": [request.name for request in finished], "after_step": pool_state(self.tree)}

    def _tell(self, made: Pass, served: list[Request], finished: list[Request], step: int) -> None:
        """Note for the summary what happened to each request in this step."""
        for request, tokens in made.scheduled:
            telling = self.tellings[request.name]
            telling.computed += tokens
            telling.first_sched = step if telling.first_sched is None else telling.first_sched
        for request, tokens in made.admitted:
            self.tellings[request.name].hits.append(tokens)
        for request in made.retracted:
            self.tellings[request.name].retracted += 1
        for request in served:
            telling = self.tellings[request.name]
            telling.first_tok = step if telling.first_tok is None else telling.first_tok
        for request in finished:
            self.tellings[request.name].done = step


class Telling:
    """What the recording will tell of one request."""

    def __init__(self, entry: Record, index: int, settings: Record, pool: SlotPool) -> None:
        where = f"request {index} of the case"
        name = field_of(entry, "id", where)
        self.arrival: int = field_of(entry, "arrival_step", where, least=0)
        wanted = field_of(entry, "output_len", where, least=1)
        prompt = content_of(entry.get("prompt"), f"{where}: prompt")
        if not prompt.tokens:
            raise InputError(f"{where}: prompt has no tokens; it must have at least one")
        stream = field_of(entry, "out_stream", where, least=0, default=FIRST_OUTPUT_STREAM + index)
        self.request = Request(
            name=name,
            content=prompt,
            prompt_tokens=prompt.tokens,
            max_new=max(0, min(wanted, most_output(prompt.tokens, settings["context_len"], pool))),
            output=stream_run(stream, 0, 1),
            ignore_eos=bool(entry.get("ignore_eos", settings["ignore_eos"])),
            priority=field_of(entry, "priority", where, least=-MOST, default=0),
        )
        self.first_sched: int | None = None
        self.first_tok: int | None = None
        self.done: int | None = None
        self.hits: list[int] = []
        self.retracted = 0
        self.computed = 0

    def record(self) -> Record:
        """The request's line in the summary."""
        return {
            "arrival": self.arrival,
            "prompt": self.request.prompt_tokens,
            "first_sched": self.first_sched,
            "first_tok": self.first_tok,
            "done": self.done,
            "hits": self.hits,
            "retracted": self.retracted,
            "computed": self.computed,
            "max_new_tokens": self.request.max_new,
            "output": self.request.outputs,
        }
