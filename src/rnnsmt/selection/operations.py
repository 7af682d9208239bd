"""Operations of data selection (Moore and Lewis 2010; Axelrod et al. 2011)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from rnnsmt.base.arguments import (
    MEMORY_MB,
    THREADS,
    InputFile,
    MemoryMb,
    OptionalOutput,
    OutputDirectory,
    Positive,
    Seed,
    Text,
    TextFiles,
    Texts,
    Threads,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field, valid
from rnnsmt.base.operations import Written, operation
from rnnsmt.base.options import MAX_SEED
from rnnsmt.base.paths import StrPath
from rnnsmt.config.corpus_entry import Fraction

if TYPE_CHECKING:
    from rnnsmt.selection.pool import LineScores, Selected

ORDER = 5
"""N-gram order of all language models for data selection."""


class PoolFiles(NamedTuple):
    """A corpus of the pool.

    Attributes:
        name: name of the corpus and of the selected text.
        scores: file written by ``score``, or return value of ``score``; None if all lines of the corpus are kept.
        texts: one text, or two parallel texts, as paths or lists of sentences.
    """

    name: str
    scores: "StrPath | LineScores | None"
    texts: Sequence[Text]

    @classmethod
    def parse(cls, text: str) -> "PoolFiles":
        """Parse ``NAME=SCORES=TEXT1`` or ``NAME=SCORES=TEXT1=TEXT2``; SCORES is ``-`` for a corpus without scores."""
        name, *paths = text.split("=")
        if len(paths) not in (2, 3) or not all(paths) or not re.fullmatch(r"[\w.-]+", name):
            raise ValueError("must be NAME=SCORES=TEXT1 or NAME=SCORES=TEXT1=TEXT2")
        return cls(name, None if paths[0] == "-" else paths[0], paths[1:])


def _keep(text: str) -> tuple[str, float]:
    """Parse ``NAME=all`` or ``NAME=FRACTION``."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError("must be NAME=all or NAME=FRACTION")
    return name, 1.0 if value == "all" else valid(Fraction, value, text=True)


@operation(version=1)
def models(
    in_domain: Texts, pool: Texts, output_dir: OutputDirectory, *, seed: Seed, memory_mb: MemoryMb = MEMORY_MB
) -> Written:
    r"""Train the in-domain and general language models that `selection score` compares (Moore and Lewis 2010).

    Run the command once per language. It writes DIR/in-domain.arpa.gz, DIR/general.arpa.gz, DIR/general.gz (the
    training lines of the general model), DIR/general2.arpa.gz, DIR/held-out.gz and DIR/models.json (settings and
    counts).

    The in-domain text is divided into blocks of up to 50 consecutive lines, and every tenth block is held out. Whole
    blocks are held out because neighbouring lines come from the same document. The in-domain model is trained on the
    other blocks. `selection select` measures perplexity on the held-out lines. The split depends only on the number of
    lines, so that the two sides of a parallel corpus are split at the same lines.

    The general model is trained on lines drawn at random from the pool until they have as many words as the in-domain
    training text. A model assigns high probability to its own training lines, so that they would never be selected.
    Therefore, the training lines of the general model are scored with a second general model, which is trained on
    another sample of the same size without these lines. The vocabulary of all models is the same: the words that occur
    at least twice in the in-domain training text. All other words are mapped to ``<unk>``, so that rare words do not
    favour any model.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt selection models --in-domain results/corpus/truecased/harbour-dev.en.gz \
            --pool results/corpus/truecased/general.en.gz --output-dir try/models.en --seed 1
        rnnsmt selection models --in-domain results/corpus/truecased/harbour-dev.fr.gz \
            --pool results/corpus/truecased/general.fr.gz --output-dir try/models.fr --seed 1

    Args:
        in_domain: tokenised in-domain text, such as the dev set.
        pool: tokenised text from which to select lines.
        output_dir: output directory.

    Returns:
        The directory; its figures are numbers of lines and words.

    Raises:
        InputError: the in-domain text has fewer than 20 lines; a text contains no words; a text contains ``<s>``,
            ``</s>`` or ``<unk>``.
    """
    from rnnsmt.base.writing import write_json
    from rnnsmt.selection.side_models import HOLD_OUT, MIN_COUNT, train_models

    directory = Path(output_dir)
    with TextFiles() as files:
        texts = files.all_of("in_domain", in_domain), files.all_of("pool", pool)
        counts = train_models(*texts, directory, seed, memory_mb)
    settings = {"order": ORDER, "min_count": MIN_COUNT, "hold_out": HOLD_OUT, "seed": seed}
    write_json(directory / "models.json", settings | counts)
    return Written(directory, {name.replace("_", " "): value for name, value in counts.items()})


