"""Hook of MkDocs: fills the reference of the Python API into docs/api.md, where a hoster shows nothing."""

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the text of a page with a directive of mkdocstrings for each comment that names an object."""
    return re.sub(r"^<!-- reference: (\S+) -->$", r"::: \1\n", markdown, flags=re.M)
