"""The check of an alignment from another program against its text."""

import pytest

from rnnsmt.cli import main

SOURCE, TARGET = "a b\nc\n\nd e f\n", "x\ny z\nw\nu v w\n"


def check(directory, alignment: str, source: str = SOURCE, target: str = TARGET) -> int:
    (directory / "s").write_text(source)
    (directory / "t").write_text(target)
    (directory / "a").write_text(alignment)
    names = ["--source", directory / "s", "--target", directory / "t", "--alignment", directory / "a"]
    return main(["align", "check", *map(str, names), "--output", str(directory / "out")])


def test_good_alignment_is_written_sorted_and_without_duplicates(tmp_path):
    assert check(tmp_path, "1-0 0-0 1-0\n0-1\n\n2-2 0-0\n") == 0
    assert (tmp_path / "out").read_text() == "0-0 1-0\n0-1\n\n0-0 2-2\n"


@pytest.mark.parametrize(
    ("alignment", "says"),
    [
        ("0-0\n0-0\n\n", "has 3 lines, but the text has 4"),
        ("0-0\n0-0\n\n0-0\n0-0\n", "has 5 lines, but the text has 4"),
        ("2-0\n0-0\n\n0-0\n", "line 1: the link 2-0 points beyond the end of the source sentence, which has 2 words"),
        ("0-0\n0-2\n\n0-0\n", "line 2: the link 0-2 points beyond the end of the target sentence, which has 2 words"),
        (
            "0-0\n0-0\n0-0\n0-0\n",
            "line 3: the link 0-0 points beyond the end of the source sentence, which has 0 words",
        ),
        ("0-0\n0-0\n\n0-0 x\n", "line 4: 'x' is not a link"),
    ],
)
def test_bad_alignment(tmp_path, capsys, alignment, says):
    assert check(tmp_path, alignment) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_texts_of_different_length(tmp_path, capsys):
    assert check(tmp_path, "0-0\n", target="x\n") == 2
    assert "same number of lines" in capsys.readouterr().err
