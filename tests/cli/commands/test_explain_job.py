"""``ronda solve --explain``: why a job got what it got."""

import json

import pytest
from msgspec.structs import replace

from ronda.instances import generate
from ronda.instances.files.json import write
from ronda.testing import sharing


def last(done):
    """Return the JSON object that a command printed."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("policy", ["prices", "milp", "genetic(generations=3)"])
def test_words_for_people(policy, folder, ronda):
    """Prices, the job's lot, a comparison, and the table of options."""
    done = ronda("solve", "round.json", "--policy", policy, "--explain", "j03")
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "j03: " in text
    assert "GPU of default/A100 cost" in text
    assert "than it costs" in text
    assert "not to run: 0" in text
    assert "surplus" in text


def test_json_has_the_explanation(folder, ronda):
    """One entry a job, in the order asked; surplus = worth - costs, the chosen one marked."""
    words = ("solve", "round.json", "--policy", "prices", "--explain", "j05", "--explain", "j03")
    fields = last(ronda(*words, "--json"))
    assert [one["job"] for one in fields["explanation"]] == ["j05", "j03"]
    for one in fields["explanation"]:
        assert sum(o["chosen"] for o in one["options"]) == 1
        for o in one["options"]:
            costs = o["gpu_cost"] + o["power_cost"]
            assert o["surplus"] == pytest.approx(o["worth"] - costs, abs=1e-12)
        for price in one["prices"]:
            assert price["each"] == fields["prices"][price["name"]]


def test_a_tie_has_no_regret_to_tell(folder, ronda):
    """The job that the price of GPUs hangs on could as well have something else."""
    round_ = generate.round(24, None, "tight", 3)
    write(replace(round_, power_cap_w=None, energy_j=None), folder / "free.json")  # GPUs are short
    jobs = [state.job.id for state in round_.jobs]
    words = ["solve", "free.json", "--policy", "prices"]
    words += [word for job in jobs for word in ("--explain", job)]
    reasons = [one["reason"] for one in last(ronda(*words, "--json"))["explanation"]]
    assert "tie" in reasons
    text = " ".join(ronda(*words).stdout.split())
    assert text.count("just as good for it") == reasons.count("tie")
    assert text.count("regret") == len(jobs) - reasons.count("tie")


def test_without_explain_nothing_is_added(folder, ronda):
    """The object has no such field."""
    fields = last(ronda("solve", "round.json", "--policy", "prices", "--json"))
    assert "explanation" not in fields


def test_policy_without_prices_is_refused(folder, ronda):
    """One line that names the policies that have prices; nothing is written."""
    done = ronda("solve", "round.json", "--policy", "fifo", "--explain", "j03", "--out", "p.json")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "fifo" in done.stderr
    assert "prices, genetic" in done.stderr
    assert not (folder / "p.json").exists()


def test_unknown_job_is_refused_with_near_matches(folder, ronda):
    """One line with the ids that could have been meant, before anything is solved."""
    done = ronda("solve", "round.json", "--policy", "prices", "--explain", "j3")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "j03" in done.stderr


def test_infeasible_round_is_not_explained(folder, ronda):
    """The error says that no plan exists, not that a job is dear."""
    text = "import ronda\ndef many(round, table): return ronda.Limit(table.gpus, '>=', 1e6)\n"
    (folder / "many.py").write_text(text)
    job = json.loads((folder / "round.json").read_text())["running"][0]["job"]["id"]
    words = ("--with", "many.py", "--explain", job, "--json")
    done = ronda("solve", "round.json", "--policy", "milp", *words)
    assert done.exit_code == 1
    assert "no plan keeps every limit" in done.stderr
    assert "explanation" not in json.loads(done.stdout.splitlines()[-1])


def test_from_stdin_the_words_take_the_place_of_the_plan(folder, ronda):
    """A program that asks for reasons gets them with --json; a person gets words."""
    text = (folder / "round.json").read_bytes()
    done = ronda("solve", "-", "--policy", "prices", "--explain", "j03", input=text)
    assert done.exit_code == 0, done.output
    assert "j03: " in done.stdout


def test_of_a_job_in_an_array_the_lot_is_that_of_the_array(tmp_path, monkeypatch, ronda):
    """One job of it may not be stopped, so the other keeps what it has, too."""
    monkeypatch.chdir(tmp_path)
    write(sharing()["arrays"], tmp_path / "round.json")
    words = ("solve", "round.json", "--policy", "prices", "--explain", "a1", "--explain", "wide")
    first, other = last(ronda(*words, "--json"))["explanation"]
    assert (first["job"], first["reason"], first["runs"]) == ("a1", "must_run", True)
    assert other["job"] == "wide"
