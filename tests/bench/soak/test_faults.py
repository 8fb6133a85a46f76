"""The study of faults, on an instance of seconds."""

from ronda.bench.soak import faults
from ronda.bench.study.harness import Folder
from ronda.instances import generate
from ronda.instances.faults import Faults
from ronda.instances.files.catalogue import load

BREAKAGE = generate.Breakage(node_failures=10.0, job_failures=1.0, checkpoint_s=1e4)


def test_study_tells_what_faults_cost(tmp_path, monkeypatch):
    """A row for each policy, without a violation; jobs lose GPU-hours, and their mean JCT grows."""
    plain = generate.horizon(4, 16, "loose", 1)

    def world(kind, seed):
        return plain if kind == "none" else generate.broken(plain, BREAKAGE, seed)

    monkeypatch.setattr(faults, "world", world)
    assert faults.compare(Folder(tmp_path), ("fifo", "srtf"), ("all",), (1, 2), 10.0) == 0
    header, _, *rows = (tmp_path / "table.md").read_text().splitlines()
    cells = [dict(zip(header.split(" | "), row.split(" | "), strict=True)) for row in rows]
    assert [row["| policy"] for row in cells] == ["| fifo", "| srtf"]
    assert all(float(row["lost GPU-hours"]) > 0 for row in cells)
    assert all(float(row["ratio"].split()[0]) > 1 for row in cells)
    assert (tmp_path / "faults.png").exists()


def test_the_kinds_are_parts_of_the_packaged_faults():
    """All of them at seed 1 are those of philly-faults; each kind has some, none has none."""
    packaged = load("philly-faults")
    assert faults.world("all", 1).faults == packaged.faults
    assert faults.world("all", 1).jobs == packaged.jobs
    for kind in ("nodes", "speeds", "reports"):
        assert faults.world(kind, 1).faults != faults.world("none", 1).faults
    assert any(job.truth.failures for job in faults.world("jobs", 1).jobs)
    assert faults.world("none", 1).faults == Faults()
