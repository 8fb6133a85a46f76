"""``ronda fits``: its verdicts, exit codes and sizes, and what it refuses."""

import json

import pytest


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        (["round-tenants", "--gpus", 4, "--per-node", 4, "--time", "3h"], 0, "now"),
        (["round-tight-64", "--gpus", 16, "--per-node", 8, "--time", "2h"], 1, "later"),
        (["round-tight-64", "--gpus", 16, "--per-node", 16], 1, "changed"),
        (["round-tight-64", "never.json"], 3, "never"),
    ],
)
def test_verdicts(folder, ronda, words, code, verdict):
    """Scripts read the exit code: 0 for now, 1 for later or otherwise, 3 for never."""
    asked = {"per": {"gpus": 1, "watts": 1e7}}  # above the power cap
    (folder / "never.json").write_text(json.dumps(asked))
    done = ronda("fits", *words, "--json")
    assert done.exit_code == code, done.output
    assert json.loads(done.stdout.splitlines()[-1])["fits"] == verdict


def test_sizes(folder, ronda):
    """Each size comes in the shape that starts first, with as much of the host for each GPU."""
    done = ronda("fits", "round-tight-64", "--gpus", 16, "--per-node", 16, "--json")
    sizes = json.loads(done.stdout.splitlines()[-1])["sizes"]
    assert [one["size"] for one in sizes] == [16, 8, 4, 2, 1]
    assert all(one["pieces"] * one["per"]["gpus"] == one["size"] for one in sizes)
    assert max(one["per"]["gpus"] for one in sizes) == 8  # nodes have no more
    text = " ".join(ronda("fits", "round-tight-64", "--gpus", 16, "--per-node", 16).stdout.split())
    assert "Would help: 2 pieces of 8 GPUs instead of 1 piece of 16 GPUs; it could start" in text
    assert "16 2 pieces of 8 GPUs" in text


def test_a_host_resource_of_which_nothing_is_told(folder, ronda):
    """It is left out, and said to be."""
    (folder / "job.json").write_text('{"per": {"gpus": 1, "cpu": 4}}')
    done = ronda("fits", "round-tenants", "job.json")
    assert done.exit_code == 0
    assert "1 × resource of which the cluster tells nothing, left out, such as cpu" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (['{"per": {"gpu": 1}}'], 'job.json, per: found "gpu"; expected one of'),
        (['{"per": {"gpus": 1}, "cout": 2}'], 'found unknown field "cout"; expected "count"?'),
        (['{"per": {"gpus": 1}, "count": 0}'], "job.json, count: found 0"),
        (['{"per": {"gpus": 1}, "count": 2, "least": 3}'], "least: found 3; expected at most"),
        (['{"per": {"gpus": 1}, "start_s": 1}'], 'unknown field "start_s"'),
        (['{"per": {"gpus": 1}, "id": "j01"}'], 'id: found "j01"'),
        (['{"per": {"gpus": 1}, "reservation": "x"}'], 'reservation: found "x"'),
        (['{"per": {"gpus"'], "job.json, line 1 column 16"),
        (["--gpus", 8, "--per-node", 3], "--per-node: found 3; expected a divisor of --gpus 8"),
        (["--per-node", 3], "--gpus: found no number"),
        (["--gpus", 1, "--time", "soon"], "--time: found 'soon'; expected a time"),
        (["--gpus", 1, "--partition", "gpux"], 'partitions: found "gpux"'),
        ([], "found one file and no options"),
    ],
)
def test_what_is_refused(folder, ronda, words, told):
    """One line names the place; nothing is answered."""
    if words and str(words[0]).startswith("{"):
        (folder / "job.json").write_text(words[0])
        words = ["job.json"]
    done = ronda("fits", "round-tight-64", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
