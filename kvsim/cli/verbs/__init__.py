"""One file per verb: `add` says what it takes, `execute` does it and returns the exit code.

Nothing is imported at the top of these files that costs time: the parser needs all of them for every call.
"""
