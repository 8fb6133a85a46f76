"""Which jobs of a batch share a GPU, how many, and where: exactly, and by rules.

What arrays there are and what an arrangement costs is in `ronda.formulations.fusion`. Rules are in
``greedy``; ``exact`` loads HiGHS and Pyomo, so nothing is exported.
"""
