"""The same question asked many times: replications on streams of their own, and what they say together."""
