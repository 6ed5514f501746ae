"""Wrong scenarios: each mistake is told with file, line, key, value and remedy, and all of them at once."""

from collections.abc import Callable

import pytest

from kvsim.errors import InputError
from kvsim.scenario import Scenario, Settings, load, load_all
from kvsim.scenario.schema.explain import ELSEWHERE_CALLED, NOT_MODELLED_YET, all_keys
from tests.scenario.conftest import COMPLETE

Write = Callable[[str, str], str]
Refused = Callable[..., list[str]]


def changed(old: str, new: str) -> str:
    assert old in COMPLETE
    return COMPLETE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpu:", "gpux: 1\ngpu:", "s.yaml:2: gpux: 1 is given for an unknown key; did you mean gpu?"),
        (
            "rate: 8/s",
            "rate: 8/s\n  rates: 9/s",
            "s.yaml:6: workload.rates: 9/s is given for an unknown key; did you mean rate",
        ),
        ("gpu:", "max_num_seqs: 4\ngpu:", "is given for an unknown key; did you mean engine.max_num_seqs?"),
        ("Llama-3.1-8B", "Llama-9-8B", "s.yaml:1: model: unknown model 'Llama-9-8B': the closest are"),
        ("RTX 4090", "RTX 9999", "s.yaml:2: gpu: unknown GPU 'RTX 9999': the closest are"),
        (
            "gpu:",
            "engine: vllm@9\ngpu:",
            "s.yaml:2: engine: unknown engine profile 'vllm@9': ",
        ),
        ("8/s", "-8/s", "s.yaml:5: workload.rate: '-8/s' is negative; a rate cannot be below 0"),
        ("8/s", "0/s", "s.yaml:5: workload.rate: '0/s' is no traffic; a rate must be above 0"),
        ("8/s", "8", "s.yaml:5: workload.rate: 8 has no unit; write for example 8/s"),
        ("8/s", ".nan", "s.yaml:5: workload.rate: 'nan' is not a rate; write a finite number"),
        ("2588", "0", "s.yaml:3: pool.blocks: 0 is below 1; it must be at least 1"),
        ("2588", "2588.0", "s.yaml:3: pool.blocks: 2588.0 is written as a fraction; write 2588"),
        (
            "2588",
            "'2588'",
            "s.yaml:3: pool.blocks: 2588 is not a whole number; write digits alone, without quotes",
        ),
        ("blocks: 2588", "memory: 12", "s.yaml:3: pool.memory: 12 has no unit; write for example 12GiB"),
        ("blocks: 2588", "memory: -12GiB", "s.yaml:3: pool.memory: '-12GiB' is negative"),
        ("blocks: 2588", "memory: .inf", "s.yaml:3: pool.memory: 'inf' is not a size"),
        (
            "blocks: 2588",
            "blocks: 1, tokens: 2",
            "s.yaml:3: pool: blocks and tokens is given; give exactly one of blocks, tokens or memory",
        ),
        ("{blocks: 2588}", "2588", "s.yaml:3: pool: 2588 is not a mapping; write {tokens: 2588} or {blocks: 2588}"),
        ("{blocks: 2588}", "large", "s.yaml:3: pool: large is not a mapping; write {blocks: ...}"),
        ("gpu:", "tp: 2\ngpu:", "s.yaml:2: tp: 2 is given for an unknown key; did you mean tensor_parallel?"),
        (
            "gpu:",
            "max_tokens: 9\ngpu:",
            "s.yaml:2: max_tokens: 9 is given for an unknown key; did you mean workload.max",
        ),
        (
            "gpu:",
            "engine: {dtype: bf16}\ngpu:",
            "dtype: bf16 is given for an unknown key; did you mean model.weights_dtype",
        ),
        (
            "gpu:",
            "engine: {enable_prefix_caching: true}\ngpu:",
            "s.yaml:2: engine.enable_prefix_caching: true is given for an unknown key; did you mean "
            "allocator.prefix_caching?",
        ),
        (
            "gpu:",
            "engine: {max_model_len: 131073}\ngpu:",
            "s.yaml:2: engine.max_model_len: 131073 is more than the context of llama-3.1-8b, 131072; give 131072 "
            "or less",
        ),
        ("{blocks: 2588}", "12GiB", "s.yaml:3: pool: 12GiB is not a mapping; write {memory: 12GiB}"),
        ("output_tokens: 128", "output_tokens: 0", "s.yaml:8: workload.output_tokens: 0 is below 1"),
        (
            "{distribution: lognormal, median: 400, sigma: 0.7, max: 4096}",
            "0",
            "s.yaml:7: workload.prompt_tokens: 0 is below 1; it must be at least 1",
        ),
        ("sigma: 0.7", "sigma: 0.7, min: 0", "s.yaml:7: workload.prompt_tokens.min: 0 is below 1"),
        ("sigma: 0.7", "sigma: .nan", "s.yaml:7: workload.prompt_tokens.sigma: nan is not a finite number"),
        (
            "sigma: 0.7, ",
            "",
            "s.yaml:7: workload.prompt_tokens.sigma: is missing; lognormal lengths need sigma",
        ),
        (
            "sigma: 0.7",
            "sigma: 1, mean: 3",
            "workload.prompt_tokens.median: 400 is given beside mean; keep one",
        ),
        ("sigma: 0.7", "sigma: 1, cv: 3", "workload.prompt_tokens.cv: 3 means nothing to lognormal lengths"),
        ("sigma: 0.7", "sigma: 1, min: 5000", "workload.prompt_tokens.min: 5000 is above max, 4096"),
        (
            "lognormal",
            "lognorml",
            "workload.prompt_tokens.distribution: lognorml is not known here; did you mean",
        ),
        ("  requests: 100\n", "", "s.yaml:4: workload.requests: is missing; generated traffic needs an end"),
        ("  rate: 8/s\n", "", "s.yaml:4: workload.rate: is missing; generated traffic needs a rate"),
        ("gpu: RTX 4090\n", "", "s.yaml:1: gpu: is missing; it is needed: a name from `kvsim gpus`"),
        (
            "rate: 8/s",
            "trace: azure-conv-2023",
            "s.yaml:7: workload.prompt_tokens: a trace brings its own; remove it, or workload.trace",
        ),
        (
            "rate: 8/s",
            "trace: azure-conv-2024",
            "s.yaml:5: workload.trace: azure-conv-2024 is neither a packaged trace nor a file "
            "(looked in the working folder); did you mean azure-conv-2023 or azure-code-2023?",
        ),
        (
            "rate: 8/s",
            "rate: 8/s\n  arrivals: gamma",
            "workload.arrivals.cv: is missing; gamma arrivals need cv",
        ),
        ("rate: 8/s", "rate: 8/s\n  sort: true", "workload.sort: true is about a trace; remove it"),
        (
            "rate: 8/s",
            "rate: 8/s\n  max_tokens: 0",
            "workload.max_tokens: 0 is below 1; it must be at least 1",
        ),
        ("rate: 8/s", "rate: 8/s\n  max_tokens: limit", "workload.max_tokens: limit is not known here"),
        ("rate: 8/s", "rate: 8/s\n  cancel: {share: 2}", "workload.cancel.share: 2 is not a share"),
        ("gpu:", "tensor_parallel: 3\ngpu:", "s.yaml:2: tensor_parallel: 3 does not divide the 32 heads"),
        ("gpu:", "allocator: pagd\ngpu:", "s.yaml:2: allocator: pagd is not known here; did you mean paged?"),
        (
            "gpu:",
            "engine: vllm@0.34\nallocator: {prefix_caching: true}\ngpu:",
            "s.yaml:3: allocator.name: is missing; say which one is meant",
        ),
        (
            "gpu:",
            "allocator: {name: paged, block_size: 257}\ngpu:",
            "s.yaml:2: allocator.block_size: 257 is above 256; it must be at most 256",
        ),
        (
            "gpu:",
            "allocator: {name: contiguous, block_size: 16}\ngpu:",
            "block_size: 16 is given for an unknown key; contiguous allocator takes name, fit, growth, chunk",
        ),
        (
            "gpu:",
            "engine: {max_num_seqs: 4096}\ngpu:",
            "s.yaml:2: engine.max_num_seqs: 4096 leaves 2048 tokens a step for 4096 sequences",
        ),
        (
            "gpu:",
            "engine: {chunked_prefill: false, max_model_len: 8192}\ngpu:",
            "s.yaml:2: engine.chunked_prefill: false computes a prompt in one step of 2048 tokens, "
            "but max_model_len is 8192; set engine.max_num_batched_tokens to 8192 or more",
        ),
        (
            "gpu:",
            "engine: {chunked_prefill: false}\ngpu:",
            "s.yaml:2: engine.chunked_prefill: false computes a prompt in one step of 2048 tokens, "
            "but max_model_len is 131072",
        ),
        (
            "gpu:",
            "slo: {ttft: 0s}\ngpu:",
            "s.yaml:2: slo.ttft: 0s is no time at all; write a duration above 0",
        ),
        ("gpu:", "seed: -1\ngpu:", "s.yaml:2: seed: -1 is below 0; it must be at least 0"),
        ("gpu:", "seed: yes\ngpu:", "s.yaml:2: seed: yes is not a whole number"),
        (
            "gpu:",
            "timing: {step_overhead_s: .inf}\ngpu:",
            "s.yaml:2: timing.step_overhead_s: inf is not a finite number",
        ),
        (
            "gpu:",
            "timing: {linear_compute_efficiency: 1.5}\ngpu:",
            "s.yaml:2: timing.linear_compute_efficiency: 1.5; it must be a share from 0.000001 to 1",
        ),
        (
            "gpu:",
            "timing: {linear_compute_eficiency: 0.5}\ngpu:",
            "eficiency: 0.5 is given for an unknown key; did you mean linear_compute_efficiency",
        ),
        (
            "gpu:",
            "extends: gone.yaml\ngpu:",
            "s.yaml:2: extends: gone.yaml is not there; give a path relative",
        ),
        ("gpu:", "gpu: H100\ngpu:", "s.yaml:3: gpu: RTX 4090 is given a second time (first on line 2)"),
    ],
)
def test_each_mistake_has_its_one_message(refused: Refused, old: str, new: str, message: str) -> None:
    lines = refused(changed(old, new))
    assert any(message in line for line in lines), lines
    assert all(line.startswith("s.yaml:") for line in lines)


