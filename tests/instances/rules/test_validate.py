"""Slips in the structure of a document, several at once, objects made by programs."""

import copy
import json

import msgspec
import numpy as np
import pytest

from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.cluster import NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.files.json import decode
from ronda.instances.job import Truth
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rated
from ronda.instances.round import Round
from ronda.instances.rules.diagnose import mismatch
from ronda.instances.rules.validate import problems, validate
from spoilt import DROP, INSTANCE, ROUND, check_case, error_of, put

TABLE = ("profiles", "net", "throughput", "B")
# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
    "unknown field": (put("jobs", 1, "gpu", 1), 'jobs[1] (id "b")', 'field "gpu"', '"gpus"?'),
    "unknown word": (put("xyzzy", 1), "", '"xyzzy"', "one of format, name, cluster"),
    "unknown below": (
        put("cluster", "node_groups", 1, "racks", "r"),
        "node_groups[1]",
        "racks",
        '"rack"?',
    ),
    "unknown in kind": (put(*TABLE, "gpu", []), "profiles.net.throughput.B", '"gpu"', '"gpus"?'),
    "missing field": (put("jobs", 2, "submit_s", DROP), "jobs[2]", '"submit_s"', "no default"),
    "missing top": (put("cluster", DROP), "", 'no field "cluster"', "no default"),
    "missing kind": (
        put(*TABLE, "kind", DROP),
        "net.throughput.B",
        'no field "kind"',
        "that field",
    ),
    "wrong kind": (put(*TABLE, "kind", "spline"), "B.kind", '"spline"', '"parametric", "tabular"'),
    "wrong type": (put("jobs", 0, "gpus", "four"), 'jobs[0].gpus (id "a")', '"four"', "integer"),
    "fraction": (put("jobs", 0, "gpus", 1.5), "jobs[0].gpus", "1.5", "an integer"),
    "boolean": (put("jobs", 0, "gpus", True), "jobs[0].gpus", "true", "an integer"),
    "zero": (put("jobs", 0, "gpus", 0), "jobs[0].gpus", "0", ">= 1"),
    "immense": (put("jobs", 0, "gpus", 2**70), "jobs[0].gpus", "118059", "<= 2147483647"),
    "negative": (put("jobs", 0, "submit_s", -1), "jobs[0].submit_s", "-1", "number >= 0"),
    "negative work": (
        put("jobs", 0, "truth", "work", -3),
        "jobs[0].truth.work",
        "-3",
        "number > 0",
    ),
    "nan": (put("jobs", 0, "submit_s", float("nan")), "jobs[0].submit_s", "NaN", "finite"),
    "null": (put("jobs", 0, "profile", None), "jobs[0].profile", "null", "a string"),
    "empty id": (put("jobs", 0, "id", ""), "jobs[0].id", '""', "length >= 1"),
    "number or null": (put("jobs", 0, "batch", "x"), "jobs[0].batch", '"x"', "a number or null"),
    "object": (put("jobs", {}), "jobs", "{}", "an array"),
    "short pair": (
        put("jobs", 2, "costs", "restart_by_gpus", 0, [1]),
        "jobs[2].costs.restart_by_gpus[0]",
        "[1]",
        "length 2",
    ),
    "in a pair": (
        put("jobs", 2, "costs", "restart_by_gpus", 1, 1, -60),
        "restart_by_gpus[1][1]",
        "-60",
        "number >= 0",
    ),
    "in a second profile": (
        put("profiles", "net", "throughput", "A", "beta_c_s", -1),
        "profiles.net.throughput.A.beta_c_s",
        "-1",
        "number >= 0",
    ),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in the structure is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])


@pytest.mark.parametrize("document", [INSTANCE, ROUND], ids=["instance", "round"])
def test_the_unspoilt_documents_are_valid(document):
    """The tables of slips start from documents without any problem."""
    assert problems(decode(json.dumps(document).encode(), "t.json")) == []


def test_all_problems_are_listed_at_once():
    """Three slips in three places are three problems of one error."""
    spoilt = copy.deepcopy(INSTANCE)
    put("jobs", 0, "profile", "bert")(spoilt)
    put("cluster", "racks", 0, "power_cap_w", 19)(spoilt)
    put("budget", "power_cap_w", "times_s", [1, 2])(spoilt)
    error = error_of(spoilt)
    assert error.found.startswith("3 problems: ")
    for word in ("racks[0].power_cap_w", "times_s[0]", "jobs[0].profile"):
        assert word in error.found


def test_a_thousand_problems_are_counted_and_the_first_ones_shown():
    """The error stays readable however much is wrong."""
    jobs = [
        {"id": f"j{k}", "submit_s": 0, "profile": "x", "truth": {"work": 1}} for k in range(1000)
    ]
    error = error_of(INSTANCE | {"jobs": jobs})
    assert error.found.startswith("1000 problems: ")
    assert error.found.endswith("; and 992 more")
    assert len(str(error)) < 1000


