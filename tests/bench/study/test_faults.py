"""The study of faults, on an instance of seconds."""

from ronda.bench.study import faults
from ronda.bench.study.harness import Folder
from ronda.instances import generate

BREAKAGE = generate.Breakage(node_failures=10.0, job_failures=1.0, checkpoint_s=1e4)


def test_study_tells_what_faults_cost(tmp_path, monkeypatch):
    """A row for each policy, without a violation; jobs lose GPU-hours, and their mean JCT grows."""
    plain = generate.horizon(6, 16, "loose", 1)

    def world(seed):
        return plain if seed == faults.SOUND else generate.broken(plain, BREAKAGE, seed)

    monkeypatch.setattr(faults, "world", world)
    assert faults.compare(Folder(tmp_path), ("fifo", "srtf"), (1, 2), 10.0) == 0
    header, _, *rows = (tmp_path / "table.md").read_text().splitlines()
    cells = [dict(zip(header.split(" | "), row.split(" | "), strict=True)) for row in rows]
    assert [row["| policy"] for row in cells] == ["| fifo", "| srtf"]
    assert all(float(row["lost GPU-hours"]) > 0 for row in cells)
    assert all(float(row["ratio"].split()[0]) > 1 for row in cells)
    assert (tmp_path / "faults.png").exists()
