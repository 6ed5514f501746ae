"""Formats that hold text: token counts come from a tokenizer or from a ratio of characters."""
