"""The books that allocators keep of their sequences: what each has written, what it holds, and what several share."""
