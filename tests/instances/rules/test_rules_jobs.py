"""Rules of jobs: every slip is named."""

import pytest

from spoilt import DROP, INSTANCE, check_case, put

# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
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
    "losses": (
        put("jobs", 1, "truth", "learning", [1.0, -1.0]),
        "jobs[1].truth.learning[1]",
        "-1.0",
        ">= 0",
    ),
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
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in a job is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])
