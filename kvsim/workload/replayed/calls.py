"""A trace as calls that wait for each other: plain data, read once, of which every run makes its own loop."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kvsim.content import Content, Run, own_stream
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.replayed.contents import Contents, renamed
from kvsim.workload.replayed.waits import Wait, wait_for


@dataclass(slots=True)
class Call:
    """One call of a trace. Some 600 bytes, and 100 for each run of its content."""

    number: int
    """From 0, in the order of the trace."""
    session: int
    """The number of its session."""
    turn: int
    """Which call of its session, from 0."""
    prompt_tokens: int
    output_tokens: int
    time_ps: int | None
    """When it came, on the clock of its group; None: whenever those it waited for were done."""
    tenant: str = ""
    priority: int = 0
    slo_class: str = ""
    patience_ps: int | None = None
    """How long after its arrival its client gave up, or would have."""
    content: Content | None = None
    answer: Run | None = None
    """What its output is, as far as the trace tells."""
    waits: tuple[tuple[int, Wait], ...] = ()
    """The numbers of the calls that it waits for, and how."""
    followers: list[tuple[int, Wait]] = field(default_factory=list)
    """Those that wait for it."""


@dataclass(slots=True)
class Group:
    """Calls that begin together: a session, with the agents that it starts and takes in."""

    calls: list[int]
    """Their numbers, in the order of the trace."""
    start_ps: int | None
    """When the first of them came, on the clock of the trace; None: the trace does not tell."""


class CallGraph:
    """All calls of a trace by number, and the groups that they form, in the order of their first calls."""

    def __init__(self, calls: list[Call], groups: list[Group], *, block_tokens: int = 0, left_out: int = 0) -> None:
        self.calls = calls
        self.groups = groups
        self.block_tokens = block_tokens
        """Tokens of the blocks by which prompts are told apart; 0: they are not."""
        self.left_out = left_out
        """Calls that are not here, since one that they wait for was a bad row, or is not here either."""

    def only(self, kept: Iterable[int], *, repeat: int = 1) -> "CallGraph":
        """These groups alone, numbered anew, `repeat` times one behind the other (of times as they were)."""
        calls: list[Call] = []
        groups: list[Group] = []
        chosen = [self.groups[number] for number in kept]
        sessions: dict[tuple[int, int], int] = {}
        for again in range(repeat):
            # As in the trace: calls of one group may stand between those of another.
            old = sorted(number for group in chosen for number in group.calls)
            new = {number: len(calls) + place for place, number in enumerate(old)}
            for number in old:
                call = self.calls[number]
                session = sessions.setdefault((again, call.session), len(sessions))
                content = None if call.content is None else renamed(call.content, new.__getitem__)
                one = replace(call, number=new[number], session=session, content=content)
                one.waits = tuple((new[before], wait) for before, wait in call.waits)
                one.followers = [(new[after], wait) for after, wait in call.followers]
                calls.append(one)
            groups += [Group([new[number] for number in group.calls], group.start_ps) for group in chosen]
        return CallGraph(calls, groups)

    def tell_answers(self) -> int:
        """Take the answer of a call to be what its session's next prompt has behind the prompt before; how many are so.

        Where that next prompt begins with all whole blocks of the one before, and is long enough. Mutates.
        """
        told = 0
        for call in reversed(self.calls):
            turns = [self.calls[number] for number, wait in call.followers if wait.relation == "turn"]
            said = call.prompt_tokens + call.output_tokens
            if len(turns) != 1 or call.content is None or turns[0].content is None or turns[0].prompt_tokens < said:
                continue
            after = turns[0].content
            shared = sum(run.tokens for run in call.content.runs if run.stream >= 0)
            # Its last block may be another one in the next prompt, where the answer fills it up.
            if call.content.common(after) < min(shared, call.prompt_tokens - call.prompt_tokens % self.block_tokens):
                continue
            head, answer = after.part(0, call.prompt_tokens), after.part(call.prompt_tokens, said)
            if len(answer) == 1 and all(run.stream >= 0 for run in (*head, *answer)):
                call.content, call.answer = Content(head), answer[0]
                told += 1
        return told

    def named(self, attempts: int) -> "CallGraph":
        """The same calls, where what is call k's alone has the name of request k x `attempts`, its first attempt."""
        if attempts == 1:
            return self
        calls = [
            call if call.content is None else replace(call, content=renamed(call.content, lambda k: k * attempts))
            for call in self.calls
        ]
        return CallGraph(calls, self.groups)