@operation(version=1)
def score(
    text: Text,
    models: Annotated[InputFile, Field(metavar="DIR")],
    output: Annotated[OptionalOutput, Field(metavar="TSV")] = None,
    *,
    text2: Text | None = None,
    models2: Annotated[InputFile, Field(metavar="DIR")] | None = None,
    threads: Threads = THREADS,
) -> "LineScores":
    r"""Compute the cross-entropy difference of every line of a text; a lower score means more in-domain.

    The score of a line s of a monolingual text is H_in(s) - H_gen(s), the difference of the cross-entropies under the
    in-domain and the general model in bits per word, with the end of the sentence counted as a word (Moore and Lewis
    2010). The score of a line of a parallel corpus is the sum of the differences for both sides (Axelrod, He and Gao
    2011). Lines in the training text of the general model, and copies of them, are scored with the second general model
    of `selection models`. The output contains one score per line.

    Example, in the directory of a run of the demo corpus:

        rnnsmt selection score --text results/corpus/truecased/general.en.gz --models try/models.en \
            --text2 results/corpus/truecased/general.fr.gz --models2 try/models.fr --output try/general.tsv.gz \
            --threads 2

    Args:
        text: tokenised text, one sentence per line.
        models: directory written by `selection models` for the language of ``text``.
        output: output file: one score per line, compressed according to its suffix.
        text2: other side of a parallel corpus; requires ``models2``.
        models2: directory written by `selection models` for the language of ``text2``.

    Returns:
        The scores, which can be passed to `selection select`. If they are written to ``output``, they are read from
        this file on first use.

    Raises:
        InputError: the texts differ in length, only one of ``text2`` and ``models2`` is given, or a model cannot be
            loaded.
    """
    from functools import partial

    from rnnsmt.base.parallel import map_chunks
    from rnnsmt.base.progress import track
    from rnnsmt.base.reading import read_parallel
    from rnnsmt.selection.pool import LineScores
    from rnnsmt.selection.side_models import SideModels, scores_of_rows

    if (text2 is None) != (models2 is None):
        raise InputError("--text2 and --models2 must be used together")
    directories = [Path(models), *([] if models2 is None else [Path(models2)])]
    with TextFiles() as files:
        texts = [files.of("text", text), *([] if text2 is None else [files.of("text2", text2)])]
        scorer = partial(scores_of_rows, [SideModels.load(directory) for directory in directories])

        def scores() -> Iterator[float]:
            for chunk in map_chunks(lambda: scorer, track(read_parallel(*texts), "scoring"), threads):
                yield from chunk

        return LineScores.of(scores(), output)


