"""Figures of what becomes of requests: who runs and waits, who loses its memory, who does what when."""
