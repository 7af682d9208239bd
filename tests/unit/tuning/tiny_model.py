"""A tiny model with many weights to tune, and its dev set."""

import gzip
import random
from pathlib import Path

INI = """[distortion-limit]
2

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff input-factor=0 \
output-factor=0 path=reordering-table.gz
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=1

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""

WORDS = 8


def write_model(directory: Path) -> None:
    """Write a model: three translations per source word; table column 2 favours the right one, column 1 misleads."""
    rng = random.Random(5)
    pairs, orders, target = [], [], set()
    for word in range(WORDS):
        for variant in "abc":
            misleading = rng.uniform(0.2, 0.9)
            right = rng.uniform(0.3, 0.9) if variant == "a" else rng.uniform(0.1, 0.5)
            scores = [misleading, right, rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9)]
            translation = f"t{word}{variant}" + (" x" if variant == "c" else "")
            target |= set(translation.split())
            numbers = " ".join(f"{score:.4f}" for score in scores)
            pairs.append(f"s{word} ||| {translation} ||| {numbers} ||| 0-0 ||| 1 1 1 ||| |||")
            order = [rng.uniform(0.1, 0.8) for _ in range(6)]
            orders.append(f"s{word} ||| {translation} ||| " + " ".join(f"{score:.4f}" for score in order))
    for name, lines in (("phrase-table.gz", pairs), ("reordering-table.gz", orders)):
        with gzip.open(directory / name, "wt") as out:
            out.write("\n".join(lines) + "\n")
    unigrams = [f"-1.5\t{word}" for word in ["<unk>", "</s>", *sorted(target)]]
    arpa = ["\\data\\", f"ngram 1={len(unigrams) + 1}", "", "\\1-grams:", "-99\t<s>", *unigrams, "", "\\end\\"]
    (directory / "lm.arpa").write_text("\n".join(arpa) + "\n")
    (directory / "moses.ini").write_text(INI)


def write_texts(directory: Path) -> None:
    """Write a dev set of 30 sentences; the reference consists of the right translations."""
    rng = random.Random(1)
    sentences = [[rng.randrange(WORDS) for _ in range(rng.randint(5, 8))] for _ in range(30)]
    (directory / "dev.en").write_text("".join(" ".join(f"s{w}" for w in words) + "\n" for words in sentences))
    (directory / "dev.fr").write_text("".join(" ".join(f"t{w}a" for w in words) + "\n" for words in sentences))
