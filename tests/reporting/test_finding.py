"""The words above and below the table: what the numbers say, first of all where nothing was served."""

import pytest

from kvsim.reporting.finding import finding, legend, measured, sources, three_digits, window
from tests.fake_results import fake_result


def changed(name="paged", waste=0.04, **metrics):
    result = fake_result(name, waste=waste)
    result.metrics |= {"rejected": 0, "finished": 100} | metrics
    return result


def refused(prompts, need, pool=400, arrived=None):
    """A run that rejected requests with these prompts, each of which needed `need` slots."""
    arrived = arrived or len(prompts)
    result = changed(pool_tokens=pool, arrived=arrived, rejected=len(prompts), finished=arrived - len(prompts))
    ids = list(range(arrived))
    ends = ["rejected"] * len(prompts) + ["finished"] * (arrived - len(prompts))
    result.tables["requests"] = {"id": ids, "prompt_tokens": prompts + [1] * (arrived - len(prompts)), "end": ends}
    rejected = ids[: len(prompts)]
    outcomes = ["reject"] * len(rejected)
    columns = {"outcome": outcomes, "cause": ["never"] * len(rejected), "need_tokens": [need] * len(rejected)}
    result.tables["events"] = {"request": rejected, **columns}
    return result


# 4 % of what is allocated, 72 % of the pool, and 0.4 % of the pool in holes: (2.88 + 0.4) / 72.4 = 4.5 %.


def ttft(p50_s):
    return {"ttft_s": {"p50": p50_s, "p99": p50_s * 2}}


def test_one_run_is_told_by_its_waste_its_requests_at_once_and_its_ttft():
    text = finding([changed(mean_running=26.2, **ttft(7.8))])
    assert text == (
        "Pool 41,408 tokens, 100 requests: paged wastes 5 % of the memory it occupies and runs 26 requests at once "
        "(TTFT p50 7.80 s)."
    )


def test_samples_run_as_sequences_of_their_own():
    result = changed(mean_running=26.2, **ttft(7.8))
    result.scenario_resolved["workload.samples"] = {"value": 4, "source": "line 9"}
    assert "and runs 26 sequences at once" in finding([result])
    assert legend([result])[-1] == "running: sequences; each sample of a request is one."


def test_rows_whose_names_do_not_tell_are_explained_where_they_are_shown():
    plain = changed(saved_share=0.0, duplicate_share=0.0, fragmentation=None, unusable_share=None)
    [memory] = legend([plain])
    assert memory.startswith("Memory is in shares of the pool, mean / peak.")
    holes = changed("contiguous", fragmentation=0.4, unusable_share=0.0)
    assert legend([plain, holes]) == [memory, "scattered, of free: free slots outside the largest hole."]


def test_a_comparison_is_told_by_the_two_that_differ_most_in_ttft():
    results = [
        changed("contiguous", 0.24, mean_running=20.8, **ttft(32.6)),
        changed("reserve", 0.8, mean_running=4.6, **ttft(229.0)),
        changed("paged", 0.04, mean_running=26.2, **ttft(7.8)),
    ]
    text = finding(results)
    assert text.startswith("Pool 41,408 tokens, 100 requests: paged wastes 5 % of the memory it occupies and runs 26")
    assert "requests at once; reserve wastes 8" in text
    assert text.endswith(" % and runs 5 (TTFT p50 7.80 s against 229 s).")
    assert "contiguous" not in text


def test_where_prefixes_are_found_again_the_finding_says_how_many():
    results = [changed("cached", 0.03, hit_rate=0.82, **ttft(0.04)), changed("paged", 0.04, **ttft(1.2))]
    assert "cached finds 82 % of all prompt tokens in its cache, wastes 3" in finding(results)


def test_those_that_wait_alike_are_told_by_their_waste():
    text = finding([changed("a", 0.5, **ttft(1.0)), changed("b", 0.1, **ttft(1.05))])
    assert text.index("b wastes 1") < text.index("a wastes 5")


def test_different_pools_and_traffic_are_not_called_the_same():
    assert finding([changed(), changed("b", pool_tokens=16)]).startswith("Pools of 16 to 41,408 tokens, 100 requests")
    assert finding([changed(), changed("b", arrived=90)]).startswith("Pool 41,408 tokens, 90 to 100 requests")


def test_a_run_without_a_pool_has_no_waste():
    result = changed("no-cache", pool_tokens=None, mean_share=None, mean_running=3.0, **ttft(1.0))
    assert finding([result]) == "No pool, 100 requests: no-cache runs 3 requests at once (TTFT p50 1.00 s)."
    assert finding([result, changed()]).startswith("Pool 41,408 tokens, 100 requests: ")


@pytest.mark.parametrize(
    ("prompts", "need", "said"),
    [
        ([9000] * 3, 400, "All 3 requests were rejected: a prompt of 9,000 tokens leaves no room for an answer in "
                          "max_model_len 8,192."),
        ([8500, 9000], 400, "All 2 requests were rejected: even the shortest prompt, 8,500 tokens, leaves no room for "
                            "an answer in max_model_len 8,192."),
        ([500, 700], 512, "All 2 requests were rejected: even the shortest prompt, 500 tokens, needs room for 512 "
                          "tokens and does not fit the pool of 400."),
        ([9000], 400, "The one request was rejected: a prompt of 9,000 tokens leaves no room for an answer in "
                      "max_model_len 8,192."),
    ],
)  # fmt: skip
def test_that_nothing_was_served_is_all_there_is_to_say(prompts, need, said):
    assert finding([refused(prompts, need)]) == said


