"""A run in the forms of other tools: one file a form, one registered name each."""

from kvsim.reporting.exports.interface import Export, Options, Source
from kvsim.reporting.exports.registry import EXPORTS
from kvsim.reporting.exports.source import read_source

__all__ = ["EXPORTS", "Export", "Options", "Source", "read_source"]
