"""Predictions of sizes and speeds, learnt from jobs before the real values are known.

Only the driver knows the `truth`.
"""
