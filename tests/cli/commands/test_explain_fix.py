"""``ronda explain --fix``: what would make an infeasible round feasible."""

import json
import os

RULES = """
import ronda

def least(round, table):
    return ronda.Limit(table.gpus, ">=", {}, name="busy")
"""


def test_words_and_json(folder, ronda):
    """A rule asks for 1,000 GPUs: to how many it would have to fall, and that power is no help."""
    (folder / "rules.py").write_text(RULES.format(1000), encoding="utf-8")
    done = ronda("explain", "round.json", "--with", "rules.py", "--fix")
    assert done.exit_code == 1, done.output
    text = " ".join(done.stdout.split())
    assert "the limit rule[busy]" in text
    assert "Not enough by itself, however large: the power cap; the energy budget" in text
    done = ronda("explain", "round.json", "--with", "rules.py", "--fix", "--json")
    fields = json.loads(done.stdout.splitlines()[-1])
    (rule,) = (fix for fix in fields["fixes"] if fix["kind"] == "rule")
    assert rule["more"] + 1000 == rule["limit"]
    assert rule["checked"]
    limit = int(rule["limit"])
    for at, feasible in ((limit, True), (limit + 1, False)):
        (folder / "rules.py").write_text(RULES.format(at), encoding="utf-8")
        done = ronda("explain", "round.json", "--with", "rules.py", "--fix", "--json")
        fields = json.loads(done.stdout.splitlines()[-1])
        assert fields["feasible"] == feasible
        assert ("fixes" in fields) != feasible


def test_out_of_time(folder, ronda):
    """The exit code is 3 if the time is over."""
    (folder / "rules.py").write_text(RULES.format(1000), encoding="utf-8")
    words = ("explain", "round.json", "--with", "rules.py", "--fix", "--time-limit", "0.001")
    assert ronda(*words).exit_code == 3


def test_a_file_of_rules_that_is_written_twice_in_a_second(folder, ronda):
    """What counts is the file as it is, and not bytecode of another of the same size and time."""
    path, found = folder / "rules.py", []
    for at in (40, 41, 40):
        path.write_text(RULES.format(at), encoding="utf-8")
        os.utime(path, (1e9, 1e9))
        done = ronda("explain", "round.json", "--with", "rules.py", "--json")
        found.append(json.loads(done.stdout.splitlines()[-1])["feasible"])
    assert found == [True, False, True]
