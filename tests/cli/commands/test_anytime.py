"""``ronda anytime``: files, resumption, JSON, and bad input."""

import json

from hostile import HOSTILE, assert_kept_inside, rename


def test_curves_of_a_round_in_one_command(ronda, folder, runs_here):
    """Curves of a round in one command; nothing that its name says leaves the folder."""
    rename(folder / "round.json", HOSTILE)
    words = ("anytime", "round.json", "--policies", "fifo", "--time-limit", "20")
    first = ronda(*words, "--out", "curves", "--json")
    assert first.exit_code == 0, first.output
    told = json.loads(first.stdout.splitlines()[-1])
    assert told["statuses"] == {"OK": 1}
    assert [line["label"] for line in told["policies"]] == ["fifo"]
    # FIFO proves nothing: its own value is the reference, and its gap 0.
    assert told["policies"][0]["gaps"][-1] == 0
    assert list(told["references"]) == [HOSTILE]
    made = {path.relative_to(folder / "curves").parts[0] for path in (folder / "curves").iterdir()}
    assert {"results.jsonl", "runs", "table.md", "figures"} <= made
    again = ronda(*words, "--out", "curves")
    assert "1 of 1 runs are in curves already" in again.stderr
    assert "primal integral" in again.stdout
    assert_kept_inside(folder, {"two-nodes.json", "round.json", "curves"}, again.stdout)


def test_what_cannot_be_meant_is_refused_in_one_line(ronda, folder):
    """What cannot be meant is refused in one line."""
    for words, text in (
        (("two-nodes.json",), "a round"),
        (("round.json", "--objective", "joy"), "'joy'"),
        (("round.json", "--policies", "fifo,"), "--policies"),
        (("round.json", "--policies", "nosuch"), "'nosuch'"),
        (("round.json", "--seeds", "x"), "--seeds"),
        (("round.json", "--time-limit", "0"), "--time-limit"),
    ):
        result = (
            ronda("anytime", *words, "--policies", "fifo")
            if len(words) < 3
            else ronda("anytime", *words)
        )
        assert result.exit_code == 2, words
        assert text in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert not (folder / "anytime-out").exists()
