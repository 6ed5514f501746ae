"""Formats of one request a row, in named columns."""
