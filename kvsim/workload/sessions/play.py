"""A session on its way through its turns: what its next prompt is, and what follows when a turn is over."""

from kvsim.content import Content, Run, own_stream
from kvsim.request import Request
from kvsim.workload.sessions.history import Exchange, History
from kvsim.workload.sessions.plan import Plan, Turn


class Play:
    """One session, or one agent of it, with what has been said so far. Mutable; one for each plan."""

    __slots__ = (
        "_exchanges",
        "_history",
        "_results",
        "_summary",
        "attempt",
        "awaited",
        "caller",
        "client",
        "place",
        "plan",
        "said",
        "turn_of_caller",
    )

    def __init__(self, plan: Plan, history: History, *, client: int = 0, caller: "Play | None" = None, index: int = 0):
        self.plan = plan
        self.client = client
        """Whose session it is, in a loop of clients."""
        self.caller = caller
        self.turn_of_caller = index
        """Which of the agents of its caller's turn it is."""
        self.place = 0
        """The turn that comes next."""
        self.attempt = 0
        """How often that turn has failed."""
        self.awaited = 0
        """Agents that are not done yet."""
        self.said: Run | None = None
        """Its last answer."""
        self._history = history
        self._exchanges: list[Exchange] = list(caller._exchanges) if caller is not None and plan.inherits else []
        self._results: dict[int, Run] = {}
        self._summary = 0

    @property
    def turn(self) -> Turn:
        """The turn that comes next."""
        return self.plan.turns[self.place]

    @property
    def next_id(self) -> int:
        """See `drive.Player`: the id of the first attempt at the turn that comes next."""
        return self.plan.ids[self.place]

    @property
    def session(self) -> int:
        """See `drive.Player`; an agent's is its caller's."""
        return self.plan.number

    @property
    def tags(self) -> int:
        """See `drive.Player`."""
        return self.plan.tags

    @property
    def over(self) -> bool:
        """There is none."""
        return self.place >= len(self.plan.turns)

    def request(self, arrival_ps: int, step: int) -> Request:
        """The next turn as a request; what its client adds to it is not there yet. Mutates the history at most."""
        turn = self.turn
        if not self.attempt:
            self._exchanges, self._summary = self._history.kept(self._exchanges)
        number = self.plan.ids[self.place] + self.attempt * step
        runs = [*self.plan.shared, *(run for exchange in self._exchanges for run in exchange.runs), *self._brings()]
        before = sum(run.tokens for run in runs)
        whole_prompt = not self.place and not self.plan.inherits
        own = max(turn.new_tokens - before, 1) if whole_prompt else turn.new_tokens + self._summary
        content = Content([*runs, Run(own_stream(number), before, own)])
        return Request(
            number,
            arrival_ps,
            before + own,
            turn.output_tokens,
            patience_ps=turn.patience_ps,
            more_outputs=turn.more_outputs,
            content=content,
            session=self.plan.number,
            turn=self.place,
        )

    def answered(self, request: Request, generated_tokens: int) -> None:
        """The turn is over, with so many tokens of an answer: later prompts repeat both. Mutates."""
        assert request.content is not None
        brings = self._brings()
        # What is this request's alone stands at the end of its prompt, and the answer goes on from there.
        own = request.content.runs[-1]
        answer = Run(own.stream, request.prompt_tokens, generated_tokens)
        runs = (*brings, Run(own.stream, own.offset, own.tokens + generated_tokens))
        self._exchanges.append(Exchange(runs, sum(run.tokens for run in runs)))
        self.said = answer if generated_tokens else None
        self.next_turn()

    def next_turn(self) -> None:
        """The turn is over, with or without an answer. Mutates."""
        self._results.clear()
        self.place += 1
        self.attempt = 0

    def agents_of(self, turn: Turn) -> "list[Play]":
        """Those whom a turn calls that has just been answered; until they are done the session waits. Mutates."""
        called = [
            Play(plan, self._history, client=self.client, caller=self, index=index)
            for index, plan in enumerate(turn.agents)
            if plan.turns
        ]
        self.awaited = len(called)
        return called

    def done(self, agent: "Play") -> bool:
        """An agent is done, or gone; True if it was the last one. Mutates."""
        if agent.plan.join and agent.said is not None:
            self._results[agent.turn_of_caller] = agent.said
        self.awaited -= 1
        return not self.awaited

    def _brings(self) -> list[Run]:
        """What stands before the turn's own text: the answers of agents, in their order, and shared texts."""
        return [*(self._results[index] for index in sorted(self._results)), *self.turn.brings]
