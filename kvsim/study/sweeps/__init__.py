"""Many runs of one scenario: points, runs, and what came of them."""
