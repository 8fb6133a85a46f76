"""Two steps against the joint mode on made instances where racks matter."""

import json

from ronda.bench.study.__main__ import main


def test_both_modes_on_one_small_instance(tmp_path):
    """No run breaks a rule."""
    assert main(["joint-racks", "--seeds", "0", "--jobs", "12", "--out", str(tmp_path)]) == 0
    found = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    modes = ["prices(joint=false)", "prices(joint=true)"]
    assert [line["policy"] for line in found] == modes
    assert all(line["violations"] == 0 and line["mean_jct_s"] > 0 for line in found)
