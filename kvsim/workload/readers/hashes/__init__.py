"""Formats of one request a line of JSON that name the prompt's prefix blocks."""
