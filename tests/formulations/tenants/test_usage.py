"""What tenants have held: by hand, in runs that are killed, and in hosts."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.tenants.usage import ended, used_by
from ronda.horizon.driver import run
from ronda.instances.job import Option
from ronda.instances.site import Site, Tenant
from small import make_instance
from tenant_rounds import quota, tenant_round, tree

DAY_S = 86_400.0
SITE = Site(tenants=tree(A=quota(4), B=quota(4)), usage_half_life_s=7 * DAY_S)


def test_a_day_of_16_gpus_and_a_week_without():
    """1.508 GPUs after the day, and half of it a half-life later, however often it is read."""
    past, week_s = {}, 7 * DAY_S
    round_ = tenant_round(16, (Tenant(name="A"),), [], [("A", 16)])
    pools, (state,) = round_.cluster.topology.pools, round_.running
    half = replace(state, held_s=0.0)
    assert used_by(past, pools, [half], DAY_S, week_s)["A"] == pytest.approx(1.508, abs=5e-4)
    option = Option(pool=0, gpus=16)
    for start_s in (0.0, DAY_S / 2):
        ended(past, pools, state.job, option, start_s, start_s + DAY_S / 2, week_s)
    assert used_by(past, pools, [], DAY_S, week_s)["A"] == pytest.approx(1.508, abs=5e-4)
    assert used_by(past, pools, [], 8 * DAY_S, week_s)["A"] == pytest.approx(0.754, abs=3e-4)
    assert used_by(past, pools, [half], DAY_S, None) == {}


def test_ends_may_be_told_out_of_order():
    """The same use, whichever segment is told first."""
    round_ = tenant_round(16, (Tenant(name="A"),), [], [("A", 16)])
    pools, job = round_.cluster.topology.pools, round_.running[0].job
    spans, found = [(0.0, 500.0, 4), (100.0, 300.0, 8)], []
    for order in (spans, spans[::-1]):
        past = {}
        for start_s, end_s, gpus in order:
            ended(past, pools, job, Option(pool=0, gpus=gpus), start_s, end_s, 1000.0)
        found.append(used_by(past, pools, [], 900.0, 1000.0)["A"])
    assert found[0] == pytest.approx(found[1])


def shared_instance(**fields):
    """Return jobs of two tenants at the same time: B's first, and A's when B holds all."""
    jobs = [(f"b{k}", 0.0, 2, 4000.0 + k) for k in range(5)]
    jobs += [(f"a{k}", 600.0, 2, 3000.0 + k) for k in range(3)]
    made = make_instance(jobs, gpus_per_node=8)
    owned = tuple(replace(job, tenant=job.id[0].upper()) for job in made.jobs)
    site = replace(SITE, **{"usage_half_life_s": 900.0, "fair_shares": True} | fields)
    return replace(made, jobs=owned, site=site)


class Noting:
    """A policy that notes the past use of each round."""

    name, capabilities = "noting", ronda.policy("prices").capabilities

    def __init__(self):
        self.inside, self.used = ronda.policy("prices"), []

    def plan(self, round, **fields):
        """Decide as the policy inside does."""
        self.used.append((round.now_s, round.used))
        return self.inside.plan(round, **fields)


def test_rounds_of_a_run_have_what_tenants_held():
    """By the segments of the schedule, summed up from scratch at each decision."""
    instance, noting = shared_instance(), Noting()
    schedule = ronda.run(instance, noting)
    assert ronda.check(instance, schedule) == []
    assert len(noting.used) > 3
    for now_s, used in noting.used:
        exact = {"A": 0.0, "B": 0.0}
        for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
            for each in outcome.segments:
                if each.start_s < now_s:
                    end_s = min(each.end_s, now_s)
                    weight = 2 ** ((end_s - now_s) / 900) - 2 ** ((each.start_s - now_s) / 900)
                    exact[job.tenant] += each.option.gpus * weight
        assert {"A": 0.0, "B": 0.0} | used == pytest.approx(exact)


def test_no_job_changes_hands_twice_without_news():
    """Kueue 14543: B gives what is A's once, at A's arrival; after that nobody is stopped."""
    instance = shared_instance()
    cadence = replace(instance.cadence, period_s=300.0)
    costs = replace(instance.costs, restart_s=20.0)
    for fair in (False, True):
        site = replace(instance.site, fair_shares=fair)
        own = replace(instance, cadence=cadence, costs=costs, site=site)
        schedule = ronda.run(own, "prices")
        assert ronda.check(own, schedule) == []
        stopped = [(record.now_s, record.stopped) for record in schedule.rounds if record.stopped]
        first_end_s = min(outcome.end_s for outcome in schedule.jobs)
        before = [(now_s, n) for now_s, n in stopped if now_s < first_end_s]
        assert before == [(600.0, 2)]
        assert all(len(outcome.segments) <= 2 for outcome in schedule.jobs)


def test_a_resumed_run_goes_on_bit_for_bit(tmp_path):
    """The journal is cut in the middle; past use follows from the decisions that are replayed."""
    instance, path, whole, rest = shared_instance(), tmp_path / "j.jsonl", Noting(), Noting()
    schedule = run(instance, whole, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    again = run(instance, rest, journal=path)
    assert 0 < len(rest.used) < len(whole.used)
    assert rest.used == whole.used[-len(rest.used) :]
    assert again.jobs == schedule.jobs


def test_a_host_has_what_tenants_held():
    """A job of 4 GPUs runs for a half-life and ends: 2 GPUs, and 1 a half-life later."""
    cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 1, 8)
    site = replace(SITE, usage_half_life_s=100.0)
    host = ronda.Embedded("prices", cluster, site=site)
    host.update(added=[{"id": "a", "gpus": 4, "work": 900.0, "tenant": "A"}])
    host.decide()
    host.update(now_s=50.0)
    assert host.round().used["A"] == pytest.approx(4 * (1 - 0.5**0.5))
    host.update(now_s=100.0, completed=["a"])
    assert host.round().used["A"] == pytest.approx(2.0)
    host.update(now_s=200.0)
    again = ronda.Embedded.restore(host.save())
    assert again.round().used == host.round().used
    assert again.round().used["A"] == pytest.approx(1.0)
