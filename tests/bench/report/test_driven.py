"""The section of a decision about a real Slurm on the page."""

import json

import pytest
from click.testing import CliRunner

from ronda.bench.report.driven import driven_section, nodes_panel
from ronda.bench.report.page import write_report
from ronda.bench.report.section import kept_sections
from ronda.cli.app import cli
from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.report import pass_report
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.tools import SlurmTools
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.solvers.registry import policy

EVIL = "<b>n2</b>"


def job(number, gpus, comment="ronda", **more):
    """Return a job of one node."""
    given = {"submit_s": 9_000.0, "limit_s": 3_600.0, "own_nodes": True, "rank": 500.0}
    per = {"gpus": float(gpus)}
    return SeenJob(
        id=number, partitions=("gpu",), comment=comment, per=per, count=1, **given | more
    )


@pytest.fixture
def made():
    """A decision: of two jobs that run one goes on and one is stopped, and three start."""
    nodes = tuple(
        SeenNode(name=name, has={"gpus": 8.0}, partitions=("gpu",), gpu_type="a100", out=out)
        for name, out in (("n1", None), (EVIL, None), ("n3", "fan"))
    )
    long = {"limit_s": 360_000.0, "start_s": 9_000.0}
    jobs = (
        job("1", 2, "", on={"n1": 1}, **long),
        job("2", 8, "ronda:requeue", on={EVIL: 1}, **long),
        *(job(str(k), 4, limit_s=60.0) for k in (3, 4, 5)),
    )
    drive = SlurmController(SlurmTools(), policy("srtf"), Scope(min_run_s=0.0), None)
    found = Snapshot(source="test", system="slurm", now_s=10_000.0, nodes=nodes, jobs=jobs)
    return drive.decided(found)


def test_the_bars_of_a_node_are_its_gpus(made):
    """Above those held now, and below all of them: as many as there are."""
    marks = {m.name: m for m in nodes_panel(made)[0].marks}
    sums = {
        name: [
            sum(
                right - left
                for left, right, y in zip(m.x, m.x_end, m.y, strict=True)
                if at - 0.5 < y < at + 0.5
            )
            for at in range(3)
        ]
        for name, m in marks.items()
    }
    assert sums == {
        "held now": [2, 8, 0],
        "goes on": [2, 0, 0],
        "starts": [4, 8, 0],
        "free": [2, 0, 0],
        "out of service": [0, 0, 8],
    }
    assert marks["held now"].texts == ("job 1, 2 GPUs", "job 2, 8 GPUs")


def test_names_are_data_on_the_page(made):
    """The command that names the node is shown with the reason for which it is not given."""
    section = driven_section(made, pass_report(made, act=False))
    assert section.charts[0].traces[0]["hovertemplate"].startswith("held now: %{text}")
    steps, commands = (part for part in section.parts if not isinstance(part, str))
    assert "stop" in {row[0] for row in steps.rows}
    outcomes = {row[0]: row[-1] for row in commands.rows}
    assert outcomes["scontrol requeue incomplete 2"] == "would be given"
    assert all("not given" in said for line, said in outcomes.items() if EVIL in line)
    assert any(EVIL in line for line in outcomes)


def test_a_dry_run_has_a_page(tmp_path, monkeypatch):
    """And a folder of another policy's decision is refused before any work."""
    monkeypatch.chdir(tmp_path)
    gpus = {"cpus": 64, "real_memory": 512_000, "gres": "gpu:a100:8", "partitions": ["gpu"]}
    waits = {"job_id": 9, "job_state": ["PENDING"], "node_count": 1, "cpus": 1, "partition": "gpu"}
    waits |= {"tres_per_node": "gres/gpu:4", "submit_time": 1795735100, "time_limit": 60}
    waits |= {"comment": "ronda", "user_name": "<script>alert(1)</script>"}
    nodes = {"nodes": [{"name": EVIL, "state": ["IDLE"], **gpus}]}
    (tmp_path / "sinfo.json").write_text(json.dumps(nodes))
    (tmp_path / "squeue.json").write_text(json.dumps({"jobs": [waits]}))
    words = "slurm squeue.json sinfo.json --policy fifo --out dry"
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 0, done.output
    assert "kept: dry/drive.json (ronda report dry)" in done.output
    assert list(kept_sections(tmp_path / "dry")) == ["slurm"]
    page = write_report(tmp_path / "dry").read_text()
    assert "What a policy would do with the cluster" in page
    assert "fifo starts it on 4 GPUs of &lt;b&gt;n2&lt;/b&gt;" in page
    assert EVIL not in page
    other = CliRunner().invoke(cli, [*words.replace("fifo", "srtf").split(), "nothing.json"])
    assert other.exit_code == 2
    assert "the results of policy 'fifo'" in other.output
    none = CliRunner().invoke(cli, ["slurm", "squeue.json", "sinfo.json", "--partition", "other"])
    assert "ronda may touch 0" in none.output
    assert "No job is in its scope" in none.output
