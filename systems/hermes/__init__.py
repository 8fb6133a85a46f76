"""Hermes: in a search for hyper-parameters, run first what converges (Son et al. 2021).

Son, Yoo, Kim, Kim, Lee, Park, *Electronics* 2021, 10, 350, claim that a search ends up to 4.04
times sooner than with FIFO, round-robin and SLAQ (published, abstract). Their formula of
convergence, quantum, cost of a checkpoint and testbed are not public.

=================  ===========================================================================
`hermes`           Hermes: two levels, a queue for each GPU, preemption that keeps progress
                   (published); slope, hysteresis, probes and load balancing (inferred)
`round_robin`      its comparators, with FIFO of the core: all turns as long
`slaq`             the largest fall of the loss is expected next (SoCC 2017; published, and
                   inferred for trials of one GPU)
`halving`          of those that came to a rung, the best 1 / eta, for the next three
`asha`             go on from rung to rung without waiting (MLSys 2020; read in code)
`hyperband`        brackets that are halved together (JMLR 2018; published)
`hypersched`       as good a trial as possible by a deadline (SoCC 2019; read in code)
`sweep`            trials by where they are believed to end (ours)
`probes`           its new trials share GPUs, and the worse half leaves (ours)
`trials`, `order`  trials and their losses as all of them see them, and the plan of an order
=================  ===========================================================================

Faithful: what the abstract and public fragments of the page say. Rebuilt: all the rest, so that
4.04 is to be set beside ours (up to 5.16, against round-robin) and not to be met.

In the core: losses and sweeps as records, `ronda.instances.learning`; generated searches,
`ronda.instances.generate`; what a search found and when, `ronda.instances.outcome`; jobs of one
fusion class, `ronda.solvers.greedy.groups`. Pages: docs/systems/hermes.md, docs/hermes.md.
"""

POLICIES = {
    "hermes": "ronda.systems.hermes.hermes:Hermes",
    "round-robin": "ronda.systems.hermes.round_robin:RoundRobin",
    "slaq": "ronda.systems.hermes.slaq:Slaq",
    "asha": "ronda.systems.hermes.asha:Asha",
    "hyperband": "ronda.systems.hermes.hyperband:Hyperband",
    "hypersched": "ronda.systems.hermes.hypersched:HyperSched",
    "sweep": "ronda.systems.hermes.sweep:SweepPolicy",
}
