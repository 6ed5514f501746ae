"""Traces that a test writes for itself."""

import pytest


@pytest.fixture
def write(tmp_path):
    def written(text, name="trace"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return written
