"""The packaged sites of tasks are those that the tool makes of public data."""

import sys
from pathlib import Path

from tools.task_sites import main

ROOT = Path(__file__).resolve().parents[2]


def test_the_packaged_file_is_made_again(tmp_path, monkeypatch):
    """The same data give the same bytes, and data that are missing one line."""
    out = tmp_path / "tasks.json"
    words = ["task_sites", "--source", str(ROOT / "tests" / "data"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    assert out.read_bytes() == (ROOT / "instances" / "data" / "tasks.json").read_bytes()


def test_missing_data_are_named_in_one_line(tmp_path, monkeypatch, capsys):
    """Exit code 2, and nothing is written."""
    words = ["task_sites", "--source", str(tmp_path), "--out", str(tmp_path / "tasks.json")]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "openb_node_list_all_node.csv.gz: found No such file" in error
    assert not (tmp_path / "tasks.json").exists()
