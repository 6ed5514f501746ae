"""An oracle GPU: a cost model that is known, written out on its own, which writes results as the harness would.

Noise has two parts, as on a GPU: `scatter` is that of the samples of which a point states median, p10 and p90; `unlike`
how far an operation of some shape is off the model, the same whenever it is measured.
"""

import json
from dataclasses import dataclass, field

import numpy as np

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
SAMPLES = 20

LAYERS_8B = ((4096, 6144), (4096, 4096), (4096, 28672), (4096, 128256), (14336, 4096))
LAYERS_70B = ((8192, 10240), (8192, 8192), (8192, 57344), (28672, 8192))
UNSEEN_LAYERS = ((3584, 4608), (18944, 3584))
POWERS = tuple(2**power for power in range(14))
BETWEEN = (100, 192, 300, 3000)
BLOCKS = (0, 1, 8, 16, 32, 64, 128)
COPIES = tuple(4 * KIB << power for power in range(0, 17, 2))


@dataclass(frozen=True)
class Oracle:
    """Known parameters: seconds, bytes a second, FLOP a second, and plain numbers."""

    device: str
    sms: int
    l2_bytes: int = 50 * MIB
    launch_s: float = 2.2e-6
    node_s: float = 1.1e-6
    hbm: dict[str, float] = field(default_factory=lambda: {"read": 4.0e12, "write": 3.7e12, "copy": 3.9e12})
    hbm_fixed_s: float = 3.0e-6
    gemm_bandwidth: float = 3.6e12
    gemm_peak: float = 7.8e14
    gemm_fixed_s: float = 5.0e-6
    knee: float = 3.0
    kv_bandwidth: float = 3.5e12
    kv_walk: float = 2.4e10
    kv_fixed_s: float = 6.0e-6
    combine_s: float = 2.6e-6
    read_bandwidth: float = 3.8e12
    read_walk: float = 2.1e10
    block_factor: dict[int, float] = field(
        default_factory=lambda: {0: 1.0, 1: 1.9, 8: 1.14, 16: 1.07, 32: 1.035, 64: 1.02, 128: 1.01}
    )
    group_factor: dict[int, float] = field(default_factory=lambda: {1: 1.0, 4: 1.06, 5: 1.09, 7: 1.16, 8: 1.2, 16: 1.7})
    prefill_peak: float = 4.6e14
    prefill_fixed_s: float = 9.0e-6
    prefill_ramp: float = 220.0
    links: dict[str, float] = field(
        default_factory=lambda: {"h2d_pinned": 5.3e10, "h2d_pageable": 1.1e10, "d2h_pinned": 5.1e10,
                                 "d2h_pageable": 0.9e10, "both_pinned": 4.4e10}
    )  # fmt: skip
    link_fixed_s: float = 8.0e-6
    swap_call_s: dict[str, float] = field(
        default_factory=lambda: {"loop": 2.4e-6, "batch": 0.9e-6, "gather": 0.06e-6, "mapped": 0.11e-6}
    )
    swap_rate: float = 4.9e10
    swap_fixed_s: float = 12.0e-6
    alloc_fixed_s: dict[str, float] = field(
        default_factory=lambda: {"malloc": 9e-5, "free": 1.2e-4, "pool_warm": 2e-6, "pool_cold": 1.5e-4}
    )
    alloc_s_per_gib: dict[str, float] = field(
        default_factory=lambda: {"malloc": 2.4e-4, "free": 3.1e-5, "pool_warm": 0.4e-6, "pool_cold": 2.9e-4}
    )
    map_fixed_s: float = 6.0e-6
    map_chunk_s: dict[str, float] = field(default_factory=lambda: {"vmm_map": 2.9e-5, "vmm_unmap": 1.4e-5})
    grow_fixed_s: float = 2.4e-4
    grow_rate: float = 1.9e12
    layer_s: float = 3.0e-6

    def gemm(self, m, n, k):
        read, compute = 2 * (n * k + m * k + m * n) / self.gemm_bandwidth, 2 * m * n * k / self.gemm_peak
        return self.gemm_fixed_s + (read**self.knee + compute**self.knee) ** (1 / self.knee)

    def read(self, total, longest, kv_heads, dim, block):
        whole = 4 * kv_heads * dim * total / self.read_bandwidth
        batch = total // longest
        splits = max(1, min(self.sms * 8 // batch, longest // 64))
        walk = 4 * kv_heads * dim * longest / splits / self.read_walk
        return self.kv_fixed_s + self.block_factor[block] * max(whole, walk)

    def decode(self, batch, total, longest, heads, kv_heads, dim, block):
        ctas = kv_heads * batch
        splits = max(1, min(-(-3 * self.sms // ctas), longest // 256, 64))
        busy = max(4 * kv_heads * dim * total / self.kv_bandwidth, 4 * dim * longest / splits / self.kv_walk)
        fixed = self.kv_fixed_s + (self.combine_s if splits > 1 else 0)
        return fixed + self.group_factor[heads // kv_heads] * self.block_factor[block] * busy

    def prefill(self, tokens, prefix, heads, dim):
        pairs = tokens * prefix + tokens * (tokens + 1) / 2
        return self.prefill_fixed_s + 4 * heads * dim * (pairs + self.prefill_ramp * tokens) / self.prefill_peak


def points(gpu: Oracle):
    """(bench, variant, params, role, seconds, bytes, flops) of the full preset."""
    yield from _streams(gpu)
    yield from _gemms(gpu)
    yield from _attention(gpu)
    yield from _calls(gpu)
    yield from _swaps(gpu)
    yield from _steps(gpu)


def _streams(gpu):
    for variant, rate in gpu.hbm.items():
        for size in (MIB << (2 * power) for power in range(7)):
            moved = size * (2 if variant == "copy" else 1)
            yield "hbm", variant, {"bytes": size}, "fit", gpu.hbm_fixed_s + moved / rate, moved, 0
    for name, rate in gpu.links.items():
        way, variant = name.split("_")
        for size in COPIES:
            yield ("duplex" if way == "both" else way), variant, {"bytes": size}, "fit", (
                gpu.link_fixed_s + size / rate
            ), size, 0  # fmt: skip


def _gemms(gpu):
    shapes = [(k, n, m, "fit") for k, n in LAYERS_8B + LAYERS_70B for m in POWERS]
    shapes += [(k, n, m, "holdout") for k, n in UNSEEN_LAYERS for m in POWERS]
    shapes += [(k, n, m, "holdout") for k, n in LAYERS_8B for m in BETWEEN]
    for k, n, m, role in shapes:
        moved = 2 * (n * k + m * k + m * n)
        yield "gemm", "bf16", {"m": m, "n": n, "k": k}, role, gpu.gemm(m, n, k), moved, 2 * m * n * k


def _attention(gpu):
    for batch, context in ((1, 2048), (4, 2048), (16, 1024), (64, 1024), (64, 4096), (256, 4096)):
        for block in BLOCKS:
            params = {"batch": batch, "context": context, "kv_heads": 8, "head_dim": 128, "block": block}
            total = batch * context
            yield "kv_read", _layout(block), params, "fit", gpu.read(total, context, 8, 128, block), 4096 * total, 0
    grid = [(b, c) for b in (1, 4, 16, 64, 256) for c in (256, 1024, 4096, 16384, 65536) if b * c <= 1 << 19]
    for heads, kv_heads in ((32, 32), (32, 8), (64, 8)):
        for batch, context in grid:
            for block in BLOCKS if batch * context >= 1 << 14 else (0, 16):
                yield _decode(gpu, batch, [context] * batch, heads, kv_heads, block, "fit")
    for heads, kv_heads in ((28, 4), (40, 8), (64, 4)):
        for batch, context in ((4, 4096), (64, 1024), (64, 4096), (256, 1024)):
            yield _decode(gpu, batch, [context] * batch, heads, kv_heads, 16, "fit")
    draw = np.random.default_rng(7)
    for batch in (8, 32, 128):
        for block in (0, 16):
            yield _decode(gpu, batch, [3000] * batch, 32, 8, block, "holdout")
            uneven = np.clip(draw.lognormal(7, 0.8, batch), 16, 32768).astype(int).tolist()
            yield _decode(gpu, batch, uneven, 32, 8, block, "holdout", "lognormal")
    for tokens, prefix in ((512, 0), (1024, 0), (2048, 0), (4096, 0), (8192, 0), (16384, 0), (32768, 0), (512, 4096),
                           (2048, 4096), (512, 16384), (2048, 16384)):  # fmt: skip
        for heads, kv_heads in ((32, 8), (64, 8)):
            role = "holdout" if (tokens, prefix) in ((4096, 0), (2048, 4096)) else "fit"
            params = {"tokens": tokens, "prefix": prefix, "heads": heads, "kv_heads": kv_heads, "head_dim": 128}
            flops = 4 * heads * 128 * (tokens * prefix + tokens * (tokens + 1) // 2)
            yield "prefill_attn", "causal", params, role, gpu.prefill(tokens, prefix, heads, 128), 0, flops


def _layout(block):
    return "paged" if block else "contiguous"


def _decode(gpu, batch, contexts, heads, kv_heads, block, role, spread="even"):
    total, longest = sum(contexts), max(contexts)
    params = {"batch": batch, "context": total // batch, "heads": heads, "kv_heads": kv_heads, "head_dim": 128,
              "block": block, "spread": spread, "context_sum": total, "context_max": longest}  # fmt: skip
    seconds = gpu.decode(batch, total, longest, heads, kv_heads, 128, block)
    return "decode_attn", _layout(block), params, role, seconds, 512 * kv_heads * total, 0


def _calls(gpu):
    for kernels in (1, 10, 100, 1000):
        yield "launch", "empty", {"kernels": kernels}, "fit", 4e-6 + gpu.launch_s * kernels, 0, 0
        yield "graph", "empty", {"kernels": kernels}, "fit", 7e-6 + gpu.node_s * kernels, 0, 0
    for variant, fixed in gpu.alloc_fixed_s.items():
        for size in (2 * MIB << power for power in range(0, 12, 2)):
            seconds = fixed + gpu.alloc_s_per_gib[variant] * size / GIB
            yield "alloc", variant, {"bytes": size, "chunks": 1}, "fit", seconds, 0, 0
    for variant, chunk in gpu.map_chunk_s.items():
        for chunks in (1, 4, 16, 64, 256):
            seconds = gpu.map_fixed_s + chunk * chunks
            yield "alloc", variant, {"bytes": 2 * MIB * chunks, "chunks": chunks}, "fit", seconds, 0, 0
    for size in (16 * MIB << power for power in range(0, 10, 2)):
        params = {"bytes": size, "new_bytes": 2 * size}
        yield "grow", "alloc_copy_free", params, "fit", gpu.grow_fixed_s + size / gpu.grow_rate, 2 * size, 0


def _swaps(gpu):
    for variant, call in gpu.swap_call_s.items():
        for way in ("out", "in"):
            for blocks in (256, 2048):
                for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 512 * KIB):
                    params = {"blocks": blocks, "block_bytes": size, "direction": way}
                    seconds = gpu.swap_fixed_s + blocks * call + blocks * size / gpu.swap_rate
                    yield "swap_blocks", variant, params, "fit", seconds, blocks * size, 0


def _steps(gpu):
    hidden, wide, heads, kv_heads, layers = 4096, 14336, 32, 8, 8
    for variant, more in (("graph", 0.0), ("eager", 6e-6)):
        for batch, context, chunk, prefix in ((1, 512, 0, 0), (16, 4096, 0, 0), (64, 512, 0, 0), (64, 4096, 0, 0),
                                              (256, 512, 0, 0), (32, 2048, 512, 0), (0, 0, 2048, 4096)):  # fmt: skip
            m, inner = batch + chunk, heads * 128
            matrices = ((inner + 2 * kv_heads * 128, hidden), (hidden, inner), (2 * wide, hidden), (hidden, wide))
            layer = sum(gpu.gemm(m, n, k) for n, k in matrices) + gpu.layer_s + more
            for moved in (4 * m * hidden, 4 * m * hidden, 6 * m * wide):  # two norms and the gate
                layer += gpu.hbm_fixed_s + moved / gpu.hbm["copy"]
            if batch:
                layer += gpu.decode(batch, batch * context, context, heads, kv_heads, 128, 16)
            if chunk:
                layer += gpu.prefill(chunk, prefix, heads, 128)
            params = {
                "layers": layers, "batch": batch, "context": context, "context_sum": batch * context,
                "context_max": context, "spread": "even", "chunk": chunk, "prefix": prefix, "hidden": hidden,
                "intermediate": wide, "heads": heads, "kv_heads": kv_heads, "head_dim": 128, "block": 16,
            }  # fmt: skip
            yield "step", variant, params, "holdout", layers * layer, 0, 0


def env(gpu: Oracle, **changed):
    return {
        "type": "env", "schema": 1, "kvsim_version": "0", "source_sha256": "ab" * 32, "backend": "emulated",
        "device": gpu.device, "uuid_hash": "0" * 16, "cc": "9.0", "sm_count": gpu.sms, "mem_bytes": 80 * GIB,
        "l2_bytes": gpu.l2_bytes, "max_sm_mhz": 1980, "max_mem_mhz": 3201, "driver": "580", "cuda_runtime": "13.0",
        "cublas": "13.0", "nvcc": "13.0", "build_arch": "sm_90", "pcie_gen": 5, "pcie_width": 16, "ecc": True,
        "preset": "full", "seed": 0, "started_utc": "1970-01-01T00:00:00Z",
    } | changed  # fmt: skip


def records(gpu: Oracle, *, scatter: float = 0.0, unlike: float = 0.0, seed: int = 0):
    """The records of one run, in the order in which a harness writes them: points in random order among anchors."""
    rng = np.random.default_rng(seed)
    # A copy and a product, measured again and again: always the same operation, so always as far off the model.
    square = {"m": 4096, "n": 4096, "k": 4096}
    anchors = [
        ("hbm", "copy", {"bytes": GIB}, "anchor", gpu.hbm_fixed_s + 2 * GIB / gpu.hbm["copy"], 2 * GIB, 0),
        ("gemm", "bf16", square, "anchor", gpu.gemm(**square), 6 * 4096**2, 2 * 4096**3),
    ]
    measured = [(one, float(np.exp(unlike * rng.standard_normal()))) for one in [*anchors, *points(gpu)]]
    again, order = (
        measured[: len(anchors)],
        [measured[at] for at in rng.permutation(range(len(anchors), len(measured)))],
    )
    rows = []
    for at, one in enumerate(order):
        if at % 100 == 0:
            rows += again
        rows.append(one)
    yield env(gpu)
    for index, ((bench, variant, params, role, seconds, moved, flops), off) in enumerate(rows):
        samples = np.sort(seconds * off * np.exp(scatter * rng.standard_normal(SAMPLES)))
        yield {
            "type": "point", "bench": bench, "variant": variant, "params": params, "role": role, "repeats": SAMPLES,
            "inner": 1, "median_s": float(np.median(samples)), "p10_s": float(samples[2]), "p90_s": float(samples[-3]),
            "min_s": float(samples[0]), "bytes": moved, "flops": flops, "verified": True, "check": "rel_l2",
            "rel_err": 1e-4, "sm_mhz": 1980, "temp_c": 50, "index": index, "t_offset_s": 0.1 * index,
        }  # fmt: skip
    yield {"type": "end", "points": len(rows), "failed": 0, "wall_s": 0.1 * len(rows), "complete": True}


def few(rows):
    """A run of some benchmarks at few sizes, with its end: what fits in a moment."""
    *rows, end = [row for row in rows if row["type"] != "point" or _kept(row)]
    return [*rows, {**end, "points": len(rows) - 1}]


def _kept(row):
    params = row["params"]
    if row["bench"] == "gemm":
        return row["role"] == "anchor" or (params["n"] == 6144 and params["m"] <= 512)
    if row["bench"] == "decode_attn":
        return (params["heads"], params["kv_heads"]) == (32, 8) and params["block"] in (0, 16)
    return row["bench"] in ("hbm", "prefill_attn", "launch", "alloc", "h2d", "step")


def write(path, found):
    path.write_text("".join(json.dumps(record) + "\n" for record in found))
    return path
