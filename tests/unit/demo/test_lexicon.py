"""The tables of the lexicon: every line is well-formed; a bad line is reported with file, line number and a remedy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rnnsmt.base.io import InputError
from rnnsmt.demo import entries, french, tables
from rnnsmt.demo.tables import COLUMNS, LEXICON, LexiconRow, read_table

PARSERS: dict[str, Callable[[LexiconRow], object]] = {
    "nouns": entries.noun,
    "adjectives": entries.adjective,
    "verbs": entries.verb,
    "phrases": entries.fixed_phrase,
}


def test_the_tables_are_those_of_the_package() -> None:
    assert sorted(path.stem for path in LEXICON.iterdir()) == sorted(COLUMNS)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_line_is_well_formed(table: str) -> None:
    rows = list(read_table(table))
    assert len(rows) >= 11
    lines = [tuple(row.fields.values()) for row in rows]
    assert len(set(lines)) == len(lines)
    for row in rows:
        if table in PARSERS:
            row.one_of("domain", entries.DOMAINS)
            PARSERS[table](row)
    assert entries.names() and french.IRREGULAR


@pytest.mark.parametrize("table", ["nouns", "adjectives", "verbs"])
def test_no_word_twice_in_a_domain(table: str) -> None:
    """A word does not occur in two classes of one domain, where it would be ambiguous."""
    seen = [
        (row["domain"], row["english"], row.fields.get("class"), row.fields.get("objects")) for row in read_table(table)
    ]
    assert len(set(seen)) == len(seen)


NOUN, ADJECTIVE, VERB = (
    "common\tP\tman\tmen\thomme m",
    "common\t*\tnew\t<nouveau^",
    "common\tsee\tsaw\tseen\tPG\tP\t\tvoir",
)


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        (
            "nouns",
            NOUN.replace("\tmen", ""),
            "4 fields instead of 5, separated by tabs: domain, class, english, plural, french",
        ),
        (
            "nouns",
            NOUN.replace("common", "law"),
            "domain 'law' is unknown; must be one of common, harbour, conversation, general",
        ),
        ("nouns", NOUN.replace("\tP", "\tX"), "class 'X' is unknown; must be one of P, G, V, O, L, A, E, T"),
        ("nouns", NOUN.replace("man", ""), "english must not be empty"),
        (
            "nouns",
            NOUN.replace("homme m", "homme"),
            "'homme' is not a valid noun entry; write 'noun m', 'noun f/plural' or",
        ),
        ("nouns", NOUN + "; ", "french 'homme m; ' has superfluous spaces; remove them"),
        ("nouns", NOUN + ";", "empty translation in 'homme m;'; separate translations by '; '"),
        ("nouns", NOUN + " @sg", "'homme m @sg' is not a valid noun entry"),
        ("nouns", NOUN + " @pl", "every French noun has @; at least one must be without @"),
        ("adjectives", ADJECTIVE.replace("*", "PX"), "classes 'PX' contains 'X'; only the letters PGVOLAET"),
        ("verbs", VERB.replace("voir", "vu"), "'vu' is not an infinitive; the entry must begin with an infinitive"),
        ("verbs", VERB.replace("PG\tP", "PG\tIP"), "objects 'IP' contains 'I'; only the letters PGVOLAET"),
        ("phrases", "common\tgreeting\thello\tbonjour", "use 'greeting' is unknown; must be one of adverb, opening"),
        ("names", "ship\tmiddle\tba da", "part 'middle' of ship; the parts must be first, middle, last in this order"),
        ("names", "boat\tfirst\tba da", "kind 'boat' is unknown; must be one of feminine, masculine, surname"),
        ("irregular_verbs", "aller\tvais vas va\t\tir\tallé", "present and subjunctive require six forms"),
    ],
)
def test_a_bad_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, line: str, said: str
) -> None:
    path = tmp_path / f"{table}.tsv"
    path.write_text("# a comment\n" + "\t".join(COLUMNS[table]) + "\n" + line + "\n")
    with pytest.raises(InputError) as error:
        if table == "names":
            monkeypatch.setattr(entries, "read_table", lambda name: read_table(name, tmp_path))
            entries.names()
        elif table == "irregular_verbs":
            monkeypatch.setattr(french, "read_table", lambda name: read_table(name, tmp_path))
            french.read_irregular_verbs()
        else:
            for row in read_table(table, tmp_path):
                row.one_of("domain", entries.DOMAINS)
                PARSERS[table](row)
    assert str(error.value).startswith(f"{path}, line 3: {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": no header; must be ending, present, subjunctive, future, participle, separated by tabs"),
        (
            b"# a comment\nending\tpresent\n",
            ", line 2: invalid header 'ending\\tpresent'; must be ending, present, sub",
        ),
        (b"\xe9\n", ", line 1: not UTF-8 at byte 0; convert"),
    ],
)
def test_a_bad_table_is_reported(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "irregular_verbs.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        list(read_table("irregular_verbs", tmp_path))
    assert str(error.value).startswith(f"{path}{said}")


def test_a_bad_table_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnsmt.cli import main

    shutil.copytree(LEXICON, tmp_path / "lexicon")
    (tmp_path / "lexicon/nouns.tsv").write_text("domain\n")
    monkeypatch.setattr(tables.read_table, "__defaults__", (tmp_path / "lexicon",))
    entries.harbour_domain.cache_clear()
    assert main(["demo", "make", "--output-dir", str(tmp_path / "out"), "--scale", "0.01"]) == 2
    assert "nouns.tsv, line 1: invalid header 'domain'; must be domain, class" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
