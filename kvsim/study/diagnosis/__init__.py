"""What presses on the KV memory of a run, and what each known cure brings: measured, by running again with it.

Three pressures, and their cures: *representation* (bytes a token; fewer of them), *organisation* (slots that hold no
valid KV; other blocks) and *reuse* (the same KV computed again; prefix caching).
"""

from kvsim.study.diagnosis.diagnose import Diagnosis, diagnose
from kvsim.study.diagnosis.given import scenario_of
from kvsim.study.diagnosis.static import Static, static_pressures

__all__ = ["Diagnosis", "Static", "diagnose", "scenario_of", "static_pressures"]
