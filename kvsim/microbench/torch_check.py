"""A second opinion by torch on a GPU: products and attention that the harness measured, timed again by another library.

`python torch_check.py RESULTS.jsonl OUT.jsonl` writes a line for each operation with both times and their ratio. It is
a script of its own, since kvsim does not depend on torch.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST = 12
"""Operations of each kind, spread over those measured."""
SAMPLES, PASSES = 20, 10


def main(results: str, out: str) -> int:
    """Time again what can be, write and print both."""
    torch: Any = importlib.import_module("torch")
    points = [json.loads(line) for line in Path(results).read_text(encoding="utf-8").splitlines()]
    with Path(out).open("w", encoding="utf-8") as file:
        for point, work in _works(torch, points):
            seconds = _median_s(torch, work)
            ratio = point["median_s"] / seconds
            line = {key: point[key] for key in ("bench", "variant", "params", "median_s")}
            file.write(json.dumps({**line, "torch_s": seconds, "ratio": ratio}) + "\n")
            sizes = ", ".join(f"{key} {value}" for key, value in point["params"].items())
            print(f"{point['bench']:13} {ratio:6.2f} x torch's {seconds * 1e6:10.1f} us   {sizes}")
    return 0


def _works(torch: Any, points: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
    for bench, make in (("gemm", _gemm), ("prefill_attn", _prefill)):
        measured = [point for point in points if point.get("bench") == bench and point.get("median_s")]
        for point in measured[:: max(1, len(measured) // MOST)][:MOST]:
            yield point, make(torch, **point["params"])


def _gemm(torch: Any, *, m: int, n: int, k: int) -> Callable[[], Any]:
    x, w = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    return lambda: torch.nn.functional.linear(x, w)


def _prefill(torch: Any, *, tokens: int, prefix: int, heads: int, kv_heads: int, head_dim: int) -> Callable[[], Any]:
    q = torch.randn(1, heads, tokens, head_dim, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(1, heads, prefix + tokens, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    attention = torch.nn.functional.scaled_dot_product_attention
    if prefix == 0:
        return lambda: attention(q, k, v, is_causal=True)
    seen = torch.ones(tokens, prefix + tokens, device="cuda", dtype=torch.bool).tril(prefix)
    return lambda: attention(q, k, v, attn_mask=seen)


def _median_s(torch: Any, work: Callable[[], Any]) -> float:
    for _ in range(3):
        work()
    taken = []
    for _ in range(SAMPLES):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for _ in range(PASSES):
            work()
        ended.record()
        ended.synchronize()
        taken.append(1e-3 * begun.elapsed_time(ended) / PASSES)
    return float(sorted(taken)[SAMPLES // 2])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
