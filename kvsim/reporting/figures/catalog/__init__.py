"""Figures of models alone: what a token of KV takes, how it compares with the weights, how many requests fit."""
