"""The program that measures a GPU: its compiler is found, it is built, run, and given allocation traces to replay."""
