"""Outputs of the emulated kernels against float64 numpy, which knows the data by their definition alone."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from tests.microbench.harness.emulation import run

pytestmark = pytest.mark.cuda

SEED, DIM, ALIGNED = 1, 128, 128
X, W, KEYS, VALUES, QUERIES = 1, 2, 3, 4, 5
PLAIN, SHARP = 126, 129


def hashed(index, seed):
    """Two rounds of multiply and xorshift over a counter, in 32 bits."""
    index = np.asarray(index, dtype=np.uint64)
    low, high = index & np.uint64(0xFFFFFFFF), index >> np.uint64(32)
    h = (low * np.uint64(0x9E3779B1) + high * np.uint64(0x85EBCA77) + np.uint64(seed * 0xC2B2AE3D)) & np.uint64(
        0xFFFFFFFF
    )
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = ((h ^ (h >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return (h ^ (h >> np.uint64(16))).astype(np.uint32)


def words(count, buffer):
    return hashed(np.arange(count), SEED * 16 + buffer)


def elements(count, buffer, exponent=PLAIN):
    """The first `count` elements of a buffer: sign, one of four exponents, seven bits of mantissa."""
    halves = np.repeat(words(count // 2, buffer), 2)
    halves[1::2] >>= 16
    sign = np.where(halves & 0x8000, -1.0, 1.0)
    return sign * 2.0 ** (exponent - (halves >> 8 & 3).astype(int) - 127) * (1 + (halves & 0x7F) / 128)


def bits(count, buffer, exponent=PLAIN):
    """The same as words of two bf16."""
    h = words(count, buffer)

    def half(x):
        return (x & 0x8000) | ((exponent - (x >> 8 & 3)) << 7) | (x & 0x7F)

    return half(h & 0xFFFF) | half(h >> 16) << 16


def dumped(folder, bench, dtype):
    values = np.fromfile(folder / f"{bench}.bin", dtype=dtype)
    return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if dtype == np.uint16 else values


def shuffled(values, seed):
    """Fisher and Yates, by the hash."""
    values = list(values)
    for i in range(len(values), 1, -1):
        j = int(hashed(i, seed)) % i
        values[i - 1], values[j] = values[j], values[i - 1]
    return values


def contexts_of(params):
    """All the mean, or quantiles of a lognormal law with sigma 0.8 scaled to it."""
    batch, mean = params["batch"], params["context"]
    if params.get("spread", "even") == "even":
        return [mean] * batch
    raw = np.exp(0.8 * norm.ppf((np.arange(batch) + 0.5) / batch))
    return shuffled([max(1, int(Fraction(value).__round__())) for value in raw / raw.mean() * mean], 7)


def slots_of(contexts, block):
    """The slot of every token of every request."""
    firsts = np.cumsum([0] + [-(-context // ALIGNED) * ALIGNED for context in contexts])
    if not block:
        return [first + np.arange(context) for first, context in zip(firsts[:-1], contexts, strict=True)], firsts[-1]
    blocks = iter(shuffled(range(firsts[-1] // block), SEED))
    slots = []
    for context in contexts:
        table = np.array([next(blocks) for _ in range(-(-context // block))])
        token = np.arange(context)
        slots.append(table[token // block] * block + token % block)
    return slots, firsts[-1]


def attention(q, k, v):
    """Rows of q against all of k."""
    scores = q @ k.T / np.sqrt(DIM)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def far(got, right):
    return np.linalg.norm(got - right) / np.linalg.norm(right)


@pytest.fixture(scope="module")
def ran(microbench, cublas, tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    only = "gemm,kv_read,decode_attn,prefill_attn"
    done = run(microbench, "--cublas", cublas, "--only", only, "--verify-only", "--dump", folder)
    assert done.code == 0
    return done, folder


def test_decode_attention_is_numpys_for_every_layout_and_group(ran):
    done, folder = ran
    got, at, worst = dumped(folder, "decode_attn", np.uint16), 0, 0.0
    points = done.points("decode_attn")
    for point in points:
        params = point["params"]
        contexts, heads, kv_heads = contexts_of(params), params["heads"], params["kv_heads"]
        assert sum(contexts) == params["context_sum"]
        slots, count = slots_of(contexts, params["block"])
        k, v = (elements(count * kv_heads * DIM, buffer).reshape(count, kv_heads, DIM) for buffer in (KEYS, VALUES))
        q = elements(len(contexts) * heads * DIM, QUERIES, SHARP).reshape(
            len(contexts), kv_heads, heads // kv_heads, DIM
        )
        right = np.array([[attention(q[i, h], k[s, h], v[s, h]) for h in range(kv_heads)] for i, s in enumerate(slots)])
        worst = max(worst, far(got[at : at + right.size], right.ravel()))
        at += right.size
    assert at == got.size
    assert {point["params"]["heads"] // point["params"]["kv_heads"] for point in points} == {1, 2, 7, 8, 16}
    # The roundings of weights and output to bf16, 2**-9 of each at most.
    assert worst < 4e-3


def test_prefill_attention_is_numpys_with_and_without_a_prefix(ran):
    done, folder = ran
    got, at = dumped(folder, "prefill_attn", np.uint16), 0
    for point in done.points("prefill_attn"):
        tokens, prefix, heads, kv_heads = (point["params"][key] for key in ("tokens", "prefix", "heads", "kv_heads"))
        q = elements(tokens * heads * DIM, QUERIES, SHARP).reshape(tokens, heads, DIM)
        k, v = (elements((prefix + tokens) * kv_heads * DIM, b).reshape(-1, kv_heads, DIM) for b in (KEYS, VALUES))
        right = np.empty_like(q)
        for token in range(tokens):
            for head in range(heads):
                seen, kv = slice(prefix + token + 1), head // (heads // kv_heads)
                right[token, head] = attention(q[token, head][None], k[seen, kv], v[seen, kv])[0]
        assert far(got[at : at + right.size], right.ravel()) < 4e-3
        at += right.size
    assert at == got.size


def test_products_are_numpys_rows_by_rows(ran):
    done, folder = ran
    got, at = dumped(folder, "gemm", np.uint16), 0
    # An anchor is measured first, and its output is dumped like the others'.
    for point in [point for point in done.of("point") if point["bench"] == "gemm"]:
        m, n, k = (point["params"][key] for key in "mnk")
        right = elements(m * k, X).reshape(m, k) @ elements(n * k, W).reshape(n, k).T
        assert far(got[at : at + right.size], right.ravel()) < 3e-3
        at += right.size
    assert at == got.size


def test_what_is_read_adds_up_to_the_last_bit(ran):
    done, folder = ran
    got, at = dumped(folder, "kv_read", np.uint32), 0
    for point in done.points("kv_read"):
        params = point["params"]
        contexts, row = contexts_of(params), params["kv_heads"] * DIM // 2
        slots, count = slots_of(contexts, params["block"])
        k, v = (bits(count * row, buffer).reshape(count, row).astype(np.uint64) for buffer in (KEYS, VALUES))
        right = [(k[s].sum() + v[s].sum()) & np.uint64(0xFFFFFFFF) for s in slots]
        sums = got[at : at + len(contexts) * point["splits"]].astype(np.uint64).reshape(len(contexts), -1)
        assert [int(one) & 0xFFFFFFFF for one in sums.sum(axis=1)] == [int(one) for one in right]
        at += sums.size
    assert at == got.size
