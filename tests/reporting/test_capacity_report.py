"""The report of a checked table, in words and units."""

from kvsim.reporting.capacity import check, summary_lines


def test_the_figure_says_at_its_foot_what_made_it_and_how_far_off_it_is(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(check, "save_figure", lambda figure, *_: kept.append(figure) or [])
    row = {"logged": {"overhead_gib": 2.0}, "predicted": {"overhead_gib": 2.25}}
    summary = {"overhead_gib": {"n": 1, "median": 0.25, "p90": 0.25}}
    check.write_check({"default": {"rows": [], "summary": summary}}, tmp_path)
    [figure] = kept
    text = " ".join(" ".join(one.get_text() for one in figure.texts).split())
    assert "kvsim " in text
    assert "off by: median 0.25 GiB, p90 0.25 GiB, of 1 kinds of start" in text
    [axes] = check._overheads({"rows": [row], "summary": summary}).axes
    assert axes.collections[0].get_offsets().tolist() == [[2.0, 2.25]]


def test_scores_are_said_in_words_and_units():
    score = {"n": 20, "median": 0.04425, "p90": 0.8204}
    none = {"n": 0, "median": None, "p90": None}
    lines = summary_lines(
        {
            "n": 16,
            "overhead_gib": score,
            "kv_tokens": {"n": 16, "median": 0.00075, "p90": 0.016},
            "kv_tokens_tight": none,
            "baseline": {"overhead_gib": score},
            "where_the_baseline_is_weak": {"small_cards": {"overhead_gib": score, "baseline": none}},
            "interval_coverage": 1.0,
            "interval_median_width": None,
            "refusals_wrong": [],
        }
    )
    assert lines == [
        "overhead, off by: median 0.04 GiB, p90 0.82 GiB, of 20",
        "KV tokens, off by: median 0.075 %, p90 1.6 %, of 16",
        "KV tokens of tight cards (KV under 40 % of the card): none",
        "the baseline's overhead, off by: median 0.04 GiB, p90 0.82 GiB, of 20",
        "overhead of small cards: median 0.04 GiB, p90 0.82 GiB, of 20; the baseline: none",
        "inside the interval: 100 %",
        "median width of the interval, of the KV memory: none",
        "starts that do not: none",
    ]
