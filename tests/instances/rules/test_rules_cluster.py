"""Rules of clusters: every slip is named."""

import pytest

from spoilt import INSTANCE, check_case, put

# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
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
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in a cluster is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])
