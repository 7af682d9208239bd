"""Arguments and checks that the commands of all networks use; does not import torch."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated

from rnnsmt.base.arguments import InputFile
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field

Ensembles = Annotated[
    Sequence[Sequence[InputFile]],
    Field(
        "model file written by `networks train`; several files of LSTMs form an ensemble; may be repeated",
        metavar="FILE",
        expected="a list of ensembles, each a list of paths",
    ),
]


def need_torch() -> None:
    """Check that the optional dependencies torch and safetensors are installed.

    Raises:
        InputError: one of them is not installed.
    """
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"neural networks require {package}, which is not installed; install rnnsmt with the extra `networks`"
            )
