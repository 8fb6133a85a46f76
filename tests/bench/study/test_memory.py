"""Memory over many decisions: measured in a process of its own, and judged."""

from ronda.bench.study import memory
from ronda.bench.study.__main__ import main


def test_command_measures_in_another_process(tmp_path, capsys):
    """A few decisions cannot double the memory; there is a row for the policy."""
    words = ["memory", "--policies", "fifo", "--decisions", "30", "--out", str(tmp_path)]
    assert main(words) in (0, 1)
    assert capsys.readouterr().out.splitlines()[2].startswith("| fifo | ")


def test_growth_is_an_exit_code(tmp_path, monkeypatch):
    """By 6 % is too much."""
    grown = {"rss_early_mib": 100.0, "rss_end_mib": 106.0, "ratio": 1.06}
    monkeypatch.setattr(memory, "measure", lambda policy, decisions: grown)
    assert main(["memory", "--policies", "fifo", "--out", str(tmp_path)]) == 1
