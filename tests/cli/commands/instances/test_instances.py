"""``instances``: list, show, check, convert, generate."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.instances.cluster import GpuType
from ronda.instances.files import json as files
from ronda.instances.files.packaged import entries
from ronda.instances.instance import Instance
from ronda.instances.models.power import gpu_power_w
from ronda.instances.round import Round


def test_list_names_every_packaged_instance(ronda):
    """People and programs get the same names."""
    text = ronda("instances", "list").stdout
    fields = json.loads(ronda("instances", "list", "--json").stdout)
    assert [entry["name"] for entry in fields["entries"]] == [entry.name for entry in entries()]
    assert all(entry.name in text for entry in entries())


def test_show_tells_size_source_and_reference(ronda):
    """What the issue's acceptance numbers compare with can be looked up."""
    fields = json.loads(ronda("instances", "show", "venus-vcvgl", "--json").stdout)
    assert (fields["jobs"], fields["nodes"], fields["gpus"]) == (1452, 20, 160)
    assert fields["licence"] == "CC-BY-4.0"
    assert fields["reference"]["fifo"]["mean_jct_s"] == pytest.approx(18497.01, abs=0.01)
    text = ronda("instances", "show", "venus-vcvgl").stdout
    assert "1,452" in text
    assert "SenseTime" in text


def test_show_a_round(folder, ronda):
    """A round tells its live jobs and limits."""
    fields = json.loads(ronda("instances", "show", "round.json", "--json").stdout)
    assert fields["kind"] == "round"
    assert fields["running"] + fields["waiting"] == 12
    assert fields["power_cap_w"] > 0


def test_show_leaves_out_what_is_not_known(folder, ronda):
    """People see a line for each field that has a value, in the order of the JSON."""
    fields = json.loads(ronda("instances", "show", "two-nodes.json", "--json").stdout)
    known = [name for name, value in fields.items() if value not in ("", None, {})]
    assert len(known) < len(fields)
    shown = ronda("instances", "show", "two-nodes.json").stdout
    names = [line.split("  ")[0].strip() for line in shown.splitlines()]
    assert list(filter(None, names)) == [name.replace("_", " ") for name in known]


def test_show_a_topology(folder, ronda):
    """Equal nodes are one line with their number; programs get the same tree."""
    text = ronda("instances", "show", "pollux-1", "--topology").stdout
    assert text.splitlines() == ["pollux-1: 16 nodes, 64 GPUs", "└── 16 × node of 4 T4"]
    done = ronda("instances", "show", "pollux-1", "--topology", "--json")
    tree = json.loads(done.stdout)["topology"]
    assert (tree["kind"], [part["kind"] for part in tree["children"]]) == ("cluster", ["node"])
    data = Path(__file__).resolve().parents[3] / "data" / "topology"
    hosts = ronda("instances", "show", data / "lingjun_hosts.csv", "--topology").stdout
    assert hosts.startswith("lingjun_hosts: 847 nodes, 6,776 GPUs\n└── rack G6:")


@pytest.mark.parametrize(("name", "starts"), [("t.png", b"\x89PNG"), ("t.svg", b"<?xml")])
def test_draw_a_topology(name, starts, folder, ronda):
    """A picture of the kind that its name says; it is not overwritten unasked."""
    words = ("instances", "show", "round.json", "--topology", "--out", name)
    assert ronda(*words).stdout == f"picture: {name}\n"
    assert (folder / name).read_bytes().startswith(starts)
    assert ronda(*words).exit_code == 2
    assert ronda(*words, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("pollux-1 --out t.png", "--out: found t.png; expected --topology"),
        ("pollux-1 --topology --out t.pdf", "--out: found t.pdf; expected a name"),
        ("pollux --topology", "instance: found 'pollux'"),
        ("node.xml --topology", "node.xml: found a topology file of NCCL; expected an instance"),
    ],
)
def test_a_topology_that_cannot_be_shown(words, problem, folder, ronda):
    """Refused on one line before anything is drawn."""
    done = ronda("instances", "show", *words.split())
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {problem}")
    assert done.stderr.count("\n") == 1


def test_check_finds_a_schedule_that_breaks_a_rule(folder, two_nodes, ronda):
    """A good schedule passes; one whose job runs before its submission does not."""
    schedule = run(two_nodes, "fifo")
    files.write(schedule, folder / "good.json")
    good = ronda("instances", "check", "two-nodes.json", "good.json")
    assert (good.exit_code, "keeps every rule" in good.stdout) == (0, True)
    job = schedule.jobs[0]
    shifted = msgspec.structs.replace(job.segments[0], done=job.segments[0].done + 1)
    jobs = (msgspec.structs.replace(job, segments=(shifted,)), *schedule.jobs[1:])
    files.write(msgspec.structs.replace(schedule, jobs=jobs), folder / "bad.json")
    bad = ronda("instances", "check", "two-nodes.json", "bad.json", "--json")
    assert bad.exit_code == 1
    assert any(v.startswith("progress") for v in json.loads(bad.stdout)["violations"])
    assert "violations" in ronda("instances", "check", "two-nodes.json", "bad.json").stdout


