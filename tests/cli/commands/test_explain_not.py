"""``ronda solve --explain JOB --not PLACE``: why not there."""

import json


def test_words_and_json(folder, ronda):
    """A sentence with the cost, the same in JSON; a job and a place are needed."""
    words = ("solve", "round.json", "--policy", "prices", "--explain", "j03", "--not", "a100:1")
    text = " ".join(ronda(*words).stdout.split())
    assert "j03 on 1 A100: " in text
    fields = json.loads(ronda(*words, "--json").stdout.splitlines()[-1])
    (found,) = fields["not_there"]
    assert (found["job"], found["there"]) == ("j03", "1 A100")
    assert ("cost" in found) != ("why" in found)
    assert ronda(*words[:4], "--not", "a100").exit_code == 2
    assert ronda(*words[:-1], "h100").exit_code == 2
