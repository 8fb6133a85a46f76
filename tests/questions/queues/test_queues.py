"""Queues: who is starved, and what quota is worth."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.site import Quota, Tenant
from ronda.questions.queues.answer import queues
from tests.helpers.tenant_rounds import quota, tenant_round, tree


def asked(round_, policy="prices(gap=1e-9)"):
    """Return the queues of a round by name."""
    found = queues(round_, ronda.policy(policy), deadline=Deadline())
    return {queue.name: queue for queue in found.queues}, found.plan


ORG = (Tenant(name="org"), *tree(batch=("org", quota(0)), owner=("org", quota(4)))[1:])


def test_starved_beside_borrowers():
    """The owner has none of the 2 GPUs that it asks for; batch holds 4 of the owner's."""
    found, _ = asked(tenant_round(8, ORG, [("owner", 2)], [("batch", 4)]))
    owner = found["owner"]
    assert (owner.starved, owner.owed, owner.given, owner.longest_s) == (True, 2.0, 0.0, 3600.0)
    assert found["batch"].lenders == {"owner": 4.0}
    assert not found["batch"].starved
    assert not found["org"].starved


@pytest.mark.parametrize(
    ("waiting", "running"),
    [
        ([("owner", 2)], [("owner", 4), ("batch", 4)]),  # it has all that it is owed
        ([("owner", 2)], []),  # nobody borrows: the 2 GPUs are free
        ([("owner", 6)], [("batch", 4)]),  # a request above the guarantee is owed nothing
        ([], [("batch", 4)]),  # nobody waits
    ],
)
def test_not_starved(waiting, running):
    """Waiting, owing and borrowing must all hold."""
    found, _ = asked(tenant_round(8, ORG, waiting, running))
    assert not found["owner"].starved


def test_a_job_that_may_not_start_is_no_reason():
    """It is counted apart."""
    round_ = tenant_round(8, ORG, [("owner", 2)], [("batch", 4)])
    (state,) = round_.waiting
    found, _ = asked(replace(round_, waiting=(replace(state, blocked="held by an admin"),)))
    assert (found["owner"].waiting, found["owner"].held_back) == (0, 1)
    assert not found["owner"].starved


def test_a_limit_that_binds_has_a_price():
    """Two jobs of a wait under its limit of 2, 4 GPUs are free: the next GPU starts one of them."""
    round_ = tenant_round(8, tree(a=quota(limit=2)), [("a", 1)] * 4)
    found, plan = asked(round_)
    price = plan.prices["limit[a,gpus]"]
    assert price > 0
    assert found["a"].limits == {"limit[a,gpus]": price}
    assert found["a"].limit_worth == price
    assert found["a"].guarantee_worth is None
    assert found["a"].planned == 2
    assert found["root"].lenders == {}  # nothing is guaranteed, so nobody borrows


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_gains_more_than_quota_is_worth(seed):
    """Solved again with a GPU more of guarantee, no round gains more than its price and its gap.

    Every tenant has a guarantee that its jobs of one GPU fit into: with one that is larger than a
    guarantee, more of it would count at once.
    """
    rng = np.random.default_rng(seed)
    firm = {name: int(rng.integers(1, 4)) for name in "abc"}
    drawn = {name: int(rng.integers(0, n + 1)) for name, n in firm.items()}
    lend = {name: n if rng.random() < 0.5 else None for name, n in drawn.items()}

    def made(more=None):
        own = {n: quota(firm[n] + (n == more), lend=lend[n]) for n in firm}
        return tenant_round(6, tree(**own), waiting, running)

    names = rng.choice(list("abc"), 12).tolist()
    running, waiting = [(n, 1) for n in names[:5]], [(n, 1) for n in names[5:]]
    found, plan = asked(made())
    slack = plan.details.dual_bound - plan.objective
    for name in "abc":
        _, after = asked(made(name))
        gain = after.objective - plan.objective
        assert gain <= found[name].guarantee_worth + slack + 1e-9


def test_without_tenants_the_queues_are_those_of_users():
    """One user holds most of the machine: 100 of 120 GPUs, and another 20; a third waits."""
    round_ = tenant_round(120, (), [(None, 1)], [(None, 4)] * 30)
    users = ["uz"] * 25 + ["uy"] * 5
    running = tuple(
        replace(s, job=replace(s.job, user=u)) for s, u in zip(round_.running, users, strict=True)
    )
    (state,) = round_.waiting
    waiting = (replace(state, job=replace(state.job, user="me")),)
    found, _ = asked(replace(round_, running=running, waiting=waiting))
    assert {n: q.held for n, q in found.items()} == {"uz": 100, "uy": 20, "me": 0}
    assert [*found] == ["uz", "uy", "me"]
    assert (found["me"].waiting, found["me"].asked, found["me"].longest_s) == (1, 1, 3600)


def test_resources_of_hosts_and_types():
    """Quotas of a GPU type count only that type."""
    tenants = tree(a=(Quota(of="A100", guaranteed=2),), b=(Quota(of="A100", guaranteed=2),))
    round_ = tenant_round(4, tenants, [("a", 1)], [("b", 4)])
    found = queues(round_, ronda.policy("prices"), deadline=Deadline()).queues
    assert {q.of for q in found} == {"A100"}
    assert {q.name: q.lenders for q in found if q.borrowed} == {"b": {"a": 2.0}}


def test_a_policy_without_prices_is_refused():
    """Worth needs prices."""
    with pytest.raises(InputError, match="no prices"):
        queues(generate.round(4), ronda.policy("fifo"), deadline=Deadline())
