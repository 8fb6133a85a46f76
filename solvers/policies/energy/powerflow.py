"""PowerFlow's greedy, as far as it is known: relative gain in time over relative cost in energy."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.instances.arrays import Floats
from ronda.solvers.greedy.marginal import relative
from ronda.solvers.greedy.marginal_policy import MarginalCase, MarginalGreedy


@dataclass(frozen=True, kw_only=True)
class Powerflow(MarginalGreedy):
    """Climb by (dJCT / JCT) / (dE / E): a reconstruction of PowerFlow (arXiv 2304.06381).

    PowerFlow (Gu, Xie, Huang, Jin, Liu 2023) lowers the mean JCT under an energy budget. The
    paper's body could not be read. **From its abstract**: GPUs and clocks of every job are chosen
    by predicted throughput and energy under a budget; network packing and buddy allocation avoid
    fragmentation. **From a third party's port** (chikoneuru/hasagi-parallelism): the priority
    above, that a step which costs no energy goes first, and that climbing ends when GPUs or budget
    do. **Ours**: powers of two, steps to the next clock level, the clock of least energy to start
    at, the order in which jobs are admitted, the budget as mean power over the round's window, and
    that empty nodes are powered off by what a watt earns on average.

    The ratio of relative changes does not see how long a job is: it evens out logarithms of JCTs.
    `powerflow-prices` counts seconds.
    """

    name: ClassVar[str] = "powerflow"

    def worth(self, case: MarginalCase) -> Floats:
        """Return (2, K) the relative priority of each step."""
        return relative(case.ladder.up, case.outlook.left_s, case.energy_j)
