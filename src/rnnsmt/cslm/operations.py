"""Operations on continuous-space language models."""

from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.arguments import (
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
    input: Texts,
    output_dir: OutputDirectory,
    *,
    vocab_size: VocabSize | None = None,
    vocabulary: InputFile | None = None,
    vocabulary_text: Texts | None = None,
) -> Written:
    r"""Convert the training text of the language model into memory-mapped arrays of word ids.

    The vocabulary is a shortlist: the words of a file (``vocabulary``), or the most frequent words (``vocab_size``) of
    the input or of another text (``vocabulary_text``). All words outside the shortlist are mapped to one class, UNK.
    Lines without words are skipped.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm prepare \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz \
            --vocab-size 1500 --output-dir try/text

    Args:
        input: tokenised text, one sentence per line.
        output_dir: output directory.
        vocabulary: vocabulary file with the shortlist, for example vocab.target.txt written by `rnn prepare`.
        vocabulary_text: text whose word counts determine the shortlist for ``vocab_size`` (default: ``input``).

    Returns:
        The directory; its figures are the numbers of sentences and words.

    Raises:
        InputError: the text has no words, or neither or both of ``vocab_size`` and ``vocabulary`` are given.
    """
    from rnnsmt.cslm.text import prepare_text
    from rnnsmt.networks.data import Vocabulary

    if (vocab_size is None) == (vocabulary is None):
        raise InputError("specify --vocab-size or --vocabulary, one of them")
    with TextFiles() as files:
        texts = files.all_of("input", input)
        if vocabulary is None:
            assert vocab_size is not None
            counted = texts if vocabulary_text is None else files.all_of("vocabulary_text", vocabulary_text)
            shortlist = Vocabulary.of_texts(counted, vocab_size, "to learn from")
        elif vocabulary_text is not None:
            raise InputError("--vocabulary-text: requires --vocab-size and cannot be combined with --vocabulary")
        else:
            shortlist = Vocabulary.read(vocabulary)
        return Written(Path(output_dir), prepare_text(texts, shortlist, str(output_dir)))
