"""Pages from jinja2 templates that lie beside the code of a chapter."""

from html import unescape
from pathlib import Path

from rnnsmt.io import atomic_text


def write_page(output: str | Path, package: str, template: str, **values: object) -> int:
    """Fill a template of a package and write the page; its size in bytes.

    What is filled in is escaped for HTML; the filter ``plain`` makes characters of Moses' entities first. A name that
    the template uses and ``values`` lacks is an error.
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
