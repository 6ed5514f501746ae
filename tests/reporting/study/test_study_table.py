"""The table of a study reads plainly, its JSON keeps the contract, its figure is drawn the same each time."""

import json
from dataclasses import replace

import pytest

from kvsim.metrics.result import to_json
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.run_folder import write_comparison
from kvsim.reporting.study.figure import study_figure
from kvsim.reporting.study.table import basis, in_short, plus_minus, rows
from kvsim.reporting.style import save_figure
from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.study import Study, Variant
from kvsim.study.statistics.intervals import Interval
from kvsim.study.statistics.paired import Difference
from kvsim.study.statistics.saturation import Queue
from tests.fake_results import fake_result

QUIET = Queue(growth=0.0, growth_error=0.01, saturated=False, memory=0.1)
FULL = Queue(growth=0.4, growth_error=0.02, saturated=True, memory=0.9)


def difference(estimate, half, verdict, ratio=0.125):
    return Difference(Interval(estimate, estimate - half, estimate + half, 10), verdict, ratio)


def around(estimate, half, apart=None):
    return Estimate(Interval(estimate, estimate - half, estimate + half, 10), (estimate,) * 10, None, apart)


def study(**changes):
    naive = {"waste_share": around(0.5, 0.02), "ttft_s.p99": around(4.0, 0.4), "rejected": around(0.0, 0.0)}
    paged = {
        "waste_share": around(0.04, 0.002, difference(-0.46, 0.02, "better")),
        "ttft_s.p99": around(4.1, 0.5, difference(0.1, 0.3, "not distinguishable")),
        "rejected": around(0.0, 0.0, difference(0.0, 0.0, "same", None)),
    }
    variants = [Variant("naive", naive, QUIET), Variant("paged", paged, QUIET)]
    made = Study("replications", "naive", 0.95, 10, [7, 8], variants)
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(12.345, 10.945, 13.745, 5), "12.3 ± 1.4"),
        (Interval(0.08234, 0.08104, 0.08364, 5), "0.0823 ± 0.0013"),
        (Interval(1234.0, 1111.0, 1357.0, 5), "1,230 ± 120"),
        (Interval(0.0571, 0.0567, 0.0575, 5), "0.0571 ± 0.0004"),
        (Interval(0.0571, 0.05674, 0.05746, 5), "0.0571 ± 0.0004"),
        (Interval(0.0571, 0.05675, 0.05745, 5), "0.05710 ± 0.00035"),
        (Interval(5.0, 4.0, 6.0, 5), "5.0 ± 1.0"),
        (Interval(2.0, 2.0, 2.0, 5), "2.00 ± 0.00"),
        (Interval(2.925, 0.746, 6.719, 9), "2.9 +3.8 -2.2"),
        (Interval(99.1166, None, None, 5), "99.1"),
        (Interval(0.0, 0.0, 0.0, 5), "0.00 ± 0.00"),
    ],
)
def test_one_or_two_digits_of_an_interval_count_and_the_estimate_goes_as_far(interval, text):
    assert plus_minus(interval) == text


def test_a_difference_has_a_sign_and_no_minus_before_zero():
    assert plus_minus(Interval(0.5, 0.4, 0.6, 5), 100, signed=True) == "+50 ± 10"
    assert plus_minus(Interval(-0.0001, -0.1, 0.0998, 5), signed=True) == "+0.00 ± 0.10"


def test_rows_are_metrics_with_every_variant_and_zeros_are_left_out():
    found = dict(rows(study()))
    assert [metric.key for metric in found] == ["waste_share", "ttft_s.p99"]
    waste = next(iter(found.values()))
    assert (waste[0].variant, waste[0].value, waste[0].difference) == ("naive", "50.0 ± 2.0", "")
    assert (waste[1].difference, waste[1].verdict, waste[1].variance) == ("-46.0 ± 2.0", "better", "0.12")


def test_a_variant_without_a_metric_has_a_dash():
    one = study()
    bare = replace(one, variants=[one.variants[0], replace(one.variants[1], estimates={})])
    assert next(rows(bare))[1][1].value == "-"


def test_what_was_found_is_told_in_a_sentence_for_each_but_the_baseline():
    assert in_short(study()) == ["paged against naive: better in waste; not distinguishable in 1 other."]
    one = study()
    alike = {
        key: replace(found, difference=replace(found.difference, verdict="same"))
        for key, found in one.variants[1].estimates.items()
    }
    same = replace(one, variants=[one.variants[0], replace(one.variants[1], estimates=alike)])
    assert in_short(same) == ["paged against naive: the same in all metrics."]
    bare = replace(one, variants=[one.variants[0], replace(one.variants[1], estimates={})])
    assert in_short(bare) == ["paged against naive: nothing to compare."]


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ((FULL, QUIET), "paged keeps up with this traffic and naive does not."),
        ((QUIET, FULL), "paged does not keep up with this traffic, and naive does."),
        ((FULL, FULL), "Neither paged nor naive keeps up with this traffic."),
    ],
)
def test_of_saturated_variants_only_that_is_said(queues, said):
    one = study()
    full = [replace(variant, queue=queue) for variant, queue in zip(one.variants, queues, strict=True)]
    assert in_short(replace(one, variants=full)) == [said]


