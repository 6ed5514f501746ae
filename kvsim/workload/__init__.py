"""Who arrives, when, and how long: the requests of a run, from a trace or generated, as one stream.

`stream.Workload` is the way in. Generated traffic has a room for each question: `arrivals` (when), `lengths` (how
long), `layers` (what prompts share), `sessions` (what follows what, in open and closed loops), `clients` (what else a
request carries) and `presets` (all of these as recorded somewhere, by name); `reshape` makes other traffic of the same.
`trace` and `readers` hold recorded traffic; of its whole requests (`trace.recording`) `statistics`, `fit` and `convert`
make something. `streams` are the random streams. Nothing here knows an engine, and only `clients` may turn a
true output length into something that a policy sees.
"""
