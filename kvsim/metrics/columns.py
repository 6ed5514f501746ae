"""The tables of a run: every column with its type and, for the reader of the run folder, its meaning and unit."""

from collections.abc import Mapping
from typing import NamedTuple

from kvsim.content import LAYERS
from kvsim.step import CLASSES


class Column(NamedTuple):
    """One column: "int64", "double" or "string", and what it holds."""

    type: str
    meaning: str


class TableForm(NamedTuple):
    """One table: what a row is, and its columns by name."""

    row: str
    columns: Mapping[str, Column]


_CLASS_MEANINGS = {
    "used": "holds the valid KV of a live request",
    "reserved": "given to a live request that will still write it",
    "internal": "given to a live request that will never write it",
    "dead": "written and no longer needed, not yet given back",
    "moving": "target of a copy in flight",
    "cached": "a reusable prefix that no live request owns",
    "external": "free, but lost to the shape of the holes",
    "free": "free and usable",
}

_LAYER_MEANINGS = {
    "system": "all requests have",
    "group": "some requests have: an application, a document",
    "session": "the turns of its conversation have",
    "own": "came up with one request alone: an earlier output, or the prompt for another sample of it",
    "unknown": "are shared in a layer that nobody told",
}

_END_MEANINGS = {
    "finished": "finished",
    "rejected": "were rejected",
    "cancelled": "were cancelled by their clients",
    "aborted": "were aborted",
    "unfinished": "had not ended at the horizon",
}

