"""A diagnosis as plain values: what `--json` prints."""

from dataclasses import asdict
from typing import Any

from kvsim.study.diagnosis.diagnose import Diagnosis
from kvsim.study.diagnosis.static import CAUTION, Static


def record(found: Diagnosis, verdict: str) -> dict[str, Any]:
    """Everything about a diagnosis; `verdict` is its sentence."""
    result, best = found.result, found.best
    return {
        "name": result.name,
        "seed": result.seed,
        "version": result.version,
        "provenance": dict(result.provenance),
        "verdict": verdict,
        "dominant": found.dominant,
        "best_cure": None if best is None else best.cure.name,
        "pressures": asdict(found.pressures),
        "shortage": asdict(found.shortage),
        "limits": asdict(found.limits),
        "before": asdict(found.before),
        "cures": [
            {
                "name": one.cure.name,
                "pressure": one.cure.pressure or None,
                "changes": dict(one.cure.changes),
                "after": None if one.numbers is None else asdict(one.numbers),
                "error": one.error,
            }
            for one in found.tried
        ],
        "notes": found.notes,
        "not_modelled": list(result.not_modelled),
    }


def static_record(found: Static) -> dict[str, Any]:
    """The static form, with its caution."""
    return {**asdict(found), "reusable_share": found.reusable_share, "caution": CAUTION}
