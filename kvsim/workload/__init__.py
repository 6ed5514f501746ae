"""Who arrives, when, and how long: the requests of a run, from a trace or generated, as one stream.

`stream.Workload` is the way in. `arrivals`, `lengths` and `client` hold the policies by name, `trace` and
`readers` the recorded traffic, `streams` the random streams. `recording` reads a trace as whole requests, of which
`statistics`, `fit` and `convert` make something. Nothing here knows an engine, and only `client`
may turn a true output length into something that a policy sees.
"""
