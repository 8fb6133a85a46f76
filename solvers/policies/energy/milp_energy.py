"""The exact policy for clusters with an energy budget."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.allocation.waking import Ready, ready
from ronda.formulations.clock import Deadline
from ronda.formulations.objectives.thrift import worth_of_a_gpu, worth_of_a_watt
from ronda.formulations.sleeping.standby import IDLE, break_even_s, idle_since, stand_by, still_idle
from ronda.formulations.watts import may_sleep
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Choice, Question, price_of_a_watt
from ronda.solvers.policies.optimising.prices import Prices

WAKING, STANDBY = "waking", "gpu_per_watt"
"""Keys, in a plan's details: when nodes that were woken are ready, and what a GPU earned over the
price of a watt (see `standby`)."""


@dataclass(frozen=True, kw_only=True)
class MilpEnergy(Prices):
    """Give every job the option that the round's best plan gives it, with a price on energy.

    The exact counterpart of `powerflow`: the allocation model of `milp` (docs/formulations.md)
    with options of GPUs, clock and batch; nodes awake as variables with the power of hosts and
    idle GPUs; the power cap; the energy of the window; and the objective ``thrifty-rank``
    (`ronda.formulations.objectives.thrift`), which took less energy than ``rank`` for no longer
    mean JCT at the budgets that we measured (docs/powerflow.md). Switching costs progress
    (`ronda.formulations.objectives.outlook`). A job that is not served forgoes what a second of its
    progress saves in flow time; that grows with its age (`ronda.formulations.objectives.rank`),
    so that nobody waits without end.

    The gap is proven by branching on the nodes that are awake and by MILPs over the jobs that
    prices leave undecided (`ronda.solvers.prices.engine`), many times as fast as the MILP in one
    piece.

    **Waking.** A node that is woken draws its power from the order on, in the model for the whole
    window. Options compete for the nodes that are ready, or wait until others have woken
    (`ronda.formulations.allocation.waking`); a running job goes on until then. Idle nodes stay
    awake until idling has cost as much as waking them would
    (`ronda.formulations.sleeping.standby`), if there is power for them.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.forms.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    joint
        As for `prices`.
    thrift
        Of ``thrifty-rank``: what a watt costs, as a share of what the job's most frugal option
        earns with one. 0: only the budget limits energy. The higher, the less energy is used for
        work of the same amount, and the longer jobs take if the budget would allow more.
    """

    name: ClassVar[str] = "milp-energy"

    objective: str = "thrifty-rank"
    gap: float = 1e-3
    thrift: float = 0.3

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        super().__post_init__()
        if not 0 <= self.thrift <= 1:
            raise InputError("milp-energy: thrift", f"{self.thrift:g}", "a number from 0 to 1")

    @property
    def parameters(self) -> dict[str, float]:
        """The price of energy, for the objective that knows one."""
        return {"thrift": self.thrift} if self.objective == "thrifty-rank" else {}

    def ready(self, round: Round, initial: Plan | None) -> Ready | None:
        """Return which nodes are awake, and not still waking."""
        return ready(round, frozenset(waking(round, initial))) if may_sleep(round) else None

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose; a watt that idle nodes draw costs as much as one that jobs draw."""
        choice = super().choose(question, deadline, initial)
        earned = question.values if choice.worth is None else choice.worth
        watt = self.thrift * worth_of_a_watt(question.table, earned, choice.chosen)
        gpu = worth_of_a_gpu(question.table, earned, choice.chosen)
        price = max(watt, price_of_a_watt(question.round, choice.prices))
        ratio = None if initial is None else initial.details.get(STANDBY)
        if gpu > 0 and price > 0:
            ratio = gpu / price
        return replace(choice, watt_value=watt, details=choice.details | {STANDBY: ratio})

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Let idle nodes stay awake while that is cheaper than to wake them again."""
        round = question.round
        if not may_sleep(round):
            return plan
        since = idle_since(initial)
        needed = choice.awake or [0] * len(round.cluster.topology.pools)
        ratio = choice.details.get(STANDBY)
        asleep = plan.asleep
        if ratio is not None:
            asleep = stand_by(round, plan, needed, since, break_even_s(round, ratio))
        sleeping = set(round.asleep if asleep is None else asleep)
        woken = set(round.asleep) - sleeping
        ready_s = {n: s for n, s in waking(round, initial).items() if n not in sleeping}
        wake_s = round.cluster.topology.wake_s
        ready_s |= {n: round.now_s + float(wake_s[n]) for n in woken if wake_s[n] > 0}
        details = plan.details | {
            IDLE: still_idle(round, plan, sleeping, initial),
            WAKING: {str(n): s for n, s in sorted(ready_s.items())},
        }
        return replace(plan, asleep=asleep, details=details)


def waking(round: Round, initial: Plan | None) -> dict[int, float]:
    """Return when nodes that were woken earlier, and still wake, are ready."""
    known = {} if initial is None else initial.details.get(WAKING, {})
    return {int(n): s for n, s in known.items() if s > round.now_s and int(n) not in round.asleep}
