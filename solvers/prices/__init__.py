"""A separable problem by prices, with a certificate.

Here stand the Lagrangian dual, the core that prices leave undecided, and branching on whole nodes.
How a round becomes such a problem is in `ronda.formulations.allocation`.
"""
