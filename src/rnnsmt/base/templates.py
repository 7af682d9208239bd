"""HTML pages from jinja2 templates that are stored with the code of a chapter."""

from html import unescape
from pathlib import Path

from rnnsmt.base.io import atomic_text


def write_page(output: str | Path, package: str, template: str, **values: object) -> int:
    """Render a template of a package and write the page; return its size in bytes.

    Values are escaped for HTML; the filter ``plain`` first replaces Moses' entities by characters. A name that the
    template uses and ``values`` lacks raises an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = unescape
    page = environment.get_template(template).render(values).strip() + "\n"
    with atomic_text(output) as out:
        out.write(page)
    return len(page.encode())
