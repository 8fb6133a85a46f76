"""Texts that no honest program writes get one line as any other mistake does."""

import json

import pytest

from ronda.instances.errors import InputError
from ronda.instances.files.json import decode
from spoilt import INSTANCE, PROFILES, ROUND

CLUSTER = '"cluster": {"node_groups": [1]}'

# name: (text, words of the error)
TEXTS = {
    "a control character": ('{"format": "a\x01b"}', "expected JSON text (invalid control"),
    "infinite document": ("1e999", "a finite number"),
    "infinite format": ('{"format": 1e999}', "format: found Infinity"),
    "infinity deep in a mapping": (
        json.dumps(INSTANCE | {"reference": {"fifo": {"mean_jct_s": 7}}}).replace("7}}", "1e309}}"),
        "reference.fifo.mean_jct_s",
    ),
    "twice, then null": (
        f'{{"format": "ronda/round/1", {CLUSTER}, "cluster": null}}',
        '"cluster" twice',
    ),
    "twice, then a number": (
        '{"format": "ronda/round/1", "waiting": [[]], "waiting": 1}',
        '"waiting" twice',
    ),
    "twice, then shorter": (
        '{"format": "ronda/round/1", "waiting": [{}, 7], "waiting": []}',
        '"waiting" twice',
    ),
    "nested deeply where anything may stand": (
        json.dumps(INSTANCE | {"made": {"a": 0}}).replace(
            '"a": 0}', f'"a": {"[" * 90}{"]" * 90}}}'
        ),
        "made: found brackets nested 91 deep",
    ),
    "after the end of time": (
        json.dumps(INSTANCE | {"jobs": [INSTANCE["jobs"][0] | {"submit_s": 1e17}]}),
        "at most 4.29497e+09",
    ),
    "base batch": (
        json.dumps(
            ROUND | {"profiles": PROFILES | {"net": PROFILES["net"] | {"base_batch": 5e-324}}}
        ),
        "1e-06 to 1e+12",
    ),
    "batch of a million passes": (
        json.dumps(
            ROUND | {"profiles": PROFILES | {"net": PROFILES["net"] | {"batches": [6.4e7]}}}
        ),
        "profiles.net.batches[0]: found 6.4e+07, up to 2e+06 passes",
    ),
    "batch of a job": (
        json.dumps(INSTANCE | {"jobs": [INSTANCE["jobs"][1] | {"batch": 6.4e7}]}),
        'jobs[0].batch (id "b"): found 6.4e+07',
    ),
    "racks in a ring": (
        json.dumps(
            INSTANCE
            | {
                "cluster": INSTANCE["cluster"]
                | {
                    "racks": [
                        *INSTANCE["cluster"]["racks"],
                        *({"name": f"x{k}", "parent": f"x{(k + 1) % 999}"} for k in range(999)),
                    ]
                }
            }
        ),
        '"x0" in "x1" in "x2"',
    ),
    "a name without end": (
        json.dumps(INSTANCE | {"jobs": [INSTANCE["jobs"][0] | {"n" * 100_000: 1}]}),
        "unknown field",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_one_line(name):
    """It names the place, it is one line, and not a long one."""
    text, words = TEXTS[name]
    with pytest.raises(InputError) as caught:
        decode(text.encode(), "t.json")
    said = str(caught.value)
    assert words in said
    assert "\n" not in said
    assert len(said) < 3100
