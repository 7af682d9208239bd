"""Hook of MkDocs for what the site and a hoster show differently: the reference of the API, and links out of docs/."""

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)[^)\s]*\)")
"""A link to a file of the repository that is not a page."""


def on_page_markdown(markdown: str, config: Any, **_: object) -> str:
    """Return the text of a page with directives of mkdocstrings for comments, and with links that the site can follow.

    A hoster shows nothing of the comments, ``<!-- reference: OBJECT ... -->``. As long as the repository has no address
    (``repo_url``), the site names its files in place of a link.
    """
    if config["repo_url"]:
        linked = OUTSIDE.sub(rf"[\1]({config['repo_url'].rstrip('/')}/blob/main/\2)", markdown)
    else:
        linked = OUTSIDE.sub(
            lambda link: link[1] if link[2].split("/")[-1] in link[1] else f"{link[1]}: `{link[2]}`", markdown
        )
    return re.sub(r"^<!-- reference: ([\w. \n]+?) -->$", directives, linked, flags=re.M)


def directives(comment: re.Match[str]) -> str:
    """Return a directive of mkdocstrings for each object that a comment names."""
    return "\n".join(f"::: {name}\n" for name in comment[1].split())
