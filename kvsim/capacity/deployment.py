"""What is asked: a model on GPUs under an engine's settings, with everything that is already known given."""

from dataclasses import dataclass, field
from functools import cached_property

from kvsim.capacity.overheads.releases import Release
from kvsim.capacity.span import Span
from kvsim.capacity.weights.loaded import VOCAB_PADDING
from kvsim.capacity.weights.quantization import Scheme
from kvsim.catalog.gpus import Gpu
from kvsim.catalog.models import Model
from kvsim.catalog.weights import dtype_bits
from kvsim.errors import InputError
from kvsim.units import GIB


@dataclass(frozen=True, kw_only=True)
class Given:
    """What is known and replaces the planner's estimate, in bytes on one rank; None: estimated."""

    weights: Span | None = None
    activation: Span | None = None
    non_torch: Span | None = None
    cuda_graphs: Span | None = None
    kv_memory: Span | None = None
    num_gpu_blocks: int | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One engine start. Settings left at None have the release's default.

    `total` is the memory of one GPU as CUDA reports it. `scheme` is the weights' quantisation, `dtype` what the engine
    computes in, `kv_dtype` the KV cache's ("auto": as dtype). `attention_data_parallel`: the data-parallel ranks hold
    attention whole and KV of their own requests, the tensor-parallel ones share the rest. `decode_context_parallel`
    ranks share the tokens of a request. `hybrid_groups`: whether layers of different kinds may be kept in groups.
    `most_tokens` caps the pool. `draft` proposes `draft_tokens` tokens a step. `lora_slots` adapters of
    `lora_rank` lie ready. `offload_bytes` of weights are kept on the host, `swap_bytes` of host memory take swapped
    blocks, `used_bytes` of the card belong to other processes. Raises InputError for settings that cannot be.
    """

    model: Model
    engine: Release
    total: Span
    gpu: Gpu | None = None
    dtype: str = "bf16"
    scheme: Scheme | None = None
    kv_dtype: str = "auto"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    attention_data_parallel: bool = False
    decode_context_parallel: int = 1
    utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    enforce_eager: bool = False
    hybrid_groups: bool = True
    most_tokens: int | None = None
    draft: Model | None = None
    draft_tokens: int = 0
    lora_slots: int = 0
    lora_rank: int = 16
    offload_bytes: int = 0
    swap_bytes: int = 0
    used_bytes: int = 0
    given: Given = field(default_factory=Given)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"gpu_memory_utilization is {self.share:g}; it must be a share above 0, at most 1")
        try:
            dtype_bits(self.dtype, "dtype")
            dtype_bits(self.cache_dtype, "kv_cache_dtype")
        except ValueError as error:
            raise InputError(str(error)) from None
        for name, value in {
            "tensor_parallel": self.tensor_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            "data_parallel": self.data_parallel,
            "decode_context_parallel": self.decode_context_parallel,
            "max_model_len": self.longest,
            "max_num_seqs": self.sequences,
            "max_num_batched_tokens": self.step_tokens,
            "block_size": self.block,
        }.items():
            if value < 1:
                raise InputError(f"{name} is {value}; it must be at least 1")
        self._check_ranks()
        self._check_context_ranks()
        if self.pipeline_parallel > self.model.layers:
            raise InputError(
                f"pipeline_parallel is {self.pipeline_parallel}; {self.model.name} has {self.model.layers} layers, and "
                "each stage needs one"
            )

    def _check_ranks(self) -> None:
        model, ranks = self.model, self.tensor_parallel
        if self.attention_data_parallel and ranks % self.data_parallel:
            raise InputError(f"data_parallel: {self.data_parallel} does not divide tensor_parallel {ranks}")
        if model.heads % self.attention_ranks:
            raise InputError(
                f"tensor_parallel: {self.attention_ranks} does not divide the {model.heads} heads of {model.name}; "
                f"these do: {', '.join(str(n) for n in range(1, model.heads + 1) if not model.heads % n)}"
            )
        padded = -(-model.vocab // VOCAB_PADDING) * VOCAB_PADDING
        if padded % ranks and not self.engine.rules.get("whole_tables"):
            raise InputError(
                f"tensor_parallel: {ranks} does not divide the vocabulary of {model.name}, {model.vocab:,} padded to "
                f"{padded:,}"
            )
        for kv_heads in (model.full_kv_heads, model.window_kv_heads):
            if kv_heads and kv_heads % self.attention_ranks and self.attention_ranks % kv_heads:
                raise InputError(
                    f"tensor_parallel: {ranks} neither divides nor is a multiple of the {kv_heads} KV heads of "
                    f"{model.name}"
                )

    def _check_context_ranks(self) -> None:
        """vLLM's conditions: context-parallel ranks are tensor-parallel ones that would hold the same KV heads."""
        ranks, kv_heads = self.decode_context_parallel, self.model.full_kv_heads
        same = self.tensor_parallel if self.model.is_mla or not kv_heads else self.tensor_parallel // kv_heads
        if ranks > 1 and (self.tensor_parallel % ranks or ranks > same):
            raise InputError(
                f"decode_context_parallel: {ranks} must divide tensor_parallel {self.tensor_parallel}, and be at most "
                f"the {same} ranks that hold the same KV heads of {self.model.name}"
            )

    @property
    def share(self) -> float:
        """The share of the card that the engine may use (SGLang: for weights and KV)."""
        if self.utilization is not None:
            return self.utilization
        stated: float | None = self.engine.rules.get("utilization")
        share = stated if stated is not None else self._sglang_share
        return share * float(self.engine.rules.get("multimodal_share", 1)) if self.model.other_params_b else share

    @property
    def _sglang_share(self) -> float:
        """`ServerArgs` of SGLang: what a step may need is left free."""
        tokens = self.max_num_batched_tokens or self.engine.rules["max_num_batched_tokens"]
        reserve_mib = 512 + 1.5 * max(tokens, 2048) + 128 * self.tensor_parallel * self.pipeline_parallel
        reserve = (reserve_mib + 2 * self.sequences) * 2**20
        if self.total.best > 60 * GIB:
            reserve = max(reserve, 10 * GIB)
        return float(round(max(0.01, 1 - reserve / self.total.best), 3))

    @property
    def longest(self) -> int:
        """The most tokens of one request."""
        return self.model.max_context if self.max_model_len is None else self.max_model_len

    @cached_property
    def sequences(self) -> int:
        """The most sequences of a step."""
        if self.max_num_seqs is not None:
            return self.max_num_seqs
        return self.engine.limit("max_num_seqs", self.gpu, self.total.best) or 256

    @cached_property
    def step_tokens(self) -> int:
        """The most tokens of a step; without chunked prefill a whole prompt, 2,048 at least.

        Before V1, vLLM chunks prompts by default only where they may be long.
        """
        if self.max_num_batched_tokens is not None:
            return self.max_num_batched_tokens
        stated = self.engine.limit("max_num_batched_tokens", self.gpu, self.total.best)
        if stated is not None:
            return stated
        chunked = self.longest > self.engine.rules.get("chunked_beyond", self.longest)
        return int(self.engine.rules["chunk"]) if chunked else max(2048, self.longest)

    @property
    def block(self) -> int:
        """Tokens of a block as the settings say; a backend may force more."""
        return self.block_size if self.block_size is not None else int(self.engine.rules["block_size"])

    @property
    def cache_dtype(self) -> str:
        """The number format of the KV cache."""
        return self.dtype if self.kv_dtype == "auto" else self.kv_dtype

    @property
    def attention_ranks(self) -> int:
        """Ranks that share the heads of one request."""
        return self.tensor_parallel // self.data_parallel if self.attention_data_parallel else self.tensor_parallel

    @property
    def pool_ranks(self) -> int:
        """Ranks whose pools add up: context-parallel ones share requests, data-parallel ones have others each."""
        return self.decode_context_parallel * (self.data_parallel if self.attention_data_parallel else 1)

    @property
    def draft_ranks(self) -> int:
        """Ranks that share the draft model: all where its heads can be shared so, else each holds it whole."""
        if self.draft is None or self.draft.heads % self.tensor_parallel:
            return 1
        kv_heads, ranks = self.draft.kv_heads or 1, self.tensor_parallel
        return ranks if not kv_heads % ranks or not ranks % kv_heads else 1

    @property
    def number_bytes(self) -> int:
        """Bytes of a number that the engine computes with."""
        return dtype_bits(self.dtype) // 8
