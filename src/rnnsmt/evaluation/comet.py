"""COMET (Rei et al. 2020) of detokenised text, by the package unbabel-comet, with a model that is on disk already.

The package is optional (``pip install 'rnnsmt[comet]'``). It loads the encoder of a model through the package
transformers, which would download missing files; both are told to stay offline unless a download is asked for.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rnnsmt.base.io import InputError

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""Variables that keep huggingface_hub and transformers from downloading."""


def why_skipped(model: str, download: bool) -> str | None:
    """Return why COMET cannot be computed here, in one sentence; None if it can."""
    if find_spec("comet") is None:
        return "COMET is skipped: the package unbabel-comet is not installed (pip install 'rnnsmt[comet]')"
    if not Path(model).exists() and not download:
        return f"COMET is skipped: there is no model {model}; name a checkpoint on disk, or give --download"
    return None


def segment_scores(
    model: str, download: bool, sources: Sequence[str], outputs: Sequence[Sequence[str]], references: Sequence[str],
    batch_size: int, gpus: int,
) -> list[list[float]]:  # fmt: skip
    """Return the score of every segment of every output.

    Args:
        model: checkpoint (``checkpoints/model.ckpt``), or the name of a model if ``download`` is set.
        download: download the model and its encoder if they are not on disk.
        sources, references: text of every segment.
        outputs: translations of every segment, one sequence per system or run.
        batch_size: number of segments computed at once.
        gpus: number of GPUs; 0: the CPU.

    Raises:
        InputError: the model cannot be loaded.
    """
    before = {name: os.environ.get(name) for name in OFFLINE}
    if not download:
        os.environ.update(dict.fromkeys(OFFLINE, "1"))  # before the import, which reads them
    try:
        import comet

        path = model if Path(model).exists() else comet.download_model(model)
        try:
            loaded = comet.load_from_checkpoint(path)
        except Exception as error:
            hint = "" if download else "; its encoder may not be on disk: give --download once"
            raise InputError(f"{model}: COMET cannot load this model ({str(error).splitlines()[0]}){hint}") from None
        rows = [
            {"src": source, "mt": output, "ref": reference}
            for lines in outputs
            for source, output, reference in zip(sources, lines, references, strict=True)
        ]
        scores = [float(score) for score in loaded.predict(rows, batch_size=batch_size, gpus=gpus).scores]
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    return [scores[start : start + len(sources)] for start in range(0, len(scores), len(sources))]
