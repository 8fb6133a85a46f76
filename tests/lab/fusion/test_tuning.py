"""GPU time of HFHT's algorithms by how trials share a GPU."""

import pandas as pd
import pytest

from lab.__main__ import main
from lab.fusion.curves import curves
from lab.fusion.tuning import measure, table
from lab.fusion.waves import wave_s
from ronda.instances.errors import InputError


def test_random_search_on_a_v100():
    """Serial takes 4.33 times as long as fused if each class has 13 or 14 of the 81 trials.

    12 arrays: (12 x 1.0741 + 81 x 0.0788) epochs against 81 / 0.97; a draw of classes is near.
    """
    found = measure("V100-16GB", "random", 0)
    assert found["exclusive"] == pytest.approx(810 / 0.97, rel=1e-5)
    own = curves("hfta-pointnet_cls-amp", "V100-16GB")
    even = wave_s((14, 14, 14, 13, 13, 13), own.sharings["fused"], own.most("fused"))
    assert 81 * own.alone_s / even == pytest.approx(4.33, abs=0.01)
    assert 3.9 < found["exclusive"] / found["fused"] < 5.0
    assert found["fused"] < found["packed"] < found["exclusive"]


def test_on_an_a100_random_search_gains_more_than_hyperband():
    """Late waves of Hyperband hold few trials of a class; processes do not mind classes."""
    wide, narrow = (measure("A100-40GB", name, 1) for name in ("random", "hyperband"))
    assert min(wide[m] for m in ("exclusive", "packed", "slices")) > 2 * wide["fused"]
    assert wide["exclusive"] / wide["fused"] > 2 * narrow["exclusive"] / narrow["fused"]
    for found in (wide, narrow):
        assert found["chosen"] <= min(found[m] for m in ("packed", "slices", "fused"))
    assert narrow["packed"] < 1.2 * narrow["fused"]
    assert 0 == wide["exclusive_profiling"] < wide["fused_profiling"] < wide["packed_profiling"]


def test_table_by_hand():
    """Serial 10 and 30, fused 5 and 10: 2 and 3 times."""
    modes = {"exclusive": [10.0, 30.0], "packed": [5.0, 20.0], "fused": [5.0, 10.0]}
    extra = {f"{mode}_profiling": [0.0, 2.0] for mode in modes}
    lines = pd.DataFrame({"algorithm": "a", "gpu": "g"} | modes | extra)
    rows = table(lines).splitlines()[2:]
    assert rows[-1] == "| a | g | fused (HFTA) | 7.5 | 2.50 | 1.50 | 2.00-3.00 | 1 |"
    assert len(rows) == 3


def test_command(tmp_path, capsys):
    """A table, a picture, and its numbers."""
    words = ["hfht", "--seeds", "0", "--gpus", "V100-16GB", "--out", str(tmp_path)]
    assert main(words) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2 * 4
    assert (tmp_path / "hfht.png").exists()


def test_unknown_curves():
    """One line that names them."""
    with pytest.raises(InputError, match="pointnet on V100"):
        curves("pointnet", "V100")
