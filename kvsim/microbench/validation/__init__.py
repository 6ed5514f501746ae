"""How far a calibration is off on operations that it never saw, beside two baselines, and whether that will do."""
