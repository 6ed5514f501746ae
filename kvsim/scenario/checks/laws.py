"""Whether a law of lengths or of arrivals says all it needs, and nothing that means nothing to it."""

from collections.abc import Iterator

from kvsim.scenario.messages import MISSING, Mistake, alternatives
from kvsim.scenario.reading.loading import Plain


def arrival_mistakes(arrivals: Plain, workload: Plain) -> Iterator[Mistake]:
    """Yield what an arrival process lacks, or is given in vain."""
    from kvsim.scenario.schema.generated.arrivals import PRESETS, PROCESSES, ArrivalSettings

    key = "workload.arrivals"
    needed: tuple[str, ...]
    allowed: tuple[str, ...]
    process = arrivals.get("process", "poisson")
    if process in PRESETS:
        from kvsim.workload.presets import arrival_preset

        of = arrival_preset(process)["process"]
        needed = ()
        allowed = tuple(word for word in PROCESSES[of][1] if word not in ("moves", "theta", "each"))
    elif isinstance(process, str) and process in PROCESSES:
        needed, allowed = PROCESSES[process]
    else:
        return
    if process == "clients" and arrivals.get("each", "poisson") != "poisson":
        needed = (*needed, "cv")
    for word in needed:
        if word not in arrivals:
            yield Mistake(f"{key}.{word}", MISSING, "is missing", f"{process} arrivals need {_EXAMPLES[word]}")
    for word in arrivals:
        if word in ArrivalSettings.model_fields and word not in (*needed, *allowed, "process"):
            remedy = "write process: gamma" if word == "cv" else f"it is for others than {process}"
            known = ", ".join((*needed, *allowed))
            remedy = f"remove it, or {remedy}" if not known else f"{process} arrivals take {known}"
            problem = f"means nothing to {process} arrivals"
            yield Mistake(f"{key}.{word}", arrivals[word], problem, remedy)


_EXAMPLES = {
    "cv": "cv, for example cv: 2",
    "rates": "the rate in each state, for example rates: [0/s, 10/s]",
    "sojourns": "the mean duration of each state, for example sojourns: [20s, 8s]",
    "on": "the mean duration of a burst, for example on: 8s",
    "off": "the mean pause between bursts, for example off: 20s",
    "profile": "24 values, one an hour; or a preset, for example process: diurnal-large",
    "factor": "how many times the usual rate, for example factor: 5",
    "every": "the time from one spike to the next, for example every: 10min",
    "spike": "the duration of a spike, for example spike: 30s",
    "ramp": "the time to the full rate, for example ramp: 5min",
    "stages": "a list, for example stages: [{rate: 2/s, duration: 60s}, {rate: 8/s, duration: 60s}]",
    "clients": "their number, for example clients: 50",
}


def length_mistakes(lengths: Plain, key: str) -> Iterator[Mistake]:
    """Yield what a length distribution lacks, or is given in vain."""
    from kvsim.scenario.schema.generated.lengths import DISTRIBUTIONS, LengthSettings

    name = lengths.get("distribution")
    if not isinstance(name, str) or name not in DISTRIBUTIONS:
        return
    needed, allowed = DISTRIBUTIONS[name]
    found = False
    for group in needed:
        given = [word for word in group if word in lengths]
        if not given:
            found = True
            yield Mistake(f"{key}.{group[0]}", MISSING, "is missing", f"{name} lengths need {alternatives(group)}")
        for word in given[1:]:
            found = True
            yield Mistake(
                f"{key}.{word}",
                lengths[word],
                f"is given beside {given[0]}",
                f"keep one of {alternatives(group)}",
            )
    known = {word for group in needed for word in group} | set(allowed)
    for word in lengths:
        if word in LengthSettings.model_fields and word not in known and word != "distribution":
            remedy = f"{name} lengths take {', '.join(sorted(known))}"
            yield Mistake(f"{key}.{word}", lengths[word], f"means nothing to {name} lengths", remedy)
    low, high = lengths.get("min"), lengths.get("max")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield Mistake(f"{key}.min", low, f"is above max, {high}", "min must be at most max")
        return
    if name == "mixture":
        parts = lengths.get("parts")
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            return
        for part in parts:
            inside = list(length_mistakes(part, f"{key}.parts"))
            yield from inside
            found = found or bool(inside)
    if not found and set(lengths) <= known | {"distribution"}:
        yield from _law(lengths, key)


def _law(lengths: Plain, key: str) -> Iterator[Mistake]:
    """What only the law itself can tell of its parameters, such as how long a length may be."""
    from kvsim.workload.lengths import law_of

    try:
        law_of(lengths)
    except ValueError as error:
        word, colon, problem = str(error).partition(": ")
        yield Mistake(f"{key}.{word}" if colon else key, MISSING, problem if colon else word)
    except (TypeError, KeyError):  # of a part of a mixture; pydantic tells what is wrong with it
        return
