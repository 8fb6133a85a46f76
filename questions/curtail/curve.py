"""The records of a supply curve of flexible power."""

from math import inf

from ronda.instances.base import Record
from ronda.instances.plan import Plan
from ronda.instances.round import Round


class Bearer(Record, frozen=True, kw_only=True):
    """The part of a reduction that a tenant, user or partition bears.

    So many of its `jobs` end later. They are expected to do so by `delay_s` seconds in sum, from
    which those count off by which jobs end earlier. `gpu_s` is the work in GPU-seconds that its
    jobs have not done by the end of the window.
    """

    name: str
    jobs: int
    delay_s: float
    gpu_s: float


class Shed(Record, frozen=True, kw_only=True):
    """A point of the curve: a power cap, a plan that keeps it, and a bound on every plan.

    Attributes
    ----------
    less_w, cap_w
        Watts below the power of the plan as it is, and watts that remain.
    plan, worth, most_worth
        The best plan that the pass found, on nodes, its worth, and the bound by the prices of the
        pass, which the worth of no plan at this cap exceeds.
    price_w
        Worth of a watt by the bound, of those by which the reduction is larger than at the point
        before. It rises from point to point.
    bearers
        Who bears the reduction, most GPU-seconds first.
    solved
        Worth of a plan that was solved for anew; None if it was not asked for.
    """

    less_w: float
    cap_w: float
    worth: float
    most_worth: float
    price_w: float
    bearers: tuple[Bearer, ...]
    plan: Plan
    solved: float | None = None

    @property
    def gpu_s(self) -> float:
        """The work that is not done by the end of the window, in GPU-seconds."""
        return sum(bearer.gpu_s for bearer in self.bearers)

    @property
    def delay_s(self) -> float:
        """The seconds by which all jobs together are expected to end later."""
        return sum(bearer.delay_s for bearer in self.bearers)


class Curtailment(Record, frozen=True, kw_only=True):
    """The supply curve of a round's flexible power.

    Attributes
    ----------
    round, plan
        The round, and its plan as it is: without a reduction and, with `within_s`, with what can be
        done in that time.
    drawn_w, floor_w
        Watts of the cluster under that plan, from which reductions count, and when all is stopped
        that may be stopped.
    worth, slack
        Worth of that plan, and the excess of its bound over that.
    for_s, within_s
        Seconds of the window, and within which the reduction is to be reached; None for no limit.
    borne_by
        Whether "tenant", "user" or "partition" names who bears a reduction.
    sheds
        Points of the curve, the least reduction first.
    pass_s, solve_s
        Seconds that the pass over all points took, and that solving anew took.
    """

    round: Round
    plan: Plan
    drawn_w: float
    worth: float
    slack: float
    floor_w: float
    for_s: float
    within_s: float | None
    borne_by: str
    sheds: tuple[Shed, ...]
    pass_s: float = 0.0
    solve_s: float = 0.0

    @property
    def gpus(self) -> float:
        """The number of GPUs that jobs hold under the plan as it is."""
        return sum(a.option.own_gpus for a in self.plan.allocations.values())

    def in_gpu_hours(self, worth: float) -> float:
        """Return worth as GPU-hours an hour, where the plan as it is is worth its GPUs."""
        return worth / self.worth * self.gpus if self.worth > 0 else 0.0

    def last_kwh(self, shed: Shed) -> float:
        """Return the GPU-hours that the last kilowatt-hour of a reduction costs."""
        return self.in_gpu_hours(shed.price_w * 1e3)

    def each_kwh(self, shed: Shed) -> float:
        """Return the GPU-hours that a kilowatt-hour of a reduction costs on average."""
        return self.in_gpu_hours(max(0.0, self.worth - shed.worth)) / (shed.less_w / 1e3)

    def pays(self, price: float) -> float:
        """Return the largest reduction in watts whose last kilowatt-hour costs at most `price`.

        The price is in GPU-hours.
        """
        worth_it = [s.less_w for s in self.sheds if self.last_kwh(s) <= price]
        return max(worth_it, default=0.0)

    def outside(self) -> float:
        """Return the largest excess of a plan solved for anew over the bound, as a share of it."""
        over = [s.solved / s.most_worth - 1.0 for s in self.sheds if s.solved and s.most_worth > 0]
        return max(over, default=-inf)
