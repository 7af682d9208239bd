"""Style, formats and output of figures and HTML pages; the same data give identical files."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import warn
from rnnsmt.base.writing import atomic_path, atomic_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

NO_GLYPH = "Glyph "
"""Beginning of matplotlib's warning about a character that the font lacks."""

BLUE, ORANGE, GREY, INK = "#0b5cad", "#c9560c", "#8a939c", "#1c2024"

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6e9",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "rnnsmt",
}


def check_format(path: StrPath) -> None:
    """Reject the path of a figure in an unsupported format; a ``check`` of ``Field``, called before any computation."""
    if Path(path).suffix not in FORMATS:
        raise ValueError(f"unsupported file format; the suffix must be {' or '.join(FORMATS)}")


def canvas(rows: int, columns: int, width: float, height: float, share: bool = False) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure with ``rows`` times ``columns`` plots.

    Args:
        width, height: size of the figure in inches.
        share: use the same axis limits for all plots.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        figure = Figure((width, height), layout="constrained")
        FigureCanvasAgg(figure)  # keeps its renderer; without one, measuring a text creates a renderer of several MB
        axes = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    return figure, list(axes.flat)


@contextmanager
def styled(more: dict[str, Any] | None = None) -> Iterator[None]:
    """Set the common style of all figures; create and save figures in this context.

    Warnings about characters that the font lacks are suppressed; ``save`` prints one warning for a PNG file.

    Args:
        more: additional settings of matplotlib.
    """
    from matplotlib import rc_context

    with rc_context(STYLE | (more or {})), warnings.catch_warnings():
        warnings.filterwarnings("ignore", NO_GLYPH)
        yield


def svg_metadata() -> dict[str, str | None]:
    """Return metadata for matplotlib without date and version."""
    return {"Date": None, "Creator": None}


def save(figure: "Figure", paths: Sequence[StrPath]) -> None:
    """Write a figure atomically in every format, without date and version."""
    for path in paths:
        kind = Path(path).suffix[1:]
        metadata = {"Software": None} if kind == "png" else svg_metadata()
        with styled(), atomic_path(path) as temporary, warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", NO_GLYPH)
            figure.savefig(temporary, format=kind, dpi=150, facecolor="white", metadata=metadata)
        missing = {str(one.message) for one in caught if str(one.message).startswith(NO_GLYPH)}
        for one in caught:
            if str(one.message) not in missing:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        if missing and kind == "png":
            warn(
                f"{path}: the font {STYLE['font.family']} lacks {len(missing)} characters, which are shown as "
                "boxes; use the SVG file, which browsers display with other fonts"
            )


def rendered(package: str, template: str, **values: object) -> str:
    """Render a Jinja template in the directory ``templates`` of a package.

    Values are escaped in templates ``*.html.j2``. The filter ``plain`` replaces the entities of Moses by characters. A
    name in the template that is not in ``values`` raises an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = unescape
    return environment.get_template(template).render(values).strip() + "\n"


def write_page(output: StrPath, package: str, template: str, **values: object) -> int:
    """Write a page, see ``rendered``; return its size in bytes."""
    page = rendered(package, template, **values)
    with atomic_text(output) as out:
        out.write(page)
    return len(page.encode())
