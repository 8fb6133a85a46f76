"""``ronda why`` on rounds: what it says, its exit codes, and its picture."""

import json
from dataclasses import replace as replace_
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import ronda
from ronda.cli.app import cli
from ronda.instances.files.json import write
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.answer import why
from ronda.questions.why.elsewhere import elsewhere


def _said(*args: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["why", *args])
    return found.exit_code, found.stdout or found.stderr


def test_power_holds_a_job_back() -> None:
    """Watts count as a limit, with the room on nodes beside them; the start is that of an end."""
    code, text = _said("round-tenants", "j71", "--json")
    found = json.loads(text.splitlines()[-1])
    assert code == 0
    assert found["reason"]["name"] == "limit[power cap,watts]"
    assert "The power cap" in found["reason"]["text"]
    assert 0 < found["start_in_s"] <= found["replay"]["start_in_s"]
    assert all(each["start_in_s"] < found["start_in_s"] for each in found["helps"])


def test_picture(tmp_path: Path) -> None:
    """The picture and its numbers are written."""
    pytest.importorskip("matplotlib")
    code, text = _said("round-tenants", "j71", "--figure", str(tmp_path / "why.png"))
    assert code == 0, text
    assert (tmp_path / "why.png").stat().st_size > 10_000
    assert "nodes," in (tmp_path / "why.csv").read_text()


def test_a_job_that_can_never_run(tmp_path: Path) -> None:
    """A round with a request that nothing can give is answered, and not refused."""
    path = tmp_path / "round.json"
    write(ronda.load("round-tight-64"), path)
    made = json.loads(path.read_text())
    made["waiting"][0]["job"] |= {"gpus": 64, "pieces": {"count": 4}}
    made["waiting"][0]["job"].pop("max_gpus", None)
    path.write_text(json.dumps(made))
    job = made["waiting"][0]["job"]["id"]
    code, text = _said(str(path), job)
    assert code == 0, text
    assert "16 GPUs on one node" in text
    assert "never as it stands" in text


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("round-tenants", "j1"), "no job 'j1'; expected a job that waits, such as"),
        (("round-tenants",), "without an option"),
        (("one.json", "two.json", "j1"), "2 files without"),
        (("nowhere.json", "j1"), "nowhere.json"),
        (("pollux-1", "j1"), "expected a round"),
    ],
)
def test_bad_input(args: tuple[str, ...], told: str) -> None:
    """What cannot be answered is one line and exit code 2."""
    code, text = _said(*args)
    assert code == 2
    assert told in text
    assert len(text.strip().splitlines()) == 1


def test_a_running_job() -> None:
    """A job that runs does not wait."""
    round = ronda.load("round-tenants")
    code, text = _said("round-tenants", round.running[0].job.id)
    assert code == 2
    assert "which runs" in text


def test_written_round_is_read(tmp_path: Path) -> None:
    """A round that is written, and one by name, give the same answer."""
    write(ronda.load("round-tenants"), tmp_path / "r.json")
    by_file = json.loads(_said(str(tmp_path / "r.json"), "j71", "--json")[1].splitlines()[-1])
    by_name = json.loads(_said("round-tenants", "j71", "--json")[1].splitlines()[-1])
    assert {**by_file, "source": ""} == {**by_name, "source": ""}


@pytest.mark.parametrize(
    ("printed", "kind"),
    [("QOSGrpGRES", "limit"), ("PartitionTimeLimit", "request"), ("ReqNodeNotAvail", "machine")],
)
def test_limits_that_are_not_shown(printed: str, kind: str) -> None:
    """Where files show room, the scheduler's own word counts, with the command that shows why."""
    node = SeenNode(name="a", has={"gpus": 8})
    job = SeenJob(id="J", per={"gpus": 1}, reason=printed)
    seen = Snapshot(source="here", system="slurm", now_s=0.0, nodes=(node,), jobs=(job,))
    found = why(seen, "J").reason
    assert found.kind == kind
    assert printed in found.text
    assert "add the output of s" in found.proof[0]
    nothing = replace(job, reason="Priority")
    other = replace_(seen, jobs=(nothing,))
    assert why(other, "J").reason.text.startswith("Nothing holds it back")


def test_why_not_there() -> None:
    """A partition, a model or a node: when it could start there, and what holds it back there."""
    said = json.loads(_said("round-tenants", "j71", "--not", "vc0", "--json")[1].splitlines()[-1])
    assert said["not"]["place"] == "in partition vc0"
    assert said["not"]["start_in_s"] is not None
    code, text = _said("round-tenants", "j71", "--not", "nodes-0")
    assert code == 2
    assert "a GPU model, partition or node, such as" in text
    node = SeenNode(name="a", has={"gpus": 8}, gpu_type="A100")
    small = SeenNode(name="b", has={"gpus": 2}, gpu_type="V100")
    job = SeenJob(id="J", per={"gpus": 4})
    seen = Snapshot(source="here", system="slurm", now_s=0.0, nodes=(node, small), jobs=(job,))
    found = elsewhere(why(seen, "J").waiting, "v100")
    assert found.place == "on V100 GPUs"
    assert found.start_s == float("inf")
    assert "at most 2 GPUs" in found.reason.text
    assert elsewhere(why(seen, "J").waiting, "a").start_s == 0


def test_nodes_that_power_up() -> None:
    """Where a job waits for resources beside nodes that power up, these are doubted."""
    job = SeenJob(id="J", per={"cpu": 1}, reason="Resources")
    node = SeenNode(name="a", has={"cpu": 8})
    seen = Snapshot(source="here", system="slurm", now_s=0.0, nodes=(node,), jobs=(job,))
    assert why(seen, "J").reason.kind == "order"
    seen.noted.add("node that powers up, taken to be in service", "a")
    assert why(seen, "J").reason.kind == "machine"


def test_a_round_on_standard_input_is_read_once(tmp_path: Path) -> None:
    """What comes through a pipe serves the answer and its price, and the queues as well."""
    write(ronda.load("round-tenants"), tmp_path / "r.json")
    text = (tmp_path / "r.json").read_bytes()
    done = CliRunner().invoke(cli, ["why", "-", "j71", "--json"], input=text)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["price"]["row"] == "power_cap"
    done = CliRunner().invoke(cli, ["queues", "-", "--json"], input=text)
    assert done.exit_code == 0, done.output
