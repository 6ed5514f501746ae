"""Engines by name: the scheduler that a scenario asks for, with the allocator that it drives."""

from dataclasses import dataclass
from typing import Any

from kvsim.capacity.device import Device
from kvsim.capacity.pages import PageRow
from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.interface import NoTree
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.scenario.building.allocators import allocator_of, block_size_of
from kvsim.scenario.deployment import chosen
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.serving import EngineSettings, PagedSettings, RadixSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.interface import Scheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.sglang.serving import SglangServing
from kvsim.scheduling.sglang.settings import Settings as SglangSettings
from kvsim.scheduling.static import StaticScheduler
from kvsim.scheduling.vllm import Rules
from kvsim.scheduling.vllm.serving import VllmScheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What serves requests in one run: `slots` slots, requests of at most `max_model_len` tokens."""

    scenario: Scenario
    rules: Profile
    footprint: Footprint
    slots: int
    max_model_len: int
    row: PageRow | None
    """A page of each tensor, for the virtual allocator."""
    mapped_ahead: bool
    """Mapping pages takes no time."""

    @property
    def _settings(self) -> Settings:
        return self.scenario.settings

    @property
    def _engine(self) -> EngineSettings:
        return self.scenario.settings.engine

    def scheduler(self, device: Device | None) -> Scheduler:
        """The scheduler, over an allocator of its own; `device` tells how much workspace a step may take.

        ValueError where a number is one that a policy cannot take.
        """
        name = chosen(self._engine.scheduler, self.rules.scheduler)
        if name == "vllm":
            return self._vllm()
        if name == "sglang":
            return self._sglang()
        return self._batches(name, self._allocator(), device)

    def _allocator(self) -> Allocator:
        return allocator_of(
            self._settings,
            self.rules,
            self.footprint,
            self.slots,
            max_model_len=self.max_model_len,
            row=self.row,
            mapped_ahead=self.mapped_ahead,
        )

    @property
    def _limits(self) -> dict[str, Any]:
        engine, rules = self._engine, self.rules
        return {
            "max_num_seqs": chosen(engine.max_num_seqs, rules.max_num_seqs),
            "max_num_batched_tokens": self._stages * self._budget,
            "max_model_len": self.max_model_len,
        }

    @property
    def _stages(self) -> int:
        """Micro-batches of a round, each with the token budget of a step."""
        return self._settings.pipeline_parallel

    @property
    def _budget(self) -> int:
        return chosen(self._engine.max_num_batched_tokens, self.scenario.token_budget)

    @property
    def _two_in_flight(self) -> bool:
        return chosen(self._engine.async_scheduling, self.rules.pipeline_depth > 1)

    def _batches(self, name: str, allocator: Allocator, device: Device | None) -> Scheduler:
        engine, rules = self._engine, self.rules
        preemption = chosen(engine.preemption, rules.preemption)
        swap_space_bytes = chosen(engine.swap_space, rules.swap_space_bytes)
        limits: dict[str, Any] = self._limits | {
            "preemption": preemption,
            "victim": chosen(engine.victim, "last"),
            "host": HostPool(swap_space_bytes // self.footprint.kv_bytes_per_token) if preemption == "swap" else None,
        }
        if device is not None and allocator.keeps:
            budget, sequences = self._budget, -(-limits["max_num_seqs"] // self._stages)
            tokens = device.most_tokens(budget, sequences)
            # A pool beside which not even a step of decoding has room is a what-if, and said to be one in the notes.
            if sequences <= tokens < budget:
                limits["workspace_tokens"] = self._stages * tokens
        if name == "static":
            return StaticScheduler(allocator, **limits)
        limits["kernel"] = chosen(engine.kernel, rules.kernel)
        if name == "prefill-first":
            return PrefillFirstScheduler(allocator, **limits)
        return ContinuousScheduler(allocator, **self._chunks, **limits)

    @property
    def _chunks(self) -> dict[str, Any]:
        engine, rules = self._engine, self.rules
        threshold = chosen(engine.long_prefill_token_threshold, rules.long_prefill_token_threshold)
        if self._stages > 1:
            # A prompt is in one micro-batch at a time.
            threshold = min(threshold or self._budget, self._budget)
        return {
            "long_prefill_token_threshold": threshold,
            "chunked_prefill": chosen(engine.chunked_prefill, rules.chunked_prefill),
            "reserve_full_isl": chosen(engine.reserve_full_isl, rules.reserve_full_isl),
        }

    def _vllm(self) -> Scheduler:
        allocator, engine = self._settings.allocator, self._engine
        # The scenario was checked: only blocks go with it.
        assert isinstance(allocator, PagedSettings)
        blocks = PrefixAllocator(
            self.slots,
            block_size=block_size_of(self._settings, self.rules),
            watermark=chosen(allocator.watermark, self.rules.watermark),
            caching=chosen(allocator.prefix_caching, self.rules.prefix_caching),
            unknown_first=allocator.free_queue == "split",
            ahead=int(self._two_in_flight),
        )
        chunks = self._chunks
        rules = Rules(
            **self._limits,
            enable_chunked_prefill=chunks.pop("chunked_prefill"),
            **chunks,
            watermark_blocks=blocks.watermark_blocks,
            policy=chosen(engine.policy, "fcfs"),
            async_scheduling=self._two_in_flight,
            prefill_schedule_interval=engine.prefill_schedule_interval,
        )
        return VllmScheduler(blocks, rules)

    def _sglang(self) -> Scheduler:
        allocator, engine, limits = self._settings.allocator, self._engine, self._limits
        # The scenario was checked: only its tree goes with it.
        assert isinstance(allocator, RadixSettings)
        page = allocator.page_size
        if self.slots < page:
            raise ValueError(
                f"allocator radix: pool_slots is {self.slots}; the pool must hold at least one page of {page}"
            )
        pool = SlotPool(self.slots // page * page, page_size=page)
        tree = RadixTree(pool, eviction=allocator.eviction) if allocator.prefix_caching else NoTree(pool)
        chunked = chosen(engine.chunked_prefill, self.rules.chunked_prefill)
        settings = SglangSettings(
            chunked_prefill_size=limits["max_num_batched_tokens"] if chunked else None,
            max_prefill_tokens=engine.max_prefill_tokens,
            max_running_requests=limits["max_num_seqs"],
            schedule_policy=chosen(engine.policy, "fcfs"),
            schedule_conservativeness=engine.schedule_conservativeness,
            enable_mixed_chunk=engine.mixed_chunk,
            overlap=self._two_in_flight,
        )
        return SglangServing(tree, settings, max_model_len=limits["max_model_len"], eviction=allocator.eviction)
