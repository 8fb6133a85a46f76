"""Cross-checks: one valid instance and one valid round, and every way to spoil them."""

import copy
import json

import msgspec
import numpy as np
import pytest

from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.cluster import NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.files import decode
from ronda.instances.instance import Instance, Round
from ronda.instances.job import Truth
from ronda.instances.plan import Plan
from ronda.instances.validate import problems, validate

# Idle power: 2 nodes x (100 W + 4 GPUs x 50 W) + 1 node x (40 W + 2 GPUs x 30 W) = 700 W;
# of that 600 W under rack "row" (group g is in rack "r" in "row") and 100 W in no rack. Asleep,
# the nodes draw 10, 10 and 0 W: 20 W, all of it under the rack.
CLUSTER = {
    "gpu_types": [
        {"name": "A", "memory_gib": 40, "idle_w": 50, "clocks": [0.5, 1]},
        {"name": "B", "memory_gib": 16, "idle_w": 30},
    ],
    "node_groups": [
        {
            "name": "g",
            "count": 2,
            "gpus_per_node": 4,
            "gpu_type": "A",
            "rack": "r",
            "host_idle_w": 100,
            "sleep_w": 10,
        },
        {
            "name": "h",
            "count": 1,
            "gpus_per_node": 2,
            "gpu_type": "B",
            "partition": "p",
            "host_idle_w": 40,
        },
    ],
    "racks": [{"name": "row", "power_cap_w": 5000}, {"name": "r", "parent": "row"}],
    "partitions": [{"name": "p"}],
}
PROFILES = {
    "rigid": {"name": "rigid", "throughput": {"A": {"kind": "rigid"}, "B": {"kind": "rigid"}}},
    "net": {
        "name": "net",
        "throughput": {
            "A": {"kind": "parametric", "alpha_c_s": 0.1, "beta_c_s": 0.01},
            "B": {
                "kind": "tabular",
                "gpus": [1, 2],
                "nodes": [1, 1],
                "local_batch": [32, 32],
                "step_s": [0.5, 0.6],
                "sync_s": [0, 0.1],
            },
        },
        "power": {"A": {"a_w": 60, "b_w": 100}},
    },
}
INSTANCE = {
    "format": "ronda/instance/1",
    "name": "valid",
    "cluster": CLUSTER,
    "profiles": PROFILES,
    "curves": {"c": {"until": [10, 20], "batches": [32, 64], "scale": [[1, 2], [3, 4]]}},
    "jobs": [
        {"id": "a", "submit_s": 0, "profile": "rigid", "gpus": 8, "truth": {"work": 9}},
        {
            "id": "b",
            "submit_s": 5,
            "profile": "net",
            "gpus": 2,
            "min_gpus": 1,
            "max_gpus": 8,
            "estimate": {"work": 9, "sd": 1},
            "truth": {"work": 9, "curve": "c"},
        },
        {
            "id": "c",
            "submit_s": 5,
            "profile": "net",
            "gpus": 2,
            "partition": "p",
            "gpu_types": ["B"],
            "truth": {"work": 9},
            "costs": {"restart_by_gpus": [[1, 30], [8, 60]]},
        },
    ],
    "budget": {
        "power_cap_w": {"times_s": [0, 100], "values": [3000, 2000]},
        "energy": {"joules": 1e6, "horizon_s": 1000},
    },
}
ROUND = {
    "format": "ronda/round/1",
    "now_s": 100,
    "cluster": CLUSTER,
    "profiles": PROFILES,
    "running": [
        {
            "job": {"id": "a", "submit_s": 0, "profile": "rigid", "gpus": 4},
            "since_s": 10,
            "started": True,
            "allocation": {"option": {"pool": 0, "gpus": 4}, "placement": [[0, 4]]},
        },
        {
            "job": {"id": "c", "submit_s": 5, "profile": "net", "gpus": 2, "partition": "p"},
            "since_s": 10,
            "started": True,
            "allocation": {
                "option": {"pool": 1, "gpus": 2, "span": "node"},
                "placement": [[2, 2]],
            },
        },
    ],
    "waiting": [
        {
            "job": {"id": "b", "submit_s": 5, "profile": "net", "gpus": 2, "max_gpus": 4},
            "since_s": 5,
            "noise": {"batches": [32], "scale": [100]},
        }
    ],
    "power_cap_w": 2000,
    "energy_j": 7.2e6,
    "sustained_w": 1000,
    "asleep": [1],
}


