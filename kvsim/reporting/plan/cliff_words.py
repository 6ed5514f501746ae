"""Where the cliff is, in words and as rows of text."""

from kvsim.reporting.finding import three_digits
from kvsim.reporting.plan.table import Column
from kvsim.study.planning.cliff import LEAVES, Cliff

BLOW_UP = "queue blow-up"

RULE = (
    f"knee: the largest rate up to which the 99th percentile of TTFT stays within {LEAVES:g} times its level at the "
    "lowest load, where an M/M/1 queue has the most throughput over delay (Kleinrock 1979). Queue blow-up: what "
    "is served while the queue is seen to grow; whatever comes beyond that waits."
)


def cliff_answer(cliff: Cliff) -> str:
    """The three marks in a sentence, each with its rate."""
    low = three_digits(cliff.low_load_s)
    if cliff.knee_per_s is None:
        knee = f"{cliff.name} has no knee up to {_rate(cliff.trials[-1].rate_per_s)}"
    else:
        knee = f"{cliff.name} has its knee at {_rate(cliff.knee_per_s)} (TTFT p99 {low} s at low load)"
    onset, blow_up = cliff.preemption_onset_per_s, cliff.blow_up_per_s
    return (
        f"{knee}; {'nothing is preempted' if onset is None else f'preemptions begin at {_rate(onset)}'}; "
        f"{'the queue does not grow' if blow_up is None else f'beyond {_rate(blow_up)} the queue grows without end'}."
        f"{_asked(cliff)}"
    )


def marks(cliff: Cliff) -> dict[str, float]:
    """The marks that there are, by what they are called."""
    found = {
        "knee": cliff.knee_per_s,
        "preemption onset": cliff.preemption_onset_per_s,
        BLOW_UP: cliff.blow_up_per_s,
    }
    return {name: rate for name, rate in found.items() if rate is not None}


def cliff_columns(cliff: Cliff) -> list[Column]:
    """A row a rate; the last column names the marks."""
    trials = cliff.trials
    at = marks(cliff)
    measures = (
        ("TTFT\np99 s", ("ttft_s", "p99"), 1.0),
        ("TPOT\np99 ms", ("tpot_s", "p99"), 1000.0),
        ("running", ("mean_running",), 1.0),
        ("KV used\n%", ("mean_share", "used"), 100.0),
        ("pre-\nempted", ("preemptions",), 1.0),
    )
    columns: list[Column] = [("rate\n/s", [three_digits(trial.rate_per_s) for trial in trials])]
    for heading, path, scale in measures:
        values = [trial.mean(*path) for trial in trials]
        columns.append((heading, ["-" if value is None else three_digits(value * scale) for value in values]))
    columns.append(("queue\ngrows %", ["-" if one.growth is None else f"{100 * one.growth:z.1f}" for one in trials]))
    seen = {name: rate for name, rate in at.items() if name != BLOW_UP}
    if cliff.saturated_from_per_s is not None:
        seen["queue grows"] = cliff.saturated_from_per_s
    names = [", ".join(name for name, rate in seen.items() if rate == trial.rate_per_s) for trial in trials]
    return [*columns, ("", names)]


def _rate(rate_per_s: float) -> str:
    return f"{three_digits(rate_per_s)}/s"


def _asked(cliff: Cliff) -> str:
    """Where the scenario's own rate lies."""
    rate, knee = cliff.traffic.rate_per_s, cliff.knee_per_s
    if rate is None or knee is None:
        return ""
    return f" The scenario's own {_rate(rate)} {'lies before the knee' if rate <= knee else 'lies beyond the knee'}."
