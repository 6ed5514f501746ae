"""How far step times and served runs are off on rows that nothing was fitted to: held-out groups, two baselines."""
