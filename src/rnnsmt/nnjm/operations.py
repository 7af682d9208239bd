"""Operations on neural network joint models."""

from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.arguments import (
    Alignments,
    InputFile,
    OutputDirectory,
    TextFiles,
    Texts,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import Written, operation
from rnnsmt.config.sections import VocabSize

if TYPE_CHECKING:
    pass


@operation(version=2)
def prepare(
    source: Texts,
    target: Texts,
    alignment: Alignments,
    output_dir: OutputDirectory,
    *,
    vocab_size: VocabSize | None = None,
    source_vocabulary: InputFile | None = None,
    target_vocabulary: InputFile | None = None,
) -> Written:
    r"""Convert a bitext with its word alignment into memory-mapped arrays of word ids and affiliations.

    Every target word is affiliated with one source word (Devlin et al. 2014): the middle one of the source words to
    which it is linked. A target word without links takes the affiliation of the nearest linked target word. Sentence
    pairs without a link are skipped and counted.

    Example, in the directory of a run of the demo corpus:

        rnnsmt nnjm prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz \
            --source-vocabulary results/rnn/vocabularies/vocab.source.txt \
            --target-vocabulary results/rnn/vocabularies/vocab.target.txt --output-dir try/examples

    Args:
        source: source side, one tokenised sentence per line.
        target: target side.
        alignment: word alignment in Pharaoh format (i-j).
        output_dir: output directory.
        source_vocabulary: source shortlist: vocabulary file, for example vocab.source.txt written by `rnn prepare`.
        target_vocabulary: target shortlist: vocabulary file, for example vocab.target.txt written by `rnn prepare`.

    Returns:
        The directory; its figures are the numbers of sentence pairs and target words.

    Raises:
        InputError: the files differ in length, a link is out of range, or a side has neither a vocabulary nor
            ``vocab_size``.
    """
    from rnnsmt.formats.pharaoh import links_files
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.nnjm.examples import prepare_examples

    with TextFiles() as files:
        texts = {"source": files.all_of("source", source), "target": files.all_of("target", target)}
        vocabularies = []
        for side, path in (("source", source_vocabulary), ("target", target_vocabulary)):
            if path is not None:
                vocabularies.append(Vocabulary.read(path))
            elif vocab_size is None:
                raise InputError(f"--{side}-vocabulary or --vocab-size is required")
            else:
                vocabularies.append(Vocabulary.of_texts(texts[side], vocab_size, f"on the {side} side"))
        links = links_files(files, "alignment", alignment)
        figures = prepare_examples(
            texts["source"], texts["target"], links, (vocabularies[0], vocabularies[1]), str(output_dir)
        )
    return Written(Path(output_dir), figures)
