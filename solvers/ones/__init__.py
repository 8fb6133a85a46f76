"""ONES between its ticks: scores, memory, operators at work and deployment.

The genome is in `ronda.formulations.ones`, the policy in `ronda.solvers.policies.systems`.
"""
