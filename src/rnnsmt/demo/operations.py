"""Operations on the demo corpus."""

from pathlib import Path
from typing import Annotated

from rnnsmt.base.arguments import OutputDirectory
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Written, operation
from rnnsmt.config.sections import Demo, DemoScale

TEXTS = Path(__file__).parent / "texts"
"""Directory of the texts. Version 1.0.0 generated them from a grammar with seed 1; the spare pairs were generated after
the test set.
"""

TRAINING = ("in-domain.en.gz", "in-domain.fr.gz", "general.en.gz", "general.fr.gz", "mono.fr.gz")
HELD_OUT = ("dev.en", "dev.fr", "test.en", "test.fr")
SPARE = ("spare.en.gz", "spare.fr.gz")


@operation(version=5)
def make(
    output_dir: OutputDirectory,
    *,
    scale: DemoScale = Demo.scale,
    spare: Annotated[bool, Field("also write 5,000 other sentence pairs")] = False,
) -> Written:
    """Write the demo corpus: English-French text of a synchronous grammar, the same on every machine.

    The in-domain text is news from a harbour town. The general text consists of technical manuals and laws, in which
    many words have a different meaning; it contains errors typical of crawled text, and one sixth of it is harbour
    news. In both parallel corpora, 30 % of the pairs have translation errors (gender, adjective order, verb forms). The
    phrase table therefore contains rare wrong pairs, which the RNN Encoder-Decoder can distinguish from correct ones.
    No English sentence of the dev and test sets occurs in the training text, and some names in the dev and test sets do
    not occur there.

    Numbers of lines: 4,000 in-domain pairs, 16,000 general pairs, 20,000 monolingual lines, 400 for dev, 2,700 for
    test. With ``scale``, the training texts are the first lines of these; dev and test do not change. ``spare`` adds
    spare.en.gz and spare.fr.gz: 5,000 pairs of correct harbour news, none of which occurs in the other texts.

    Example, in the directory of a run of the demo corpus:

        rnnsmt demo make --output-dir try/demo

    Args:
        output_dir: output directory.

    Returns:
        The directory; its figures are the numbers of lines.
    """
    import bz2

    from rnnsmt.base.writing import atomic_binary

    lines: dict[str, object] = {}
    for name in (*TRAINING, *HELD_OUT, *(SPARE if spare else ())):
        with bz2.open(TEXTS / f"{name.removesuffix('.gz')}.bz2") as packed:
            text = packed.readlines()
        if name in TRAINING:
            text = text[: round(scale * len(text))]
        with atomic_binary(Path(output_dir, name)) as out:
            out.writelines(text)
        lines[name.partition(".")[0]] = len(text)
    return Written(Path(output_dir), lines)
