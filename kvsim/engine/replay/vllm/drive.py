"""Drives an engine through a case, step by step and without a clock, and writes down what the recording tells."""

from collections.abc import Iterator

from kvsim.engine.replay.case import Record
from kvsim.engine.replay.vllm.engine import Engine, Step
from kvsim.engine.replay.vllm.truth import Truth
from kvsim.errors import InputError


def records(engine: Engine, truths: list[Truth], max_steps: int) -> Iterator[Record]:
    """A record for each step, then the summary."""
    return _Drive(engine, truths).records(max_steps)


class _Drive:
    """One case in progress."""

    def __init__(self, engine: Engine, truths: list[Truth]) -> None:
        self.engine = engine
        self.truths = {truth.sequence.id: truth for truth in truths}
        """In the order of the case, by the number of their sequence."""
        self.aborts = [truth for truth in truths if truth.abort_step is not None]
        self.sched_tokens = 0
        self.peak_used = 0

    def records(self, max_steps: int) -> Iterator[Record]:
        """A record for each step, then the summary."""
        coming = sorted(self.truths.values(), key=lambda truth: truth.arrival)
        step, steps, at = 0, 0, 0
        while steps < max_steps:
            if not self.engine.busy:
                if at == len(coming):
                    break
                step = max(step, coming[at].arrival)
            while at < len(coming) and coming[at].arrival <= step:
                self.engine.submit(coming[at])
                at += 1
            for truth in [truth for truth in self.aborts if truth.abort_step is not None and truth.abort_step <= step]:
                self.aborts.remove(truth)
                self.engine.give_up(truth)
            yield self._step(step)
            step += 1
            steps += 1
        yield {
            "summary": {
                "steps": steps,
                "sched_tokens": self.sched_tokens,
                "preemptions": sum(truth.preempted for truth in self.truths.values()),
                "evicted": self.engine.evicted,
                "stored": self.engine.stored,
                "hit_tokens": sum(sum(truth.hits) for truth in self.truths.values()),
                "peak_used": self.peak_used,
            },
            "requests": {truth.name: truth.record() for truth in self.truths.values()},
        }

    def _step(self, step: int) -> Record:
        engine, truths = self.engine, self.truths
        stored, evicted = engine.stored, engine.evicted
        try:
            decided = engine.schedule()
        except InputError as error:
            raise InputError(f"step {step}: {error}") from error
        self._note(decided, step)
        free = engine.free_blocks
        used = engine.blocks - free
        self.peak_used = max(self.peak_used, used)
        record: Record = {
            "step": step,
            "sched": [[truths[number].name, tokens] for number, tokens in decided.scheduled],
            "hits": [[truths[number].name, tokens] for number, tokens in decided.hits],
            "preempted": [[truths[number].name, tokens] for number, tokens in decided.preempted],
            "running": [truths[number].name for number in decided.running],
            "waiting": [truths[number].name for number in decided.waiting],
            "used_after_schedule": used,
            "free_after_schedule": free,
        }
        finished = self._collect(step)
        free = engine.free_blocks
        record |= {
            "finished": finished,
            "free_after_step": free,
            "usage": round(1 - free / engine.blocks, 6),
            "cached_hashes": engine.contents,
            "stored": engine.stored - stored,
            "evicted": engine.evicted - evicted,
        }
        return record

    def _note(self, decided: Step, step: int) -> None:
        """What the step says of its requests."""
        for number, tokens in decided.scheduled:
            truth = self.truths[number]
            if truth.first_sched is None:
                truth.first_sched = step
            truth.computed += tokens
            self.sched_tokens += tokens
        for number, tokens in decided.hits:
            self.truths[number].hits.append(tokens)
        for number, _ in decided.preempted:
            self.truths[number].preempted += 1

    def _collect(self, step: int) -> list[str]:
        """What came out; the names of those that are finished by it."""
        finished = []
        for output in self.engine.outputs():
            truth = self.truths[output.request]
            truth.output += output.tokens
            if truth.first_tok is None:
                truth.first_tok = step
            if output.ended:
                truth.done = step
                finished.append(truth.name)
        return finished