def test_a_limit_that_nobody_gave_is_not_made_up():
    result = refused([9000], 400)
    result.scenario_resolved = {}
    assert finding([result]).endswith("leaves no room for an answer in max_model_len.")


def test_some_that_were_rejected_are_told_after_the_finding():
    text = finding([refused([500, 700], 704, arrived=10)])
    assert text.startswith("Pool 400 tokens, 10 requests: paged ")
    assert text.endswith(
        " 2 of 10 requests were rejected: the longest prompt, 700 tokens, needs room for 704 tokens and does not fit "
        "the pool of 400."
    )


def test_those_who_were_turned_away_are_told_apart_from_those_who_never_fit():
    result = refused([500, 700, 900], 904, arrived=10)
    result.tables["events"]["cause"] = ["queue", "never", "queue"]
    result.metrics["blocked"] = result.metrics["blocked"] | {"queue": 2, "never": 1}
    result.scenario_resolved["engine.max_queued_requests"] = {"value": 4, "source": "line 3"}
    others = "4 others waited already (engine.max_queued_requests)"
    assert finding([result]).endswith(
        f" 3 of 10 requests were rejected: 2 since {others}; a prompt of 700 tokens needs room for 904 tokens and does "
        "not fit the pool of 400."
    )
    result.metrics["blocked"] |= {"queue": 3, "never": 0}
    assert finding([result]).endswith(f" 3 of 10 requests were rejected: {others}.")


def test_a_variant_that_served_nothing_is_named_and_comes_first():
    bad = refused([9000] * 100, 400)
    bad.name = "reserve"
    text = finding([changed(), bad])
    assert text.startswith("reserve: all 100 requests were rejected: a prompt of 9,000 tokens leaves no room")
    assert "Pool 41,408 tokens, 100 requests: paged wastes" in text


def test_requests_that_ended_in_other_ways_are_counted():
    result = changed(arrived=9, finished=0, rejected=2, aborted=3, unfinished=4)
    assert finding([result]) == "None of the 9 requests finished: 2 rejected, 3 aborted, 4 unfinished."


def test_no_request_is_no_finding():
    assert finding([changed(arrived=0, finished=0)]) == "No request arrived."
    with pytest.raises(ValueError, match="at least one"):
        finding([])


@pytest.mark.parametrize(
    ("measured_s", "simulated_s", "until", "said"),
    [
        ([0.0, 239.6], 260.0, "auto", "0 to 239.6 s (to the last arrival)"),
        ([0.0, 260.0], 260.0, "auto", "0 to 260 s (the whole run)"),
        ([10.0, 260.0], 260.0, "last_finish", "10 to 260 s (to the end of the run)"),
        ([0.0, 260.0], 260.0, "saturated", "0 to 260 s (while requests waited)"),
        ([0.0, 0.0123], 0.02, "auto", "0 to 0.012 s (to the last arrival)"),
    ],
)
def test_the_measured_window_is_named(measured_s, simulated_s, until, said):
    result = changed(window_s=measured_s, simulated_s=simulated_s)
    result.scenario_resolved["window.until"] = {"value": until, "source": "default"}
    assert window(result) == said
    [line] = measured(result)
    assert line.startswith(f"measured: {said}; finished, rejected, preemptions")


def test_a_window_that_a_result_does_not_know_is_not_named():
    result = fake_result()
    del result.metrics["window_s"]
    assert measured(result) == []


def test_sources_are_told_in_words_and_the_keys_stay():
    result = fake_result()
    assert sources(result)[::2] == ["step times: estimated from data sheets", "pool: given: 2,588 blocks"]
    assert result.provenance["timing"] == "datasheet"


def test_step_times_state_the_error_to_expect_of_them():
    result = fake_result()
    said = "dense models under vllm on other GPUs, nothing fitted, 198 served runs"
    assert sources(result)[1] == f"expected error: TPOT 8 % median, 14 % p90; TTFT 72 % median, 86 % p90 ({said})"
    result.expected_error |= {"ttft_median": None, "ttft_p90": None}
    assert sources(result)[1] == f"expected error: TPOT 8 % median, 14 % p90 ({said})"


def test_where_no_class_fits_the_error_is_said_to_be_unknown():
    result = fake_result()
    result.expected_error = {"tpot_median": None, "ttft_median": None, "basis": "not known: nobody measured it"}
    assert sources(result)[1] == "expected error: not known: nobody measured it"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0021, "0.0021"),
        (0.0361, "0.04"),
        (0, "0.00"),
        (7.8, "7.80"),
        (32.64, "32.6"),
        (229.4, "229"),
        (41408.0, "41,408"),
        (None, "-"),
    ],
)
def test_people_read_three_digits(number, text):
    assert three_digits(number) == text
