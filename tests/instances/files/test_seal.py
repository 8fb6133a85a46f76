"""A seal holds for one text after one other."""

import json

import pytest

from ronda.instances.files.seal import BrokenSealError, checksum, seal, unseal

BODY = b'{"a":1}'


def test_a_sealed_record_is_json_and_opens():
    """The checksum is a field like others; what was sealed comes back byte by byte."""
    record = seal(BODY, "before")
    assert json.loads(record) == {"checksum": checksum(BODY, "before"), "a": 1}
    assert unseal(record, "before") == BODY


@pytest.mark.parametrize(
    ("record", "before"),
    [
        (seal(BODY, "before"), "another"),
        (seal(BODY, "before"), ""),
        (seal(BODY).replace(b"1}", b"2}"), ""),
        (seal(BODY)[:-1], ""),
        (BODY, ""),
        (b"", ""),
    ],
)
def test_any_other_record_is_refused(record, before):
    """Changed, cut, not sealed, or sealed after something else."""
    with pytest.raises(BrokenSealError):
        unseal(record, before)
