"""The waiting queue in its two orders. Both serve the head; preempted requests come back to the front."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from kvsim.scheduling.vllm.batch import Followed


class WaitingQueue(Protocol):
    """Requests that wait, in the order in which they are let in."""

    def push(self, request: Followed) -> None:
        """A new request. Mutates."""

    def push_front(self, requests: Iterable[Followed]) -> None:
        """Requests that had their turn before, the first of them first again. Mutates."""

    def peek(self) -> Followed:
        """The head. Pure."""
        ...

    def pop(self) -> Followed:
        """The head leaves. Mutates."""
        ...

    def remove(self, request: Followed) -> None:
        """This one leaves from wherever it is. Mutates; O(waiting)."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Followed]: ...


class FirstCome:
    """First come, first served."""

    def __init__(self) -> None:
        self._queue: deque[Followed] = deque()

    def push(self, request: Followed) -> None:
        """To the end."""
        self._queue.append(request)

    def push_front(self, requests: Iterable[Followed]) -> None:
        """To the front, in their order."""
        self._queue.extendleft(reversed(list(requests)))

    def peek(self) -> Followed:
        """Who came first."""
        return self._queue[0]

    def pop(self) -> Followed:
        """Who came first."""
        return self._queue.popleft()

    def remove(self, request: Followed) -> None:
        """From its place."""
        self._queue.remove(request)

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Followed]:
        return iter(self._queue)


class ByPriority:
    """The lowest (priority, arrival, id) first; there is no other front."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, int, int], Followed]] = []

    def push(self, request: Followed) -> None:
        """To its place in the order."""
        heapq.heappush(self._heap, (request.order, request))

    def push_front(self, requests: Iterable[Followed]) -> None:
        """Each to its place in the order."""
        for request in requests:
            self.push(request)

    def peek(self) -> Followed:
        """The lowest."""
        return self._heap[0][1]

    def pop(self) -> Followed:
        """The lowest."""
        return heapq.heappop(self._heap)[1]

    def remove(self, request: Followed) -> None:
        """From its place."""
        self._heap.remove((request.order, request))
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Followed]:
        return (request for _, request in sorted(self._heap, key=lambda entry: entry[0]))


QUEUES: dict[str, Callable[[], WaitingQueue]] = {"fcfs": FirstCome, "priority": ByPriority}
