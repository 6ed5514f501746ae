"""One session, drawn before it begins: nothing in it depends on the engine that will serve it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import TypeVar

from kvsim.content import Run
from kvsim.workload.arrivals import CHUNK
from kvsim.workload.client import Patience
from kvsim.workload.layers import Stack
from kvsim.workload.lengths import Constant, LengthDistribution
from kvsim.workload.sessions.laws import PS_PER_MS, SessionLaws
from kvsim.workload.streams import Streams
from kvsim.workload.tags import TagMix

T = TypeVar("T")


@dataclass(slots=True)
class Turn:
    """What one call adds, and what happens around it."""

    new_tokens: int
    """Tokens of its own; of the first turn those of the whole prompt, shared layers included."""
    output_tokens: int
    pause_ps: int
    """Before it: the think time, from the end (or, in an open loop, the arrival) of the turn before."""
    brings: list[Run]
    """Shared texts that it brings along, before its own."""
    more_outputs: tuple[int, ...] = ()
    patience_ps: int | None = None
    agents: "list[Plan]" = field(default_factory=list)
    """Sessions that it calls once it has its answer."""


@dataclass(slots=True)
class Plan:
    """A session, or an agent's part of one."""

    number: int
    turns: list[Turn]
    shared: list[Run]
    """The layers of shared text that every prompt of it begins with."""
    inherits: bool = False
    """It goes on from the conversation of the turn that called it."""
    join: bool = True
    """Its last answer is taken in by the next turn of its caller."""
    ids: list[int] = field(default_factory=list)
    """The ids of its turns' first attempts."""
    tags: int = 0
    """Which of the kinds of client it is from, where there are several."""


class Draws:
    """Endless draws of one member (a session, or a client with all its sessions), each purpose from its own stream.

    `chunk` is how many values are drawn at a time; no result depends on it.
    """

    def __init__(
        self,
        laws: SessionLaws,
        stack: Stack,
        streams: Streams,
        member: int,
        *,
        samples: int = 1,
        cancel: Patience | None = None,
        mix: TagMix | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self._laws = laws
        self._streams = streams
        self._member = member
        self._chunk = chunk
        self._samples = samples
        self.turns = self._law(laws.turns, "turns")
        self.prompts = self._law(laws.prompt_tokens, "prompt_tokens")
        self.outputs = self._law(laws.output_tokens, "output_tokens")
        self.news = self._law(laws.new_tokens or laws.prompt_tokens, "new_tokens")
        self.thinks = repeat(0) if laws.think_ms is None else self._law(laws.think_ms, "think")
        self.more = self._law(laws.output_tokens, "more_outputs")
        self.shared = _lazily(lambda: stack.draws(member, each="session", chunk=chunk))
        self.brought = _lazily(lambda: stack.draws(member, each="turn", chunk=chunk))
        self.patiences: Iterator[int | None] = repeat(None)
        if cancel is not None:
            self.patiences = _lazily(lambda: cancel.patiences_ps(streams.generator("cancel", member), chunk))
        self.tags: Iterator[int] = repeat(0)
        if mix is not None:
            self.tags = _lazily(lambda: mix.draws(streams.generator("tags", member), chunk))
        if laws.agents is not None:
            self.calls = self._uniform("agents")
            self.agent_counts = self._law(laws.agents.count, "agent_count")
            self.agent_turns = self._law(laws.agents.turns, "agent_turns")

    def plan(self, number: int, most: int | None = None) -> Plan:
        """The next session, of at most so many requests, those of its agents included."""
        budget = [most if most is not None else 1 << 62]
        plan = self._plan(number, next(self.turns), budget, next(self.shared), first=True, calls=True)
        plan.tags = next(self.tags)
        return plan

    def _plan(self, number: int, turns: int, budget: list[int], shared: list[Run], *, first: bool, calls: bool) -> Plan:
        plan, agents = Plan(number, [], shared), self._laws.agents
        for place in range(turns):
            if budget[0] < 1:
                break
            budget[0] -= 1
            whole_prompt = first and not place
            new = next(self.prompts) if whole_prompt else next(self.news)
            turn = Turn(new, next(self.outputs), next(self.thinks) * PS_PER_MS, next(self.brought))
            turn.patience_ps = next(self.patiences)
            if self._samples > 1:
                turn.more_outputs = tuple(islice(self.more, self._samples - 1))
            plan.turns.append(turn)
            if calls and agents is not None and place + 1 < turns and next(self.calls) < agents.share:
                fork = agents.relation == "fork"
                for _ in range(next(self.agent_counts)):
                    if budget[0] < 2:  # the caller's next turn takes one
                        break
                    text = shared if fork else next(self.shared)
                    agent = self._plan(number, next(self.agent_turns), budget, text, first=not fork, calls=False)
                    agent.inherits, agent.join = fork, agents.join
                    turn.agents.append(agent)
        return plan

    def _law(self, law: LengthDistribution, purpose: str) -> Iterator[int]:
        if isinstance(law, Constant):
            # As drawing would give; without the cost of a generator.
            return repeat(min(max(law.value, law.min), law.max))
        return _lazily(lambda: law.lengths(self._streams.generator(purpose, self._member), self._chunk))

    def _uniform(self, purpose: str) -> Iterator[float]:
        def draws() -> Iterator[float]:
            generator = self._streams.generator(purpose, self._member)
            while True:
                yield from generator.random(self._chunk).tolist()

        return _lazily(draws)


def numbered(plan: Plan, first: int, step: int, attempts: int) -> int:
    """Give every turn of a session its id, in order; returns how many turns it has in all."""
    count = 0
    waiting = [plan]
    while waiting:
        one = waiting.pop()
        one.ids = []
        for turn in one.turns:
            one.ids.append(first + count * step * attempts)
            count += 1
            waiting += reversed(turn.agents)
    return count


def _lazily(make: Callable[[], Iterator[T]]) -> Iterator[T]:
    """An iterator that is made when its first value is asked for."""
    return chain.from_iterable(make() for _ in (0,))