def test_default_partition_needs_no_entry_but_nodes():
    """A job of a partition that owns no node could never run."""
    spoilt = copy.deepcopy(INSTANCE)
    spoilt["cluster"]["node_groups"][0]["partition"] = "p"
    error = error_of(spoilt)
    assert 'no pool that the job may use, expected a GPU type that partition "default" has' in str(
        error
    )


def test_limits_may_equal_what_idles():
    """Exactly the idle power is allowed, in spite of rounding."""
    document = copy.deepcopy(INSTANCE)
    document["budget"] = {
        "power_cap_w": {"times_s": [0], "values": [600 * (1 - 1e-12)]},
        "energy": {"joules": 20 * 0.3, "horizon_s": 0.3},
    }
    assert problems(decode(json.dumps(document).encode(), "t.json")) == []


def test_rates_without_a_model_are_one_problem_of_an_instance():
    """However many jobs have rates of their own."""
    good = generate.horizon(5, gpus=8)
    (gpu,) = {name for profile in good.profiles.values() for name in profile.throughput}
    rates = Rated(gpus=(1,), nodes=(1,), batch=(1.0,), clock=(1.0,), rate=(2.0,))
    jobs, profiles = [], {}
    for job in good.jobs:
        name = f"rates of {job.id}"
        profiles[name] = Profile(name=name, throughput={gpu: rates}, base_batch=1.0)
        change = {"profile": name, "gpus": 1, "min_gpus": 1, "max_gpus": 1, "batch": None}
        jobs.append(msgspec.structs.replace(job, **change, truth=None))
    bad = msgspec.structs.replace(good, jobs=tuple(jobs), profiles=profiles)
    found = [problem for problem in problems(bad) if "rated" in problem]
    assert len(found) == 1
    assert "as in 4 more places" in found[0]


def test_objects_built_in_python_are_checked_too():
    """`validate` finds wrong types and numbers that no file can hold, and names the object."""
    good = generate.horizon(5, gpus=8)
    validate(good)
    job = good.jobs[0]
    table = [
        ({"gpus": "4"}, 'jobs[0].gpus (id "j0")', '"4"'),
        ({"deadline_s": float("nan")}, "jobs[0].deadline_s", "NaN"),
        ({"truth": Truth(work=float("inf"))}, "jobs[0].truth.work", "Infinity"),
        ({"submit_s": np.float64(0.0)}, 'jobs[0].submit_s (id "j0")', "np.float64(0.0)"),
        ({"gpus": np.arange(2)}, 'jobs[0].gpus (id "j0")', "array([0, 1])"),
        ({"weight": -1.0}, "jobs[0].weight", "-1"),
        ({"profile": "x"}, "jobs[0].profile", '"x"'),
    ]
    for change, place, found in table:
        bad = msgspec.structs.replace(
            good, jobs=(msgspec.structs.replace(job, **change), *good.jobs[1:])
        )
        with pytest.raises(InputError) as caught:
            validate(bad)
        assert caught.value.place.startswith('instance "generated-balanced-5-0"')
        assert place in caught.value.place
        assert found in caught.value.found
        assert "\n" not in str(caught.value)
        assert len(problems(bad)) == 1


def test_lists_in_place_of_tuples_are_accepted():
    """A program may hand over a list of jobs; files make tuples of them."""
    good = generate.horizon(5, gpus=8)
    assert problems(msgspec.structs.replace(good, jobs=list(good.jobs))) == []


def test_a_budget_that_idle_nodes_exceed_names_the_least_that_would_do():
    """The remedy is in the message: 3 nodes of 100 W for 50 s are 15,000 J."""
    good = generate.horizon(5, gpus=8)
    group = NodeGroup(
        name="g", count=3, gpus_per_node=8, gpu_type="A100", host_idle_w=120.0, sleep_w=100.0
    )
    types = (msgspec.structs.replace(good.cluster.gpu_types[0], idle_w=0.0),)
    cluster = msgspec.structs.replace(good.cluster, node_groups=(group,), gpu_types=types)
    budget = Budget(energy=EnergyBudget(joules=14_999.0, horizon_s=50.0))
    (problem,) = problems(msgspec.structs.replace(good, cluster=cluster, budget=budget))
    assert problem.expected == "at least 15000 J: idle nodes draw 300 W"


def test_plans_have_no_references_to_check():
    """What a plan must satisfy depends on its round: that is the business of `check`."""
    assert problems(Plan()) == []


def test_a_document_that_differs_from_the_one_refused_is_explained_all_the_same():
    """Where a reader kept another of two fields than msgspec, the walk ends at what they share."""
    for text, other in (
        (b'{"waiting": [[]]}', {"waiting": None}),
        (b'{"waiting": [{"job": 1}]}', {"waiting": []}),
        (b'{"cluster": {"node_groups": [1]}}', {"cluster": {}}),
    ):
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.json.decode(text, type=Round)
        assert mismatch(caught.value, other, Round).place in ("waiting", "cluster")
