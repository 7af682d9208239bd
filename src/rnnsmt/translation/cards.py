"""Contents of the page about a system: descriptions of its features, and the documents in its directory."""

from pathlib import Path
from typing import NamedTuple

from rnnsmt.moses.ini import BILINGUAL
from rnnsmt.translation.system import System

MOST_BYTES = 1_000_000
"""Maximum size of a document in bytes."""


class Document(NamedTuple):
    """A document about a system.

    Attributes:
        title: name of the link to it.
        path: its path on the server.
        kind: its content type.
        content: the document.
    """

    title: str
    path: str
    kind: str
    content: bytes


def documents(folder: Path) -> list[Document]:
    """Return the documents about the system of a directory: model card, and provenance of the run of the workflow.

    ``MODEL_CARD.md`` is in the directory, ``provenance.json`` in ``results`` if that is ``results/systems/NAME/runN``.
    """
    folder = folder.resolve()
    found = []
    for title, path, kind, file in (
        ("Model card", "model-card", "text/plain; charset=utf-8", folder / "MODEL_CARD.md"),
        ("Provenance", "provenance", "application/json", folder / "../../../provenance.json"),
    ):
        if path == "provenance" and folder.parents[1].name != "systems":
            continue
        # a link in an archive from an unknown source could lead to any file
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= MOST_BYTES:
            found.append(Document(title, path, kind, file.read_bytes()))
    return found


def features(system: System) -> list[str]:
    """Return the features of a system in words."""
    about, found = system.description, []
    for feature in system.ini.features:
        if feature.kind == "PhraseDictionaryMemory":
            columns = f" and {', '.join(about.columns)}" if about.columns else ""
            found.append(f"phrase table with translation probabilities{columns}")
        elif feature.kind == "LexicalReordering":
            found.append("lexicalised reordering")
        elif feature.is_lm:
            order = feature.options.get("order")
            found.append(f"{order}-gram language model" if order else "n-gram language model")
        elif feature.kind == "CSLM":
            found.append("continuous-space language model, queried in the search")
        elif feature.kind in ("NNJM", BILINGUAL):
            found.append("neural network joint model, queried in the search")
    return found
