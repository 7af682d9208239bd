"""Files of a run: which file contains which text, and the files of the phrase-based model.

All paths are relative to the directory of the run, except those of corpus files in ``data_dir``.
"""

import shlex
from collections.abc import Sequence

from rnnsmt.config.corpus_entry import Download
from rnnsmt.config.sections import Config
from rnnsmt.plan.corpora import corpora_of, input_files
from rnnsmt.plan.derived import kept_whole

RUN = "results/systems/{system}/run{run}"
"""Directory of a tuning run of a system, with its tuned ini, and its translations and scores for all sets."""

PAIRS = "results/phrases/pairs.safetensors"
"""Phrase pairs as word ids, read by score columns and the RNN Encoder-Decoder."""

VOCABULARIES = "results/rnn/vocabularies"
"""Directory of the vocabularies of source and target, which all networks but the LSTMs use."""

SENTENCES = "results/seq2seq/sentences"
"""Sentence pairs as word ids, read by the LSTMs."""

LM = "lm.arpa.gz"

PHRASE_TABLE = "phrase-table.gz"

LM_BINARY, TABLE_BINARY = "lm.binary.safetensors", "phrase-table.binary.safetensors"
"""Binary forms of the language model and the tables, which the search maps into memory."""

TABLE_SCORES, REORDERING_SCORES = "results/phrases/scores.safetensors", "results/phrases/reordering.safetensors"
"""Scores of the phrase pairs."""

SELECTION_MODELS = (
    "in-domain.arpa.gz",
    "general.arpa.gz",
    "general2.arpa.gz",
    "general.gz",
    "held-out.gz",
    "models.json",
)
"""Files of data selection for one language: language models, general and held-out text, and a report."""

REORDERING_TABLE = "reordering-table.wbe-msd-bidirectional-fe.gz"


def alignments(config: Config) -> list[str]:
    """Return the symmetrised alignments from which phrases are extracted."""
    alignment = config.alignment
    if alignment.external:
        return [alignment.external]
    return [f"results/align/{aligner}/aligned.{alignment.symmetrization}.gz" for aligner in alignment.aligners]


