"""The settings of a corpus: an entry of ``corpora`` in the configuration."""

from dataclasses import field
from typing import Annotated, Literal
from urllib.parse import urlsplit

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.registries import CORPUS_FORMATS

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
"""Name of a corpus or of a joint test set, which occurs in the names of files."""

Fraction = Annotated[float, Field(gt=0, le=1)]

Path = Annotated[str, Field(min_length=1)]


def _url(text: str) -> None:
    try:
        urlsplit(text)
    except ValueError:  # for example http://[
        raise ValueError("must be a URL") from None


Url = Annotated[str, Field(check=_url)]


Format = Annotated[
    str,
    Field(
        f"format of the file with both sides; {CORPUS_FORMATS.described()}; default: recognised by the first bytes of "
        "the file, which may be in a zip archive",
        registry=CORPUS_FORMATS,
    ),
]


@section
class Download:
    """Source of a file that is missing in ``data_dir``."""

    url: Annotated[Url, Field(description="URL of the file, or of a tar or zip archive that contains it")]
    sha256: Annotated[
        Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None,
        Field(description="SHA-256 of the downloaded file, 64 hexadecimal digits; null: not checked"),
    ]
    member: Annotated[Path | None, Field(description="path of the file in the archive")] = None
    mirrors: Annotated[list[Url], Field(description="other URLs of the same file, tried in this order")] = field(
        default_factory=list
    )


@section
class Downloads:
    """Sources of the files of a corpus."""

    source: Download | None = None
    target: Download | None = None
    reference: Download | None = None
    file: Download | None = None


@section
class Members:
    """Paths of the two sides in a zip archive that contains several pairs of files."""

    source: Path
    target: Path


@section
class HeldOut:
    """Lines of a corpus of training text that are used as a dev or test set, and left out of the training text."""

    corpus: Annotated[Name, Field(description="name of the corpus of role bitext")]
    lines: Annotated[
        list[Annotated[int, Field(ge=1)]], Field(min_length=1, description="numbers of the lines, counted from 1")
    ]


@section
class CorpusEntry:
    """A corpus. File paths are relative to ``data_dir``."""

    name: Annotated[Name, Field(description="name of the corpus in the results")]
    role: Annotated[
        Literal["bitext", "mono", "dev", "test"],
        Field(
            description="bitext: parallel training text; mono: text for the language models, target side only; dev: "
            "dev set for tuning (several dev sets are concatenated); test: test set"
        ),
    ]
    source: Annotated[Path | None, Field(description="file of the source side")] = None
    target: Annotated[Path | None, Field(description="file of the target side")] = None
    file: Annotated[
        Path | None,
        Field(
            description="instead of source and target, a file with both sides: a zip archive (OPUS), the prefix of two "
            f"files (Moses), or a file in one of the formats {CORPUS_FORMATS.described()}"
        ),
    ] = None
    format: Format | None = None
    held_out: Annotated[
        HeldOut | None,
        Field(
            description="instead of source and target, for dev and test: {corpus: NAME, lines: [N, ...]}, lines of a "
            "corpus of training text, which are left out of the training text"
        ),
    ] = None
    columns: Annotated[
        tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[int, Field(ge=1, le=1000)]] | None,
        Field(description="columns of source and target in a TSV file; default: [1, 2]"),
    ] = None
    members: Annotated[Members | None, Field(description="paths of the source and target file in a zip archive")] = None
    reference: Annotated[
        Path | None,
        Field(
            description="reference of sacreBLEU for a dev or test corpus whose target side is already tokenised: file "
            "with the raw target text; default: the detokenised target side"
        ),
    ] = None
    download: Annotated[
        Downloads | None, Field(description="URLs and SHA-256 of files to download if they are missing")
    ] = None
    in_domain: Annotated[
        bool | None,
        Field(
            description="whether data selection uses the corpus as in-domain text; default: true for dev, false "
            "otherwise; cannot be set for test"
        ),
    ] = None
    keep: Annotated[
        Literal["all"] | Fraction | None,
        Field(description="how much data selection keeps: all, a fraction, or null for the amount in `selection`"),
    ] = None
    check: Annotated[
        bool,
        Field(
            description="whether the first 2,000 lines are checked for a wrong language, swapped sides and shifted "
            "lines"
        ),
    ] = True
