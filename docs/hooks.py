"""What MkDocs calls while it builds the site."""

from pathlib import Path
from typing import Any

MODULE = Path(__file__).parents[1] / "src/rnnsmt/api.py"
PLACE = "<!-- functions of rnnsmt.api -->"


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Insert the public functions into the page that has a place for them, if the package has them."""
    if page.file.src_uri != "api.md":
        return markdown
    return markdown.replace(PLACE, "## Functions\n\n::: rnnsmt.api\n" if MODULE.is_file() else "")
