"""Sia-like: the power mean of goodputs over GPU types, as a MILP."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.solvers.contract import OPTIMISING, Capability
from ronda.solvers.policies.optimising.milp import Milp


@dataclass(frozen=True, kw_only=True)
class SiaLike(Milp):
    """Give every job the GPU type and count for which the sum of goodputs^power is best.

    After Sia (Jayaram Subramanya et al., SOSP 2023), as its artifact has it: goodput over the least
    of the job's options, to the power of -0.5, 1.1 for a job that waits, a restart factor, and a
    MILP over jobs and options (`ronda.formulations.objectives.forms.sia_goodput`). It is `milp`
    with that objective, and looks at no sizes.

    Parameters
    ----------
    objective, gap, elastic, parameters, placement, solver
        As of `milp`. The objective's are ``power``, ``waiting`` and ``delay_s``, the seconds of a
        restart that its factor counts with.
    """

    name: ClassVar[str] = "sia-like"
    capabilities: ClassVar[Capability] = OPTIMISING & ~(Capability.SIZES | Capability.HISTORY)

    objective: str = "sia-goodput"
