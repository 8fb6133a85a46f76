"""The packaged events: what their jobs draw before, and what the published reduction costs."""

import pytest

import ronda
from ronda.questions.whatif.moment import moment


def before(name):
    """Return the round an hour into an event's instance, when all jobs run, and the plan before."""
    return moment(ronda.load(name), ronda.policy("prices"), at_s=3600.0)


@pytest.mark.parametrize("name", ["event-phoenix", "event-london"])
def test_the_cap_is_the_published_share_of_what_is_drawn(name):
    """From 2 h on, for the published hours."""
    instance = ronda.load(name)
    round_, plan = before(name)
    found = ronda.curtail(round_, points=1, initial=plan)
    _, began_s, ends_s = instance.budget.power_cap_w.times_s
    _, cap_w, _ = instance.budget.power_cap_w.values
    assert (began_s, ends_s - began_s) == (7200.0, 3600.0 * instance.made["hours"])
    assert cap_w == pytest.approx((1 - instance.made["less"]) * found.drawn_w, rel=1e-3)


def test_in_phoenix_a_quarter_less_leaves_the_least_flexible_class_alone():
    """As published: 25 % less, and the job of class Flex 1 as fast as before."""
    round_, plan = before("event-phoenix")
    found = ronda.curtail(round_, for_s=3 * 3600.0, points=1, less=[0.25], initial=plan)
    quarter = found.sheds[0]
    by = {bearer.name: bearer for bearer in quarter.bearers}
    assert quarter.less_w == pytest.approx(0.25 * found.drawn_w)
    assert (by["flex-1"].jobs, by["flex-1"].gpu_s) == (0, 0.0)
    assert by["flex-2"].gpu_s + by["flex-3"].gpu_s > 0


def test_in_london_thirty_per_cent_can_be_shed_within_thirty_seconds():
    """As published; with the time to stop and move jobs it costs less."""
    round_, plan = before("event-london")
    fast, slow = (
        ronda.curtail(round_, points=1, less=[0.3], within_s=within_s, initial=plan).sheds[0]
        for within_s in (30.0, None)
    )
    assert fast.less_w == pytest.approx(slow.less_w, rel=1e-3)
    assert fast.most_worth <= slow.most_worth
    assert set(fast.plan.allocations) <= {state.job.id for state in round_.running}
