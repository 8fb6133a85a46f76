"""PowerFlow: GPUs and clocks for each job under an energy budget (Gu et al. 2023).

Gu, Xie, Huang, Jin, Liu, arXiv 2304.06381, claim a mean job completion time 1.57 to 3.39 times
shorter at most, at equal energy (published, abstract). The body of the paper could not be had.

=================  ===========================================================================
`powerflow`        `powerflow`: the best step has the largest (dJCT / JCT) / (dE / E) (a third
                   party's port: probable, not established); `powerflow-prices`: the same steps
                   at two prices (ours)
`marginal`         the steps, twice the GPUs or the next clock, and climbing by them
=================  ===========================================================================

Faithful: GPUs and clocks chosen by predicted speed and energy under a budget; packing and buddy
allocation; climbing ends where GPUs or budget do. Rebuilt: steps to the next clock, the start at
the clock of least energy, the second climb from what runs, how the budget is spread over time, who
is admitted first, and every model and constant, which are fitted to public measurements.

In the core: models of speed and power, `ronda.instances.models`; buddy allocation and network
packing, `ronda.formulations.placement`; what is charged to the energy window,
`ronda.formulations.watts`; climbs that count GPUs and watts, `ronda.solvers.greedy.counted`; nodes
without a job sleep by `ronda.formulations.sleeping`. Pages: docs/systems/powerflow.md,
docs/powerflow.md, docs/frontier.md.
"""

POLICIES = {
    "powerflow": "ronda.systems.powerflow.powerflow:Powerflow",
    "powerflow-prices": "ronda.systems.powerflow.powerflow:PowerflowPrices",
}
