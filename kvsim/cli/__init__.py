"""The command line: parses, calls, prints, and decides nothing."""
