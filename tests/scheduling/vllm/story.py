"""A scheduler with requests by name, step by step, for tests that read like the rules."""

from collections import deque

from kvsim.content import Content, Run
from kvsim.memory.prefix import BlockPool, FullGroup, Holdings
from kvsim.request import Sequence
from kvsim.scheduling.vllm import RequestScheduler, Rules

ENDLESS = 10_000


class Story:
    """Blocks of 4, 100 of them unless told otherwise; each request has tokens of its own unless it shares a stream."""

    def __init__(self, *, blocks=100, caching=True, **rules):
        self.rules = Rules(**rules)
        self.pool = BlockPool(blocks)
        groups = [FullGroup()]
        holdings = Holdings(self.pool, groups, block_size=4, max_model_len=self.rules.max_model_len, caching=caching)
        self.scheduler = RequestScheduler(holdings, self.rules)
        self.sequences = {}
        self.flight = deque([None] if self.rules.async_scheduling else [])
        self.batch = None

    def submit(self, name, prompt, output=50, *, priority=0, shared=0, arrival=0):
        """`shared` tokens at its start are the same for all."""
        number = len(self.sequences)
        sequence = Sequence(number, prompt, output, arrival_ps=arrival, priority=priority)
        self.sequences[name] = sequence
        self.scheduler.submit(sequence, Content([Run(0, 0, shared), Run(1 + number, 0, ENDLESS)]))

    def plan(self):
        """Decide a step: who computes how much."""
        self.batch = self.scheduler.plan()
        self.flight.append(self.batch)
        return {self.name(row.request): row.tokens for row in self.batch.rows}

    def output(self, **accepted):
        """What comes out of the oldest step in flight: tokens by name, with a dot for an end."""
        batch = self.flight.popleft()
        if batch is None:
            return {}
        right = {self.sequences[name].id: drafts for name, drafts in accepted.items()}
        emitted = self.scheduler.complete(batch, right)
        for entry in emitted:
            if entry.ended:
                self.scheduler.leave(entry.sequence)
        return {self.named(entry.sequence): f"{entry.tokens}{'.' * entry.ended}" for entry in emitted}

    def step(self, **accepted):
        """Decide a step and let its output (or that of the one before) come in."""
        scheduled = self.plan()
        self.output(**accepted)
        return scheduled

    def give_up(self, name):
        self.scheduler.leave(self.sequences[name])

    def name(self, request):
        return self.named(request.sequence)

    def named(self, sequence):
        return next(name for name, other in self.sequences.items() if other is sequence)

    @property
    def running(self):
        return [self.name(request) for request in self.scheduler.running]

    @property
    def waiting(self):
        return [self.name(request) for request in self.scheduler.waiting]

    @property
    def hits(self):
        return {self.name(entry.request): entry.hit_tokens for entry in self.batch.admitted}

    @property
    def preempted(self):
        return {self.name(entry.request): entry.tokens for entry in self.batch.preempted}
