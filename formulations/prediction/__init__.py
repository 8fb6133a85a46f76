"""Predictions of sizes and speeds before they are known, and how they are learnt.

Only the driver knows the `truth`.
"""
