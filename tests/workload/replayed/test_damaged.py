"""Damaged traces in a loop: they are played to the end, or refused in one line that names the file."""

import json
import random
from itertools import count

import pytest

from kvsim.errors import InputError, PastClockError
from kvsim.workload.replayed.traffic import ReplayTraffic
from kvsim.workload.sessions.laws import ClientLoop
from kvsim.workload.stream import Workload
from tests.workload.readers.forms import FORMS
from tests.workload.readers.test_fuzz import PRISTINE, damaged
from tests.workload.replayed.engines import served

IN_SESSIONS = ("mooncake", "bailian", "dynamo", "dynamo-agentic", "weka", "copilot", "tracelab", "blis", "burstgpt",
               "otel", "aiperf-turns", "aiperf-records", "guidellm", "llmservingsim", "table")  # fmt: skip


@pytest.mark.parametrize("name", IN_SESSIONS)
def test_a_damaged_trace_is_played_to_its_end_or_refused_in_one_line(tmp_path, name):
    data, options = PRISTINE[name]
    draws, path, numbers = random.Random(f"{name} played"), tmp_path / "trace", count()
    for _ in range(25):
        path.write_bytes(damaged(data, draws))
        loop = {"clients": ClientLoop(clients=2)} if next(numbers) % 2 else {}
        on_bad_row = draws.choice(["error", "drop"])
        try:
            traffic = ReplayTraffic(
                path, options=options, on_bad_row=on_bad_row, identities=True, format=name, answers="repeated", **loop
            )
            found = served(Workload(traffic))
        except PastClockError:
            continue
        except InputError as error:
            text = str(error)
            assert text.startswith(str(path)), text
            assert "\n" not in text
            continue
        assert len(found) == traffic.survey().rows_kept


def test_every_form_that_tells_sessions_is_among_these():
    linked = {name for name, form in FORMS.items() if '"session' in form.text or "chat_id" in form.text}
    assert linked - {"sharegpt", "aiperf-single-turn", "aiperf-multi-turn"} <= set(IN_SESSIONS)


def test_what_waits_for_a_row_that_was_dropped_is_left_out_and_counted(tmp_path):
    rows = [
        {"request_id": "a", "play_id": "p", "session_id": "s", "input_length": 4, "output_length": 1, "hash_ids": [1],
         "dependencies": [], "not_before_ms": "soon"},
        {"request_id": "b", "play_id": "p", "session_id": "s", "input_length": 4, "output_length": 1, "hash_ids": [1],
         "dependencies": [{"request_id": "a", "trigger": "completion", "relation": "sequence", "delay_ms": 0}]},
        {"request_id": "c", "play_id": "q", "session_id": "s", "input_length": 4, "output_length": 1, "hash_ids": [1],
         "dependencies": [], "not_before_ms": 0},
    ]  # fmt: skip
    header = {"schema": "dynamo.agentic_mooncake", "block_size": 4, "hash_id_scope": "local"}
    path = tmp_path / "plays.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (header, *rows)))
    traffic = ReplayTraffic(path, on_bad_row="drop", clients=ClientLoop(clients=1))
    assert len(served(Workload(traffic))) == 1
    assert traffic.survey().dropped["a call that waits for one that was left out"] == 1
    assert traffic.survey().rows_kept == 1
