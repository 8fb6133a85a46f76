"""Options of records: every field has one, with its default and its words."""

from inspect import signature
from typing import Literal

import click
import pytest

from ronda.cli.records import options_of, taken
from ronda.instances import generate
from ronda.instances.arguments import described
from ronda.instances.base import Record
from ronda.instances.models.power import NodeDraw
from ronda.instances.traces.columns import Columns, Filters


class Made(Record, frozen=True, kw_only=True):
    """A record.

    Attributes
    ----------
    wait_s
        How long; not with `mode` b.
    mode
        Which.
    most, least
        Of both.
    """

    wait_s: float = 2.0
    mode: Literal["a", "b"] = "a"
    most: int | None = None
    least: int = 1


def parsed(command, *words):
    """Return what a command is called with."""
    return command.main(words, standalone_mode=False)


def test_options_are_the_fields():
    """Names, kinds, defaults and words of the fields become those of the options."""
    command = click.command(options_of(Made)(lambda **given: given))
    assert parsed(command) == {"wait_s": 2.0, "mode": "a", "most": None, "least": 1}
    told = parsed(command, "--wait-s", "3", "--mode", "b", "--most", "4")
    assert taken(Made, told | {"least": 5}) == Made(wait_s=3.0, mode="b", most=4, least=5)
    with pytest.raises(click.BadParameter, match="'c' is not one of 'a', 'b'"):
        parsed(command, "--mode", "c")
    helps = {option.name: (option.opts, option.help) for option in command.params}
    assert helps["wait_s"] == (["--wait-s"], "How long; not with --mode b.")
    assert helps["least"] == (["--least"], "Of both.")


def test_without_units_and_defaults():
    """A command may leave units out of names, and tell what was not given."""
    command = click.command(options_of(Made, bare=True, unset=True)(lambda **given: given))
    assert parsed(command, "--wait", "3") == {"wait_s": 3.0} | dict.fromkeys(
        ("mode", "most", "least")
    )


@pytest.mark.parametrize(
    "record",
    [generate.Structure, generate.Breakage, generate.Trials, NodeDraw, Columns, Filters],
    ids=lambda record: record.__name__,
)
def test_every_field_of_a_record_has_words(record):
    """What a record's options say stands in its docstring."""
    assert set(described(record)) == set(signature(record).parameters)


def test_a_record_among_parameters():
    """It has the options of its fields, and is made of them; what no option says is left out."""

    def make(number: int, like: Made | None = None, apart: int = 7) -> tuple[int, Made | None, int]:
        """Make it.

        Parameters
        ----------
        number
            How many.
        apart
            Not asked.
        """
        return number, like, apart

    command = click.command(options_of(make, skip=("apart",))(lambda **given: given))
    given = parsed(command, "--number", "3", "--least", "2")
    assert taken(make, given) == (3, Made(least=2), 7)
    assert given == {}