def put(*path):
    """Return a mutation that sets what stands at the end of a path; DROP removes it."""

    def mutate(document):
        *way, last, value = path
        for step in way:
            document = document[step]
        if value is DROP:
            del document[last]
        elif isinstance(document, list) and last == len(document):
            document.append(value)
        else:
            document[last] = value

    return mutate


def late(**fields):
    """Return an energy budget of which half accrues in the last tenth."""
    values = fields.pop("values", [1, 9])
    series = {"times_s": [0, 900], "values": values}
    return {"horizon_s": 1000, "pacing": "series", "accrual": series} | fields


def priced(values):
    """Return a budget that is paced by a price."""
    return {
        "energy": {"joules": 1e6, "horizon_s": 1000, "pacing": "price"},
        "energy_price_per_j": {"times_s": [0, 500], "values": values},
    }


DROP = object()
TABLE = ("profiles", "net", "throughput", "B")
OPTION = ("running", 0, "allocation", "option")
PLACEMENT = ("running", 0, "allocation", "placement")

# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
    # structure
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
    # cluster
    "clock above 1": (put("cluster", "gpu_types", 0, "clocks", 1, 2), "clocks[1]", "2", "<= 1"),
    "clocks end": (
        put("cluster", "gpu_types", 0, "clocks", [0.5]),
        "gpu_types[0].clocks",
        "[0.5]",
        "end in 1",
    ),
    "clocks fall": (
        put("cluster", "gpu_types", 0, "clocks", [1, 0.5]),
        "clocks",
        "[1.0, 0.5]",
        "ascending",
    ),
    "no clocks": (put("cluster", "gpu_types", 0, "clocks", []), "clocks", "[]", "ascending"),
    "no types": (put("cluster", "gpu_types", []), "cluster.gpu_types", "none", "at least one"),
    "no groups": (put("cluster", "node_groups", []), "cluster.node_groups", "none", "at least one"),
    "type twice": (put("cluster", "gpu_types", 1, "name", "A"), "gpu_types", '"A" twice', "unique"),
    "group twice": (
        put("cluster", "node_groups", 1, "name", "g"),
        "node_groups",
        '"g" twice',
        "unique",
    ),
    "rack twice": (put("cluster", "racks", 1, "name", "row"), "racks", '"row" twice', "unique"),
    "partition twice": (
        put("cluster", "partitions", 1, {"name": "p"}),
        "partitions",
        '"p"',
        "unique",
    ),
    "group's type": (
        put("cluster", "node_groups", 0, "gpu_type", "H"),
        "node_groups[0].gpu_type",
        '"H"',
        '"A"',
    ),
    "group's rack": (
        put("cluster", "node_groups", 0, "rack", "q"),
        "node_groups[0].rack",
        '"q"',
        '"row"',
    ),
    "group's partition": (
        put("cluster", "node_groups", 1, "partition", "q"),
        "node_groups[1].partition",
        '"q"',
        '"default", "p"',
    ),
    "unknown parent": (
        put("cluster", "racks", 1, "parent", "q"),
        "racks[1].parent",
        '"q"',
        '"row"',
    ),
    "own parent": (
        put("cluster", "racks", 0, "parent", "row"),
        "racks[0].parent",
        '"row" in "row"',
        "tree",
    ),
    "rack cycle": (
        put("cluster", "racks", 0, "parent", "r"),
        "racks[0].parent",
        '"row" in "r" in "row"',
        "tree",
    ),
    "rack cap": (
        put("cluster", "racks", 0, "power_cap_w", 19),
        "racks[0].power_cap_w",
        "19 W",
        "20 W",
    ),
    "no racks": (put("cluster", "racks", []), "node_groups[0].rack", '"r"', "none (there are no"),
    "too many nodes": (
        put("cluster", "node_groups", 0, "count", 2**31 - 1),
        "node_groups",
        "nodes",
        "at most",
    ),
    # profiles and curves
    "key": (put("profiles", "net", "name", "nut"), "profiles.net.name", '"nut"', 'its key "net"'),
    "no model": (
        put("profiles", "net", "throughput", {}),
        "profiles.net.throughput",
        "no GPU type",
        "one",
    ),
    "profile's type": (
        put("profiles", "net", "throughput", "H", {"kind": "rigid"}),
        "profiles.net.throughput",
        '"H"',
        '"A", "B"',
    ),
    "power's type": (
        put("profiles", "net", "power", "H", {"a_w": 1}),
        "net.power",
        '"H"',
        '"A", "B"',
    ),
    "local batches": (
        lambda d: d["profiles"]["net"].update(min_local_batch=9, max_local_batch=8),
        "profiles.net.min_local_batch",
        "9 above max_local_batch 8",
        "at most",
    ),
    "no time": (
        lambda d: d["profiles"]["net"]["throughput"]["A"].update(alpha_c_s=0, beta_c_s=0),
        "net.throughput.A",
        "both 0",
        "above 0",
    ),
    "across racks": (
        lambda d: d["profiles"]["net"]["throughput"]["A"].update(beta_n_s=0.5, beta_x_s=0.4),
        "net.throughput.A.beta_x_s",
        "0.4 below beta_n_s 0.5",
        "at least that",
    ),
    "columns": (put(*TABLE, "step_s", [0.5]), "throughput.B", "1 step_s", "equal length"),
    "no rows": (
        lambda d: d["profiles"]["net"]["throughput"]["B"].update(
            gpus=[], nodes=[], local_batch=[], step_s=[], sync_s=[]
        ),
        "throughput.B",
        "0 gpus",
        "at least one row",
    ),
    "row twice": (put(*TABLE, "gpus", [1, 1]), "throughput.B", "[1, 1, 32.0]", "distinct"),
    "nodes": (put(*TABLE, "nodes", [1, 3]), "throughput.B.nodes[1]", "3 nodes for 2", "at most"),
    "sync": (
        put(*TABLE, "sync_s", [0, 1]),
        "throughput.B.sync_s[1]",
        "1 s of a step of 0.6",
        "at most",
    ),
    "until": (put("curves", "c", "until", [20, 20]), "curves.c.until", "[20.0, 20.0]", "ascending"),
    "no stage": (put("curves", "c", "until", []), "curves.c", "[]", "at least one"),
    "batches": (
        put("curves", "c", "batches", [64, 32]),
        "curves.c.batches",
        "[64.0, 32.0]",
        "ascending",
    ),
    "stages": (
        put("curves", "c", "scale", [[1, 2]]),
        "curves.c.scale",
        "1 rows for 2",
        "each stage",
    ),
    "scale": (
        put("curves", "c", "scale", 1, [3]),
        "curves.c.scale[1]",
        "1 values for 2",
        "each batch",
    ),
    # jobs
    "no job": (put("jobs", []), "jobs", "no job", "trace"),
    "id twice": (put("jobs", 1, "id", "a"), "jobs[1].id", '"a"', "jobs[0] has it too"),
    "order": (
        put("jobs", 0, "submit_s", 6),
        "jobs[1].submit_s",
        "5 after",
        "sort them by submit_s",
    ),
    "profile": (
        put("jobs", 0, "profile", "bert"),
        'jobs[0].profile (id "a")',
        '"bert"',
        '"net", "rigid"',
    ),
    "partition": (put("jobs", 0, "partition", "q"), "jobs[0].partition", '"q"', '"default", "p"'),
    "gpu type": (put("jobs", 2, "gpu_types", 0, "H"), "jobs[2].gpu_types", '"H"', '"A", "B"'),
    "curve": (put("jobs", 1, "truth", "curve", "d"), "jobs[1].truth.curve", '"d"', '"c"'),
    "no truth": (put("jobs", 1, "truth", DROP), "jobs[1]", "no truth", "truth.work"),
    "too large": (put("jobs", 0, "gpus", 9), "jobs[0].gpus", "9", "at most 8"),
    "too large there": (
        put("jobs", 2, "gpus", 3),
        "jobs[2].gpus",
        "3",
        'at most 2, its largest pool in partition "p"',
    ),
    "no pool": (put("jobs", 2, "gpu_types", ["A"]), "jobs[2].gpus", "no pool", 'partition "p"'),
    "min above max": (
        put("jobs", 1, "min_gpus", 9),
        "jobs[1].min_gpus",
        "9 above max_gpus 8",
        "at most",
    ),
    "gpus below min": (put("jobs", 1, "min_gpus", 3), "jobs[1].gpus", "2", "at least 3, its min"),
    "gpus above max": (put("jobs", 1, "max_gpus", 1), "jobs[1].gpus", "2", "at most 1, its max"),
    "gpus below min without a max": (
        lambda d: d["jobs"][1].update(min_gpus=3, max_gpus=None),
        "jobs[1].gpus",
        "2",
        "at least 3, its min_gpus",
    ),
    "rigid range": (put("jobs", 0, "min_gpus", 4), "jobs[0]", "4 to 8 GPUs", '"rigid" is rigid'),
    "restart pairs": (
        put("jobs", 2, "costs", "restart_by_gpus", 1, 0, 1),
        "jobs[2].costs.restart_by_gpus",
        "[1, 1]",
        "ascending",
    ),
    "own costs": (
        put("costs", {"restart_by_gpus": [[2, 0], [1, 0]]}),
        "costs.restart",
        "[2, 1]",
        "ascending",
    ),
    # limits
    "series lengths": (
        put("budget", "power_cap_w", "values", [3000]),
        "power_cap_w.values",
        "1 values for 2",
        "each",
    ),
    "series order": (
        put("budget", "power_cap_w", "times_s", [0, 0]),
        "power_cap_w.times_s",
        "do not ascend",
        "from 0",
    ),
    "series start": (put("budget", "power_cap_w", "times_s", [1, 2]), "times_s[0]", "1", "0"),
    "power cap": (
        put("budget", "power_cap_w", "values", [3000, 19]),
        "power_cap_w.values[1]",
        "19 W",
        "20 W",
    ),
    "energy": (
        put("budget", "energy", "joules", 19_999),
        "energy.joules",
        "19999 J",
        "at least 20000 J",
    ),
    # Half of the joules accrue in the last tenth: by 900 s 20 W x 900 s must have, so 36,000 J.
    "energy that accrues too late": (
        put("budget", "energy", late(joules=35_999)),
        "energy.joules",
        "35999 J",
        "at least 36000 J",
    ),
    "no energy at first": (
        put("budget", "energy", late(joules=1e6, values=[0, 1])),
        "budget.energy",
        "'series'",
        "credit_j",
    ),
    "pacing without its series": (
        put("budget", "energy", late(joules=1e6, accrual=None)),
        "energy.pacing",
        "'series' without budget.energy.accrual",
        "the series",
    ),
    "series without its pacing": (
        put("budget", "energy", late(joules=1e6, pacing="even")),
        "energy.accrual",
        "'even'",
        "'series'",
    ),
    "pacing by a price of nothing": (
        put("budget", priced([1, 0])),
        "energy_price_per_j.values",
        "0 with the pacing 'price'",
        "above 0",
    ),
    "pacing by an unknown rule": (
        put("budget", "energy", late(joules=1e6, pacing="odd")),
        "energy.pacing",
        "odd",
        "even",
    ),
    "price series": (
        put("budget", {"energy_price_per_j": {"times_s": [5], "values": [1]}}),
        "energy_price_per_j.times_s[0]",
        "5",
        "0",
    ),
    "carbon series": (
        put("budget", {"carbon_g_per_j": {"times_s": [0, 1], "values": [1]}}),
        "carbon_g_per_j.values",
        "1 values for 2 times",
        "each time",
    ),
    # Job "a" draws no more than idle GPUs, but needs both nodes awake: 2 x (300 - 10) W + 20 W.
    "cap below a job": (
        put("budget", "power_cap_w", {"times_s": [0, 100], "values": [599, 500]}),
        "power_cap_w.values",
        "at most 599 W",
        'at least 600 W at some time: job "a" needs 580 W',
    ),
    "power that falls with the clock": (
        put("profiles", "net", "power", {"A": {"a_w": 60, "b_w": -1}}),
        "profiles.net.power.A.b_w",
        "-1",
        ">= 0",
    ),
}

