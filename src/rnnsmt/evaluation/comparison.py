"""Comparison of two systems sentence by sentence: differences in BLEU, in the phrase pairs used, and in the features.

The *system* is compared with the *baseline*, which may be any other system. BLEU, p-values, and BLEU of groups of
sentences are computed over all runs of both systems. The rest is computed for the first run of each system: the
sentences with the largest gains and losses in smoothed sentence BLEU; the phrase pairs that only one of the systems
uses; and the contributions of the features. A contribution is the weight times the difference of the feature values of
the system's and the baseline's translation, under the system's model. The contributions of a sentence are defined if
the phrase table of this model contains all phrase pairs of the baseline's translation.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import words_of
from rnnsmt.base.rendering import write_page
from rnnsmt.bleu.batch import bleu_of_many, corpus_statistics, sentence_bleu
from rnnsmt.bleu.multi_bleu import tokens
from rnnsmt.evaluation.render import KIND_TITLES
from rnnsmt.evaluation.significance import Statistics, compare
from rnnsmt.formats.nbest import Segment, phrase_pairs, read_details
from rnnsmt.search.decoder import features_of_derivations
from rnnsmt.search.model import SearchModel, kinds_of_features, sum_by_kind
from rnnsmt.search.translation_options import look_up

LENGTHS = (0, 1, 6, 11, 16, 21, 31, 41)
"""Lower bounds of the groups of sentences by number of source words."""

UNKNOWN_WORDS = (0, 1, 2, 3)
"""Lower bounds of the groups of sentences by number of unknown words."""

PHRASE_LENGTHS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Lower bounds of the groups of sentences by mean number of source words per phrase."""

PAIR_LENGTHS = (1, 2, 3, 4, 5)
"""Lower bounds of the groups of phrase pairs by number of source words."""

COUNTS = (0, 1, 2, 5, 20)
"""Lower bounds of the groups of phrase pairs by extraction count."""

Derivation = tuple[str, list[Segment]]
"""Translation and its phrases."""

Pair = tuple[str, str]
"""Source and target phrase."""


def band(value: float, firsts: Sequence[float]) -> str:
    """Return the name of the band of a value; ``firsts`` are the ascending lower bounds of the bands, the last is open.

    >>> [band(7, (1, 6, 11)), band(12, (1, 6, 11)), band(0, (0, 1, 2)), band(1.7, (1.0, 1.5, 2.0))]
    ['6-10', '11+', '0', '1.5-2.0']
    """
    for first, following in pairwise(firsts):
        if value < following:
            last = following - 1 if isinstance(following, int) else following
            return f"{first}" if first == last else f"{first}-{last}"
    return f"{firsts[-1]}+"


def by_group(
    values: Sequence[float], firsts: Sequence[float], baseline: Statistics, system: Statistics
) -> list[dict[str, Any]]:
    """Return BLEU of the sentences in each band.

    Args:
        values: ``[S]``, value of each sentence.
        firsts: lower bounds of the bands.
        baseline, system: ``[R, S, 9]``, BLEU statistics of every run and sentence.
    """
    names = np.array([band(value, firsts) for value in values])
    groups = []
    for name in dict.fromkeys(band(first, firsts) for first in firsts):
        rows = np.flatnonzero(names == name)
        if len(rows):
            bleu = _bleu(baseline[:, rows], system[:, rows])
            groups.append({"group": name, "sentences": len(rows), "bleu": bleu, "difference": bleu[1] - bleu[0]})
    return groups


def _bleu(*statistics: Statistics) -> list[float]:
    """Return the BLEU of every system, averaged over its runs."""
    return [float(bleu_of_many(of_system.sum(1)).mean()) for of_system in statistics]


def sentence_gains(baseline: Statistics, system: Statistics) -> NDArray[np.float64]:
    """Return the difference in smoothed sentence BLEU in percent, system minus baseline; statistics ``[S, 9]``."""
    return 100 * (sentence_bleu(system) - sentence_bleu(baseline))


