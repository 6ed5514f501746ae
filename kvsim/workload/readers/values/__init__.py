"""The values that traces hold, read exactly: times, token counts, and what prompts begin with."""
