"""The serving side of a scenario: model, engine, allocator, pool, memory budget and step times."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from kvsim.scenario.schema.fields import MOST, Count, Page, Part, Share, Size, Timespan

# No fp32: no GPU of the catalogue has a data sheet rate for it, and nobody serves with it.
WeightsDtype = Literal["bf16", "fp16", "fp8", "int8", "int4"]
KvDtype = Literal["bf16", "fp16", "fp32", "fp8", "int8", "int4"]


class ModelSettings(Part):
    """The model that is served."""

    name: str = Field(min_length=1)
    """A name from `kvsim models`, or the path of a Hugging Face config.json, relative to the scenario's
    file."""
    weights_dtype: WeightsDtype = "bf16"
    """The number format of the weights."""
    kv_dtype: KvDtype = "bf16"
    """The number format of the KV cache."""


class FlushSettings(Part):
    """Times at which the prefix cache is emptied, as at a restart; give `at`, `every` or both."""

    at: Annotated[list[Timespan], Field(min_length=1, max_length=10_000)] | None = None
    """Moments of the run."""
    every: Timespan | None = None
    """Again and again, after so long."""
    busy: Literal["wait", "refuse"] = "wait"
    """What happens while requests use it, when no engine empties it: as soon as none does, or nothing at all, which is
    what vLLM and SGLang answer. SGLang wants nobody waiting either."""


class EngineSettings(Part):
    """The engine's rules: a profile from `kvsim engines`, and what is changed about it (absent: the
    profile's)."""

    profile: str = Field(default="vllm@0.33-sync", min_length=1)
    """Engine and release whose rules and defaults hold."""
    max_num_seqs: Count | None = None
    """The most sequences that run at once."""
    max_queued_requests: Count | None = None
    """The most sequences that wait; whoever comes while so many do is rejected at once, as servers do with 429 or 503;
    absent: any number may wait."""
    max_num_batched_tokens: Count | None = None
    """The token budget of a step."""
    max_model_len: Count | None = None
    """The most tokens of a request, prompt and output together; absent: what the model was trained for."""
    chunked_prefill: bool | None = None
    """Whether a prompt may be computed over several steps."""
    long_prefill_token_threshold: Annotated[int, Field(ge=0, le=MOST)] | None = None
    """The longest chunk of one prompt in a step, in tokens; 0: no limit but the budget."""
    reserve_full_isl: bool | None = None
    """Whether a request is admitted only when its whole prompt would fit, though it is computed in chunks."""
    scheduler: Literal["continuous", "prefill-first", "static", "vllm", "sglang"] | None = None
    """Who is in a step: everyone beside prompts in chunks, whole prompts before anybody decodes, or one batch after
    the other; `vllm`, `sglang`: by all the rules of these engines, request by request."""
    async_scheduling: bool | None = None
    """Whether a step is planned while the one before it is in flight (SGLang: overlap); schedulers `vllm` and `sglang`
    only."""
    policy: (
        Literal["fcfs", "priority", "lpm", "dfs-weight", "lof", "random", "hrrn", "shortest-prefill-first"] | None
    ) = None
    """Who of the waiting comes first; absent: who came first. `priority` is vLLM's, the others but `fcfs` SGLang's."""
    prefill_schedule_interval: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Scheduler `vllm`: prompts are computed in every so many steps only, while anybody decodes."""
    max_prefill_tokens: Count = 16384
    """Scheduler `sglang`: prompt tokens after which a pass takes in no more requests."""
    mixed_chunk: bool = False
    """Scheduler `sglang`: those that decode ride along in a pass of prompts."""
    schedule_conservativeness: Annotated[float, Field(gt=0, le=10)] = 1.0
    """Scheduler `sglang`: how much of their remaining output running requests are taken to need (times 0.7)."""
    kernel: Literal["ragged", "padded"] | None = None
    """How attention reads sequences of unequal length; `padded`: each as the longest, in a batch kept compact by
    copies."""
    preemption: Literal["recompute", "swap", "abort", "never"] | None = None
    """What happens when a running request cannot grow: a victim starts again or moves to host memory, the request
    fails, or admission rules it out."""
    victim: Literal["last", "lowest-priority", "largest", "least-work"] | None = None
    """Which running request is preempted; absent: the last admitted."""
    swap_space: Size | None = None
    """Host memory for swapped requests, per GPU."""
    flush: FlushSettings | None = None
    """When the prefix cache is emptied; absent: never."""
    enforce_eager: bool = False
    """Whether the engine captures no CUDA graphs: decode batches are not padded to captured sizes, each kernel is
    launched by the host, and graphs hold no memory (vLLM's `--enforce-eager`, SGLang's `--disable-cuda-graph`)."""


class PagedSettings(Part):
    """Blocks and block tables."""

    name: Literal["paged"] = "paged"
    block_size: Annotated[int, Field(ge=1, le=256)] | None = None
    """Slots of a block; absent: the engine profile's."""
    watermark: Annotated[float, Field(ge=0, lt=1)] | None = None
    """The share of the blocks that an admission leaves free; absent: the engine profile's."""
    prefix_caching: bool | None = None
    """Whether blocks keep their contents and whoever begins alike finds them; absent: the engine profile's."""
    free_queue: Literal["split", "tail"] = "split"
    """Where freed blocks queue while prefixes are cached; `split`: those of no known content come back first, as in
    vLLM since May 2026; `tail`: all of them last, as before."""


