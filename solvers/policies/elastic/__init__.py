"""Heuristics that choose GPUs for each job: Optimus, Pollux-like, ElasticFlow-like."""
