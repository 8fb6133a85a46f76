"""What a demand series must hold."""

import json

import pytest
from msgspec import structs

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files.json import decode
from ronda.instances.rules.validate import problems, validate

HOUR = Demand(
    name="hour", start="2020-09-01T08:00:00", step_s=600.0, needed=(5, 6, 9), total=(12, 12, 12)
)


def test_a_series_without_published_columns_is_valid():
    """Forecast and active nodes are what others published."""
    assert problems(HOUR) == []
    assert HOUR.days == pytest.approx(0.5 / 24)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start": "yesterday"}, 'start: found "yesterday"'),
        ({"needed": ()}, "needed: found no step"),
        ({"total": (12, 12)}, "total: found 2 values for 3 steps"),
        ({"forecast": (1,)}, "forecast: found 1 values"),
        ({"active": (9, 9)}, "active: found 2 values"),
        ({"total": (12, 12, 8)}, "needed[2]: found 9 nodes"),
        ({"active": (9, 13, 9)}, "active[1]: found 13 nodes"),
        ({"total": (12, 12, 2**30)}, "total: found 1073741824 nodes"),
    ],
)
def test_each_inconsistency_is_told_in_one_line(change, said):
    """Place, what was found, what was expected."""
    with pytest.raises(InputError) as caught:
        validate(structs.replace(HOUR, **change))
    assert said.split("found ")[1] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert problems(structs.replace(HOUR, **change))[0].startswith(said.split(", expected")[0])


def test_all_inconsistencies_are_told_at_once():
    """A wrong date hides no wrong column."""
    text = json.dumps(
        {"format": "ronda/demand/1", "name": "x", "start": "?", "step_s": 600, "needed": [3]}
        | {"total": [2], "active": [4]}
    )
    with pytest.raises(InputError, match="3 problems"):
        decode(text.encode(), "x.json")
