"""Rounds of up to millions of tasks on nodes, as arrays rather than records.

A `Round` has an object per job and any number of ways to run it. A `TaskRound` has a row per task,
and what its tasks need of a node is known.
"""
