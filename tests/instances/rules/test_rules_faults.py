"""Rules of faults: every slip is named."""

import pytest

from spoilt import INSTANCE, ROUND, check_case, put

# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
    "node": (
        put("faults", {"outages": [{"node": 3, "start_s": 1, "end_s": 2}]}),
        "faults.outages[0].node",
        "3",
        "0 to 2",
    ),
    "times": (
        put("faults", {"stragglers": [{"node": 0, "start_s": 2, "end_s": 2, "speed": 0.5}]}),
        "faults.stragglers[0].end_s",
        "2",
        "after 2",
    ),
    "notice while out": (
        put(
            "faults",
            {
                "outages": [
                    {"node": 0, "start_s": 9, "end_s": 12, "notice_s": 5},
                    {"node": 0, "start_s": 1, "end_s": 5},
                ]
            },
        ),
        "faults.outages[0]",
        "on node 0 from 4 s",
        "5 s or later",
    ),
    "silence": (put("faults", {"silences": [[3, 1]]}), "faults.silences[0]", "[3", "before"),
    "silences": (
        put("faults", {"silences": [[1, 3], [2, 4]]}),
        "faults.silences[1]",
        "from 2 s",
        "3 s or later",
    ),
    "failure order": (
        put("jobs", 1, "truth", "failures", [2.0, 1.0]),
        "jobs[1].truth.failures",
        "[2.0, 1.0]",
        "ascending",
    ),
    "failure after the end": (
        put("jobs", 1, "truth", "failures", [1e12]),
        "jobs[1].truth.failures",
        "[1000000000000.0]",
        "below its work",
    ),
    "out of service": (put("cluster", "out", [[0, 1]]), "cluster.out", "GPUs", "faults.outages"),
}
ROUNDS = {
    "no such node": (put("cluster", "out", [[9, 1]]), "cluster.out[0]", "node 9", "0 to 2"),
    "too many GPUs": (put("cluster", "out", [[2, 3]]), "cluster.out[0]", "3 GPUs", "at most the 2"),
    "order": (put("cluster", "out", [[2, 1], [0, 1]]), "cluster.out", "[[2, 1]", "ascending"),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_a_slip_in_an_instance_is_named(name):
    """Place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])


@pytest.mark.parametrize("name", ROUNDS)
def test_a_slip_in_a_round_is_named(name):
    """Place, what was found and what was expected."""
    check_case(ROUND, ROUNDS[name])
