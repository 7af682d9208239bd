"""Binary forms of models: same translations as from text files, shared memory pages, and refusal of outdated files."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.array_file import ArrayFile
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from rnnsmt.lm import automaton_file
from rnnsmt.phrases.pairs import PhraseIds
from rnnsmt.phrases.table import FORMAT, index_of
from rnnsmt.search import model as search_model
from rnnsmt.search.decoder import decode
from rnnsmt.search.model import load_model, used_file
from rnnsmt.search.options import SearchOptions

from .twin import SOURCE, tiny_model

TABLE, LM = "phrase-table.binary.safetensors", "lm.binary.safetensors"

LINES = ["a b c", "", "b x a d", "c c a b", "d e"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a tiny model with an input text; modification times have fractions of seconds."""
    tiny_model(tmp_path / "model", 1)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    for number, path in enumerate(sorted((tmp_path / "model").iterdir())):
        os.utime(path, ns=(1_700_000_000_500_000_000 + number,) * 2)
    return tmp_path


def binarize(directory: Path, *more: str) -> Path:
    """Convert the model; return the binary form of its tables."""
    assert main(["search", "binarize", "--ini", str(directory / "model/moses.ini"), *more]) == 0
    return directory / "model" / TABLE


def outputs(directory: Path, *more: str) -> list[bytes]:
    """Decode the input; return the translations, n-best list and details."""
    files = [directory / name for name in ("out.txt", "out.nbest", "out.details")]
    assert main([
        "search", "decode", "--ini", str(directory / "model/moses.ini"), "--input", str(directory / "in.txt"),
        "--output", str(files[0]), "--nbest", "20", "--nbest-file", str(files[1]), "--output-details", str(files[2]),
        *more,
    ]) == 0  # fmt: skip
    return [file.read_bytes() for file in files]


def refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    ini = str(directory / "model/moses.ini")
    out = str(directory / "none.txt")
    assert main(["search", "decode", "--ini", ini, "--input", str(directory / "in.txt"), "--output", out]) == 2
    assert not Path(out).exists()
    (line,) = capsys.readouterr().err.splitlines()
    return line


def is_mapped(path: Path) -> bool:
    """Return whether this process has mapped a file into memory."""
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("two_lms", [False, True])
@pytest.mark.parametrize(
    "reordering", ["wbe-msd-bidirectional-fe-allff", "hier-mslr-bidirectional-fe", "phrase-leftright-forward-fe"]
)
def test_translations_are_those_of_the_text_files(tmp_path: Path, reordering: str, two_lms: bool) -> None:
    for seed in range(3):
        model = tmp_path / f"model{seed}"
        tiny_model(model, seed, reordering_type=reordering, two_lms=two_lms)
        ini = MosesIni.read(model / "moses.ini")
        text = load_model(ini)
        paths, _ = search_model.binarize(ini, None, None)
        mapped = load_model(ini)
        assert len(paths) == 2 + two_lms and all(map(is_mapped, paths))
        sentences = [" ".join(words) for words in ([*SOURCE], ["a"], ["b", "a", "c", "a"], ["e", "a"], [])]
        weights = text.weights(ini)
        for options in (SearchOptions(), SearchOptions(nbest=30, threads=2)):
            found, expected = decode(mapped, sentences, weights, options), decode(text, sentences, weights, options)
            for one, other in zip(found, expected, strict=True):
                assert (one.text, one.score, one.phrases) == (other.text, other.score, other.phrases)
                assert np.array_equal(one.features, other.features)
                if options.nbest:
                    assert one.nbest.texts == other.nbest.texts
                    assert np.array_equal(one.nbest.scores, other.nbest.scores)
                    assert np.array_equal(one.nbest.features, other.nbest.features)


