"""Sets as the bits of an integer, small ones and those beyond one stride of the search."""

from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.placement.nodes import bits, bits_of, lowest_bit, lowest_bits, positions_by

NUMBERS = st.sets(st.integers(0, 5000))


@given(NUMBERS)
def test_a_set_gives_back_its_numbers_in_order(numbers):
    """From numbers to bits and back, over several strides and gaps between them."""
    assert list(bits(bits_of(numbers))) == sorted(numbers)


@given(NUMBERS.filter(bool), st.data())
def test_the_lowest_numbers_of_a_set(numbers, data):
    """The first of the sorted numbers, be it none, one or all."""
    count = data.draw(st.integers(0, len(numbers)))
    assert lowest_bits(bits_of(numbers), count) == bits_of(sorted(numbers)[:count])
    assert lowest_bit(bits_of(numbers)) == min(numbers)


def test_positions_by_value():
    """Values 3, 5, 3 at positions 0, 1, 2: 3 at bits 0 and 2, 5 at bit 1, 4 nowhere."""
    assert positions_by([3, 5, 3], (3, 4, 5)) == {3: 0b101, 4: 0, 5: 0b010}
