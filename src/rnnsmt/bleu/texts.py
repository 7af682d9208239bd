"""Reading of a text in parallel with its references."""

from rnnsmt.base.io import InputError, read_parallel
from rnnsmt.base.progress import say


def read_texts(text: str, references: list[str]) -> tuple[list[str], list[list[str]]]:
    """Read decoder output, or the source of a development set, together with its references.

    The number of empty segments is printed on stderr.

    Raises:
        InputError: the files have different numbers of lines, no line, or no word on one side.
    """
    columns = list(zip(*read_parallel(text, *references), strict=True))
    if not columns:
        raise InputError(f"{text}: has no lines, nothing can be scored; create the file again")
    for path, column in zip([text, *references], columns, strict=True):
        empty = sum(1 for line in column if not line.strip())
        if empty == len(column):
            raise InputError(f"{path}: all {len(column)} lines are empty, nothing can be scored; create the file again")
        if empty:
            say(f"{path}: {empty} of {len(column)} lines are empty; they are scored as empty translations")
    return list(columns[0]), [list(column) for column in columns[1:]]