def test_what_intervals_rest_on_is_told():
    assert basis(study()) == (
        "95% intervals from 10 replications of each variant on the same random streams; differences are to naive, "
        "run by run"
    )
    assert "10 batches of one run" in basis(study(method="batches"))
    assert "bootstrap of the 10 sessions" in basis(study(method="sessions"))


def test_the_json_of_a_comparison_gains_a_key_and_keeps_the_others():
    results = [fake_result("naive"), fake_result("paged")]
    plain, whole = comparison_summary("azure", results), comparison_summary("azure", results, study())
    assert {key: whole[key] for key in plain} == plain
    assert list(whole) == [*plain, "study"]
    told = whole["study"]
    assert list(told) == [
        "method", "baseline", "level", "samples", "seeds", "until_ci", "warmup", "notes", "variants",
    ]  # fmt: skip
    paged = told["variants"][1]
    assert paged["trusted"] is True
    waste = paged["metrics"]["waste_share"]
    assert waste["estimate"] == 0.04
    apart = waste["difference"]
    assert (apart["estimate"], apart["low"], apart["high"]) == pytest.approx((-0.46, -0.48, -0.44))
    assert (apart["samples"], apart["verdict"], apart["variance_ratio"]) == (10, "better", 0.125)
    assert told["variants"][0]["metrics"]["waste_share"]["difference"] is None
    assert json.loads(to_json(whole)) == whole


def test_a_saturated_variant_is_told_as_such_and_never_trusted():
    one = study()
    full = replace(one, variants=[one.variants[0], replace(one.variants[1], queue=FULL)])
    told = comparison_summary("azure", [fake_result()], full)["study"]["variants"][1]
    assert told["saturated"] is True
    assert told["trusted"] is False


def test_the_figure_is_the_same_each_time_and_lies_in_the_folder(tmp_path):
    results = [fake_result("naive", rows=20), fake_result("paged", rows=20)]
    paths = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        paths.append(save_figure(study_figure(study(), results), tmp_path / place, "intervals"))
    for one, other in zip(*paths, strict=True):
        assert one.read_bytes() == other.read_bytes()
    with pytest.raises(ValueError, match="no metric"):
        study_figure(study(variants=[Variant("naive", {}, None)]), results)


def crowded():
    """A study of three: `slow` is saturated at 61 s beside intervals around 4 s, and `paged` is not to be trusted."""
    one = study()
    naive, paged = one.variants
    late = Estimate(Interval(61.2, None, None, 10), (61.2,) * 10, None, difference(57.2, 3.0, "saturated"))
    slow = Variant(
        "slow", {"ttft_s.p99": late, "waste_share": around(0.51, 0.01, difference(0.01, 0.0, "worse"))}, FULL
    )
    return replace(one, variants=[naive, replace(paged, queue=replace(QUIET, memory=0.6)), slow])


def test_a_saturated_number_far_away_stands_at_the_edge_and_stretches_no_axis():
    figure = study_figure(crowded(), [fake_result(name) for name in ("naive", "paged", "slow")])
    waste, ttft = figure.axes
    low, high = ttft.get_xlim()
    assert 3 < low < 3.6
    assert 4.6 < high < 5
    assert [text.get_text() for text in ttft.texts] == ["61.2"]
    assert not waste.texts


def test_the_figure_says_whose_numbers_not_to_trust_and_what_its_colours_mean():
    results = [fake_result(name) for name in ("naive", "paged", "slow")]
    figure = study_figure(crowded(), results)
    said = " ".join(text.get_text() for text in figure.texts)
    assert "Saturated, so that numbers depend on the length of the run: slow." in said
    assert "Intervals not to be trusted, as the run is too short: paged." in said
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    assert key == ["better", "worse", "baseline, or not distinguishable", "saturated: no interval"]
    calm = study_figure(study(), results)
    assert not any("trusted" in text.get_text() for text in calm.texts)
    assert [text.get_text() for text in calm.legends[0].get_texts()] == ["better", "baseline, or not distinguishable"]


def test_batches_that_correlate_are_not_trusted_either():
    one = study(method="batches")
    alike = replace(one, variants=[replace(variant, correlation=0.4) for variant in one.variants])
    told = comparison_summary("azure", [fake_result()], alike)["study"]["variants"]
    assert [variant["trusted"] for variant in told] == [False, False]


def test_a_folder_with_a_study_has_its_figure_and_one_without_loses_it(tmp_path):
    results = [fake_result("naive", rows=20), fake_result("paged", rows=20)]
    written = write_comparison("azure", results, tmp_path / "out", study=study())
    assert (tmp_path / "out" / "intervals.svg") in written
    assert "`intervals.png`: what each variant has" in (tmp_path / "out" / "README.md").read_text()
    assert "study" in json.loads((tmp_path / "out" / "summary.json").read_text())
    write_comparison("azure", results, tmp_path / "out")
    assert not (tmp_path / "out" / "intervals.svg").exists()
    assert "study" not in json.loads((tmp_path / "out" / "summary.json").read_text())