class Texts:
    """The file of every text of a run.

    A text is one side (language code) of a corpus, of one of these kinds: raw, tokenized, truecased,
    preprocessed. Models are trained on preprocessed texts, and decoders read them; preprocessed means truecased if
    ``text.truecase`` is set, otherwise tokenized. Data selection selects from two pools of corpora: ``bitext``, and
    ``mono``, which has the target sides of all training text, for the language models.

    Attributes:
        source, target: language codes.
        corpora: the corpora by name.
        bitext, mono, dev, test: names of the corpora of each role.
        sets: names of the sets that are translated: dev (all dev corpora concatenated) and every test set.
        pools: names of the corpora of each pool.
        sides: languages of each pool.
    """

    def __init__(self, config: Config) -> None:
        """Read the corpora of a checked configuration."""
        self.source, self.target = config.languages.source, config.languages.target
        self.corpora = {corpus.name: corpus for corpus in corpora_of(config.corpora, config.languages, config.data_dir)}
        self.bitext, self.mono, self.dev, self.test = (
            [name for name, corpus in self.corpora.items() if corpus.role == role]
            for role in ("bitext", "mono", "dev", "test")
        )
        self.sets = ["dev", *self.test]
        self.pools = {"bitext": self.bitext, "mono": self.bitext + self.mono}
        self.sides = {"bitext": [self.source, self.target], "mono": [self.target]}
        self._selection = {"bitext": config.selection.bitext, "mono": config.selection.mono}
        self._is_tokenized = config.text.tokenize
        self._preprocessed = "truecased" if config.text.truecase else "tokenized"
        self._downloads = {path: entry for corpus in self.corpora.values() for path, entry in corpus.downloads.items()}
        self._members = {path: member for corpus in self.corpora.values() for path, member in corpus.members.items()}

    def download(self, key: str, file: str) -> Download:
        """Return the source of a downloaded file: url, sha256, mirrors."""
        return self._downloads[f"results/downloads/{key}/{file}"]

    def member(self, key: str, file: str) -> tuple[str, str]:
        """Return the archive that contains an unpacked file, and the path inside it."""
        return self._members[f"results/unpacked/{key}/{file}"]

    def raw_files(self) -> list[str]:
        """Return the input files of all corpora, including downloads: one for each side, or one with both sides."""
        return [path for corpus in self.corpora.values() for _, path in input_files(corpus)]

    def text(self, kind: str, name: str, lang: str) -> str:
        """Return the file of one side of a corpus."""
        return f"results/corpus/{self._preprocessed if kind == 'preprocessed' else kind}/{name}.{lang}.gz"

    def set_text(self, kind: str, name: str, lang: str) -> str:
        """Return the file of one side of a set."""
        if name != "dev":
            return self.text(kind, name, lang)
        return f"results/corpus/joined/{self._preprocessed if kind == 'preprocessed' else kind}/dev.{lang}.gz"

    def part_texts(self, set_name: str) -> list[str]:
        """Return the source sides of the sets for which phrase pairs are selected: ``dev``, or ``all`` sets."""
        return [
            self.set_text("preprocessed", name, self.source)
            for name in (self.sets if set_name == "all" else [set_name])
        ]

    def plain_reference(self, name: str) -> str:
        """Return sacreBLEU's reference of a set.

        It is the raw text: ``reference`` of the corpora of the set, if it is given, otherwise the target side. If the
        target side is already tokenised and there is no ``reference``, it is the detokenised target side.
        """
        of_set = self.dev if name == "dev" else [name]
        if self._is_tokenized or all(self.corpora[corpus].reference for corpus in of_set):
            return self.set_text("raw", name, self.target)
        return f"results/corpus/detokenized/{name}.{self.target}.gz"

    def prepared(self) -> list[str]:
        """Return the outputs of preprocessing: downloads, the texts of all corpora and sets, reports, truecasers."""
        files = ["results/corpus/overlap.json"]
        for name, corpus in self.corpora.items():
            files += [*corpus.downloads, *corpus.members, f"results/corpus/tokenized/{name}.report.json"]
            sides = [self.target] if name in self.mono else [self.source, self.target]
            files += [self.text("tokenized", name, lang) for lang in sides]
            files += [corpus.source, corpus.target] if corpus.separated else []  # type: ignore[list-item]
            read = [self.source] if name in self.test else sides
            files += [self.text("preprocessed", name, lang) for lang in read]
            raw = self.text("raw", name, self.target)
            if name in (*self.dev, *self.test) and self.plain_reference("dev" if name in self.dev else name) in (
                raw,
                self.set_text("raw", "dev", self.target),
            ):
                files += [raw, f"results/corpus/raw/{name}.report.json"]
        if self._preprocessed == "truecased":
            files += [f"results/corpus/truecaser.{lang}" for lang in (self.source, self.target)]
        files += [self.set_text("preprocessed", "dev", lang) for lang in (self.source, self.target)]
        for name in self.sets:
            files += [self.set_text("tokenized", name, self.target), self.plain_reference(name)]
        return list(dict.fromkeys(files))

    def selected(self) -> list[str]:
        """Return the outputs of data selection, and the training text of the alignment."""
        files = [self.training_text(lang) for lang in (self.source, self.target)]
        for kind, sides in self.sides.items():
            if self.scored(kind):
                directory = f"results/selection/{kind}"
                files += [f"{directory}/models.{lang}/{name}" for lang in sides for name in SELECTION_MODELS]
                files += [f"{directory}/scores/{name}.tsv.gz" for name in self.scored(kind)]
                files += [self.selected_text(kind, name, lang) for name in self.pools[kind] for lang in sides]
                files += [f"{directory}/selected.json", f"{directory}/curve.tsv"]
        return files

    def in_domain_texts(self, lang: str) -> list[str]:
        """Return the in-domain text of one language; monolingual corpora have a target side only."""
        return [
            self.text("preprocessed", name, lang)
            for name, corpus in self.corpora.items()
            if corpus.in_domain and (lang == self.target or corpus.source is not None)
        ]

    def keeps_all(self, kind: str, name: str) -> bool:
        """Return whether selection keeps a whole corpus of a pool."""
        return kept_whole(self.corpora[name].keep, self._selection[kind])

    def scored(self, kind: str) -> list[str]:
        """Return the corpora of a pool that selection scores: those that are not kept whole."""
        return [name for name in self.pools[kind] if not self.keeps_all(kind, name)]

    def selected_text(self, kind: str, name: str, lang: str) -> str:
        """Return one side of a corpus after selection, or the preprocessed text if every corpus is kept whole."""
        if not self.scored(kind):
            return self.text("preprocessed", name, lang)
        return f"results/selection/{kind}/{name}.{lang}.gz"

    def training_text(self, lang: str) -> str:
        """Return the training text of alignment and phrase extraction: the only bitext, or all of them concatenated."""
        if len(self.bitext) == 1:
            return self.selected_text("bitext", self.bitext[0], lang)
        return f"results/corpus/joined/train.{lang}.gz"

    def lm_texts(self) -> list[str]:
        """Return the training text of the language models."""
        return [self.selected_text("mono", name, self.target) for name in self.pools["mono"]]

    def selection_options(self, kind: str, scores: Sequence[str], texts: Sequence[str]) -> str:
        """Return the options of ``selection select``: the corpora, NAME=SCORES=TEXT1[=TEXT2], and their ``keep``.

        A corpus that is kept whole has a dash instead of scores.

        Args:
            scores: files of the scores of ``scored(kind)``.
            texts: files of all sides of all corpora of the pool.
        """
        next_scores, next_text = iter(scores), iter(texts)
        names, keep = [], []
        for name in self.pools[kind]:
            whole = self.keeps_all(kind, name)
            sides = [next(next_text) for _ in self.sides[kind]]
            names.append(shlex.quote("=".join([name, "-" if whole else next(next_scores), *sides])))
            if whole or self.corpora[name].keep:
                keep.append(f"{name}={'all' if whole else self.corpora[name].keep}")
        return f"--corpus {' '.join(names)}" + (f" --keep {' '.join(keep)}" if keep else "")
