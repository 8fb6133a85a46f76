"""Policies that give each job what it asked for: FIFO, SJF, SRTF, Tiresias.

A policy is found by its name (`ronda.solvers.registry`). How jobs fill a cluster in an order is in
`ronda.solvers.greedy`.
"""
