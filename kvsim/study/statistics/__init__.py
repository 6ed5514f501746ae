"""What many runs, or one long one, say and how sure it is: pure numpy and scipy, no engine.

Arrays may hold many studies at once: the last axis is what an interval is taken over (replications, batches), axes
before it are studies of their own. Methods are those of Law, Simulation Modeling and Analysis, 5th ed., chapters 9-11,
unless a function says otherwise.
"""
