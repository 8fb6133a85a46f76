"""The harness of the studies: lines are kept, options are checked, every study is listed."""

import pytest

from lab.__main__ import STUDIES, main
from lab.harness import Folder, markdown
from ronda.instances.errors import InputError
from ronda.instances.files.seal import seal


@pytest.fixture
def asked():
    """The numbers that were measured, in order."""
    return []


@pytest.fixture
def measure(asked):
    """Square a number."""

    def squared(number):
        asked.append(number)
        return {"square": number**2}

    return squared


CASES = [{"number": 3}, {"number": 4}]


def test_lines_are_kept_with_their_origin(tmp_path, asked, measure):
    """The second call measures only what is new."""
    first = Folder(tmp_path).measure(CASES, measure)
    assert first.square.tolist() == [9, 16]
    assert all(first.versions)
    assert all(first.host)
    again = Folder(tmp_path).measure([*CASES, {"number": 5}], measure)
    assert again.square.tolist() == [9, 16, 25]
    assert asked == [3, 4, 5]


def test_half_a_line_is_measured_again(tmp_path, asked, measure):
    """A kill may cut the last line."""
    Folder(tmp_path).measure(CASES, measure)
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    Folder(tmp_path).measure(CASES, measure)
    assert asked == [3, 4, 4]
    assert path.read_bytes().count(b"\n") == 2


def test_a_line_that_is_not_final_is_measured_again(tmp_path, asked, measure):
    """The new line is the one that counts."""
    Folder(tmp_path).measure(CASES[:1], lambda number: {"square": -1})
    found = Folder(tmp_path).measure(CASES[:1], measure, lambda line: line.get("square", -1) > 0)
    assert found.square.tolist() == [9]
    assert asked == [3]
    again = Folder(tmp_path).measure(CASES[:1], measure, lambda line: line["square"] > 0)
    assert (again.square.tolist(), asked) == ([9], [3])


@pytest.mark.parametrize("text", [b'{"a": 1}', b"[]", seal(b'{"a": 1}')])
def test_foreign_lines_are_refused(text, tmp_path, measure):
    """The file is named."""
    (tmp_path / "results.jsonl").write_bytes(text + b"\n")
    with pytest.raises(InputError, match=r"results\.jsonl"):
        Folder(tmp_path).measure(CASES, measure)


def test_tables():
    """Words to the left, numbers to the right."""
    assert markdown(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | --: |\n| x | 1 |\n"


def test_help_lists_every_study_with_a_sentence(capsys):
    """Without loading any."""
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {sentence}" in shown for name, sentence in STUDIES.items())


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_teaches_itself(name, capsys):
    """Each has a command with ``--out``."""
    assert main([name, "--help"]) == 0
    assert "--out" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["placement", "--seeds", "x"],
        ["fusion", "--jobs", "0"],
        ["solvers", "--solvers", "joy"],
        ["placement", "--limit", "0"],
        ["placement", "--gpus", "a"],
        ["placement", "--gpus", "0"],
    ],
)
def test_bad_arguments_are_one_line(words, tmp_path, capsys):
    """Exit code 2, and nothing is written."""
    out = tmp_path / "new"
    assert main([*words, *([] if words == ["nothing"] else ["--out", str(out)])]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not out.exists()


def test_a_folder_of_something_else_is_refused(tmp_path, capsys):
    """No study writes among other files."""
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["placement", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
