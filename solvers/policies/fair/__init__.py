"""Policies after published systems that keep state between rounds: Gavel and Shockwave.

A policy is found by its name (`ronda.solvers.registry`).
"""