# What may sleep asleep: 20 W.
ROUNDS = {
    "unknown field": (put("waiting", 0, "jobs", 1), "waiting[0]", '"jobs"', '"job"?'),
    "owner": (put("running", 0, "job", "gpus", -1), 'running[0].job.gpus (id "a")', "-1", ">= 1"),
    "truth": (
        put("waiting", 0, "job", "truth", {"work": 1}),
        "waiting[0].job.truth",
        "true work",
        "may know",
    ),
    "future": (
        put("waiting", 0, "job", "submit_s", 101),
        "waiting[0].job.submit_s",
        "101",
        "now_s, 100",
    ),
    "not running": (
        put("running", 0, "allocation", DROP),
        "running[0]",
        "no allocation",
        "under waiting",
    ),
    "not waiting": (
        put("waiting", 0, "allocation", ROUND["running"][0]["allocation"]),
        "waiting[0]",
        "an allocation",
        "under running",
    ),
    "id in both": (
        put("waiting", 0, "job", "id", "a"),
        "waiting[0].job.id",
        '"a"',
        "running[0].job has it too",
    ),
    "order": (
        put("running", 0, "job", "submit_s", 6),
        "running[1].job.submit_s",
        "5 after",
        "sort",
    ),
    "profile": (put("waiting", 0, "job", "profile", "x"), "waiting[0].job.profile", '"x"', '"net"'),
    "too large": (put("waiting", 0, "job", "gpus", 9), "waiting[0].job.gpus", "9", "at most 8"),
    "noise": (
        put("waiting", 0, "noise", "scale", [1, 2]),
        "waiting[0].noise.scale",
        "2 values for 1",
        "each",
    ),
    "noise order": (
        put("waiting", 0, "noise", {"batches": [2, 1], "scale": [1, 1]}),
        "waiting[0].noise.batches",
        "[2.0, 1.0]",
        "ascending",
    ),
    "pool": (put(*OPTION, "pool", 2), "running[0].allocation.option.pool", "2", "0 to 1"),
    "other pool": (put(*OPTION, "pool", 1), "option.pool", "1 (p/B)", 'partition "default"'),
    "clock": (put(*OPTION, "clock", 0.7), "option.clock", "0.7", "0.5, 1"),
    "rigid job on other GPUs": (put(*OPTION, "gpus", 3), "option.gpus", "3", "4, as its job"),
    "elastic job on fewer GPUs": (
        lambda d: d["running"][1]["job"].update(min_gpus=3, gpus=3, max_gpus=8),
        "running[1].allocation.option.gpus",
        "2",
        "3 to 8, as its job may have",
    ),
    "batch": (put(*OPTION, "batch", 7), "running[0].allocation.option.batch", "7", "one of 1"),
    "span": (put(*OPTION, "span", "row"), "option.span", '"row"', '"node", "rack", "cluster"'),
    "no type": (put("running", 0, "job", "gpu_types", ["B"]), "option.pool", '"A"', '"B"'),
    "node": (put(*PLACEMENT, 0, 0, 3), "placement", "node 3", "0 to 2"),
    "node's pool": (put(*PLACEMENT, 0, 0, 2), "placement", "node 2 of pool 1", "pool 0"),
    "sum": (
        put(*PLACEMENT, 0, 1, 3),
        "running[0].allocation.placement",
        "3 GPUs",
        "4, as its option",
    ),
    "node twice": (put(*PLACEMENT, [[0, 2], [0, 2]]), "placement", "[0, 0]", "each node once"),
    "sleeping": (put(*PLACEMENT, 0, 0, 1), "placement", "node 1, which sleeps", "awake"),
    "full": (
        lambda d: d["waiting"].clear() or d["running"].insert(1, third()),
        "running",
        "8 GPUs in use on node 0",
        "at most its 4",
    ),
    "asleep order": (put("asleep", [1, 1]), "asleep", "[1, 1]", "ascending"),
    "asleep range": (put("asleep", [1, 3]), "asleep[1]", "3", "0 to 2"),
    "asleep below 0": (put("asleep", [-1]), "asleep[0]", "-1", "0 to 2"),
    "power cap": (put("power_cap_w", 19), "power_cap_w", "19 W", "20 W"),
    "sustained": (put("sustained_w", 19), "sustained_w", "19 W", "20 W"),
    "energy": (
        put("energy_j", 71_999),
        "energy_j",
        "J for the next 3600 s",
        "at least 72000 J: idle nodes draw 20 W",
    ),
    "rack cap": (
        put("cluster", "racks", 0, "power_cap_w", 19),
        "racks[0].power_cap_w",
        "19 W",
        "20 W",
    ),
}


