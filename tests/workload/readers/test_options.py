"""What a reader must be told: columns, units, tokenizers; and traces that no replay by times can take."""

import pytest

from kvsim.errors import InputError
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic
from kvsim.workload.trace.recording import Recording
from tests.workload.readers.forms import FORMS, lines
from tests.workload.readers.messages import message


@pytest.mark.parametrize("name", ["weka", "lengths", "mooncake", "applied-compute", "dynamo-agentic"])
def test_a_call_without_a_time_of_its_own_cannot_be_replayed_by_times(tmp_path, name):
    form = FORMS[name]
    with pytest.raises(InputError, match="time"):
        list(TraceTraffic(form.write(tmp_path), options=form.options).rows(Streams(0)))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_any_table_will_do_once_told_which_column_is_which(tmp_path, kind):
    rows = [{"when": 1500, "in": 33, "out": 4, "who": "a"}, {"when": 2000.5, "in": 48, "out": 5, "who": None}]
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        path.write_text(lines(*rows))
    else:
        path.write_text("when,in,out,who\n1500,33,4,a\n2000.5,48,5,\n")
    options = ReadOptions(columns={"time": "when", "prompt": "in", "output": "out", "tenant": "who"}, time_unit="ms")
    first, second = Recording(path, format="table", options=options)
    assert (first.arrival_ps, first.prompt_tokens, first.output_tokens, first.tenant) == (1_500 * 10**9, 33, 4, "a")
    assert (second.arrival_ps, second.tenant) == (2_000_500 * 10**6, "")


def test_a_column_that_a_map_names_and_a_table_lacks_is_told_with_those_it_has(write):
    options = ReadOptions(columns={"prompt": "tokens_in"})
    text = message(write("a,b\n1,2\n"), format="table", options=options)
    assert text.startswith("column tokens_in (prompt) is missing; the columns are a, b; say which is which")


def test_a_tokenizer_counts_and_tells_what_prompts_share(write):
    path = write(lines({"prompt": "one two three"}, {"prompt": "one two four"}))
    options = ReadOptions(tokenizer=str.split, output_tokens=1, block_tokens=2)
    first, second = Recording(path, options=options)
    assert (first.prompt_tokens, second.prompt_tokens) == (3, 3)
    assert first.blocks[0] == second.blocks[0]
    assert first.blocks[1] != second.blocks[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"block_tokens": 0}, "block_tokens: "),
        ({"prompts": "some"}, "prompts: must be whole or delta"),
        ({"failed": "hide"}, "failed: must be drop or keep"),
        ({"chars_per_token": float("nan")}, "chars_per_token: "),
        ({"chars_per_token": 4, "tokenizer": str.split}, "tokenizer: give either"),
        ({"time_unit": "h"}, "time_unit: must be one of s, ms, us, ns"),
        ({"columns": {"size": "x"}}, "columns: must name one of time, prompt"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(options, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        ReadOptions(**options)