def graph_of(requests: Iterable[TraceRequest], contents: Contents | None = None) -> CallGraph:
    """The calls of a trace, with all that is recorded of them, and what their prompts hold where `contents` tells it.

    Calls are in one group if they wait for each other, are of one session, or of one play. Those that wait for one that
    was left out are left out too. Uses the requests up.
    """
    calls: list[Call] = []
    told: dict[str, tuple[int, TraceRequest]] = {}
    sessions: dict[str, int] = {}
    turns: dict[int, int] = {}
    together = _Together()
    times: list[int | None] = []
    left_out = 0
    for request in requests:
        if not all(link.request in told for link in request.after):
            left_out += 1
            continue
        number = len(calls)
        # One without a session is a session of its own, whose name no file has.
        name = request.session or f"\0{number}"
        session = sessions.setdefault(name, len(sessions))
        turn = turns.get(session, -1) + 1
        turns[session] = turn
        waits = []
        together.add(number)
        for link in request.after:
            before, earlier = told[link.request]
            wait = wait_for(link, request, earlier)
            waits.append((before, wait))
            calls[before].followers.append((number, wait))
            together.join(number, before)
        for label in filter(None, (request.session and f"s{request.session}", request.play and f"p{request.play}")):
            together.same(number, label)
        time_ps = request.arrival_ps if request.arrival_ps is not None else request.session_time_ps
        call = Call(number, session, turn, request.prompt_tokens, request.output_tokens, time_ps)
        call.tenant, call.priority = request.tenant, request.priority
        call.slo_class = request.tags.get("slo_class", "")
        call.patience_ps = _patience(request)
        call.waits = tuple(waits)
        if contents is not None:
            goes_on = next((calls[before] for before, wait in waits if wait.relation in ("turn", "fork")), None)
            call.content = contents.of(number, request, () if goes_on is None else _history(goes_on))
        # Ids of blocks take most of the room.
        request.blocks = ()
        calls.append(call)
        times.append(request.arrival_ps)
        told[request.id] = number, request
    if contents is not None:
        contents.read()
    groups = [_group(members, calls, times) for members in together.groups()]
    size = 0 if contents is None else contents.block_tokens
    return CallGraph(calls, groups, block_tokens=size, left_out=left_out)


def _history(call: Call) -> list[Run]:
    """The conversation up to the end of a call's answer."""
    said = [] if call.content is None else call.content.runs
    return [*said, Run(own_stream(call.number), call.prompt_tokens, call.output_tokens)] if said else []


def _patience(request: TraceRequest) -> int | None:
    """From its arrival to when its client gave up; None: never, or the trace has no clock for it."""
    if request.arrival_ps is None:
        return None
    ends = [time - request.arrival_ps for time in (request.cancel_at_ps, request.deadline_ps) if time is not None]
    return min((patience for patience in ends if patience > 0), default=None)


def _group(members: list[int], calls: list[Call], times: list[int | None]) -> Group:
    """A group; the times of its calls are brought onto its own clock. Mutates the calls."""
    starts = [time for number in members if (time := times[number]) is not None]
    start_ps = min(starts) if starts and times[members[0]] is not None else None
    zero_ps = start_ps if start_ps is not None else min(starts, default=0)
    if zero_ps:
        for number in members:
            call = calls[number]
            if call.time_ps is not None:
                call.time_ps = max(0, call.time_ps - zero_ps)
    return Group(members, start_ps)


class _Together:
    """Which calls belong together (disjoint sets with path halving)."""

    def __init__(self) -> None:
        self._above: list[int] = []
        self._labels: dict[str, int] = {}

    def add(self, number: int) -> None:
        self._above.append(number)

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self._top(one), self._top(other)))
        self._above[second] = first

    def same(self, number: int, label: str) -> None:
        self.join(number, self._labels.setdefault(label, number))

    def groups(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for number in range(len(self._above)):
            found.setdefault(self._top(number), []).append(number)
        return list(found.values())

    def _top(self, number: int) -> int:
        above = self._above
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number
