"""Policies that let jobs of one fusion class share GPUs: HFHT, and BASE+fused.

A policy is found by its name (`ronda.solvers.registry`). How fast arrays are, and how many jobs fit
a GPU, is in `ronda.instances.models`.
"""

POLICIES = {
    "hfht": "ronda.systems.hfta.hfht:Hfht",
    "prices+fused": "ronda.systems.hfta.fused:prices",
    "milp+fused": "ronda.systems.hfta.fused:milp",
    "evolve+fused": "ronda.systems.hfta.fused:evolve",
}
COMMANDS = {
    "profile fit-fusion": (
        "ronda.cli.commands.profile.fit_fusion:command",
        "Fit time and memory of models that share a GPU.",
    ),
    "instances detect-sweeps": (
        "ronda.cli.commands.instances.detect_sweeps:command",
        "Find repetitive jobs in a trace.",
    ),
}