def third():
    """Return a running job on GPUs that another one holds."""
    state = copy.deepcopy(ROUND["running"][0])
    state["job"]["id"] = "d"
    return state


def error_of(document):
    """Return the InputError that a document gets; it is one line and names the file."""
    with pytest.raises(InputError) as caught:
        decode(json.dumps(document).encode(), "t.json")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("t.json")
    return caught.value


def check_case(document, case):
    """Spoil a document and look for the words of the case in the parts of the error."""
    mutate, place, found, expected = case
    spoilt = copy.deepcopy(document)
    mutate(spoilt)
    error = error_of(spoilt)
    if "problems: " in error.found:  # one slip can have several consequences
        assert any(
            place in p.place and found in p.found and expected in p.expected for p in listed(spoilt)
        )
    else:
        assert place in error.place
        assert found in error.found
        assert expected in error.expected


def listed(document):
    """Return all problems of a document whose structure is right."""
    kinds = {"ronda/instance/1": Instance, "ronda/round/1": Round}
    return problems(msgspec.convert(document, kinds[document["format"]]))


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in an instance is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])


@pytest.mark.parametrize("name", ROUNDS)
def test_spoilt_round(name):
    """Each slip in a round is named with place, what was found and what was expected."""
    check_case(ROUND, ROUNDS[name])


@pytest.mark.parametrize("document", [INSTANCE, ROUND], ids=["instance", "round"])
def test_the_unspoilt_documents_are_valid(document):
    """The tables above start from documents without any problem."""
    assert problems(decode(json.dumps(document).encode(), "t.json")) == []


def test_all_problems_are_listed_at_once():
    """Three slips in three places are three problems of one error."""
    spoilt = copy.deepcopy(INSTANCE)
    for case in ("profile", "rack cap", "series start"):
        INSTANCES[case][0](spoilt)
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


def test_objects_built_in_python_are_checked_too():
    """`validate` finds wrong types and numbers that no file can hold, and names the object."""
    good = generate.horizon(5, gpus=8)
    validate(good)
    job = good.jobs[0]
    table = [
        ({"gpus": "4"}, 'jobs[0].gpus (id "j0")', '"4"'),
        ({"deadline_s": float("nan")}, "jobs[0].deadline_s", "NaN"),
        ({"truth": Truth(work=float("inf"))}, "jobs[0].truth.work", "Infinity"),
        ({"submit_s": np.float64(0.0)}, "", "numpy.float64"),
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
