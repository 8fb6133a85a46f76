"""Which trials of a search for hyper-parameters should run, by the losses that they have reported.

Here stand how fast a loss falls (Hermes), fits to losses and what they foretell (SLAQ, the
posterior of the policy `sweep`), and the rungs and brackets of early stopping (ASHA, Hyperband,
HyperSched), as functions of losses alone. Which trial gets a GPU is decided in
`ronda.solvers.policies.sweeps`.
"""

from ronda.formulations.sweeps.convergence import slope
from ronda.formulations.sweeps.trials import Trial, trials_of

__all__ = [
    "Trial",
    "slope",
    "trials_of",
]
