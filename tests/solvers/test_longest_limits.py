"""Groups whose jobs have a longest time limit, or limits of their own; nodes that come back."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.job import Job, JobState, Pieces
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.site import LimitGroup, Site, Tenant

CLUSTER = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 2, 8)
TENANTS = (Tenant(name="all"), Tenant(name="vision", parent="all"))


def _round(group: LimitGroup, **job: object) -> Round:
    one = Job(id="one", submit_s=0.0, profile="rigid", tenant="vision", **job)  # type: ignore[arg-type]
    return Round(
        cluster=CLUSTER,
        profiles={"rigid": rigid_profile("A100")},
        waiting=(JobState(job=one, since_s=0.0),),
        site=Site(tenants=TENANTS, groups=(group,)),
    )


@pytest.mark.parametrize("policy", ["fifo", "prices", "milp", "slurm-like"])
@pytest.mark.parametrize(("limit_s", "starts"), [(3600.0, True), (3601.0, False), (None, True)])
def test_longest_limit(policy: str, limit_s: float | None, starts: bool) -> None:
    """A job starts with the longest time limit of its group, and with none, but no longer one."""
    group = LimitGroup(name="debug", tenants=("all",), max_limit_s=3600.0)
    round = _round(group, gpus=4, limit_s=limit_s)
    assert ("one" in ronda.solve(round, policy).allocations) is starts


def test_checker_says_too_long() -> None:
    """The checker refuses a plan that starts a job above the longest time limit."""
    free = LimitGroup(name="debug", tenants=("vision",))
    plan = ronda.solve(_round(free, gpus=4, limit_s=7200.0), "fifo")
    group = replace(free, max_limit_s=3600.0)
    (found,) = check(_round(group, gpus=4, limit_s=7200.0), plan)
    assert found.code == "early"
    assert "7200 s, at most 3600 s" in found.message
    other = replace(group, users=("ann",))
    assert not check(_round(other, gpus=4, limit_s=7200.0), plan)


@pytest.mark.parametrize(("most", "starts"), [(4.0, True), (3.0, False)])
def test_limit_of_each_job(most: float, starts: bool) -> None:
    """With limits per job, each job may hold as much as stated, and two jobs twice that."""
    group = LimitGroup(name="small", per="job", most={"gpus": most})
    round = _round(group, gpus=4)
    two = replace(round.waiting[0], job=replace(round.waiting[0].job, id="two"))
    both = replace(round, waiting=(*round.waiting, two))
    for policy in ("fifo", "prices", "milp"):
        plan = ronda.solve(both, policy)
        assert len(plan.allocations) == (2 if starts else 0), policy
    free = ronda.solve(replace(both, site=Site(tenants=TENANTS)), "fifo")
    assert bool(check(both, free)) is not starts


def test_odd_pieces_and_returns() -> None:
    """Pieces divide the GPUs of a job; only nodes that are out or leave come back, and later."""
    good = replace(
        _round(LimitGroup(name="g"), gpus=4, pieces=Pieces(count=2)), leaving=((0, 9.0),)
    )
    validate(replace(good, returning=((0, 10.0),)))
    for odd, place in (
        (_round(LimitGroup(name="g"), gpus=4, pieces=Pieces(count=3)), "pieces.count"),
        (replace(good, returning=((1, 10.0),)), r"returning\[0\]"),
        (replace(good, returning=((0, 9.0),)), r"returning\[0\]"),
        (replace(good, returning=((0, 10.0), (0, 11.0))), r"returning\[1\]"),
    ):
        with pytest.raises(InputError, match=place):
            validate(odd)
