"""What a benchmark client measured: detailed results of the serving benchmarks of vLLM and SGLang.

vLLM and SGLang write one object per run with a list for each quantity: `input_lens`, `output_lens`, and where asked for
`start_times` (vLLM, seconds). A failed call has an output of 0 tokens.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, ClassVar

from kvsim.workload.readers.base import FAILED, BaseReader
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.json_values import document_objects
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.request import TraceRequest
from kvsim.workload.readers.values.times import ps_of

_PROMPTS, _OUTPUTS, _STARTS = "input_lens", "output_lens", "start_times"
_SECONDS = 0


class BenchmarkReader(BaseReader):
    """Runs of a file stand one behind the other; a row is a call."""

    format: ClassVar[str] = "serving-benchmark"
    columns: ClassVar[tuple[str, ...]] = (_PROMPTS, _OUTPUTS)
    time_unit: ClassVar[str] = "seconds"

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Calls in the order in which they were sent."""
        for run in document_objects(source.lines(), intake):
            lists = _lists(run, intake)
            intake.row -= 1
            for prompt_tokens, output_tokens, start in lists or ():
                intake.row += 1
                row = {_PROMPTS: prompt_tokens, _OUTPUTS: output_tokens}
                if output_tokens == 0 and intake.options.failed == "drop":
                    intake.drop(FAILED)
                    continue
                failed = output_tokens == 0
                prompt = json_lines.read_count(row, _PROMPTS, "prompt", intake)
                output = 0 if failed or not prompt else json_lines.read_count(row, _OUTPUTS, "output", intake)
                if prompt and (output or failed):
                    time_ps = ps_of(start, _SECONDS) if isinstance(start, int | Decimal) else None
                    yield TraceRequest(str(intake.row), prompt, output, time_ps, failed=failed)


def _lists(run: dict[str, Any], intake: Intake) -> list[tuple[Any, Any, Any]] | None:
    prompts, outputs, starts = run.get(_PROMPTS), run.get(_OUTPUTS), run.get(_STARTS)
    if not isinstance(prompts, list) or not isinstance(outputs, list) or len(prompts) != len(outputs):
        right = "keep the lists of a run with detailed results (--save-detailed, --output-details)"
        intake.bad(_OUTPUTS, outputs, "no two lists of the same length", right)
        return None
    if starts is None:
        starts = [None] * len(prompts)
    if not isinstance(starts, list) or len(starts) != len(prompts):
        intake.bad(_STARTS, starts, f"no list of {len(prompts)} times", "write one time a call")
        return None
    return list(zip(prompts, outputs, starts, strict=True))
