"""Rules of rounds: every slip is named."""

import copy

import pytest

from spoilt import DROP, ROUND, check_case, put

OPTION = ("running", 0, "allocation", "option")
PLACEMENT = ("running", 0, "allocation", "placement")

# What may sleep asleep: 20 W.
# name: (mutation, words of the place, of what was found, of what was expected)
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
    "noise of a job whose rate is not given": (
        put("running", 1, "noise", {"batches": [16, 32], "scale": [100]}),
        "running[1].noise.scale",
        "1 values for 2",
        "each",
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
    "waking order": (put("waking", [2, 0]), "waking", "[2, 0]", "ascending"),
    "waking twice": (put("waking", [0, 0]), "waking", "[0, 0]", "ascending"),
    "waking range": (put("waking", [0, 3]), "waking[1]", "3", "0 to 2"),
    "waking below 0": (put("waking", [-1]), "waking[0]", "-1", "0 to 2"),
    "waking beyond any node": (put("waking", [10**400]), "waking[0]", "100000", "0 to 2"),
    "waking asleep": (put("waking", [1]), "waking[0]", "node 1, which sleeps", "awake"),
    # Rigid: 1 s of work a second, and 4 GPUs without a power curve draw their idle 50 W each.
    "rate": (put(*OPTION, "rate", 2), "option.rate", "claims 2 units of work/s, not 1", "computed"),
    "power": (put(*OPTION, "power_w", 99), "option.power_w", "claims 99 W, not 200 W", "computed"),
    "passes": (
        lambda d: (
            put("running", 1, "job", "batch", 7)(d),
            put("running", 1, "allocation", "option", "batch", 7)(d),
        ),
        "running[1].allocation.option (id",
        "batch 7 on 2 GPUs cannot be cut into passes of 32 to 32",
        "can run",
    ),
    "spread": (
        lambda d: (
            d["running"][0].update(
                job=d["running"][0]["job"] | {"gpus": 8},
                allocation={
                    "option": {"pool": 0, "gpus": 8, "span": "node"},
                    "placement": [[0, 4], [1, 4]],
                },
            )
            or d["asleep"].clear()
        ),
        "running[0].allocation.option (id",
        "spread over 2 nodes, not on one",
        "can run",
    ),
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


@pytest.mark.parametrize("name", ROUNDS)
def test_spoilt_round(name):
    """Each slip in a round is named with place, what was found and what was expected."""
    check_case(ROUND, ROUNDS[name])
