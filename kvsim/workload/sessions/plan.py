"""One session, drawn before it begins: nothing in it depends on the engine that will serve it."""

from dataclasses import dataclass, field
from itertools import islice, repeat

from kvsim.content import Run
from kvsim.workload.clients.limits import Patience
from kvsim.workload.clients.tags import TagMix
from kvsim.workload.layers import Stack
from kvsim.workload.sessions.draws import Source, kinds, lazily, lengths, patiences, uniform
from kvsim.workload.sessions.laws import PS_PER_MS, SessionLaws

_TEXTS = 16
"""Texts that a session or a client draws at a time."""


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
    """Endless draws of one member (a session, or a client with all its sessions), from `source`."""

    def __init__(
        self,
        laws: SessionLaws,
        stack: Stack,
        source: Source,
        member: int,
        *,
        samples: int = 1,
        cancel: Patience | None = None,
        mix: TagMix | None = None,
    ) -> None:
        self._laws = laws
        self._samples = samples
        self._turns = lengths(source, laws.turns, "turns")
        self._prompts = lengths(source, laws.prompt_tokens, "prompt_tokens")
        self._outputs = lengths(source, laws.output_tokens, "output_tokens")
        self._news = lengths(source, laws.new_tokens or laws.prompt_tokens, "new_tokens")
        self._thinks = repeat(0) if laws.think_ms is None else lengths(source, laws.think_ms, "think")
        self._more = lengths(source, laws.output_tokens, "more_outputs")
        self._shared = lazily(lambda: stack.draws(member, each="session", chunk=_TEXTS))
        self._brought = lazily(lambda: stack.draws(member, each="turn", chunk=_TEXTS))
        self._patiences = patiences(source, cancel)
        self._kinds = kinds(source, mix)
        if laws.agents is not None:
            self._calls = uniform(source, "agents")
            self._agent_counts = lengths(source, laws.agents.count, "agent_count")
            self._agent_turns = lengths(source, laws.agents.turns, "agent_turns")

    def plan(self, number: int, most: int | None = None) -> Plan:
        """The next session, of at most so many requests, those of its agents included."""
        budget = [most if most is not None else 1 << 62]
        plan = self._plan(number, next(self._turns), budget, next(self._shared), first=True, calls=True)
        plan.tags = next(self._kinds)
        return plan

    def _plan(self, number: int, turns: int, budget: list[int], shared: list[Run], *, first: bool, calls: bool) -> Plan:
        plan, agents = Plan(number, [], shared), self._laws.agents
        for place in range(turns):
            if budget[0] < 1:
                break
            budget[0] -= 1
            whole_prompt = first and not place
            new = next(self._prompts) if whole_prompt else next(self._news)
            turn = Turn(new, next(self._outputs), next(self._thinks) * PS_PER_MS, next(self._brought))
            turn.patience_ps = next(self._patiences)
            if self._samples > 1:
                turn.more_outputs = tuple(islice(self._more, self._samples - 1))
            plan.turns.append(turn)
            if calls and agents is not None and place + 1 < turns and next(self._calls) < agents.share:
                fork = agents.relation == "fork"
                for _ in range(next(self._agent_counts)):
                    if budget[0] < 2:  # the caller's next turn takes one
                        break
                    text = shared if fork else next(self._shared)
                    agent = self._plan(number, next(self._agent_turns), budget, text, first=not fork, calls=False)
                    agent.inherits, agent.join = fork, agents.join
                    turn.agents.append(agent)
        return plan


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
