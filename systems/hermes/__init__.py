"""Hermes: a search for hyper-parameters runs first the trials that converge (Son et al. 2021).

Son, Yoo, Kim, Kim, Lee, Park, *Electronics* 2021, 10, 350, claim that a search ends up to 4.04
times sooner than with FIFO, round-robin and SLAQ (published, abstract). Their formula for
convergence, quantum, checkpoint cost and testbed are not public.

=================  ===========================================================================
`hermes`           Hermes: two levels, a queue for each GPU, preemption that keeps progress
                   (published); slope, hysteresis, probes and load balancing (inferred)
`comparators`      comparators of Hermes, like FIFO of the core: round-robin, in which all turns are
                   equally long, and SLAQ: the largest expected fall of the loss runs next (SoCC
                   2017; published, and inferred for trials of one GPU)
`halving`          the best 1 / eta of the trials at a rung go on: without waiting by ASHA (MLSys
                   2020; read in code), together in brackets by Hyperband (JMLR 2018; published)
`hypersched`       finds as good a trial as possible by a deadline (SoCC 2019; read in code)
`sweep`            runs trials by their expected final losses (ours)
`probes`           new trials of `sweep` share GPUs, and the worse half leaves (ours)
`trials`           trials with their losses, and the plan that follows from an order
=================  ===========================================================================

The abstract and the public fragments of the paper are followed faithfully. The rest is rebuilt, so
4.04 can be compared with our figure (up to 5.16, against round-robin) but need not be reached.

The core has records of losses and sweeps (`ronda.instances.learning`), generated searches
(`ronda.instances.generate`), the outcome of a search (`ronda.instances.outcome`) and groups of jobs
of one fusion class (`ronda.solvers.greedy.groups`). See docs/systems/hermes.md and docs/hermes.md.
"""

POLICIES = {
    "hermes": "ronda.systems.hermes.hermes:Hermes",
    "round-robin": "ronda.systems.hermes.comparators:RoundRobin",
    "slaq": "ronda.systems.hermes.comparators:Slaq",
    "asha": "ronda.systems.hermes.halving:Asha",
    "hyperband": "ronda.systems.hermes.halving:Hyperband",
    "hypersched": "ronda.systems.hermes.hypersched:HyperSched",
    "sweep": "ronda.systems.hermes.sweep:SweepPolicy",
}
