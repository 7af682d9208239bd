# Which file holds which text: the corpora before and after selection, the dev and test sets.

DOWNLOADS = {path: entry for corpus in CORPORA.values() for path, entry in corpus.downloads.items()}
MEMBERS = {path: found for corpus in CORPORA.values() for path, found in corpus.members.items()}
USUAL = "truecased" if config["text"]["truecase"] else "tokenized"


def download(wildcards):
    """Where a file comes from: url, sha256, mirrors."""
    return DOWNLOADS[f"results/downloads/{wildcards.key}/{wildcards.file}"]


def text(kind, name, lang):
    """One side of a corpus. kind: raw, tokenized, truecased; or usual, what models are trained on and decoders read."""
    return f"results/corpus/{USUAL if kind == 'usual' else kind}/{name}.{lang}.gz"


def set_text(kind, name, lang):
    """One side of a test set, or of all dev corpora joined."""
    joined = f"results/corpus/joined/{USUAL if kind == 'usual' else kind}/dev.{lang}.gz"
    return joined if name == "dev" else text(kind, name, lang)


def part_texts(part):
    """The source side of dev, or of all sets: what a part of the tables is for."""
    return [set_text("usual", name, SOURCE) for name in (SETS if part == "all" else [part])]


def plain_reference(name):
    """What sacreBLEU compares with: the raw text, or the detokenised one where the corpus comes tokenised."""
    if config["text"]["tokenize"]:
        return set_text("raw", name, TARGET)
    return f"results/corpus/detokenized/{name}.{TARGET}.gz"


PARTS = {"bitext": BITEXT, "mono": BITEXT + MONO}
SIDES = {"bitext": [SOURCE, TARGET], "mono": [TARGET]}


def in_domain_texts(lang):
    """The in-domain text of one language; a monolingual corpus has none of the source language."""
    return [
        text("usual", name, lang)
        for name, corpus in CORPORA.items()
        if corpus.in_domain and (corpus.is_bitext or lang == TARGET)
    ]


def keeps_all(kind, name):
    """Whether a corpus is taken whole: by its own `keep`, or by the setting of its kind (bitext, mono)."""
    return kept_whole(CORPORA[name].keep, config["selection"][kind])


def scored(kind):
    """The corpora that selection scores: those that are not kept whole."""
    return [name for name in PARTS[kind] if not keeps_all(kind, name)]


def selected_text(kind, name, lang):
    """One side of a corpus after selection; nothing is selected where every corpus is kept whole."""
    if not scored(kind):
        return text("usual", name, lang)
    return f"results/selection/{kind}/{name}.{SIDES[kind].index(lang) + 1}.gz"


def training_text(lang):
    """The bitext that alignment and phrase extraction see: the only corpus, or all joined."""
    if len(BITEXT) == 1:
        return selected_text("bitext", BITEXT[0], lang)
    return f"results/corpus/joined/train.{lang}.gz"


def lm_texts():
    """The text of the language model."""
    return [selected_text("mono", name, TARGET) for name in PARTS["mono"]]


def score_file(kind, name):
    """The scores of a corpus that is not kept whole."""
    return f"results/selection/{kind}/scores/{name}.tsv.gz"


def select_corpora(kind, input):
    """The corpora as `selection select` takes them: NAME=SCORES=TEXT1[=TEXT2], and what is kept of them.

    A dash instead of the scores where a corpus is kept whole.
    """
    scores, texts = iter(input.scores), iter(input.texts)
    corpora = " ".join(
        shlex.quote(
            "=".join([name, "-" if keeps_all(kind, name) else next(scores), *(next(texts) for _ in SIDES[kind])])
        )
        for name in PARTS[kind]
    )
    keep = " ".join(
        f"{name}={'all' if keeps_all(kind, name) else CORPORA[name].keep}"
        for name in PARTS[kind]
        if keeps_all(kind, name) or CORPORA[name].keep
    )
    return f"--corpus {corpora}" + (f" --keep {keep}" if keep else "")
