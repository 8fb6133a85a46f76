"""Logs of schedulers on the command line: converted, counted, scheduled, refused."""

import json

import pytest

from ronda.instances.files import json as files

HEAD = "JobID|User|Account|QOS|Partition|Submit|Start|End|State|Timelimit"
HEAD += "|AllocTRES|ReqTRES|NodeList|Constraints"
TRES = "cpu=8,gres/gpu:a100=1,gres/gpu=1,mem=60G,node=1"
DAY = "2024-05-01T"
ROWS = [
    f"{k}|u{k % 3}|{('nlp', 'root')[k % 2]}|{('high', 'normal')[k % 2]}|main|{DAY}08:00:{k:02}|"
    f"{DAY}09:00:00|{DAY}1{k % 3}:00:00|COMPLETED|1-00:00:00|{TRES}|{TRES}|"
    f"n{1 + k % 2}|{('big', 'red')[k % 2]}"
    for k in range(10)
]
QOS = "Name|Priority|MaxWall|MaxTRESPU\nnormal|0||\nhigh|100|1-00:00:00|gres/gpu=8\n"
ACCOUNTS = "Cluster|Account|ParentName|User|Share|GrpTRES\nc|root|||1|\nc|nlp|root||3|gres/gpu=16\n"
NODES = [
    f"NodeName=n{k} CPUTot=64 RealMemory=512000 Gres=gpu:a100:8 State=IDLE Partitions=main "
    f"AvailableFeatures=big CPUAlloc=0 AllocMem=0\n"
    for k in (1, 2, 3)
]


@pytest.fixture
def log(folder):
    """A folder with a log of ten jobs, and what Slurm's tools say of its cluster."""
    texts = {"log.txt": "\n".join([HEAD, *ROWS, ""]), "qos.txt": QOS, "accounts.txt": ACCOUNTS}
    for name, text in (texts | {"nodes.txt": "".join(NODES)}).items():
        (folder / name).write_text(text)
    return folder


def test_a_log_becomes_an_instance_and_a_schedule(log, ronda):
    """The checker finds nothing: every run is where it was."""
    words = "instances convert sacct log.txt --out made.json --schedule ran.json"
    done = ronda(*words.split())
    assert done.exit_code == 0, done.output
    assert "rows: 10, of which 10 are runs of 10 jobs" in done.stderr
    assert "GPU-hours of these runs: 19.0" in done.stderr  # 4 of 1 h, 3 of 2 h, 3 of 3 h
    made = files.read(log / "made.json")
    assert [group.count for group in made.cluster.node_groups] == [2]
    assert ronda("instances", "check", "made.json", "ran.json").exit_code == 0


def test_the_cluster_and_its_accounts_as_slurm_shows_them(log, ronda):
    """Accounts are a tree, QOS have ranks and limits; who is charged to an inner one has a leaf."""
    words = "instances convert sacct log.txt --slurm nodes.txt --slurm qos.txt --out made.json"
    done = ronda(*words.split(), "--slurm", "accounts.txt", "--json")
    assert done.exit_code == 0, done.output
    made = files.read(log / "made.json")
    assert [job.features for job in made.jobs[:2]] == [("big",), ()]
    assert "jobs with constraints that no node is known to meet: 5" in made.made["notes"]
    site = made.site
    assert {tenant.name: tenant.parent for tenant in site.tenants} == {
        **{"root": None, "nlp": "root", "root/own": "root"},
    }
    assert {each.name: each.rank for each in site.classes} == {"normal": 0, "high": 100}
    assert any(group.max_limit_s == 86400 for group in site.groups)
    assert json.loads(done.stdout)["gpus"] == 24


def test_a_log_is_counted_without_an_instance(log, ronda):
    """Jobs, runs, hours and users in all and by label, of parts of the log too."""
    done = ronda(*["instances", "convert", "sacct", "log.txt", "--count", "--json"])
    told = json.loads(done.stdout)
    assert told["whole"] == {"jobs": 10, "runs": 10, "gpu_hours": 19.0, "users": 3}
    assert told["by"]["GPU type"] == {"a100": told["whole"]}
    count = ["instances", "convert", "sacct", "log.txt", "--count"]
    some = ronda(*count, "--json", "--until", f"{DAY}08:00:04")
    assert json.loads(some.stdout)["whole"]["jobs"] == 4
    words = ronda(*count).stdout
    assert "10 rows: 10 jobs of 3 users in 10 runs, 19.0 GPU-hours" in words


def test_a_log_in_the_standard_format_and_back(log, ronda):
    """Exported jobs are read again."""
    assert ronda(*["instances", "convert", "sacct", "log.txt", "--out", "made.json"]).exit_code == 0
    assert ronda(*["export", "made.json", "--out", "log.swf"]).exit_code == 0
    assert ronda(*["instances", "convert", "swf", "log.swf", "--out", "again.json"]).exit_code == 0
    made, again = (files.read(log / name) for name in ("made.json", "again.json"))
    assert again.cluster.topology.node_gpus.tolist() == made.cluster.topology.node_gpus.tolist()
    kept = ("id", "submit_s", "gpus", "limit_s", "truth", "estimate", "user", "tenant", "priority")
    assert [[getattr(j, f) for f in kept] for j in again.jobs] == [
        [getattr(j, f) for f in kept] for j in made.jobs
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sacct log.txt", "--out: found none; expected --out FILE, or --count"),
        ("sacct log.txt --count --out x.json", "--out: found --count as well"),
        ("sacct log.txt --zone Mars/Base --out x.json", "a time zone such as Europe/Berlin"),
        ("sacct log.txt --since May --out x.json", "a date such as 2026-03-02"),
        ("sacct gone.txt --out x.json", "gone.txt: found no such file"),
        ("sacct log.txt --partitions b --out x.json", "10 with another partition (row 2)"),
        ("sacct log.txt --slurm qos.txt --out x.json", "no nodes"),
        ("sacct log.txt --slurm nodes.txt --device cpu --out x.json", "--device cpu as well"),
        ("swf log.txt --out x.json", "a line that is not 18 numbers (row 1"),
        ("swf log.txt qos.txt --out x.json", "2 files; expected one"),
    ],
)
def test_what_cannot_be_done_is_one_line(log, ronda, words, said):
    """With exit code 2, and nothing is written."""
    done = ronda("instances", "convert", *words.split())
    assert (done.exit_code, (log / "x.json").exists()) == (2, False)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