def test_what_other_tools_call_a_key_leads_to_a_key_that_exists() -> None:
    known = all_keys(Settings, "")
    assert set(ELSEWHERE_CALLED.values()) <= set(known)
    # A dataset is written in the words of its load generator.
    own = {key.rpartition(".")[2] for key in known if not key.startswith("workload.dataset.")}
    assert not own & {*ELSEWHERE_CALLED, *NOT_MODELLED_YET}


def test_the_whole_context_of_a_model_may_be_used(write: Write) -> None:
    path = write("s.yaml", changed("gpu:", "engine: {max_model_len: 131072}\ngpu:"))
    assert load(path).settings.engine.max_model_len == 131072


@pytest.mark.parametrize(
    ("quantiles", "says"),
    [
        ("[5]", "is not a list of two or more quantiles"),
        ("[[0, 1], [0.5, 2]]", "is no rising list of probabilities from 0 to 1"),
        ("[[0, 9], [1, 2]]", "is falling somewhere"),
        ("[0, 5]", "0 is not a length of 1 token or more"),
        ("[[0, 1], x]", "is not a pair of probability and length"),
        ("[.nan, 5]", "nan is not a length of 1 token or more"),
    ],
)
def test_quantiles_rise_from_probability_0_to_1(refused: Refused, quantiles: str, says: str) -> None:
    text = changed("128", f"{{distribution: empirical, quantiles: {quantiles}}}")
    lines = refused(text)
    assert len(lines) == 1
    assert lines[0].startswith("s.yaml:8: workload.output_tokens.quantiles: ")
    assert says in lines[0]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines(refused: Refused) -> None:
    lines = refused(
        "model: Llama-9\n"
        "gpu: RTX 4090\n"
        "pool: {blocks: 0}\n"
        "gpux: 1\n"
        "workload:\n"
        "  rate: -8/s\n"
        "  requests: 5\n"
        "  prompt_tokens: 0\n"
        "slo: {ttft: 2}\n"
        "horizon: .nan\n",
        "seed=x",
    )
    assert [line.split(": ")[:2] for line in lines] == [
        ["s.yaml:1", "model"],
        ["s.yaml:3", "pool.blocks"],
        ["s.yaml:4", "gpux"],
        ["s.yaml:5", "workload.output_tokens"],
        ["s.yaml:6", "workload.rate"],
        ["s.yaml:8", "workload.prompt_tokens"],
        ["s.yaml:9", "slo.ttft"],
        ["s.yaml:10", "horizon"],
        ["--set", "seed"],
    ]


