"""Recorded sessions played again: a call comes when those it waited for have been answered here, not there.

`traffic` is the way in. `calls` reads a trace as calls that wait for each other, `waits` says how long, `contents` what
their prompts hold, and `loop` lets them come, by the answers of the engine or at their recorded times.
"""
