"""How large a cache is worth it: the share of a trace's prompts that a cache finds, over its size and by policy."""
