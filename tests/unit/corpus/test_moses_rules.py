"""The rules of sacremoses with lazily compiled patterns equal the original rules."""

import importlib.util
import pickle
import re
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

from rnnsmt.corpus import moses_rules

PLANES = "".join(chr(code) for code in range(0x20, 0x20000) if not 0xD800 <= code < 0xE000)
"""All characters of the first two planes of Unicode, in which those of the rules are."""


def rules(late: bool) -> Any:
    """Return a new ``sacremoses.tokenize``, executed as in ``moses_rules`` or as usual."""
    spec = importlib.util.find_spec("sacremoses.tokenize")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with moses_rules._late_modules() if late else nullcontext():
        spec.loader.exec_module(module)
    return module


def test_every_pattern_matches_the_same_characters() -> None:
    """Shortened patterns match the same characters as the original ones, for all characters in typical contexts."""
    plain, late = rules(False), rules(True)
    text = "".join(f"{c}'a1,{c},-{c}'{c}/{c}" for c in PLANES)
    compared = long = 0
    for name in ("MosesTokenizer", "MosesDetokenizer"):
        own = vars(getattr(late, name))
        for rule, value in vars(getattr(plain, name)).items():
            if isinstance(value, tuple) and isinstance(value[0], re.Pattern):
                assert isinstance(own[rule][0], moses_rules._LatePattern)
                pattern = value[0].pattern
                compared += 1
                if len(pattern) > moses_rules.LONG_PATTERN:
                    long += 1
                    shorter = re.compile(moses_rules.with_ranges(pattern))
                    assert len(shorter.pattern) < len(pattern) / 2
                    assert [m.span() for m in shorter.finditer(text)] == [m.span() for m in value[0].finditer(text)]
                else:
                    assert moses_rules.with_ranges(pattern) == pattern
    assert long >= 10 and compared > 60


def test_tokens_are_those_of_the_plain_rules() -> None:
    plain, late = rules(False), rules(True)
    text = " ".join(f"{c}a, b{c}'c 1{c}2 {c}. d{c}'{c}" for c in PLANES[:5000])
    for lang in ("en", "fr", "de"):
        assert late.MosesTokenizer(lang).tokenize(text) == plain.MosesTokenizer(lang).tokenize(text)


def test_a_late_pattern_can_be_pickled() -> None:
    pattern = moses_rules._LatePattern(r"\s+")
    for _ in range(2):  # before and after the first use
        assert pickle.loads(pickle.dumps(pattern)).sub(" ", "a   b") == "a b" == pattern.sub(" ", "a   b")


def test_unused_modules_are_imported_when_they_are_called() -> None:
    code = (
        "import sys, rnnsmt.corpus.tokenizer, sacremoses.util as u, re\n"
        "print([m for m in ('joblib', 'tqdm', 'xml.sax.saxutils') if m in sys.modules], type(re.compile('a')))\n"
        "print(list(u.parallelize_preprocess(str.upper, ['a', 'b'], 1, 1)), u.xml_escape('<'), 'tqdm' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines() == ["[] <class 're.Pattern'>", "['A', 'B'] &lt; True"]
