"""Policies that let jobs of one fusion class share GPUs: HFHT, and BASE+fused.

A policy is found by its name (`ronda.solvers.registry`). How fast arrays are, and how many jobs fit
a GPU, is in `ronda.instances.models`.
"""
