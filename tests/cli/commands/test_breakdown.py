"""``ronda solve --breakdown``: the objective by rule and by job."""

import json


def test_tables_and_json(folder, ronda):
    """The last line of the first table is the objective, and JSON has all parts."""
    words = ("solve", "round.json", "--policy", "prices", "--breakdown")
    text = " ".join(ronda(*words).stdout.split())
    assert "by rule (objective rank, seconds" in text
    assert "progress of jobs" in text
    fields = json.loads(ronda(*words, "--json").stdout.splitlines()[-1])
    parts = fields["breakdown"]
    worth = sum(job["worth"] for job in parts["jobs"])
    assert abs(worth - sum(parts["penalties"].values()) - fields["objective"]) < 1e-9 * worth
    assert f"objective {fields['objective']:.8g}" in text


def test_a_policy_without_values_is_refused(folder, ronda):
    """First come, first served has no objective; alternatives have plans of their own."""
    done = ronda("solve", "round.json", "--policy", "fifo", "--breakdown")
    assert done.exit_code == 2
    assert "--breakdown" in done.output
    done = ronda("solve", "round.json", "--breakdown", "--alternatives", "2")
    assert done.exit_code == 2