@operation(version=1)
def select(
    corpus: Sequence[
        Annotated[PoolFiles, Field(parse=PoolFiles.parse, metavar="NAME=SCORES=TEXT1[=TEXT2]", expected="PoolFiles")]
    ],
    output_dir: OutputDirectory,
    curve: Annotated[OptionalOutput, Field(metavar="TSV")] = None,
    *,
    lang: Annotated[str | Sequence[str], Field(metavar="LANG", several=True)],
    keep: Sequence[Annotated[tuple[str, Fraction], Field(parse=_keep, metavar="NAME=all|FRACTION")]] = (),
    fraction: Annotated[Literal["auto"] | Fraction, Field(metavar="F|auto")] | None = None,
    words: Positive | None = None,
    held_out: Texts | None = None,
    random: Annotated[int, Field(ge=0, le=MAX_SEED, metavar="SEED")] | None = None,
    memory_mb: MemoryMb = MEMORY_MB,
    threads: Threads = THREADS,
) -> "Selected":
    r"""Select the lines with the lowest scores, in their original order.

    All corpora without ``keep`` are ranked together. Either a fraction of their lines is kept (``fraction``), or the
    best lines up to a total of ``words`` words, counted in the last text (the target side of a parallel corpus).
    ``keep`` lists corpora that are not ranked with the others, each with the fraction of its lines to keep: 0.5 keeps
    the better half of the lines. If all lines are kept, the score file of the corpus may be given as ``-``.

    With ``fraction="auto"``, a language model is estimated on the kept lines for each of ten fractions, and the
    fraction with the lowest perplexity on the ``held_out`` text is chosen. Corpora with ``keep`` are not used for this
    choice. The models are estimated on the last text of each corpus (the target side of a parallel corpus). Therefore,
    the held-out text must be in this language. It must not be part of the training text of the in-domain model: use
    DIR/held-out.gz of `selection models`. All models have the same vocabulary (the words that occur at least twice in
    the ranked corpora), so that their perplexities are comparable.

    ``random`` is for control experiments: the fraction, and thus the number of lines, is determined as without
    ``random``, but the lines are drawn at random, also the lines of corpora with ``keep``.

    The command writes DIR/NAME.LANG.gz for every text of every corpus, DIR/selected.json, and the curve (TSV) with the
    columns fraction, lines, words, perplexity, oov_rate and chosen.

    Example, in the directory of a run of the demo corpus:

        rnnsmt selection select --fraction auto --held-out try/models.fr/held-out.gz --output-dir try/selected \
            --curve try/curve.tsv --lang en fr --corpus \
            general=try/general.tsv.gz=results/corpus/truecased/general.en.gz=results/corpus/truecased/general.fr.gz

    Args:
        corpus: for each corpus, its name, its score file written by `selection score` (- for no scores), and one text
            or two parallel texts.
        output_dir: output directory.
        curve: output file: held-out perplexity for each fraction.
        lang: language of each text of a corpus, in order, for the names of the outputs.
        keep: keep all lines of corpus NAME, or a fraction of them, and do not rank this corpus together with the
            others.
        fraction: fraction of the lines to keep; auto: the fraction with the lowest held-out perplexity.
        words: keep the best lines up to a total of N words (in the last text of each corpus), instead of a fraction.
        held_out: held-out in-domain text in the language of the last text of each corpus; required with
            ``fraction="auto"``.
        random: select the same number of lines at random with this seed, as a control experiment.

    Returns:
        The directory, the fraction, the curve and the kept lines of every corpus.

    Raises:
        InputError: both or neither of ``fraction`` and ``words`` are given; ``fraction="auto"`` is used without
            ``held_out``; for a corpus, the number of scores differs from the number of lines, or the number of texts
            from the number of languages in ``lang``; ``keep`` contains an unknown name.
    """
    from itertools import chain

    from rnnsmt.base.progress import say
    from rnnsmt.base.reading import read_lines
    from rnnsmt.base.writing import write_json
    from rnnsmt.selection.curve import FRACTIONS, write_curve
    from rnnsmt.selection.pool import Pool, Selected, fraction_of_words, read_corpora

    if (fraction is None) == (words is None):
        raise InputError("--fraction or --words: exactly one of them is required")
    if fraction == "auto" and held_out is None:
        raise InputError(
            "--fraction auto requires --held-out, in-domain text that the in-domain models were not trained on"
        )
    directory, langs = Path(output_dir), [lang] if isinstance(lang, str) else lang
    with TextFiles() as files:
        lines: list[str] = []
        if held_out is not None:
            paths = files.all_of("held_out", held_out)
            lines = list(chain.from_iterable(map(read_lines, paths)))
            if not any(line.strip() for line in lines):
                raise InputError(
                    f"{', '.join(paths)}: contains no words; held-out text is required for the perplexity curve"
                )
        corpora = read_corpora(files, corpus, keep, langs)
        chosen = (
            fraction if isinstance(fraction, float) else None if words is None else fraction_of_words(corpora, words)
        )
        pool = Pool(corpora, FRACTIONS if chosen is None else [chosen])
        points = pool.measure(lines, directory, memory_mb, threads) if pool.together and lines else []
        if chosen is None and points:
            chosen = min(points, key=lambda point: (point.perplexity, point.fraction)).fraction
        masks = (pool if random is None else pool.shuffled(random)).kept(chosen)
        pool.write(directory, masks, langs, threads)
    if curve is not None:
        write_curve(curve, points, chosen)
    of_corpora = pool.report(masks)
    report = {
        "fraction": chosen,
        "asked": fraction if words is None else f"{words} words",
        "corpora": of_corpora,
        "curve": [vars(point) for point in points],
    }
    write_json(directory / "selected.json", report | ({} if random is None else {"random": random}))
    for name, counts in of_corpora.items():
        say(f"{name}: {counts['kept']:,} of {counts['lines']:,} lines kept")
    totals = {key: sum(counts[key] for counts in of_corpora.values()) for key in ("lines", "kept")}
    figures = ({} if chosen is None else {"fraction": chosen}) | totals
    return Selected(
        directory, chosen, points, {one.name: mask for one, mask in zip(corpora, masks, strict=True)}, figures
    )
