"""Lengths of the usual continuous laws, rounded to whole tokens: one file a law."""
