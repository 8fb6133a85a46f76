"""Policies for searches for hyper-parameters: which trial runs next, and which is given up.

Hermes, round-robin and SLAQ order trials; ASHA, Hyperband and HyperSched stop them early; `sweep`
is ronda's own. The rule of each stands in its file, as functions of reported losses; `trials` is
what all of them look at, `order` the plan that they make. Jobs of no sweep come first in all of
them, in order of submission.
"""
