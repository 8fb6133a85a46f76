"""The trials of interrupts and kills: what counts as a failure. Real ones are in `tests/cli`."""

import pytest

from ronda.bench.soak import interrupts
from ronda.bench.study.__main__ import main

RIGHT = (130, ["error: interrupted; the same command goes on from out"])


@pytest.fixture
def trial(monkeypatch):
    """Give what carries out a trial in which commands end as told, and then well."""

    def carry_out(how, *ends, result=("schedule",), drafts=()):
        left = iter([*ends, *[(0, [])] * interrupts.STOPS])

        def stopped(command, folder, how, moment_s):
            for draft in drafts:
                (folder / draft).touch()
            return next(left)

        monkeypatch.setattr(interrupts, "stopped", stopped)
        monkeypatch.setattr(interrupts, "left_alone", lambda command: (("schedule",), 1.0))
        monkeypatch.setattr(interrupts, "outcome", lambda folder: result)
        return interrupts.measure("run", how, 0)

    return carry_out


def test_what_goes_on_to_the_same_result_is_right(trial):
    """However often it was stopped."""
    good = {"equal": True, "drafts": 0, "wrong": ""}
    assert trial("interrupt", RIGHT, RIGHT) == good | {"hits": 2}
    assert trial("kill", (-9, [])) == good | {"hits": 1}
    assert trial("kill") == good | {"hits": 0}
    noted = (130, ["1 of 2 runs are in out already", *RIGHT[1]])
    assert trial("interrupt", noted) == good | {"hits": 1}


@pytest.mark.parametrize(
    "end", [(1, RIGHT[1]), (130, ["Traceback", *RIGHT[1]]), (130, []), (-2, [])]
)
def test_other_codes_and_other_lines_are_wrong(trial, end):
    """One line and 130."""
    assert "exit code" in trial("interrupt", end)["wrong"]


def test_other_results_and_drafts_are_seen(trial):
    """A draft may be left by a kill."""
    assert not trial("kill", (-9, []), result=("another",))["equal"]
    assert trial("interrupt", RIGHT, drafts=[".x.tmp"])["drafts"] == 1
    assert trial("kill", (-9, []), drafts=[".x.tmp"])["drafts"] == 0


def test_table_and_exit_code(monkeypatch, tmp_path, capsys):
    """A row for each command and way; one failure is enough."""
    good = {"hits": 5, "equal": True, "drafts": 0, "wrong": ""}
    monkeypatch.setattr(interrupts, "measure", lambda **_: good)
    words = ["interrupts", "--interrupts", "15", "--kills", "5", "--out"]
    assert main([*words, str(tmp_path / "a")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(" |")[0] for line in shown[2:]] == [
        "| run, interrupt",
        "| compare, interrupt",
        "| frontier, interrupt",
        "| run, kill",
    ]
    monkeypatch.setattr(interrupts, "measure", lambda **_: good | {"equal": False})
    assert main([*words, str(tmp_path / "b")]) == 1
