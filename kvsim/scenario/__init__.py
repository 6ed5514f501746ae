"""Scenarios: YAML files to checked settings, with the place of every value, and settings to engine
objects."""

from kvsim.scenario.resolve import Scenario, load, load_all
from kvsim.scenario.schema import Settings, schema

__all__ = ["Scenario", "Settings", "load", "load_all", "schema"]
