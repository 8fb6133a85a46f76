"""Heuristics that choose GPUs for each job: Optimus, Pollux-like, ElasticFlow-like.

A policy is found by its name (`ronda.solvers.registry`). The climb over GPU counts that these
policies share is in `ronda.solvers.greedy`.
"""
