"""One request's KV life cycle for people: the same phases as text, as figures and in a folder of both."""

from kvsim.reporting.explain.folder import write_explanation
from kvsim.reporting.explain.text import Section, sections

__all__ = ["Section", "sections", "write_explanation"]
