"""Rules of tenants and groups: every slip is named."""

import copy

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.rules.validate import problems
from ronda.instances.site import Quota, Site, Tenant
from spoilt import INSTANCE, check_case, put
from tenant_rounds import quota, tenant_round, tree

TENANTS = [
    {"name": "org", "quotas": [{"guaranteed": 4}]},
    {"name": "a", "parent": "org", "quotas": [{"of": "A", "guaranteed": 2, "lend": 1}]},
]
QUOTA = ("site", "tenants", 1, "quotas", 0)


def site(change=None, **fields):
    """Return the mutation that gives the instance two tenants, and then changes them."""

    def mutate(data):
        data["site"] = {"tenants": copy.deepcopy(TENANTS)} | fields
        if change is not None:
            change(data)

    return mutate


INSTANCES = {
    "parent": (
        site(put("site", "tenants", 1, "parent", "x")),
        "site.tenants[1].parent",
        '"x"',
        '"org", "a"',
    ),
    "cycle": (
        site(put("site", "tenants", 0, "parent", "a")),
        "site.tenants[0].parent",
        'a cycle: "org" in "a" in "org"',
        "a tree of tenants",
    ),
    "order": (
        site(lambda data: data["site"]["tenants"].reverse()),
        "site.tenants[0].parent",
        '"org", which comes later',
        "after its parent",
    ),
    "two of a name": (site(put("site", "tenants", 1, "name", "org")), "site.tenants", "twice", ""),
    "a group like a tenant": (
        site(groups=[{"name": "a"}]),
        "site.groups",
        '"a" twice',
        "no other group",
    ),
    "two quotas of a resource": (
        site(put("site", "tenants", 1, "quotas", 1, {"of": "A", "limit": 1})),
        'site.tenants[1].quotas (tenant "a")',
        '"A" twice',
        "one quota",
    ),
    "resource": (site(put(*QUOTA, "of", "H")), "quotas[0].of", '"H"', '"gpus", "A", "B"'),
    "lends more than it has": (
        site(put(*QUOTA, "lend", 3)),
        "quotas[0].lend",
        "3",
        "at most 2, its guaranteed",
    ),
    "borrows alone": (
        site(put("site", "tenants", 0, "quotas", 0, "borrow", 1)),
        "site.tenants[0].quotas[0].borrow",
        "1 without a parent",
        "a parent",
    ),
    "lends alone": (
        site(put("site", "tenants", 0, "quotas", 0, "lend", 0)),
        "site.tenants[0].quotas[0].lend",
        "0 without a parent",
        "a parent",
    ),
    "above the cluster": (
        site(put("site", "tenants", 0, "quotas", 0, "guaranteed", 11)),
        "site.tenants",
        '11 of "gpus" guaranteed',
        "at most the 10",
    ),
    "inner tenant": (
        site(put("jobs", 0, "tenant", "org")),
        "jobs[0].tenant",
        '"org"',
        'without tenants below it, "a"',
    ),
    "unknown tenant": (site(put("jobs", 0, "tenant", "b")), "jobs[0].tenant", '"b"', '"a"'),
    "no tenants": (put("jobs", 0, "tenant", "b"), "jobs[0].tenant", '"b"', "none"),
    "group of a tenant": (
        site(groups=[{"name": "g", "tenants": ["b"]}]),
        "site.groups[0].tenants",
        '"b"',
        '"org", "a"',
    ),
    "group of a class": (
        site(groups=[{"name": "g", "classes": ["b"]}]),
        "site.groups[0].classes",
        '"b"',
        "none",
    ),
    "group of a partition": (
        site(groups=[{"name": "g", "partitions": ["q"]}]),
        "site.groups[0].partitions",
        '"q"',
        '"default", "p"',
    ),
    "group's resource": (
        site(groups=[{"name": "g", "most": {"H": 1}}]),
        "site.groups[0].most",
        '"H"',
        '"gpus", "A", "B"',
    ),
    "time ahead": (
        site(groups=[{"name": "g", "max_gpu_s": 1}]),
        "jobs[0].limit_s",
        "none",
        "a time limit",
    ),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip is named with place, what was found and what was expected."""
    change, place, *words = INSTANCES[name]

    def once(data):
        change(data)
        if name == "time ahead":  # of every job
            for job in data["jobs"][1:]:
                job["limit_s"] = 10

    check_case(INSTANCE, (once, place, *words))


def test_only_those_below_a_limit_on_time_need_time_limits():
    """The limit stands two levels up; a job elsewhere needs none."""
    tenants = (
        *tree(A=quota(), B=quota()),
        Tenant(name="top", max_gpu_s=9.0),
        Tenant(name="mid", parent="top"),
        Tenant(name="low", parent="mid"),
    )
    with pytest.raises(ronda.InputError, match=r"waiting\[1\].job.limit_s .*max_gpu_s"):
        tenant_round(8, tenants, [("A", 1), ("low", 1)])


def test_a_round_may_have_quotas_above_its_cluster():
    """Nodes may be out: more is guaranteed than is left, of a type that no node has."""
    site = Site(tenants=(Tenant(name="A", quotas=(Quota(guaranteed=99), Quota(of="H", limit=1))),))
    round_ = replace(tenant_round(8, ()), site=site, used={"A": 2.0})
    assert problems(round_) == []
    odd = replace(round_, used={"B": 2.0})
    assert problems(odd) == ['used.B: found "B", expected "A"']
