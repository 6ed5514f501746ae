"""Traffic in sessions, as the workload is handed it."""

from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import ArrivalProcess
from kvsim.workload.sessions.laws import ClientLoop, SessionLaws
from kvsim.workload.sessions.loop import SessionLoop, Sources


class SessionTraffic:
    """Sessions that begin by `arrivals`, or one after the other at each of so many `clients`.

    `closed`: a further turn comes when the engine is done with the one before; else it has its time beforehand. A loop
    of clients is closed. `requests` is how many there are in all, as the sessions were planned; without it they do
    not end. ValueError on arguments that do not go together.
    """

    def __init__(
        self,
        laws: SessionLaws,
        *,
        arrivals: ArrivalProcess | None = None,
        clients: ClientLoop | None = None,
        closed: bool = False,
        requests: int | None = None,
    ) -> None:
        if (arrivals is None) == (clients is None):
            raise ValueError("arrivals: sessions begin either by arrivals or in a loop of clients; give one of them")
        if requests is not None:
            check_whole("requests", requests, 1)
        self.closed = closed or clients is not None
        self._laws = laws
        self._arrivals = arrivals
        self._clients = clients
        self._requests = requests

    def loop(self, sources: Sources) -> SessionLoop:
        """The sessions of one run, from the beginning."""
        return SessionLoop(self._laws, sources, arrivals=self._arrivals, clients=self._clients, requests=self._requests)

    def describe(self) -> dict[str, object]:
        """The report for the run folder: how sessions begin and what they are drawn from."""
        begin: dict[str, object] = {"arrivals": None, "rate_per_s": None, "clients": None}
        if self._arrivals is not None:
            begin |= {"arrivals": self._arrivals.describe(), "rate_per_s": self._arrivals.rate}
        if self._clients is not None:
            begin["clients"] = {"clients": self._clients.clients, "ramp_s": self._clients.ramp_s}
        return {
            "source": "sessions",
            "loop": "closed" if self.closed else "open",
            **begin,
            **self._laws.describe(),
            "requests_asked": self._requests,
            "prefix_identity": "synthesised",
        }
