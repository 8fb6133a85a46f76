"""The mode in which powers and logarithms have other last bits reaches the code, and only them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import moved
from ronda.formulations.objectives import rank
from ronda.formulations.objectives.rank import index_over_mean

POWER = """\
import math
from math import log1p
import numpy as np

def powers(a, b):
    c = a ** b
    a **= b
    return np.stack([c, a, np.exp(b)])

def scalars(x):
    return [x ** 0.7, math.exp(x), log1p(x)]

def exact(x):
    return [2.0 ** -30, x ** 1, math.exp(0.0), math.log(1.0), 10 ** 6, math.sqrt(x)]
"""


@pytest.fixture(scope="module", name="code")
def _code():
    names = {}
    exec(moved.compiled(POWER, "power.py"), names)
    return names


def test_powers_and_logarithms_are_moved_by_one_bit(code):
    """About a third go up, a third down; all by one step, and always the same way."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 3.0, 3000), rng.uniform(0.1, 2.0, 3000)
    plain = np.stack([a**b, a**b, np.exp(b)])
    found = code["powers"](a.copy(), b)
    steps = (found.view(np.int64) - plain.view(np.int64)).ravel()
    assert set(steps.tolist()) == {-1, 0, 1}
    assert all(np.mean(steps == way) > 0.3 for way in (-1, 0, 1))
    assert np.array_equal(found, code["powers"](a.copy(), b))


def test_numbers_are_moved_and_stay_numbers(code):
    """Some of these are: 50 arguments, three functions."""
    found = [code["scalars"](k / 7) for k in range(1, 50)]
    assert {type(value) for values in found for value in values} == {float}
    for at, function in enumerate((lambda x: x**0.7, np.exp, np.log1p)):
        own = [values[at] for values in found]
        assert own != [function(k / 7) for k in range(1, 50)]
        assert own == pytest.approx([function(k / 7) for k in range(1, 50)], rel=1e-15)


def test_what_is_exact_everywhere_stays(code):
    """Powers of two, first powers, exp 0 and log 1, whole numbers, square roots."""
    assert code["exact"](3.7) == [2.0**-30, 3.7, 1.0, 0.0, 10**6, 3.7**0.5]


def test_ronda_computes_with_moved_powers():
    """In a process of its own the indices of Gittins are others, by no more than last bits.

    Here they are moved where the mode is on.
    """
    assert hasattr(rank, "_moved") is bool(moved.SEED)
    seed = moved.SEED + 1
    script = """\
import moved
moved.install()
import numpy as np
from ronda.formulations.objectives.rank import index_over_mean
print(index_over_mean(np.linspace(0.1, 2.0, 40)).tolist())
"""
    folder = str(Path(moved.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"RONDA_TEST_ULP": str(seed), "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    found, here = json.loads(done.stdout), index_over_mean(np.linspace(0.1, 2.0, 40)).tolist()
    assert found != here
    assert found == pytest.approx(here, rel=1e-12)
