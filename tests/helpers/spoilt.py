"""One valid instance and one valid round, and what it takes to spoil them."""

import copy
import json

import msgspec
import pytest

from ronda.instances.errors import InputError
from ronda.instances.files.json import decode
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.instances.rules.validate import problems

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
            "job": {
                "id": "c",
                "submit_s": 5,
                "profile": "net",
                "gpus": 2,
                "partition": "p",
                "batch": 64,
            },
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
DROP = object()


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
