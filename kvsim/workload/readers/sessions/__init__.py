"""Formats that hold whole sessions, or the rounds of sessions, in token counts."""
