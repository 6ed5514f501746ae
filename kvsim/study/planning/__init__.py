"""What a plan is made of: goals, an analytic screen of candidates, and the search for the largest rate that they bear.

The screen needs no run; the search needs a judge of rates, which is whoever runs them.
"""
