"""SGLang's scheduler (0.5.23) over a radix tree: passes of prefill or decode, admission, retraction.

It drives the tree and the pool itself and knows of a request its prompt and its `max_new_tokens`, never its true end.
"""
