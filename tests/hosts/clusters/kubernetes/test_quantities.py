"""Quantities: exact, as in Kubernetes' own documentation, and refused in one way."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.hosts.clusters.kubernetes.quantities import LARGEST, own_units, quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("40Gi", 40 * 2**30),
        ("1e3", 1000),
        ("1E3", 1000),  # an exponent
        ("1E", 10**18),  # exa
        ("2M", 2_000_000),
        ("2Mi", 2 * 2**20),
        ("1.5k", 1500),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("+3", 3),
        ("-100m", Fraction(-1, 10)),
        ("100u", Fraction(1, 10_000)),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),  # finer than 1e-9: away from zero
        ("-0.1n", Fraction(-1, 10**9)),
        ("1e-20", Fraction(1, 10**9)),
        ("0.1", Fraction(1, 10)),  # not the nearest double
        ("16E", LARGEST),  # 1.6e19 > 2^63 - 1
        ("1e999999", LARGEST),
        ("0e999999", 0),
        (4, 4),
        (0.5, Fraction(1, 2)),
    ],
)
def test_quantities_are_exact(text, value):
    """Each form of the grammar, and its two bounds."""
    assert quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1", "1 Gi", "1K", "1Kib", "1gi", "m", "--1", "1e", "1e3Gi", "0x10", "١", "9" * 101),
        *(True, None, float("nan"), float("inf")),
    ],
)
def test_what_is_no_quantity_is_refused(text):
    """Kubernetes has no K, no spaces, no words."""
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(text)


@given(st.fractions(-(10**6), 10**6), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_decimal_texts_come_back(number, suffix):
    """A number of at most 9 digits after the point is read without any loss."""
    text = f"{float(round(number, 3)):.3f}"
    factor = {"": 1, "m": Fraction(1, 1000), "k": 1000, "M": 10**6}
    factor |= {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
    assert quantity(text + suffix) == Fraction(text) * factor[suffix]


@given(st.text(alphabet="0123456789.eE+-numkMGTPEi", max_size=12))
def test_no_text_does_anything_else(text):
    """Every text is a number within the bounds, or refused."""
    try:
        size, words = abs(quantity(text)), "is no quantity"
    except ValueError as error:
        size, words = Fraction(0), str(error)
    assert size <= LARGEST
    assert words.endswith("is no quantity")


def test_units_are_those_of_ronda():
    """Memory in GiB, cores as numbers, GPUs of all vendors in one sum."""
    asks = {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1", "amd.com/gpu": "2", "pods": "1"}
    asks |= {"ephemeral-storage": "512Mi", "example.com/nic": "3"}
    assert own_units({name: quantity(text) for name, text in asks.items()}) == {
        "cpu": 0.1,
        "memory_gib": 1.0,
        "gpus": 3.0,
        "pods": 1.0,
        "ephemeral-storage_gib": 0.5,
        "example.com/nic": 3.0,
    }