def test_outputs_of_the_command_are_the_same_bytes(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = outputs(directory)
    capsys.readouterr()
    path = binarize(directory)
    said = capsys.readouterr().err
    lm = path.with_name(LM)
    assert f"{path}: written" in said and f"{lm}: written" in said
    assert f"bytes {path.stat().st_size + lm.stat().st_size:,}" in said
    assert outputs(directory) == before
    assert "warning" not in capsys.readouterr().err
    first = path.read_bytes(), lm.read_bytes()
    binarize(directory)
    assert (path.read_bytes(), lm.read_bytes()) == first
    assert main(["lm", "binarize", "--lm", str(directory / "model/lm.arpa"), "--output", str(lm)]) == 0
    assert lm.read_bytes() == first[1]


def test_the_binary_forms_alone_suffice(directory: Path) -> None:
    """A job on another machine may have them without the text files."""
    before = outputs(directory)
    binarize(directory)
    for name in ("phrase-table", "reordering", "lm.arpa"):
        (directory / "model" / name).unlink()
    assert outputs(directory) == before


def test_tuning_gives_the_same_weights(directory: Path) -> None:
    (directory / "ref.txt").write_text("u v w\n\nv x u d\nw w u v\nd e\n")
    tuned = []
    for kind in ("text", "binary"):
        out = directory / f"{kind}.ini"
        assert main([
            "tuning", "tune", "--ini", str(directory / "model/moses.ini"), "--source", str(directory / "in.txt"),
            "--reference", str(directory / "ref.txt"), "--seed", "1", "--iterations", "3", "--nbest", "20",
            "--output-ini", str(out), "--output-history", str(directory / f"{kind}.json"),
            "--checkpoint-dir", str(directory / f"{kind}.checkpoint"),
        ]) == 0  # fmt: skip
        history = re.sub(r".*seconds.*", "", (directory / f"{kind}.json").read_text())
        tuned.append((out.read_bytes(), history))
        binarize(directory)
    assert tuned[0] == tuned[1]


def test_a_model_without_a_reordering_table(directory: Path) -> None:
    ini = directory / "model/moses.ini"
    ini.write_text(re.sub(r"(?m)^LexicalReordering.*\n", "", ini.read_text()))
    before = outputs(directory)
    path = binarize(directory)
    assert outputs(directory) == before
    assert len(json.loads(ArrayFile(path, "").entries["texts"])) == 1


def test_directories(directory: Path) -> None:
    """A binary file is used only for the directory of tables that it was built from."""
    tables = directory / "tables"
    tables.mkdir()
    lines = (directory / "model/phrase-table").read_text().splitlines(keepends=True)
    (tables / "phrase-table").write_text("".join(lines[1:]))
    replaced = outputs(directory, "--model-dir", str(tables))
    assert replaced != outputs(directory)
    beside = binarize(directory)
    assert outputs(directory, "--model-dir", str(tables)) == replaced
    path = binarize(directory, "--model-dir", str(tables))
    assert path == beside
    assert (tables / TABLE).is_file()
    assert outputs(directory, "--model-dir", str(tables)) == replaced
    binarize(directory, "--output-dir", str(directory / "elsewhere"))
    assert (directory / "elsewhere" / TABLE).read_bytes() == beside.read_bytes()


def test_moved_and_touched_text_files_still_fit(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = binarize(directory)
    for time_ns in (1_600_000_000_000_000_000, 0, 1_800_000_000_123_456_789):
        os.utime(directory / "model/lm.arpa", ns=(time_ns, time_ns))
        capsys.readouterr()
        load_model(MosesIni.read(directory / "model/moses.ini"))
        assert "warning" not in capsys.readouterr().err
    (directory / "model").rename(directory / "moved")
    model = load_model(MosesIni.read(directory / "moved/moses.ini"))
    assert is_mapped(directory / "moved" / path.name)
    assert model.table.log_scores.base is not None


@pytest.mark.parametrize("name", ["phrase-table", "reordering", "lm.arpa"])
@pytest.mark.parametrize("same_size", [True, False])
@pytest.mark.parametrize("seconds", [True, False])
def test_a_changed_text_file_is_read(
    directory: Path, capsys: pytest.CaptureFixture[str], name: str, same_size: bool, seconds: bool
) -> None:
    """A text file changed after binarisation is used, even if its size and time in whole seconds are the same."""
    file = directory / "model" / name
    if seconds:
        os.utime(file, (1_700_000_000, 1_700_000_000))
    path = binarize(directory)
    path = path.with_name(LM) if name == "lm.arpa" else path
    stat, text = file.stat(), file.read_text()
    changed = re.sub(r"0\.(\d)(\d)", lambda found: f"0.{9 - int(found[1])}{found[2]}", text)
    assert len(changed) == len(text) and changed != text
    longer = {
        "phrase-table": (" 1 1 1 |||", " 1 1 11 |||"),
        "reordering": (" ||| 0.", " ||| 00."),
        "lm.arpa": ("\n\n", "\n\n\n"),
    }
    file.write_text(changed if same_size else changed.replace(*longer[name]))
    if seconds:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    capsys.readouterr()
    found = outputs(directory)
    said = capsys.readouterr().err
    assert said.count(f"warning: {path}: was created before {file} was changed; using the text files instead; ") == 1
    path.unlink()
    assert outputs(directory) == found
    binarize(directory)
    capsys.readouterr()
    assert outputs(directory) == found
    assert "warning" not in capsys.readouterr().err


def test_other_files_than_the_ini_names(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binarize(directory)
    ini = directory / "model/moses.ini"
    ini.write_text(re.sub(r"(?m)^LexicalReordering.*\n", "", ini.read_text()))
    capsys.readouterr()
    found = outputs(directory)
    assert f"{TABLE}: was created from other files than those of this moses.ini; using the text files" in (
        capsys.readouterr().err
    )
    (directory / "model" / TABLE).unlink()
    assert outputs(directory) == found


def test_the_used_files_are_those_that_the_search_reads(directory: Path) -> None:
    path = directory / "model/moses.ini"

    def names() -> set[str]:
        ini = MosesIni.read(path)
        return {used_file(ini, None, feature).name for feature in ini.features if "path" in feature.options}

    texts = names()
    assert texts == {"phrase-table", "reordering", "lm.arpa"}
    binarize(directory)
    assert names() == {TABLE, LM}
    original = path.read_text()
    five = re.sub(r"(?m)(^PhraseDictionaryMemory.*num-features=)4", r"\g<1>5", original)
    path.write_text(re.sub(r"(?m)^(TranslationModel0=.*)", r"\1 0.2", five))
    assert five != original
    assert names() == {"phrase-table", "reordering", LM}  # other scores than those of the ini


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: b"phrase ||| table\n", "not a complete file of arrays"),
        (lambda data: data[:300], "not a complete file of arrays"),
        (lambda data: data[:-1], "not a complete file of arrays"),
    ],
)
def test_incomplete_files(
    directory: Path, capsys: pytest.CaptureFixture[str], change: Callable[[bytes], bytes], sentence: str
) -> None:
    path = binarize(directory)
    path.write_bytes(change(path.read_bytes()))
    found = refused(directory, capsys)
    assert re.search(
        rf"{re.escape(str(path))}: {sentence}.*; create it again with `rnnsmt search binarize`, or remove", found
    ), found


