"""The parts of the time to the first token are the means of the metrics, and add up to that of the TTFT."""

import pytest

from kvsim.reporting.figures.latency.first_token import PARTS, first_token, has_first_tokens
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def test_bars_are_queue_and_prefill_and_end_at_the_mean_ttft():
    results = pressed()
    [axes] = first_token(results).axes
    for container, name in zip(axes.containers, PARTS, strict=True):
        assert [bar.get_width() for bar in container] == pytest.approx([r.metrics[name]["mean"] for r in results])
    ends = [bar.get_x() + bar.get_width() for bar in axes.containers[-1]]
    assert ends == pytest.approx([result.metrics["ttft_s"]["mean"] for result in results])


def test_a_run_without_tokens_has_none():
    result = fake_result()
    result.metrics["ttft_s"] = result.metrics["prefill_s"] = None
    assert not has_first_tokens([result])
    with pytest.raises(ValueError, match="got tokens"):
        first_token([result])