@pytest.mark.parametrize("name", ["round.json", "two-nodes.json", "one-gpu"])
def test_check_a_single_file(name, folder, ronda):
    """A file alone is read with all its cross-checks."""
    assert "in order" in ronda("instances", "check", name).stdout


@pytest.mark.parametrize(
    ("words", "kind", "jobs"),
    [
        ("round --jobs 9 --seed 4", Round, 9),
        ("horizon --jobs 15 --gpus 16 --seed 4", Instance, 15),
        ("horizon --jobs 9 --types 2 --pods 2 --gangs 0.5 --deadlines 1 --seed 4", Instance, 9),
    ],
)
def test_generate_is_reproducible(words, kind, jobs, folder, ronda):
    """The same words give the same bytes, other seeds others."""
    for name in ("a", "b"):
        done = ronda("instances", "generate", *words.split(), "--out", f"{name}.json")
        assert done.exit_code == 0, done.output
    ronda("instances", "generate", *words.replace("4", "5").split(), "--out", "c.json")
    found = files.read(folder / "a.json")
    assert isinstance(found, kind)
    assert len(found.jobs) == jobs
    a, b, c = ((folder / f"{name}.json").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_generate_says_what_is_out_of_range(ronda):
    """A wrong structure is an input error of one line."""
    done = ronda("instances", "generate", "round", "--racks", "0", "--out", "a.json")
    assert done.exit_code == 2
    assert "racks: found 0" in done.stderr


CSV = """job_id,submit_s,num_gpus,duration_s,vc
1,100,1,50,red
2,110,8,60,blue
3,120,16,600,red
"""


def test_convert_a_log(folder, ronda):
    """Three jobs, two of them in the partition asked for; time starts at the first of them."""
    (folder / "log.csv").write_text(CSV)
    words = "instances convert helios log.csv --nodes red=2 --name mine --out red.json --json"
    done = ronda(*words.split())
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout)
    assert (fields["jobs"], fields["gpus"], fields["name"]) == (2, 16, "mine")
    found = files.read(folder / "red.json")
    assert [(job.submit_s, job.gpus) for job in found.jobs] == [(0.0, 1), (20.0, 16)]
    assert ronda("run", "red.json", "--policy", "fifo", "--json").exit_code == 0


def test_convert_a_table_says_what_became_of_its_rows(folder, ronda):
    """All rows are jobs or dropped, columns read or named; a GPU type may be one's own."""
    rows = ("0,8,9,a,x", "1,0.5,9,a,y", "2,1,9,b,z", "3,16,9,b,z")
    (folder / "jobs.csv").write_text("t,n,d,v,w\n" + "\n".join(rows) + "\n")
    words = "instances convert table jobs.csv --map submit=t,gpus=n,duration=d,vc=v --nodes b=2"
    card = "name=H100,memory_gib=80,idle_w=60,busy_w=700,host_idle_w=500"
    done = ronda(*words.split(), "--gpu", card, "--out", "made.json", "--json")
    found = json.loads(done.stdout)
    assert (found["rows"], found["jobs"], found["unread"]) == (4, 2, ["w"])
    assert found["dropped"] == {"a part of a GPU": 1, "another virtual cluster": 1}
    made = files.read(folder / "made.json")
    assert made.cluster.gpu_types == (GpuType(name="H100", memory_gib=80.0, idle_w=60.0),)
    assert gpu_power_w(made.profiles["rigid"].power["H100"]) == 700.0
    shown = ronda(*words.split(), "--out", "made.json", "--force")
    assert re.search(r"a part of a GPU +row 3", shown.stdout)
    assert "GPUs: all taken for V100 (32 GiB, 30 W idle, 300 W busy)" in shown.stderr
    assert "columns not read: w" in shown.stderr
    for wrong in ("h100", "name=H100", card.replace("700", "50"), card + ",clock=1"):
        done = ronda(*words.split(), "--gpu", wrong, "--out", "other.json")
        assert (done.exit_code, (folder / "other.json").exists()) == (2, False)
        assert "v100, p100, a100, t4, or as in name=H100" in done.stderr


def test_convert_with_filters(folder, ronda):
    """Each filter leaves out the job that it is about."""
    (folder / "log.csv").write_text(CSV)
    for number, (words, left) in enumerate(
        [
            ("--min-duration 55", [60.0, 600.0]),
            ("--max-duration 55", [50.0]),
            ("--max-gpus 8", [50.0, 60.0]),
            ("--start 105 --end 115", [60.0]),
            ("--max-gpu-hours 1", [50.0, 60.0]),
        ]
    ):
        out = f"{number}.json"
        done = ronda(
            "instances", "convert", "helios", "log.csv", "--nodes", 2, *words.split(), "--out", out
        )
        assert done.exit_code == 0, done.output
        assert [job.truth.work for job in files.read(folder / out).jobs] == left