def test_a_scenario_that_extends_itself_is_refused(refused: Refused) -> None:
    assert refused("extends: s.yaml\n") == [
        "s.yaml: extends: s.yaml -> s.yaml is a ring; a scenario cannot extend itself, directly or not"
    ]


def test_a_ring_of_scenarios_is_named(write: Write) -> None:
    write("b.yaml", "extends: sub/c.yaml\n")
    write("sub/c.yaml", "extends: ../a.yaml\n")
    with pytest.raises(InputError) as error:
        load(write("a.yaml", "extends: b.yaml\n"))
    assert "a.yaml -> b.yaml -> sub/c.yaml -> a.yaml is a ring" in str(error.value)


def test_a_mistake_in_an_extended_file_names_that_file(write: Write) -> None:
    write("base.yaml", changed("8/s", "-8/s"))
    with pytest.raises(InputError) as error:
        load(write("s.yaml", "extends: base.yaml\nseed: -1\n"))
    assert [line.split(": ")[:2] for line in str(error.value).splitlines()] == [
        ["base.yaml:5", "workload.rate"],
        ["s.yaml:2", "seed"],
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("workload.rate", "--set: workload.rate is no override; write KEY=VALUE"),
        ("=3", "--set: =3 is no override"),
        ("a..b=3", "--set: a..b=3 is no override"),
        ("workload.rate=-1/s", "--set: workload.rate: '-1/s' is negative"),
        ("workload.rat=1/s", "--set: workload.rat: 1/s is given for an unknown key; did you mean rate"),
        ("pool={blocks: [", "--set: pool: {blocks: [ is not a YAML value; quote it"),
        ("extends=x.yaml", "--set: extends: x.yaml cannot be set here; write it in the scenario file"),
        ("variants.x.seed=1", "--set: variants.x.seed: 1 cannot be set here"),
        ("seed=.inf", "--set: seed: inf is not"),
    ],
)
def test_a_wrong_override_is_told_as_such(refused: Refused, override: str, message: str) -> None:
    lines = refused(COMPLETE, override)
    assert len(lines) == 1
    assert lines[0].startswith(message)


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ("variants: 3\n", "s.yaml:9: variants: 3 is not a mapping; write NAME: {KEY: VALUE}"),
        ("variants: {a: 3}\n", "s.yaml:9: variants.a: 3 is not a mapping of changes"),
        ("variants: {a/b: {}}\n", "s.yaml:9: variants.a/b: a/b is no name of a variant"),
        ("variants:\n  a: {name: x}\n", "s.yaml:10: variants.a.name: x cannot be set in a variant"),
        ("variants:\n  a: {seed: 1, seed: 2}\n", "s.yaml:10: variants.a.seed: 2 is given a second time"),
        (
            "variants:\n  a: {workload: {rate: 1/s},\n    workload.rate: 2/s}\n",
            "s.yaml:11: variants.a.workload.rate: 2/s is given a second time in this variant",
        ),
        ("variants:\n  a: {sed: 1}\n", "s.yaml:10: sed: 1 is given for an unknown key; did you mean seed?"),
    ],
)
def test_a_wrong_variant_is_told_with_its_line(write: Write, variants: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_all(write("s.yaml", COMPLETE + variants))
    assert message in str(error.value)


def test_the_same_mistake_in_every_variant_is_told_once(write: Write) -> None:
    path = write("s.yaml", changed("8/s", "-8/s") + "variants: {a: {seed: 1}, b: {seed: -2}}\n")
    with pytest.raises(InputError) as error:
        load_all(path)
    assert [line.split(": ")[:2] for line in str(error.value).splitlines()] == [
        ["s.yaml:5", "workload.rate"],
        ["s.yaml:9", "seed"],
    ]


def test_a_scenario_made_in_python_is_checked_alike() -> None:
    with pytest.raises(InputError) as error:
        Scenario.from_dict({"model": "Llama-3.1-8B", "gpu": "H100", "workload": {"rate": 8}}, name="mine")
    lines = str(error.value).splitlines()
    assert "mine: workload.rate: 8 has no unit; write for example 8/s or 480/min" in lines
    assert len(lines) == 4
