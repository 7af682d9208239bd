"""Count the GPU launches, copies and waits of a training update and of a batch of the search, without a GPU.

    python benchmarks/launches.py

Needs a C++ compiler. The counts are those of the emulated device of ``tests/unit/fake_cuda.py``, whose docstring
defines a launch. They depend on the lengths of the phrases and on the settings, not on the widths of the layers, so
small layers are used.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.fake_cuda import Device, fake_cuda, load_guard
from tests.unit.launches import counts_of_update, cslm_trainer, make_pairs, make_text, rnn_trainer

from rnnsmt.cslm.ngram_scorer import CudaEngine
from rnnsmt.cslm.settings import CslmSizes
from rnnsmt.networks.devices import set_up_device
from rnnsmt.networks.feed_forward import FeedForwardLM

Row = tuple[str, dict[str, int]]


def rows(directory: Path) -> Iterator[Row]:
    """Yield the name and the counts of each row."""
    setup = set_up_device("cuda", 1)
    for length in (3, 5, 8):
        data = directory / str(length)
        data.mkdir()
        pairs = make_pairs(data, length, 4000)
        for preset in ("paper", "small"):
            counts = counts_of_update(rnn_trainer(pairs, setup, preset))
            yield f"RNN Encoder-Decoder, `{preset}`, {length} + {length} ids", counts
    text = make_text(directory)
    for preset in ("paper", "small"):
        yield f"CSLM, `{preset}`", counts_of_update(cslm_trainer(text, setup, preset))
    for normalize in (True, False):
        engine = CudaEngine(FeedForwardLM(CslmSizes(60, 7, 8, 16, 12), 1).requires_grad_(False).to("cuda"), normalize)
        Device.current.reset()
        engine.score(np.ones((300, 6), np.int32), np.arange(300, dtype=np.int32), np.ones(300, np.int32))
        kind = "exact softmax" if normalize else "self-normalised"
        yield f"up to 4,096 contexts of the search, {kind}", Device.current.counts()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        load_guard(Path(name))
        with fake_cuda(), contextlib.redirect_stderr(io.StringIO()):
            found = list(rows(Path(name)))
    print("| | launches | copies to the GPU | back | waits |\n|---|---:|---:|---:|---:|")
    for what, counts in found:
        print(f"| {what} | " + " | ".join(map(str, counts.values())) + " |")


if __name__ == "__main__":
    main()
