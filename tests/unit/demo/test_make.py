"""The demo corpus."""

import gzip
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import sacrebleu

from rnnsmt.cli import main
from rnnsmt.demo import english, french
from rnnsmt.demo.sentences import FAULTS, GeneralSpeaker, HarbourSpeaker, sentences, with_faults

NAMES = ["in-domain.en.gz", "in-domain.fr.gz", "general.en.gz", "general.fr.gz", "mono.fr.gz"]
HELD_OUT = ["dev.en", "dev.fr", "test.en", "test.fr"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    assert main(["demo", "make", "--output-dir", str(directory), "--seed", "1", "--scale", "0.1"]) == 0
    return directory


def test_the_text_does_not_depend_on_the_threads(tmp_path: Path) -> None:
    """The demo corpus does not depend on the number of threads."""
    for threads in ("1", "2"):
        options = ["--seed", "3", "--scale", "0.3", "--threads", threads]
        assert main(["demo", "make", "--output-dir", str(tmp_path / threads), *options]) == 0
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def lines(path: Path) -> list[bytes]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert raw.endswith(b"\n")
    return raw.split(b"\n")[:-1]


def test_files_and_sizes(corpus: Path) -> None:
    assert sorted(path.name for path in corpus.iterdir()) == sorted(NAMES + HELD_OUT)
    counts = {name: len(lines(corpus / name)) for name in NAMES + HELD_OUT}
    assert list(counts.values()) == [400, 400, 1600, 1600, 2000, 400, 400, 2700, 2700]


def test_same_seed_same_bytes_other_seed_other_text(corpus: Path, tmp_path: Path) -> None:
    assert main(["demo", "make", "--output-dir", str(tmp_path / "a"), "--scale", "0.1"]) == 0
    assert main(["demo", "make", "--output-dir", str(tmp_path / "b"), "--scale", "0.1", "--seed", "2"]) == 0
    for name in NAMES + HELD_OUT:
        assert (tmp_path / "a" / name).read_bytes() == (corpus / name).read_bytes()
        assert (tmp_path / "b" / name).read_bytes() != (corpus / name).read_bytes()


def test_held_out_sentences_are_unseen_and_have_unseen_words(corpus: Path) -> None:
    seen = {line for name in NAMES for line in lines(corpus / name)}
    words = Counter(word for line in seen for word in re.findall(rb"\w+", line.replace("é".encode(), b"e")))
    unknown = total = 0
    for name in HELD_OUT:
        for line in lines(corpus / name):
            assert line not in seen
            if name.endswith("en"):
                found = re.findall(rb"\w+", line.replace("é".encode(), b"e"))
                total += len(found)
                unknown += sum(word not in words for word in found)
    assert 0.003 < unknown / total < 0.08


@pytest.mark.parametrize("speaker", [HarbourSpeaker, GeneralSpeaker])
def test_sentences_are_well_formed(speaker: type[HarbourSpeaker] | type[GeneralSpeaker]) -> None:
    speak = speaker(Random(3), Random(4))
    for _ in range(2000):
        english, french = speak.sentence()
        for text in (english, french):
            assert not re.search(r"[*^_#+@|\0“”]|  | [,.]", text), text
            assert text[-1] in ".?!;", text
            assert text[0] in '"«(' or text[0].isupper() or text[0].isdigit() or text[1] == ")", text
        # elision and contraction must have removed these
        assert not re.search(r"\b(le|la|ne|que|je|de) [aeiouéèêh](?!omard|angar|uit|nze)", french), french
        assert not re.search(r"\b(de|à) les? (?!\w+(er|ir|re)\b)", french), french
        assert french.count("«") == french.count("»")


def test_questions_of_conversations_have_the_right_pronouns() -> None:
    speaker = HarbourSpeaker(Random(5), Random(6))
    pairs = [(english.spell(words_en), french.spell(words_fr, " ")) for words_en, words_fr in
             (speaker.conversation() for _ in range(3000))]  # fmt: skip
    pronouns = {"I": "je|j'", "you": "vous", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
    for pronoun, translation in pronouns.items():
        asked = [
            pair for pair in pairs if re.match(rf"(Where|Do|Does|Are|Is|Am|What do|What did) {pronoun}\b", pair[0])
        ]
        assert len(asked) > 5, pronoun
        for text, translated in asked:
            assert re.search(rf"(?i)([- ']|\b)({translation})", translated), (text, translated)
    assert ("Where is the harbour?", "Où est le port ?") in pairs
    assert not any(re.search(r"(?i)\bje-|-t-(vous|nous|ils)", text) for _, text in pairs)
    assert sum("n't " in text for text, _ in pairs) > 300


def test_the_same_meaning_has_several_good_translations() -> None:
    """Two translation styles agree with a BLEU between 45 and 80, so that no system can reach BLEU 100."""
    one, two = (list(islice(sentences(1, "held-out", 1.0, style), 300)) for style in (0, 1))
    assert [english for english, _ in one] == [english for english, _ in two]
    bleu = sacrebleu.corpus_bleu([french for _, french in one], [[french for _, french in two]]).score
    assert 45 < bleu < 80


def test_the_same_word_means_something_else_in_the_other_domain() -> None:
    def translations(harbour_share: float, english: str, french: str) -> float:
        pairs = [pair for pair in islice(sentences(1, "x", harbour_share), 6000) if re.search(english, pair[0])]
        assert pairs
        return sum(bool(re.search(french, pair[1])) for pair in pairs) / len(pairs)

    assert translations(1.0, r"\b[Ff]iles?\b", r"\blimes?\b") > 0.6
    assert translations(0.0, r"\b[Ff]iles?\b", r"\blimes?\b") == 0
    assert translations(1.0, r"\bnets?\b", "filet") > 0.9


def test_every_fault_occurs() -> None:
    clean = list(islice(sentences(1, "general", 0.2), 4000))
    spoilt = list(with_faults(clean, Random(1)))
    assert len(spoilt) == len(clean)
    changed = sum(
        (source.encode(), target.encode()) != pair for (source, target), pair in zip(clean, spoilt, strict=True)
    )
    assert 0.7 * sum(FAULTS.values()) < changed / len(clean) < 1.3 * sum(FAULTS.values())
    targets = [target for _, target in spoilt]
    assert sum(b" ||| " in target for target in targets) > 3
    assert sum(bool(re.search(rb"[\x00-\x08\x0b-\x1f]", target)) for target in targets) > 3
    assert sum(_invalid(target) for target in targets) > 10
    assert sum(not target.strip() for target in targets) > 3
    assert sum("Ã".encode() in target for target in targets) > 10
    assert not any(b"\n" in text for pair in spoilt for text in pair)


def _invalid(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


@pytest.mark.parametrize("scale", ["0", "-1", "1000", "nan"])
def test_bad_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str], scale: str) -> None:
    assert main(["demo", "make", "--output-dir", str(tmp_path / "d"), f"--scale={scale}"]) == 2
    assert "must be a number from 0.01 to 100" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_output_directory_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d").write_text("")
    assert main(["demo", "make", "--output-dir", str(tmp_path / "d"), "--scale", "0.01"]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 1


def test_it_goes_through_corpus_prepare(corpus: Path, tmp_path: Path) -> None:
    words = []
    for side, name in (("source", "general.en.gz"), ("target", "general.fr.gz")):
        words += [f"--{side}", str(corpus / name), f"--output-{side}", str(tmp_path / side)]
    assert main(["corpus", "prepare", *words, "--report", str(tmp_path / "r.json")]) == 0


def test_careless_translations_change_only_the_french():
    """Careless translations change 10 % to 30 % of the French sentences and no English ones."""
    plain, careless = (list(islice(sentences(1, "x", 1.0, careless=share), 300)) for share in (0.0, 0.3))
    assert [pair[0] for pair in plain] == [pair[0] for pair in careless]
    changed = sum(one != other for one, other in zip(plain, careless, strict=True))
    assert 0.1 < changed / 300 < 0.3
