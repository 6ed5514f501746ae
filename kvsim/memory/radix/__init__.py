"""A radix tree over the KV of finished and running requests: who may reuse what, and what goes first.

The rules are SGLang's (0.5.23, its unified tree): token- or page-granular edges, locks on whole paths, eviction of
leaves by a policy, and a host tier behind the device. The tree knows no requests: it is a structure of its own that an
allocator, or SGLang's scheduler, drives.
"""