class RadixSettings(Part):
    """A tree of prefixes that were computed once, by SGLang's rules: whoever begins alike does not compute them
    again."""

    name: Literal["radix"]
    page_size: Count = 1
    """Slots of a page; what is shared, kept and evicted is whole pages."""
    prefix_caching: bool = True
    """Whether anything is kept; off is SGLang's `--disable-radix-cache`."""
    eviction: Literal["lru", "lfu", "fifo", "mru", "filo", "priority", "slru"] = "lru"
    """Which leaf of the tree goes first when slots are short; `slru`: what only one request brought before the
    rest."""


class ContiguousSettings(Part):
    """One region for each request, which grows with it."""

    name: Literal["contiguous"]
    fit: Literal["first", "best", "worst", "next", "buddy"] = "first"
    """Which hole a region is put into; `buddy`: into a block of power-of-two length."""
    growth: Literal["chunk", "double", "exact", "cat"] = "chunk"
    """How a region grows: by `chunk` slots, to twice the size, by what is needed, or by that and never in place,
    as tensors are concatenated."""
    # 256 is the growth step of a contiguous cache in use: `KVCache.step` of mlx-lm (mlx_lm/models/cache.py).
    chunk: Count = 256
    """Slots by which a region grows, with `growth: chunk`."""
    compaction: Literal["never", "on-failure"] = "never"
    """Whether all regions slide together where no hole fits although enough slots are free."""


class ReserveSettings(Part):
    """One region for each request, of its final size from admission on."""

    name: Literal["reserve"]
    size: Literal["max", "pow2", "oracle"] = "max"
    """What is reserved; `max`: the engine's max_model_len; `pow2`: the prompt and the true output rounded up to a
    power of two; `oracle`: what will be written."""
    fit: Literal["first", "best", "buddy"] = "first"
    """Which hole a region is put into; `buddy`: into a block of power-of-two length."""


class VirtualSettings(Part):
    """Contiguous virtual addresses whose pages of physical memory are mapped as a request grows."""

    name: Literal["virtual"]
    # CUDA's own granularity; smaller pages need vAttention's change to the driver.
    page: Page = 2 * 2**20
    """The size of a page, from 64KiB to 2MiB; one is mapped for K and for V of each layer at a time."""


class NoCacheSettings(Part):
    """No KV at all: every step computes the whole context of every request again."""

    name: Literal["no-cache"]


AllocatorSettings = Annotated[
    PagedSettings | RadixSettings | ContiguousSettings | ReserveSettings | VirtualSettings | NoCacheSettings,
    Field(discriminator="name"),
]


class PoolSettings(Part):
    """The size of the KV pool given outright, in exactly one way; it beats what the GPU's memory would
    give."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    blocks: Count | None = None
    """Usable blocks, of the paged allocator's block size; of the virtual one, page rows; else, the engine profile's."""
    tokens: Count | None = None
    """Slots, one token's KV each."""
    memory: Size | None = None
    """Memory for KV, per GPU."""


class PlacementSettings(Part):
    """Where the KV of live requests lies: `pool` and `capacity` say what the GPU holds, and the rest is on the
    host."""

    host_share: Annotated[Share, Field(le=0.99)] = 0.0
    """The part of each request's KV in host memory, read over the host link in every step; the pool grows by it: at 0.5
    to twice the tokens. Allocators `paged` and `radix` only."""
    overlapped: bool = True
    """Whether the host link reads while the GPU computes: a step takes the longer of the two, else both."""


class CapacitySettings(Part):
    """The GPU's memory budget, from which the pool follows where `pool` is absent. Sizes absent here are estimated,
    as by `kvsim capacity`."""

    gpu_memory_utilization: Share | None = None
    """The share of the GPU's memory that the engine may take; absent: the engine profile's."""
    activation: Size | None = None
    """The workspace of a forward pass."""
    non_torch: Size | None = None
    """What driver, context and communication libraries hold."""
    cuda_graphs: Size | None = None
    """What captured CUDA graphs hold."""


class TimingSettings(Part):
    """How long a step takes: `roofline` from the data sheet, `calibrated` from fits to published measurements, or to
    those of your own GPU.

    The keys beside `name` and `file` are parameters of the roofline, as numbers from 0 on.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[float, Field(ge=0)]] = Field(init=False)

    name: Literal["roofline", "calibrated"] = "roofline"
    file: Annotated[str, Field(min_length=1)] | None = None
    """Of `calibrated`: a calibration that `kvsim calibrate fit` wrote, relative to the scenario's file; absent: the one
    that comes with kvsim."""

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters given beside the name."""
        return dict(self.__pydantic_extra__ or {})


class PriceSettings(Part):
    """What the GPUs cost; every run says what it costs an hour, and for a million output tokens."""

    usd_per_gpu_hour: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """US dollars for an hour of one GPU; absent: the middle of the catalogue's range."""
