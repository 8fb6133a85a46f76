"""A journal goes on only from the decisions that were made, all of them, in their order."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.horizon.driver import run
from ronda.horizon.journal import applied, difference
from ronda.instances.errors import InputError
from ronda.instances.files.seal import checksum, seal, unseal


@pytest.fixture
def kept(make_instance, tmp_path):
    """An instance with four jobs, and the journal of its run."""
    instance = make_instance([(name, 10 * k, 1, 25) for k, name in enumerate("abcd")])
    journal = tmp_path / "journal.jsonl"
    run(instance, "fifo", journal=journal)
    return instance, journal


def drop(lines, number):
    """Leave a line out."""
    return [*lines[:number], *lines[number + 1 :]]


def swap(lines, number):
    """Exchange a line with the next."""
    return [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]


def edit(lines, number):
    """Change one digit of a line."""
    return [*lines[:number], lines[number].replace(b'"gpus":1', b'"gpus":9'), *lines[number + 1 :]]


@pytest.mark.parametrize("spoil", [drop, swap, edit])
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_missing_or_altered_is_refused(spoil, number, kept):
    """The line is named; nothing runs, and the file stays as it was."""
    instance, journal = kept
    lines = journal.read_bytes().splitlines()
    assert len(lines) > 4
    spoilt = spoil(lines, number)
    assert spoilt != lines
    journal.write_bytes(b"\n".join(spoilt) + b"\n")
    before = journal.read_bytes()
    with pytest.raises(InputError, match=rf"line {number + 1}: .*changed, or follows"):
        run(instance, "fifo", journal=journal)
    assert journal.read_bytes() == before


def test_a_decision_of_another_time_is_refused(kept):
    """Even with checksums made again: each decision stands at the time of its event."""
    instance, journal = kept
    before = last = ""
    made = []
    for line in journal.read_bytes().splitlines():
        body = unseal(line, before)
        before = checksum(body, before)
        body = body.replace(b'"record":[10,', b'"record":[11,')
        made.append(seal(body, last))
        last = checksum(body, last)
    journal.write_bytes(b"\n".join(made) + b"\n")
    with pytest.raises(InputError, match="line 3"):
        run(instance, "fifo", journal=journal)


@pytest.mark.parametrize("rest", [b"", b"\0" * 50, b"\0" * 50 + b"\n", b'{"checks', b'{"ch\0\0\n'])
def test_what_a_sudden_end_leaves_is_dropped(rest, kept):
    """Half a line, or the zeros of a power cut: the run goes on from the line before."""
    instance, journal = kept
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + rest)
    run(instance, "fifo", journal=journal)
    again = journal.read_bytes().splitlines(keepends=True)
    assert again[:-1] == lines[:-1]
    assert json.loads(again[-1]).keys() == json.loads(lines[-1]).keys()


VALUES = st.recursive(
    st.none() | st.integers(-1, 2) | st.just(0.5),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.sampled_from("abc"), inside),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_what_a_plan_remembers_follows_from_the_last_and_the_difference(last, new):
    """Down to the order of dictionaries; from JSON as well."""
    change = json.loads(json.dumps(difference(new, last)))
    assert json.dumps(applied(change, last)) == json.dumps(new)


def test_a_difference_names_what_is_new():
    """What is the same is 0, what is gone is not there."""
    last = {"a": {"x": [1, 2], "y": 0}, "b": 3, "c": 4}
    new = {"a": {"x": [1, 2], "y": 5}, "b": 3, "d": 0}
    assert difference(new, last) == {"a": {"x": 0, "y": [5]}, "b": 0, "d": [0]}
    assert difference(last, last) == 0


def test_a_journal_of_another_format_is_refused(kept):
    """The line says which format it has, and which is read."""
    instance, journal = kept
    header, *rest = journal.read_bytes().splitlines()
    body = unseal(header)
    old = seal(body.replace(b'"format":"ronda/journal/3",', b""), "")
    assert old != header
    journal.write_bytes(b"\n".join([old, *rest]) + b"\n")
    with pytest.raises(InputError, match="format 'ronda/journal/2'; expected format 'ronda/jou"):
        run(instance, "fifo", journal=journal)