TABLES: Mapping[str, TableForm] = {
    "requests": TableForm(
        "one row per request that arrived, in the order of id; empty cells: it never got that far",
        {
            "id": Column("int64", "number of the request, from 0"),
            "arrival_s": Column("double", "when it arrived, seconds"),
            "prompt_tokens": Column("int64", "length of its prompt, tokens"),
            "output_tokens": Column("int64", "tokens it emits if nothing stops it, limits applied"),
            "max_tokens": Column("int64", "the client's limit on the output, tokens; empty: none"),
            "priority": Column("int64", "its priority: victim lowest-priority preempts the highest number first"),
            "tenant": Column("string", "whose it is; empty: nobody said"),
            "slo_class": Column("string", "the class of service of its client; empty: nobody said"),
            "session": Column("int64", "number of the session that it is a turn of; empty: it stands alone"),
            "turn": Column("int64", "which turn of its session, or of an agent's part of it, from 0; empty: none"),
            "first_scheduled_s": Column("double", "start of the first step that computed any of it, seconds"),
            "first_token_s": Column("double", "when its first output token came, seconds"),
            "end_s": Column("double", "when it ended, seconds"),
            "end": Column("string", "finished, rejected, cancelled, aborted or unfinished"),
            "finish_reason": Column("string", "what ended its output: eos, max_tokens or max_model_len"),
            "generated_tokens": Column("int64", "output tokens it really got, tokens"),
            "preemptions": Column("int64", "how often it lost its memory while running"),
            "lost_tokens": Column("int64", "tokens whose KV was given up at its preemptions, tokens"),
            "recomputed_tokens": Column("int64", "tokens computed that it had held before, tokens"),
            "swapped_tokens": Column("int64", "tokens whose KV was moved to host memory at its preemptions, tokens"),
            "hit_tokens": Column("int64", "prompt tokens found cached at its first admission, tokens"),
            "rehit_tokens": Column("int64", "tokens found cached when it came back after preemptions, tokens"),
            **{f"hit_{layer}_tokens": Column("int64", f"those of `hit_tokens` that {_LAYER_MEANINGS[layer]}, tokens")
               for layer in LAYERS},
            "regret_tokens": Column("int64", "prompt tokens not found at its first admission although they had been "
                                    "cached: they, or something before them, had been evicted; tokens; empty: not "
                                    "counted, as under a radix tree"),
            "samples": Column("int64", "outputs asked for the one prompt; tokens and counts are sums over them"),
            "queue_s": Column("double", "arrival to first scheduled, seconds"),
            "prefill_s": Column("double", "first scheduled to first output token, seconds"),
            "ttft_s": Column("double", "time to first token: queue + prefill, seconds"),
            "tpot_s": Column("double", "time per output token after the first, seconds; finished requests only"),
            "e2e_s": Column("double", "arrival to end, seconds"),
            "replica": Column("int64", "number of the replica that it came to, from 0; 0 where there is one"),
        },
    ),
    "steps": TableForm(
        "one row per step, or per leap over several equal ones; counts of tokens are sums over them",
        {
            "start_s": Column("double", "start of the first of the steps, seconds"),
            "duration_s": Column("double", "how long all of them took, seconds"),
            "steps": Column("int64", "how many steps the row stands for; 0: cut by the horizon"),
            "prefill_tokens": Column("int64", "prompt tokens computed, tokens"),
            "decode_tokens": Column("int64", "output tokens decoded, tokens"),
            "padding_tokens": Column("int64", "positions computed that hold no token of anybody, tokens"),
            "context_tokens": Column("int64", "KV read by decoding requests, summed over requests and steps, tokens"),
            "running": Column("int64", "sequences running: requests, or samples of them"),
            "waiting": Column("int64", "sequences waiting"),
            "request_s": Column("double", "requests in the system, integrated over them, request-seconds"),
        },
    ),
    "memory": TableForm(
        "the slots of the pool in each class from a row's time to the next row's; they add up to the pool. "
        "A slot holds the KV of one token. Inside a leap `used` grows evenly",
        {
            "time_s": Column("double", "from when on the row holds, seconds"),
            **{name: Column("int64", f"{_CLASS_MEANINGS[name]}, slots") for name in CLASSES},
            "running": Column("int64", "sequences running: requests, or samples of them"),
            "waiting": Column("int64", "sequences waiting"),
            "host": Column("int64", "host memory that swapped requests take, slots"),
            "shared": Column("int64", "slots that sharing saves, beside the classes, slots"),
            "duplicate": Column("int64", "slots whose content another live sample of the request also holds, slots"),
            "largest_hole": Column("int64", "the largest run of free slots, slots"),
            "fragmentation": Column("double", "1 - largest hole / all free slots; empty: no slot is free, or the "
                                    "allocator has no holes"),
            "unusable": Column("double", "share of all free slots that the head of the queue cannot use for their "
                               "shape; empty: nothing waits, or as above"),
        },
    ),
    "events": TableForm(
        "one row per episode in which a request could not have its slots at once, and per request refused",
        {
            "time_s": Column("double", "when the episode began, seconds"),
            "request": Column("int64", "id of the request"),
            "cause": Column("string", "capacity (too few free slots), fragmentation (enough, but in holes too small), "
                            "never (more than there will ever be), outgrown (alone and still too large), activation, "
                            "queue (as many waited as may)"),
            "outcome": Column("string", "wait, preempt, compact, reject or abort"),
            "need_tokens": Column("int64", "slots it needed, tokens"),
            "free_tokens": Column("int64", "slots that were free, tokens"),
            "largest_hole_tokens": Column("int64", "slots of the largest hole, tokens"),
        },
    ),
    "preemptions": TableForm(
        "one row per preemption",
        {
            "time_s": Column("double", "when a running request lost its memory, seconds"),
            "resumed_s": Column("double", "when it ran again, seconds; empty: never"),
            "request": Column("int64", "id of the request"),
            "lost_tokens": Column("int64", "tokens whose KV was given up, tokens"),
            "swapped_tokens": Column("int64", "tokens whose KV was moved to host memory instead, tokens"),
        },
    ),
    "addresses": TableForm(
        "one row per change of where things lie: from then on a run of slots is of this class, for this request; "
        "of two rows of one time the later one holds, and before the first one everything is free. A slot that several "
        "samples or requests share counts to the first of them that holds it",
        {
            "time_s": Column("double", "from when on, seconds"),
            "start": Column("int64", "address of the first of the slots, slots from the start of the pool"),
            "length": Column("int64", "how many they are, slots"),
            "request": Column("int64", "id of the request; empty: nobody's"),
            "sample": Column("int64", "which of its samples, a number from 0; empty: nobody's"),
            "class": Column("string", f"the class of the slots, by name: {', '.join(CLASSES)}"),
        },
    ),
    "prompts": TableForm(
        "one row per run of a prompt, in the order in which requests came: tokens one behind the other in one stream. "
        "Streams are endless and unlike each other, so that prompts share a prefix exactly as far as their runs agree",
        {
            "request": Column("int64", "id of the request"),
            "start": Column("int64", "tokens of the prompt before the run, tokens"),
            "stream": Column("int64", "number of the stream; below 0: nobody else's but the request's and its turns'"),
            "offset": Column("int64", "tokens of the stream before the run, tokens"),
            "tokens": Column("int64", "length of the run, tokens"),
        },
    ),
    "replicas": TableForm(
        "one row per replica of a fleet, all over the window of the whole",
        {
            "replica": Column("int64", "number of the replica, from 0"),
            "paid_s": Column("double", "for how long of the whole run it had to be there, start-up and emptying "
                             "included, seconds"),
            **{end: Column("int64", f"requests that came to it and {how}") for end, how in _END_MEANINGS.items()},
            "preemptions": Column("int64", "how often a running request lost its memory"),
            "hit_tokens": Column("int64", "prompt tokens found cached at first admission, tokens"),
            "mean_running": Column("double", "sequences running, mean over time"),
            "mean_waiting": Column("double", "requests waiting, mean over time"),
            "used_share": Column("double", "share of its pool that holds valid KV of live requests, mean over time"),
            "cached_share": Column("double", "share of its pool that is a prefix nobody owns, mean over time"),
            "ttft_mean_s": Column("double", "time to first token, mean, seconds; empty: nobody got one"),
            "ttft_p99_s": Column("double", "time to first token, 99th percentile, seconds"),
            "tpot_mean_s": Column("double", "time per output token after the first, mean, seconds"),
            "output_tokens_per_s": Column("double", "output tokens emitted, over seconds"),
        },
    ),
}  # fmt: skip
"""The tables of a run by name; a missing value is None, in a frame NaN or NA, in Parquet null."""

ON_REQUEST = ("addresses", "prompts", "replicas")
"""Tables that a run has only if it was asked for them, or if it is one of a fleet."""

TYPES: Mapping[str, Mapping[str, str]] = {
    table: {name: column.type for name, column in form.columns.items()} for table, form in TABLES.items()
}
"""Table to column to type, for whoever only stores them."""

COLUMNS: Mapping[str, Mapping[str, str]] = {
    table: columns for table, columns in TYPES.items() if table not in ON_REQUEST
}
"""The same for the tables that every run has."""
