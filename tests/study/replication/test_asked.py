"""What does not go together is refused before anything runs."""

import pytest

from kvsim.errors import InputError
from kvsim.study.replication.asked import Asked
from tests.study.replication.cases import traced, variants


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(replications=3, baseline="nix"), "--baseline nix: is no variant here; choose blocks or large blocks"),
        (Asked(baseline="blocks"), "--baseline: differences need intervals"),
        (Asked(replications=0), "--replications 0: must be at least 1"),
        (Asked(until_ci=1.0), "--until-ci 1: must be a share above 0 and below 1"),
        (Asked(until_ci=0.0), "--until-ci 0: must be a share"),
        (Asked(batches=1), "--batches 1: must be at least 2"),
        (Asked(batches=5, replications=5), "--batches: cuts one run instead of repeating it"),
    ],
)
def test_one_message_says_what_is_wrong(asked, said):
    with pytest.raises(InputError) as refused:
        asked.check(variants())
    assert str(refused.value).startswith(said)


def test_more_runs_of_a_trace_cannot_make_it_more_certain():
    with pytest.raises(InputError, match="azure-conv-2023 is one realisation, and more runs of it are the same"):
        Asked(until_ci=0.05).check(traced("azure-conv-2023"))


def test_variants_on_different_traffic_are_no_pairs():
    mixed = [variants()[0], traced("azure-conv-2023")[1]]
    with pytest.raises(InputError, match="variants differ"):
        Asked(replications=2).check(mixed)


def test_two_variants_of_one_name_are_refused():
    with pytest.raises(InputError, match="blocks: names two variants"):
        Asked(replications=2).check([variants()[0]] * 2)


def test_the_first_variant_is_the_baseline_unless_said():
    assert Asked(replications=2).check(variants()) == "blocks"
    assert Asked(replications=2, baseline="large blocks").check(variants()) == "large blocks"
