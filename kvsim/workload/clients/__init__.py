"""What clients say with a request: how much they let the engine write, how long they wait, whose they are.

`limits` holds `max_tokens` and patience, `tags` tenants, priorities and classes of service, `beam` beam search.
"""
