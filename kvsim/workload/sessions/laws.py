"""What sessions are drawn from, and what becomes of one whose turn fails."""

from dataclasses import dataclass, field
from typing import Any, Literal

from kvsim.workload.arguments import check_not_negative, check_positive, check_share, check_whole
from kvsim.workload.lengths import Constant, LengthDistribution
from kvsim.workload.sessions.history import History, Whole

PS_PER_MS = 10**9
"""Think times are drawn in whole milliseconds."""

ONE = Constant(value=1)


@dataclass(frozen=True, kw_only=True)
class Agents:
    """Agents that a turn calls, with probability `share`, once it has its answer.

    So many as `count` says, each a session of `turns` turns of its own: a "fork" inherits the conversation up to
    there, a "spawn" begins anew behind the layers that are shared. The next turn of the caller comes when all of them
    are done, and takes their last answers in if `join`. Agents call no further ones. ValueError on what cannot be.
    """

    share: float
    count: LengthDistribution = ONE
    turns: LengthDistribution = ONE
    relation: Literal["fork", "spawn"] = "fork"
    join: bool = True

    def __post_init__(self) -> None:
        check_share("share", self.share)
        if self.relation not in ("fork", "spawn"):
            raise ValueError(f"relation: must be fork or spawn; got {self.relation!r}")

    def describe(self) -> dict[str, Any]:
        """The parameters, as plain values."""
        laws = {"count": self.count.describe(), "turns": self.turns.describe()}
        return {"share": self.share, "relation": self.relation, "join": self.join, **laws}


@dataclass(frozen=True, kw_only=True)
class OnFailure:
    """What a turn that was rejected, cancelled or aborted does to its session.

    `then` "end": it is over, and whoever waits for that (a client, the caller of an agent) goes on after `back_off_s`:
    a client that is refused at once must not ask again at the same moment, for ever. "go-on": the next turn comes
    after the usual pause and `back_off_s`; the history has what was generated, or not even the question where nothing
    was. "retry": the same turn comes again after `back_off_s`, twice that at the second attempt and so on, up to
    `retries` times; then the session is over.
    """

    then: Literal["end", "go-on", "retry"] = "end"
    back_off_s: float = 1.0
    retries: int = 3

    def __post_init__(self) -> None:
        if self.then not in ("end", "go-on", "retry"):
            raise ValueError(f"then: must be end, go-on or retry; got {self.then!r}")
        check_positive("back_off_s", self.back_off_s)
        check_whole("retries", self.retries, 1, 1000)


@dataclass(frozen=True, kw_only=True)
class SessionLaws:
    """What a session is drawn from; lengths in tokens.

    It has `turns` turns. The first prompt is `prompt_tokens` long, shared layers included; each further one adds
    `new_tokens` (None: as the first) to the layers and the history. `think_ms` is the pause before a further turn:
    from the answer of the one before where the loop is closed, from its arrival where it is open (None: none at all).
    """

    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    turns: LengthDistribution = ONE
    new_tokens: LengthDistribution | None = None
    think_ms: LengthDistribution | None = None
    history: History = field(default_factory=Whole)
    agents: Agents | None = None
    on_failure: OnFailure = field(default_factory=OnFailure)

    def describe(self) -> dict[str, Any]:
        """The laws, as plain values."""
        laws = {
            name: getattr(self, name)
            for name in ("prompt_tokens", "output_tokens", "turns", "new_tokens", "think_ms", "agents")
        }
        failure = {"then": self.on_failure.then}
        return {name: None if law is None else law.describe() for name, law in laws.items()} | {
            "history": self.history.describe(),
            "on_failure": failure | ({"retries": self.on_failure.retries} if failure["then"] == "retry" else {}),
        }


@dataclass(frozen=True, kw_only=True)
class ClientLoop:
    """`clients` clients, each of which begins its next session when the last one is over and it has thought.

    The first ones come evenly spread over `ramp_s` seconds. ValueError on a number that cannot be.
    """

    clients: int
    ramp_s: float = 0.0

    def __post_init__(self) -> None:
        check_whole("clients", self.clients, 1, 1_000_000)
        check_not_negative("ramp_s", self.ramp_s)