@pytest.mark.parametrize("name", [TABLE, LM])
def test_files_of_another_version(directory: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """They are replaced by the text files, if these exist."""
    binarize(directory)
    path, expected = directory / "model" / name, outputs(directory)
    data = path.read_bytes()
    path.write_bytes(re.sub(rb"(rnnsmt-[a-z-]+)-1", rb"\1-0", data))
    assert path.read_bytes() != data
    assert outputs(directory) == expected
    assert f"{name}: was written by another version of rnnsmt; using the text files" in capsys.readouterr().err
    for text in ("phrase-table", "reordering", "lm.arpa"):
        (directory / "model" / text).unlink()
    assert re.search(rf"{name}: not an? .* of this version .*; create it again", refused(directory, capsys))


def test_binary_files_of_one_name(directory: Path) -> None:
    (directory / "model/lm.arpa").rename(directory / "model/phrase-table.arpa")
    path = directory / "model/moses.ini"
    path.write_text(path.read_text().replace("lm.arpa", "phrase-table.arpa"))
    with pytest.raises(InputError, match="differ only in the suffix"):
        search_model.binarize(MosesIni.read(path), None, None)


def test_wrong_text_files_leave_nothing(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (directory / "model/phrase-table").open("a") as out:
        out.write("no table line\n")
    before = sorted(directory.rglob("*"))
    assert main(["search", "binarize", "--ini", str(directory / "model/moses.ini")]) == 2
    assert "phrase-table, line" in capsys.readouterr().err
    assert sorted(directory.rglob("*")) == before
    assert main(["search", "binarize", "--ini", str(directory / "model/moses.ini"), "--model-dir", "nowhere"]) == 2
    assert "nowhere: no such directory" in capsys.readouterr().err


PROCESS = """
import sys
from pathlib import Path
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.model import load_model, used_file
from rnnsmt.search.options import SearchOptions

ini = MosesIni.read(sys.argv[1])
model = load_model(ini)
print([one.text for one in decode(model, ["a b c", "b x a d"], model.weights(ini), SearchOptions(nbest=5))])
print(model.table.log_scores.sum(), flush=True)  # look_up has unmapped the pages of the table
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/PID/smaps")
def test_processes_share_its_pages(directory: Path) -> None:
    path = binarize(directory)
    command = [sys.executable, "-c", PROCESS, str(directory / "model/moses.ini")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        texts = [process.stdout.readline() + process.stdout.readline() for process in processes]
        assert texts[0] == texts[1] != ""
        for process in processes:
            maps = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{process.pid}/smaps").read_text())
            for file in (path, path.with_name(LM)):
                (own,) = (one for one in maps if str(file) in one.partition("\n")[0])
                assert re.search(r"Private_Dirty: +0 kB", own), own
                assert re.search(r"(Shared_Clean|Shared_Dirty): +[1-9]\d* kB", own), own
    finally:
        for process in processes:
            process.communicate("\n")


def test_the_format_is_what_its_number_says(directory: Path) -> None:
    """The formats must be changed if the hashes or slots of a binary file change."""
    (directory / "model/lm.arpa").write_text(
        "\\data\\\nngram 1=5\nngram 2=3\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-.3\n-1\t</s>\n-2\tu\t-.1\n-3\tv\t-.2\n"
        "\n\\2-grams:\n-1\t<s> u\n-1\tu v\n-1\tv </s>\n\n\\end\\\n"
    )
    path = binarize(directory).with_name(LM)
    lm = load_model(MosesIni.read(directory / "model/moses.ini")).lms[0]
    assert is_mapped(path)
    places = {int(row["key"]): slot for slot, row in enumerate(lm.arrays.rows) if row["key"] >= 0}
    slots = [name for name in lm.words.table.slots.tolist() if name]
    expected = (
        {4 << 32 | 4: 3, 2 << 32 | 3: 4, 5 << 32 | 2: 0},
        [3, 5, 4, 1, 2],
    )  # of 5 slots; the third begins at slot 3
    assert (automaton_file.FORMAT[-1], (places, slots)) == ("1", expected)
    phrases = PhraseIds(np.array([0, 1, 0, 2], np.int32), np.array([0, 1, 3, 4]))
    assert (FORMAT[-1], index_of(phrases).tolist()) == ("1", [0] * 8 + [2, 0, 0, 0, 0, 1, 3, 0])
