"""Two steps against the joint mode on made instances where racks matter."""

import json

from click.testing import CliRunner

from ronda.bench.study.joint_racks import main


def test_prints_one_line_a_run():
    """Both modes on one small instance; no run breaks a rule."""
    done = CliRunner().invoke(main, ["--seeds", "1", "--jobs", "12"])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.output.splitlines()]
    assert [line["policy"] for line in found] == ["prices(joint=false)", "prices(joint=true)"]
    assert all(line["violations"] == 0 and line["mean_jct_s"] > 0 for line in found)


def test_bad_number_is_one_line():
    """No seeds is no experiment: refused with exit code 2."""
    done = CliRunner().invoke(main, ["--seeds", "0"])
    assert done.exit_code == 2
    assert "--seeds" in done.output
