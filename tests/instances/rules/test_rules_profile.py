"""Rules of profiles and curves of gradient noise: every slip is named."""

import pytest

from spoilt import INSTANCE, check_case, put

ALONE = {"mode": "exclusive", "time": {"kind": "affine", "alpha_s": 1, "beta_s": 0}}
FUSED = {"mode": "fused", "time": {"kind": "affine", "alpha_s": 0.25, "beta_s": 0.25}}
MEASURED = {"mode": "packed", "time": {"kind": "measured", "models": [3, 4], "step_s": [1, 2]}}
SHARING = ("profiles", "net", "sharing")
TABLE = ("profiles", "net", "throughput", "B")
# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
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
    "power that falls with the clock": (
        put("profiles", "net", "power", {"A": {"a_w": 60, "b_w": -1}}),
        "profiles.net.power.A.b_w",
        "-1",
        ">= 0",
    ),
    "speed beyond any clock": (
        put("profiles", "net", "power", {"A": {"a_w": 60, "s0": 1.7e308}}),
        "profiles.net.power.A.s0",
        "1.7e+308",
        "<= 10",
    ),
    "busy below idle": (
        put("profiles", "net", "power", {"A": {"a_w": 40, "b_w": 19}}),  # 49.5 W at clock 0.5
        "profiles.net.power.A",
        "49.5 W",
        "50 W, which the GPU draws idle",
    ),
    "synchronising below idle": (
        put("profiles", "net", "power", {"A": {"a_w": 60, "sync_w": 45}}),
        "profiles.net.power.A",
        "45 W",
        "at least 50 W",
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
    "sharing by rigid jobs": (
        put("profiles", "rigid", "sharing", {"A": [ALONE]}),
        "profiles.rigid.sharing.A",
        "rigid",
        "iterations",
    ),
    "sharing's type": (put(*SHARING, {"H": [ALONE]}), "net.sharing", '"H"', '"A", "B"'),
    "sharing of none alone": (
        put(*SHARING, {"A": [FUSED]}),
        "profiles.net.sharing.A",
        '"fused"',
        '"exclusive" among them',
    ),
    "an array faster than one": (
        put(*SHARING, {"A": [ALONE, FUSED]}),
        "net.sharing.A[1].time",
        "0.5 s",
        "at least 1 s",
    ),
    "measured columns": (
        put(*SHARING, {"A": [ALONE, MEASURED]}),
        "net.sharing.A[1].time",
        "columns",
        "from 1 or 2 on",
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
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in a profile or curve is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])
