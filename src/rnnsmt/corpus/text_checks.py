"""Checks for text that is not what the configuration says: another language, swapped sides, several columns.

The language of a text is that whose function words are most frequent in it. This is no general language identification:
it covers the languages of ``FUNCTION_WORDS``, and is silent in doubt.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rnnsmt.base.io import InputError
from rnnsmt.corpus.reading import read_segments

SAMPLE_LINES = 2000
"""Number of lines of a text that are examined."""

MIN_WORDS = 200
"""Minimum number of words of the sample; the language of less text is not judged."""

MIN_SHARE = 0.1
"""Minimum share of function words of a language; in running text it is 0.2 to 0.5."""

MIN_DISTINCT = 5
"""Minimum number of different function words of a language, so that repeated lines are not judged."""

MIN_RATIO = 2.0
"""Minimum number of function words of the recognised language per function word of the expected one."""

MAX_UNKNOWN = 0.5
"""Share of words that do not occur in the training text above which a text is reported."""

MIN_VOCABULARY = 1000
"""Minimum size of the vocabulary of the training text; less text has too few words."""

COLUMN_LINES = 100
"""Number of lines that are examined for tabs between columns."""

FUNCTION_WORDS = {
    "cs": "a se v na je že s z do o to i za by ale jako po jsou k který od ve jeho nebo při",
    "da": "og i at det er en til af på for der med den de ikke som et har fra var han sig men om også",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus",
    "el": "και το να του η της την με που από για είναι τα στο οι τον ο σε θα τη στην τους των δεν ότι",
    "en": "the of and to in a is that for it as was with be by on not he his but at are this have from",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más o pero",
    "fi": "ja on ei että se hän oli mutta ovat kun myös joka sen tai niin ole mukaan olla vain jos nyt hänen ollut",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se il ce avec",
    "hu": "a az és hogy nem is egy meg ez van csak azt volt mint már de ha vagy még el kell lehet ezt el után",
    "it": "di che e la il un a per in una è non del con i da le si della al come più dei gli alla",
    "nl": "de van het een en in is dat op te zijn met voor niet aan er die om ook als dan maar bij uit door",
    "pl": "w i na z się nie do to że jest o jak ale po co za od przez dla są już jego by tym czy",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas foi ao",
    "ro": "de și în a la cu nu pe o că din este un care să mai pentru se ce sau fi ca dar prin fost",
    "ru": "и в не на что с по как он из это к у а но за от все так его для о же бы был",
    "sv": "och i att det som en på är av för med till den har inte om ett de men var från jag så kan",
}
"""Frequent function words of some languages, by two-letter code."""

_WORDS: dict[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in FUNCTION_WORDS.items()}


def words_of_text(lines: Iterable[str]) -> list[str]:
    """Return the lower-cased tokens that contain a letter."""
    return [token.lower() for line in lines for token in line.split() if any(map(str.isalpha, token))]


def function_word_shares(words: Sequence[str]) -> dict[str, float]:
    """Return the share of the function words of every known language among lower-cased words.

    It is 0 if fewer than ``MIN_DISTINCT`` different ones occur.
    """
    counts = Counter(words)
    return {
        code: sum(counts[word] for word in known) / len(words) if len(known & counts.keys()) >= MIN_DISTINCT else 0.0
        for code, known in _WORDS.items()
    }


def language_warnings(paths: Sequence[str], langs: Sequence[str], samples: Sequence[Iterable[str]]) -> Iterator[str]:
    """Yield a warning for every side of a corpus whose text is in another language, or one if the sides are swapped.

    Args:
        paths: file of each side.
        langs: expected two-letter code of each side.
        samples: tokenised lines of each side.
    """
    words = [words_of_text(sample) for sample in samples]
    shares = [function_word_shares(side) for side in words]
    recognised: list[str | None] = [None] * len(langs)
    for side, lang in enumerate(langs):
        if len(words[side]) < MIN_WORDS:
            continue
        if lang in shares[side]:
            recognised[side] = other_language(shares[side], lang)
        elif len(langs) == 2 and shares[side].get(langs[1 - side], 0.0) >= max(
            MIN_SHARE, MIN_RATIO * shares[1 - side][langs[1 - side]]
        ):  # a language without function words: it has more of those of the other side than this side itself
            recognised[side] = langs[1 - side]
    if len(langs) == 2 and recognised == [langs[1], langs[0]]:
        yield (
            f"source and target look swapped: {paths[0]} looks like {recognised[0]} and {paths[1]} like "
            f"{recognised[1]}; exchange them"
        )
        return
    for path, lang, other in zip(paths, langs, recognised, strict=True):
        if other is not None:
            yield f"{path}: looks like {other}, but the language of this side is {lang}; check the file and languages"


def other_language(shares: Mapping[str, float], expected: str) -> str | None:
    """Return the language of a text if it is clearly another one than expected, otherwise None.

    Args:
        shares: share of the function words of every known language in the text.
        expected: two-letter code of the expected language, one of the known ones.
    """
    best = max(shares, key=lambda code: shares[code])
    return best if best != expected and shares[best] >= max(MIN_SHARE, MIN_RATIO * shares[expected]) else None


def unknown_words_warning(path: str, lines: Iterable[str], vocabulary: Mapping[str, object], model: str) -> str | None:
    """Return a warning if most words of a text do not occur in the training text of its side, otherwise None.

    Args:
        path: file of the text.
        lines: tokenised text.
        vocabulary: lower-cased words of the training text.
        model: file of the model that contains this vocabulary.
    """
    words = words_of_text(lines)
    unknown = sum(word not in vocabulary for word in words)
    if len(words) < MIN_WORDS or len(vocabulary) < MIN_VOCABULARY or unknown <= MAX_UNKNOWN * len(words):
        return None
    return (
        f"{path}: {100 * unknown / len(words):.0f} % of the words do not occur in the training text of {model}; are "
        "source and target swapped, or is this another language?"
    )


def refuse_columns(path: str) -> None:
    """Reject a file with a tab in nearly every line, e.g. a TSV with both sides.

    Raises:
        InputError: it is one; the message says how to write each column to a file.
    """
    first = [segment.strip() for segment in islice(read_segments(path), COLUMN_LINES) if segment and segment.strip()]
    tabs = sum(b"\t" in segment for segment in first)
    if len(first) < 10 or tabs < 0.9 * len(first):
        return
    raise InputError(
        f"{path}: {tabs} of the first {len(first)} lines contain a tab: a table with a column for each side? name it "
        "with file: in the configuration (--bitext of rnnsmt corpus prepare), or write each column to a file"
    )
