"""Readers of public traces: the real files."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from ronda.instances.rules.validate import problems
from ronda.instances.traces.columns import Filters
from ronda.instances.traces.published import read_helios, read_itp, read_philly
from ronda.instances.traces.table import read_columns

DATA = Path(__file__).resolve().parents[2] / "data"
BESIDE = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"


def test_real_helios_slice():
    """1,452 jobs of vcvGl and 415 of vcvlY; the header's comments do not shift the rows."""
    path = DATA / "helios" / "helios_venus_2vc_sept.csv"
    instance = read_helios(path, nodes={"vcvGl": 20, "vcvlY": 2}, filters=Filters(start_s=0))
    assert Counter(j.partition for j in instance.jobs) == {"vcvGl": 1452, "vcvlY": 415}
    assert instance.jobs[0].submit_s == 5835.0
    assert list(problems(instance)) == []


@pytest.mark.skipif(not BESIDE.is_dir(), reason="the whole Venus trace may not be packaged")
def test_real_venus_agrees_with_the_slice():
    """Arrival 14,414,301 s after 2020-04-01 is in September: the slice's jobs are in both files."""
    whole = read_helios(BESIDE / "helios_venus" / "venus_jobs_canonical.csv.gz", nodes=200)
    assert len(whole.jobs) == 101_574
    cut = read_helios(DATA / "helios" / "helios_venus_2vc_sept.csv", nodes=22)
    known = {j.id: j.gpus for j in whole.jobs}
    assert all(known[j.id] == j.gpus for j in cut.jobs)


@pytest.mark.soak  # the cut tables of the tests show the same of both readers
def test_real_philly_and_itp():
    """73,279 rows in all; the Pollux filters leave what a plain count leaves."""
    path = DATA / "philly" / "jobs_canonical.csv.gz"
    raw = pd.read_csv(path)
    long = (raw.duration_s >= 60) & (raw.num_gpus * raw.duration_s < 3.6e6)
    late = raw.submit_s >= 21 * 86_400
    assert len(raw) == 73_279
    instance = read_philly(path, nodes=400)
    assert len(instance.jobs) == int((long & late).sum())
    some = read_philly(path, nodes={"ee9e8c": 60, "6214e9": 60})
    assert len(some.jobs) < len(instance.jobs)
    annotated = DATA / "ms_itp2021" / "elasticflow_annotated.csv.gz"
    testbed = read_itp(annotated, cluster="195job")
    assert Counter(j.gpus for j in testbed.jobs) == {1: 118, 4: 45, 8: 28, 16: 3, 2: 1}
    assert all(j.deadline_s > j.submit_s for j in testbed.jobs)


def test_real_columns_are_text_until_checked():
    """Ids such as 01-00000 and placements such as 11 must not become numbers."""
    frame = read_columns(DATA / "ms_itp2021" / "jobs_canonical.csv.gz", {"job_id": ("job_id",)})
    assert frame.job_id.iloc[0] == "01-00000"
