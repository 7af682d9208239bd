# The in-domain part of the training text: Axelrod et al. for bitext, Moore and Lewis for the language model's text.
IN_DOMAIN = [name for name, corpus in CORPORA.items() if corpus.in_domain and corpus.role in ("dev", "bitext")]
LM_TEXT = BITEXT + MONO
POOLS = {"bitext": BITEXT, "mono": LM_TEXT}


def keeps_all(kind, name):
    """Whether a corpus is taken whole: by its own `keep`, or by the setting of its kind (bitext, mono)."""
    keep = CORPORA[name].keep or config["selection"][kind]
    return keep in ("all", 1)


def pool(kind):
    """The corpora that selection looks at: those that are not kept whole."""
    return [name for name in POOLS[kind] if not keeps_all(kind, name)]


def selected_text(kind, name, lang):
    """One side of a corpus after selection."""
    if keeps_all(kind, name):
        return text("usual", name, lang)
    return f"results/selection/{kind}/{name}.{lang}.gz"


def training_text(lang):
    """The bitext that alignment and phrase extraction see: the only corpus, or all joined."""
    if len(BITEXT) == 1:
        return selected_text("bitext", BITEXT[0], lang)
    return f"results/corpus/joined/train.{lang}.gz"


def lm_texts():
    """The text of the language model."""
    return [selected_text("mono", name, TARGET) for name in LM_TEXT]