def exchanged_pairs(
    baseline: Sequence[Sequence[Pair]],
    system: Sequence[Sequence[Pair]],
    counts: dict[Pair, float],
    gains: NDArray[np.float64],
    unknown: Container[str] = (),
) -> dict[str, list[dict[str, Any]]]:
    """Group the phrase pairs that only one system uses in a sentence by extraction count and by source length.

    Args:
        baseline, system: phrase pairs of the derivation of every sentence.
        counts: how often pairs were extracted (``PhraseTable.counts_of``).
        gains: difference in sentence BLEU of every sentence.
        unknown: unknown words, which are copied to the output.

    Returns:
        For every group, the numbers of pairs used only by the baseline and only by the system, and the mean gain of the
        sentences with pairs used only by the system. Pairs without a count are unknown words or not in the system's
        phrase table.
    """
    unlisted = "not in the table"
    rows = [
        (sentence, who, pair[0], counts.get(pair, -1.0), len(pair[0].split()), gains[sentence])
        for sentence, both in enumerate(zip(map(Counter, baseline), map(Counter, system), strict=True))
        for who, pairs in (("baseline", both[0] - both[1]), ("system", both[1] - both[0]))
        for pair in pairs.elements()
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    extracted = [float(row[3]) for row in rows]
    lengths = [float(row[4]) for row in rows]
    for kind, firsts, values in (("extracted", COUNTS, extracted), ("source words", PAIR_LENGTHS, lengths)):
        parts: dict[str, list[Any]] = defaultdict(list)
        for row, value in zip(rows, values, strict=True):
            name = band(value, firsts) if value >= 0 else "unknown word" if row[2] in unknown else unlisted
            parts[name].append(row)
        groups[kind] = []
        for name in dict.fromkeys([*(band(first, firsts) for first in firsts), "unknown word", unlisted]):
            if members := parts.get(name):
                of_system = {sentence: gain for sentence, who, *_, gain in members if who == "system"}
                of_both = [sum(row[1] == who for row in members) for who in ("baseline", "system")]
                gain = float(np.mean(list(of_system.values()))) if of_system else None
                groups[kind].append({"group": name, "pairs": of_both, "sentences": len(of_system), "mean gain": gain})
    return groups


def decisions(contributions: NDArray[np.float64], kinds: Sequence[str]) -> dict[str, float]:
    """Return the total contribution of every kind of feature in descending order of magnitude; see ``sum_by_kind``."""
    return dict(sorted(sum_by_kind(contributions, kinds).items(), key=lambda item: -abs(item[1])))


class Comparison:
    """Comparison of two systems on one text.

    ``add_source``, ``add_details`` and ``add_model``, called in this order, add further analyses.
    """

    def __init__(
        self,
        references: Sequence[Sequence[str]],
        baseline: Sequence[Sequence[str]],
        system: Sequence[Sequence[str]],
        trainings: tuple[int, int] = (1, 1),
        shared: bool = False,
    ) -> None:
        """Compute the statistics of both systems.

        Args:
            references: one list of texts for each set of references.
            baseline, system: tokenised output of each run.
            trainings, shared: as for ``significance.compare``.
        """
        self.references, self.texts = references, (baseline[0], system[0])
        self.statistics = [
            np.stack([corpus_statistics(run, references) for run in runs]) for runs in (baseline, system)
        ]
        self.gains = sentence_gains(self.statistics[0][0], self.statistics[1][0])
        self.trainings, self.shared = trainings, shared
        self.source: Sequence[str] | None = None
        self.pairs: tuple[list[list[Pair]], list[list[Pair]]] | None = None
        self.counts: dict[Pair, float] | None = None
        self.contributions: NDArray[np.float64] | None = None
        self.kinds: list[str] = []
        self.unknown: set[str] = set()
        self.values: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
        """For each property by which sentences are grouped: its values ``[S]``, and the lower bounds of the groups."""
        self._derivations: tuple[list[Derivation], list[Derivation]]

    def add_source(self, source: Sequence[str]) -> None:
        """Add the tokenised source text, for groups by sentence length."""
        self.source = source
        self.values["source words"] = [len(words_of(sentence)) for sentence in source], LENGTHS

    def add_details(self, baseline: str, system: str) -> None:
        """Add the derivations of both systems' first runs, from files of `search decode --output-details`.

        Raises:
            InputError: a derivation does not match the output.
        """
        assert self.source is not None
        self._derivations = read_details(baseline, self.source), read_details(system, self.source)
        for path, texts, derivations in zip((baseline, system), self.texts, self._derivations, strict=True):
            for number, (text, (reported, _)) in enumerate(zip(texts, derivations, strict=True), 1):
                if text.casefold().split() != reported.casefold().split():
                    raise InputError(
                        f"{path}: line {number}: the translation differs from that in the output; use the details "
                        "file that was written together with the output"
                    )
        of_both = [
            [phrase_pairs(sentence, *derivation) for sentence, derivation in zip(self.source, derivations, strict=True)]
            for derivations in self._derivations
        ]
        self.pairs = of_both[0], of_both[1]
        lengths = [
            len(words_of(line)) / max(len(pairs), 1) for line, pairs in zip(self.source, of_both[1], strict=True)
        ]
        self.values["source words of a phrase"] = lengths, PHRASE_LENGTHS

    def add_model(self, model: SearchModel, weights: NDArray[np.float64], columns: Sequence[str]) -> None:
        """Add the model of the system, for the contributions of the features and the counts of phrase pairs.

        Args:
            weights: tuned weights of the first run of the system.
            columns: names of the phrase scores of the model after the fourth.

        Raises:
            InputError: the model does not contain a derivation of the system.
        """
        assert self.source is not None and self.pairs is not None
        sentences = list(self.source)
        self.unknown = set(look_up(model, sentences).unknown)
        numbers = [sum(word in self.unknown for word in words_of(line)) for line in sentences]
        self.values["unknown words"] = numbers, UNKNOWN_WORDS
        system, other = (
            features_of_derivations(model, sentences, derivations) for derivations in reversed(self._derivations)
        )
        if np.isnan(system).any():
            number = int(np.flatnonzero(np.isnan(system).any(1))[0])
            raise InputError(
                f"the model cannot translate line {number + 1} of the source; use the ini with which --hypothesis "
                "was decoded"
            )
        self.contributions = (system - other) * weights
        self.kinds = kinds_of_features(model, columns)
        self.counts = model.table.counts_of(pair for side in self.pairs for pairs in side for pair in pairs)

    def content(self, examples: int) -> dict[str, Any]:
        """Return the content of the output of `evaluation compare`.

        Args:
            examples: maximum number of example sentences with the largest gains, and with the largest losses.
        """
        changed = np.array(
            [tokens(baseline) != tokens(system) for baseline, system in zip(*self.texts, strict=True)], bool
        )
        baseline, system = self.statistics
        result = compare(baseline, system, self.trainings, self.shared)
        content: dict[str, Any] = {
            "runs": len(baseline),
            "sentences": baseline.shape[1],
            "bleu": _bleu(baseline, system),
            "difference": result.difference,
            "interval": result.interval,
            "detectable": result.detectable,
            "p_bootstrap": result.p_bootstrap,
            "p_strict": result.p_strict,
            "first run": {
                "changed": int(changed.sum()),
                "better": int((self.gains > 0).sum()),
                "worse": int((self.gains < 0).sum()),
            },
        }
        content["groups"] = {
            kind: by_group(values, firsts, baseline, system) for kind, (values, firsts) in self.values.items()
        }
        if self.pairs is not None and self.counts is not None:
            content["exchanged pairs"] = exchanged_pairs(*self.pairs, self.counts, self.gains, self.unknown)
        if self.contributions is not None:
            known = changed & ~np.isnan(self.contributions).any(1)
            content["decided"] = decisions(self.contributions[known].mean(0), self.kinds) if known.any() else {}
            content["not of the system's model"] = int((changed & ~known).sum())
        order = np.argsort(-self.gains, kind="stable")
        content["examples"] = {
            "Largest gains": [self._example(s) for s in order[:examples] if self.gains[s] > 0],
            "Largest losses": [self._example(s) for s in order[::-1][:examples] if self.gains[s] < 0],
        }
        return content

    def _example(self, s: int) -> dict[str, Any]:
        """Return one sentence for the output, with its 1-based line number."""
        example: dict[str, Any] = {"sentence": int(s) + 1, "gain": float(self.gains[s])}
        if self.source is not None:
            example["source"] = self.source[s]
        example |= {"reference": [text[s] for text in self.references], "texts": [text[s] for text in self.texts]}
        if self.pairs is not None:
            system, other = (Counter(side[s]) for side in self.pairs)
            counts = self.counts or {}
            example["pairs"] = [
                [[*pair, counts.get(pair)] for pair in only.elements()] for only in (system - other, other - system)
            ]
        if self.contributions is not None and not np.isnan(self.contributions[s]).any():
            example["decided"] = decisions(self.contributions[s], self.kinds)
        return example


def write_comparison(path: StrPath, content: Mapping[str, Any]) -> None:
    """Write the Markdown output of `evaluation compare`, given the content of its JSON output."""
    write_page(
        path,
        "rnnsmt.evaluation",
        "comparison.md.j2",
        **{key: value for key, value in content.items() if " " not in key},
        first_run=content["first run"],
        exchanged_pairs=content.get("exchanged pairs", {}),
        left_out=content.get("not of the system's model"),
        kind_titles=KIND_TITLES,
    )
