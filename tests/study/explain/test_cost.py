"""FLOPs and bytes of a step against a count: loops that do each multiplication and touch each element."""

from hypothesis import given
from hypothesis import strategies as st

from kvsim.study.explain.cost import Shape, step_cost, total

shapes = st.builds(
    lambda layers, hidden, kv_heads, sharing, head_dim, size: Shape(
        layers=layers,
        hidden=hidden,
        heads=kv_heads * sharing,
        kv_heads=kv_heads,
        head_dim=head_dim,
        element_bytes=size,
    ),
    *[st.integers(1, 3)] * 5,
    st.sampled_from([2, 8]),
)


class Counter:
    """Counts of one operator: operations, and the elements that it reads or writes, each once."""

    def __init__(self):
        self.flops = 0
        self.touched = set()

    def product(self, pairs, into):
        """A sum of products, begun at zero: a multiplication and an addition each."""
        for one, other in pairs:
            self.touched |= {one, other}
            self.flops += 2
        self.touched.add(into)


def counted(shape, new, cached):
    """Every operator of a step as loops over layers, heads, tokens and elements."""
    names = [
        "Q projection",
        "K projection",
        "V projection",
        "scores Q K^T",
        "softmax",
        "weights V",
        "output projection",
    ]
    ops = {name: Counter() for name in names}
    tokens, dims = range(cached, cached + new), range(shape.head_dim)
    for layer in range(shape.layers):
        for name, letter, heads in (
            ("Q projection", "q", shape.heads),
            *((f"{x} projection", x.lower(), shape.kv_heads) for x in "KV"),
        ):
            for token in tokens:
                for head in range(heads):
                    for dim in dims:
                        pairs = [
                            ((layer, "x", token, i), (layer, "w", letter, i, head, dim)) for i in range(shape.hidden)
                        ]
                        ops[name].product(pairs, (layer, letter, token, head, dim))
        for head in range(shape.heads):
            kv = head // (shape.heads // shape.kv_heads)
            for token in tokens:
                seen = range(token + 1)
                for other in seen:
                    pairs = [((layer, "q", token, head, dim), (layer, "k", other, kv, dim)) for dim in dims]
                    ops["scores Q K^T"].product(pairs, (layer, "score", head, token, other))
                    ops["scores Q K^T"].flops += 1  # over the root of d
                for other in seen:
                    ops["softmax"].flops += 4  # less the largest, exponential, added up, over the sum
                    ops["softmax"].touched |= {
                        (layer, "score", head, token, other),
                        (layer, "share", head, token, other),
                    }
                for dim in dims:
                    pairs = [((layer, "share", head, token, other), (layer, "v", other, kv, dim)) for other in seen]
                    ops["weights V"].product(pairs, (layer, "mixed", token, head, dim))
        for token in tokens:
            for out in range(shape.hidden):
                pairs = [
                    ((layer, "mixed", token, head, dim), (layer, "wo", head, dim, out))
                    for head in range(shape.heads)
                    for dim in dims
                ]
                ops["output projection"].product(pairs, (layer, "out", token, out))
    return {name: (one.flops, len(one.touched) * shape.element_bytes) for name, one in ops.items()}


@given(shapes, st.integers(1, 4), st.integers(0, 4))
def test_the_closed_forms_equal_a_count_of_every_operation_and_element(shape, new, cached):
    found = {one.name: (one.flops, one.bytes) for one in step_cost(shape, new=new, cached=cached)}
    assert found == counted(shape, new, cached)


@given(shapes, st.integers(1, 4), st.integers(1, 6))
def test_a_prompt_computed_token_by_token_takes_the_flops_of_one_step(shape, first, more):
    whole = total(step_cost(shape, new=first + more, cached=0)).flops
    parts = total(step_cost(shape, new=first, cached=0)).flops
    parts += sum(total(step_cost(shape, new=1, cached=first + at)).flops for at in range(more))
    assert parts == whole


@given(shapes, st.integers(1, 50))
def test_a_step_with_the_cache_never_takes_more_and_with_a_context_takes_less(shape, cached):
    kept, again = total(step_cost(shape, new=1, cached=cached)), total(step_cost(shape, new=cached + 1, cached=0))
    assert kept.flops < again.flops
    assert kept.bytes < again.bytes
