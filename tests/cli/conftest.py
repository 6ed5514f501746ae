"""The command line is tested against stand-ins for what it calls: it parses, calls, prints, no more."""

import importlib
from types import SimpleNamespace

import pytest

from tests.fake_results import fake_result


class Calls(list):
    """What the stand-ins were called with, in order: (name, positional arguments, keyword arguments)."""

    def named(self, name):
        return [(args, kwargs) for called, args, kwargs in self if called == name]


@pytest.fixture
def calls(monkeypatch):
    """Stand-ins for loading and running; made-up results of the variants `contiguous` and `paged`."""
    made = Calls()
    settings = SimpleNamespace(fleet=None)
    variants = [SimpleNamespace(name="azure", label=label, settings=settings) for label in ("contiguous", "paged")]

    def stand_in(name, answer):
        def called(*args, **kwargs):
            made.append((name, args, kwargs))
            return answer(*args, **kwargs)

        return called

    def compare(pairs, **kwargs):
        return [fake_result(name) for name, _ in pairs]

    scenario, study = (importlib.import_module(f"kvsim.{room}") for room in ("scenario", "study"))
    monkeypatch.setattr(scenario, "load", stand_in("load", lambda *a, **k: variants[1]), raising=False)
    monkeypatch.setattr(scenario, "load_all", stand_in("load_all", lambda *a, **k: variants), raising=False)
    monkeypatch.setattr(scenario, "schema", stand_in("schema", lambda: {"type": "object"}), raising=False)
    monkeypatch.setattr(study, "run", stand_in("run", lambda *a, **k: fake_result()), raising=False)
    monkeypatch.setattr(study, "compare", stand_in("compare", compare), raising=False)
    return made
