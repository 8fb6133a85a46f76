"""The bench of ONES's claim: cases, statistics, table and pictures."""

import csv

import numpy as np
import pandas as pd
import pytest

from ronda.bench.ones.claim import MEASURES, cut, make_cases, table
from ronda.bench.statistics import bootstrap_interval
from ronda.bench.study.__main__ import main
from ronda.instances.files.json import read


def test_cases_pair_seeds_and_treat_systems_as_they_are(tmp_path):
    """2 batches x 2 seeds x 3 policies; only ONES scales in place, Optimus has its own period."""
    found = list(make_cases(tmp_path, 10, (0, 1), ("ones", "optimus", "fifo"), ("scaled", "base")))
    assert len(found) == 12
    assert {case.period_s for _, case in found if case.label == "optimus"} == {60.0}
    assert {case.period_s for _, case in found if case.label != "optimus"} == {None}
    for batch, case in found:
        instance = read(case.source)
        assert case.seed == instance.made["seed"]
        assert instance.made["user_batch"] == batch
        in_place = {job.costs.scale_s is not None for job in instance.jobs}
        assert in_place == {case.label == "ones"}


def test_cuts_pair_the_seeds():
    """Half of it on every seed is a cut of 50 % without any width, however seeds differ."""
    other = np.array([10.0, 100.0, 1000.0])
    assert bootstrap_interval(cut, other / 2, other) == (0.5, 0.5, 0.5)


def test_table_by_hand():
    """Means 100 / 60 / 40 against 200 / 240 / 50: cuts of 50, 75 and 20 %."""
    columns = ["batch", "policy", "seed", *MEASURES]
    rows = [("base", "ones", 0, 100.0, 60.0, 40.0), ("base", "tiresias", 0, 200.0, 240.0, 50.0)]
    last = table(pd.DataFrame(rows, columns=columns)).splitlines()[-1]
    assert last == "| tiresias | 200 | 240 | 50 | 50 | 75 | 20 | 57 / 68 / 19 |"


@pytest.mark.slow
def test_from_runs_to_pictures_and_nothing_runs_twice(tmp_path, capsys, runs_here):
    """The command on two tiny workloads; the second time every run is there already."""
    arguments = [
        "ones-claim",
        "--out",
        str(tmp_path),
        "--jobs",
        "3",
        "--seeds",
        "0-1",
        "--batch",
        "base",
    ]
    arguments += ["--policies", "ones,fifo", "--processes", "1"]
    assert main(arguments) == 0
    first = capsys.readouterr()
    assert first.err.count(": OK ") == 4
    assert (tmp_path / "table.md").read_text() == first.out
    for name in ("boxes-base", "cdf-base"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        with (tmp_path / f"{name}.csv").open() as file:
            assert {row["policy"] for row in csv.DictReader(file)} == {"ones", "fifo"}
    assert main(arguments) == 0
    assert ": OK " not in capsys.readouterr().err
