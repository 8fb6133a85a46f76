"""HFTA: small models of one kind share a GPU (Wang, Yang, Zheng, Li, Pekhimenko, MLSys 2021).

An array trains k models as one process with fused operators; HFHT is the tuner that cuts trials
into arrays. The poster shows for PointNet on an A100 a speed-up of 11.50 over one model after
another, 4.72 over processes side by side (MPS) and 4.88 over slices (MIG) (published; digitised).

=================  ===========================================================================
`hfht`             HFHT's rule: full arrays in order, which run to their end (read in the code)
`fused`            BASE+fused: an optimising policy that fuses, packs or leaves alone (ours)
`jointly`          a fusion class as one elastic job, cut into arrays of even widths (ours)
`fit`              time and memory of k models on a GPU, fitted to measurements (inferred)
`repetitive`       repetitive jobs found in a trace, as the paper counts them (published)
=================  ===========================================================================

Faithful: which models may be fused, HFHT's chunks. Rebuilt: the law of a step's time, max(floor, α
+ β k), within 0.2 to 2.7 % of the poster's curves; arrays beside other jobs, which members leave
and join; watts of an array, which nobody has measured.

In the core, as any policy meets an array: how fast it is and what fits, `ronda.instances.models`
(`sharing`); an array as one job for policies that do not fuse,
`ronda.solvers.as_one`; fusion classes, `ronda.solvers.greedy.groups`; HFHT's waves are in
lab/fusion. Pages: docs/systems/hfta.md, docs/fusion.md.
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
