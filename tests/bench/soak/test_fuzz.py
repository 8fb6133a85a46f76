"""Documents changed at random: what they are, how verdicts come about, and a few of them."""

import json
import signal

import numpy as np
import pytest

import ronda
from ronda.bench.soak import fuzz, mutate
from ronda.bench.study.__main__ import main
from ronda.instances.errors import InputError, RondaError


@pytest.fixture
def few(monkeypatch):
    """Leave one round."""
    monkeypatch.setattr(fuzz, "NAMES", ("tiny-1",))


def test_mutants_are_those_of_their_seed_and_mostly_json(few):
    """Nine in ten keep the shape of JSON, and nearly all differ from the document."""
    made = [mutate.mutant("tiny-1", np.random.default_rng(seed)) for seed in range(60)]
    assert made[7] == mutate.mutant("tiny-1", np.random.default_rng(7))
    whole = json.loads(mutate.document("tiny-1"))
    parsed = 0
    for text in made:
        try:
            parsed += json.loads(text) != whole
        except ValueError:
            continue
    assert parsed > 40


def attempt(tmp_path):
    """Try one case."""
    return fuzz.attempt(0, ("fifo", "srtf"), tmp_path / "case.json")


@pytest.mark.parametrize(
    ("answer", "verdict", "words"),
    [
        (InputError("a", "b", "c"), "refused", ""),
        (InputError("a", "b\nc", "d"), "wrong", "characters"),
        (RondaError("b" * 4000), "wrong", "characters"),
        (KeyError("lost"), "wrong", "KeyError"),
        (SystemExit(1), "wrong", "SystemExit"),
    ],
    ids=["refused", "two lines", "wordy", "exception", "exit"],
)
def test_what_a_reader_raises(answer, verdict, words, few, tmp_path, monkeypatch):
    """Only an error of ronda's own in one short line is right."""

    def read(_path):
        raise answer

    monkeypatch.setattr(ronda, "read", read)
    found, why = attempt(tmp_path)
    assert found == verdict
    assert words in why


def test_what_takes_too_long(few, tmp_path, monkeypatch):
    """Counted in processor time, which other programs do not use up."""

    def read(_path):
        while True:
            pass

    monkeypatch.setattr(ronda, "read", read)
    monkeypatch.setattr(fuzz, "LONG_S", 0.05)
    before = signal.signal(signal.SIGPROF, fuzz._too_long)
    try:
        verdict, why = attempt(tmp_path)
    finally:
        signal.signal(signal.SIGPROF, before)
    assert (verdict, "TooLongError" in why) == ("wrong", True)


def test_an_answer_that_breaks_a_rule_is_wrong(few, tmp_path, monkeypatch):
    """And one that is in order is good."""
    monkeypatch.setattr(fuzz, "mutant", lambda name, _rng: mutate.document(name))
    assert attempt(tmp_path) == ("good", "")
    monkeypatch.setattr(ronda, "check", lambda *_: ["power: too much"])
    verdict, why = attempt(tmp_path)
    assert verdict == "wrong"
    assert "1 violations: power: too much" in why


def test_cases_are_refused_or_used(tmp_path, capsys):
    """A few, in a process of their own."""
    words = ["fuzz", "--cases", "20", "--policies", "fifo,srtf", "--out", str(tmp_path)]
    code = main(words)
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert shown.splitlines()[2].startswith("| 20 | ")
