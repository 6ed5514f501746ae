"""Trace readers: one file per format, found by name or by how the trace begins.

`tables` holds CSV and other tables, `hashes` lines with block ids, `sessions` and `texts` what their names say;
`clients` describes populations, which are no traces. `files` opens, `values` reads numbers; `request` is what all
become.
"""

from kvsim.errors import InputError
from kvsim.workload.readers.clients.servegen import is_population
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.hashes.bailian import BailianReader
from kvsim.workload.readers.hashes.dynamo import DynamoReader
from kvsim.workload.readers.hashes.dynamo_agentic import DynamoAgenticReader
from kvsim.workload.readers.hashes.llmservingsim import LlmServingSimReader
from kvsim.workload.readers.hashes.mooncake import MooncakeReader
from kvsim.workload.readers.hashes.servegen_offline import ServeGenOfflineReader
from kvsim.workload.readers.interface import Reader, shown
from kvsim.workload.readers.sessions.aiperf_records import AiperfRecordsReader
from kvsim.workload.readers.sessions.applied_compute import AppliedComputeReader
from kvsim.workload.readers.sessions.benchmark import BenchmarkReader
from kvsim.workload.readers.sessions.copilot import CopilotReader
from kvsim.workload.readers.sessions.guidellm import GuidellmReader
from kvsim.workload.readers.sessions.tracelab import TraceLabReader
from kvsim.workload.readers.sessions.weka import WekaReader
from kvsim.workload.readers.tables.azure import AzureReader
from kvsim.workload.readers.tables.blis import BlisReader
from kvsim.workload.readers.tables.burstgpt import BurstGptReader
from kvsim.workload.readers.tables.mapped import TableReader
from kvsim.workload.readers.tables.splitwise import SplitwiseReader
from kvsim.workload.readers.tables.vidur import LengthsReader, RecordedRunReader, VidurReader
from kvsim.workload.readers.texts.aiperf_turns import AiperfTurnsReader
from kvsim.workload.readers.texts.otel import OtelReader
from kvsim.workload.readers.texts.prompts import AiperfSingleTurnReader, OpenAiBatchReader, VllmCustomReader
from kvsim.workload.readers.texts.sharegpt import ShareGptReader

READERS: dict[str, Reader] = {
    reader.format: reader
    for reader in (
        *(AzureReader(), BurstGptReader(), VidurReader(), LengthsReader(), SplitwiseReader(), BlisReader()),
        RecordedRunReader(),
        *(MooncakeReader(), BailianReader(), ServeGenOfflineReader(), LlmServingSimReader()),
        *(DynamoReader(), DynamoAgenticReader()),
        *(WekaReader(), CopilotReader(), TraceLabReader(), AppliedComputeReader(), BenchmarkReader()),
        *(AiperfRecordsReader(), GuidellmReader()),
        *(OtelReader(), ShareGptReader(), AiperfTurnsReader(), AiperfSingleTurnReader()),
        *(VllmCustomReader(), OpenAiBatchReader(), TableReader()),
    )
}
"""Readers by the name of their format, in the order in which they are asked whether a trace is theirs."""


def detect(head: Head, trace: str) -> Reader:
    """The reader of the format that begins so; InputError naming all formats if none does."""
    for reader in READERS.values():
        if reader.recognises(head):
            return reader
    if is_population(head):
        raise InputError(
            f"{trace}: describes clients, not requests (ServeGen); `kvsim trace inspect` shows their rates and lengths"
        )
    known = f"known formats: {', '.join(READERS)} (for a table of other columns, say which is which: --columns)"
    if head.kind == "text":
        seen = f"the first line is {shown(head.line.strip())}, no header of a known format"
    else:
        seen = f"it is of no known format: {head.kind} with {shown(', '.join(head.names))}"
    raise InputError(f"{trace}: {seen}; {known}")
