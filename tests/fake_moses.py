"""Programs with the names, options and files of Moses' programs, to test the calls; they compute with rnnsmt.

``install(directory)`` installs them. Run one as ``python fake_moses.py NAME ARGUMENTS``.
"""

import os
import shutil
import sys
from pathlib import Path

SCRIPTS = ("train-model.perl", "mert-moses.pl")

PROGRAMS = (
    "moses", "lmplz", "symal", "extract", "score", "consolidate", "lexical-reordering-score", "extractor", "evaluator",
    "mert", "kbmira", "pro", "fast_align", "atools", "mgiza", "snt2cooc",
    "merge_alignment.py", "mkcls",
)  # fmt: skip


def install(directory: Path, without: tuple[str, ...] = ()) -> Path:
    """Install the fake programs in a directory, except for some; return the directory."""
    for name in (*PROGRAMS, *SCRIPTS):
        if name in without:
            continue
        path = directory / ("scripts/training" if name in SCRIPTS else "bin") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{name}" "$@"\n')
        path.chmod(0o755)
    return directory


def ours(*words: object) -> None:
    """Run a command of rnnsmt."""
    from rnnsmt.cli import main

    status = main([str(word) for word in words])
    if status:
        sys.exit(status)


def check(arguments: list[str], known: tuple[str, ...]) -> None:
    """Exit with an error on options that the real program does not have."""
    options = {word.partition("=")[0] for word in arguments if word.startswith("-") and not word[1:2].isdigit()}
    if unknown := options - set(known):
        sys.exit(f"unknown option {' '.join(unknown)}")


def option(arguments: list[str], name: str, default: str | None = None) -> str:
    """Return the value of an option, as ``-name value`` or ``--name=value``."""
    for place, word in enumerate(arguments):
        if word == name:
            return arguments[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    assert default is not None, f"no {name} in {arguments}"
    return default


def moses(arguments: list[str]) -> None:
    """Translate like moses; the n-best list has the segmentations."""
    import tempfile

    if "-show-weights" in arguments:
        return
    known = "-f -i -search-algorithm -cube-pruning-pop-limit -s -threads -v -n-best-list -output-unknowns"
    check(arguments, (*known.split(), "-include-segmentation-in-n-best"))
    assert {"-search-algorithm", "-include-segmentation-in-n-best", "distinct"} <= set(arguments)
    text = option(arguments, "-i", "-")
    words = ["search", "decode", "--ini", option(arguments, "-f"), "--input", text]
    words += [
        "--pop-limit",
        option(arguments, "-cube-pruning-pop-limit", "1000"),
        "--stack",
        option(arguments, "-s", "1000"),
    ]
    with tempfile.TemporaryDirectory() as directory:
        ours(*words, "--output", f"{directory}/out", "--output-details", option(arguments, "-n-best-list"))
        sys.stdout.write(Path(f"{directory}/out").read_text().replace("\n", " \n"))
    Path(option(arguments, "-output-unknowns", "/dev/null")).write_text(unknown_words(text, option(arguments, "-f")))


def unknown_words(text: str, ini: str) -> str:
    """Return the words that a model copies, one line per sentence."""
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.search.model import load_model
    from rnnsmt.search.translation_options import look_up

    lines = Path("/dev/stdin" if text == "-" else text).read_text().splitlines()
    unknown = look_up(load_model(MosesIni.read(ini)), lines).unknown
    return "".join(" ".join(word for word in line.split() if word in unknown) + "\n" for line in lines)


def train(arguments: list[str]) -> None:
    """Run steps 1 to 3, or 4 to 7, of train-model.perl."""
    known = (
        "-root-dir -corpus -f -e -alignment -first-step -last-step -external-bin-dir -mgiza -mgiza-cpus -reordering "
        "-max-phrase-length -cores -sort-parallel -sort-buffer-size -temp-dir -score-options --KneserNey"
    )
    check(arguments, tuple(known.split()))
    root, corpus = Path(option(arguments, "-root-dir")), option(arguments, "-corpus")
    source, target = f"{corpus}.f", f"{corpus}.e"
    model = root / "model"
    model.mkdir(exist_ok=True)
    kind = option(arguments, "-alignment")
    links = model / f"aligned.{kind}"
    if option(arguments, "-first-step") == "1":
        assert "-mgiza" in arguments and Path(option(arguments, "-external-bin-dir"), "mgiza").is_file()
        texts = ["--source", source, "--target", target]
        for direction in ("forward", "reverse"):
            ours("align", "words", *texts, "--direction", direction, "--output", root / direction)
        ours(
            "align",
            "symmetrize",
            "--forward",
            root / "forward",
            "--reverse",
            root / "reverse",
            "--heuristic",
            kind,
            "--output",
            links,
        )
        return
    texts = ["--source", source, "--target", target, "--alignment", links]
    ours("phrases", "lexical", *texts, "--output-e2f", model / "lex.e2f", "--output-f2e", model / "lex.f2e")
    length = option(arguments, "-max-phrase-length")
    files = root / "extract.parquet", root / "pairs", root / "scores", root / "orientations"
    outputs = ["--output", files[0], "--output-pairs", files[1]]
    ours("phrases", "extract", *texts, "--max-length", length, *outputs)
    smoothing = "kneser-ney" if "--KneserNey" in option(arguments, "-score-options", "") else "none"
    lexical = ["--lex-e2f", model / "lex.e2f", "--lex-f2e", model / "lex.f2e", "--smoothing", smoothing]
    extract = ["--extract", files[0], "--pairs", files[1]]
    ours("phrases", "score", *extract, *lexical, "--output", files[2])
    ours("phrases", "reordering", *extract, "--output", files[3])
    store = ["--pairs", files[1], "--scores", files[2], "--reordering", files[3]]
    tables = model / "phrase-table.gz", model / "reordering-table.wbe-msd-bidirectional-fe.gz"
    ours("phrases", "export", *store, "--output-phrase-table", tables[0], "--output-reordering-table", tables[1])
    if "FAIL_SCORE" in os.environ:  # the real program does not check whether its parts succeed
        (model / "phrase-table.gz").write_bytes(b"")


def mert(arguments: list[str]) -> None:
    """Run two iterations of mert-moses.pl: first with the same weights, then with the weight of the LM doubled.

    Like the real program, it then records a third iteration, which it cannot resume from.
    """
    from rnnsmt.formats.ini import MosesIni

    source, _, decoder, ini = arguments[:4]
    directory = Path(option(arguments, "--working-dir"))
    directory.mkdir(parents=True, exist_ok=True)
    known = (
        "--nbest --working-dir --mertdir --rootdir --no-filter-phrase-table --maximum-iterations --threads "
        "--decoder-flags --mertmertargs --batch-mira --batch-mira-args --mertargs --continue"
    )
    check(arguments[4:], tuple(known.split()))
    step = directory / "finished_step.txt"
    done = int(step.read_text()) if "--continue" in arguments else 0
    if done and not (directory / f"run{done}.features.dat").exists():
        sys.exit(f"Can't start from step {done}, because run{done}.features.dat was not found!")
    nbest_size = option(arguments, "--nbest")
    for number in range(done + 1, 3):
        model = MosesIni.read(ini)
        model.weights["LM0"] = [number * weight for weight in model.weights["LM0"]]
        model.write(directory / f"run{number}.moses.ini")
        flags = option(arguments, "--decoder-flags")
        nbest = f"-n-best-list {directory}/run{number}.nbest 100 distinct -include-segmentation-in-n-best"
        command = (
            f"{decoder} -f {directory}/run{number}.moses.ini -i {source} {flags} {nbest} > {directory}/run{number}.out"
        )
        if os.system(command) or (number == 2 and "FAIL" in os.environ):
            sys.exit("Exit code: 1\nThe decoder died. CONFIG WAS -weight-overwrite at /x/mert-moses.pl line 1399.")
        for kept in ("features.dat", "scores.dat", "weights.txt", "mert.log", f"best{nbest_size}.out.gz"):
            (directory / f"run{number}.{kept}").write_text("")
        step.write_text(f"{number}\n")
    step.write_text("3\n")


def evaluator(arguments: list[str]) -> None:
    """Print the BLEU of a text as a fraction."""
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.multi_bleu import bleu_of

    references = [Path(path).read_text().splitlines() for path in option(arguments, "--reference").split(",")]
    output = Path(option(arguments, "--candidate")).read_text().splitlines()
    print(bleu_of(BatchBleu(references).statistics([[line] for line in output]).sum(0)).bleu / 100)


def lmplz(arguments: list[str]) -> None:
    """Write an ARPA file estimated from standard input."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "text").write_bytes(sys.stdin.buffer.read())
        order, output = option(arguments, "-o"), option(arguments, "--arpa")
        words = [
            "--input",
            f"{directory}/text",
            "--order",
            order,
            "--estimator",
            "builtin",
            "--output",
            f"{directory}/lm",
        ]
        ours("lm", "estimate", *words)
        shutil.copy(f"{directory}/lm", output)


def fast_align(arguments: list[str]) -> None:
    """Print links along the diagonal."""
    for line in Path(option(arguments, "-i")).read_text().splitlines():
        source, target = (len(side.split()) for side in line.split(" ||| "))
        print(" ".join(f"{i}-{i}" for i in range(min(source, target))))


def atools(arguments: list[str]) -> None:
    """Print the first of both files."""
    if option(arguments, "-c") not in ("intersect", "union", "grow-diag", "grow-diag-final-and", "grow-diag-final"):
        sys.exit("Don't understand command: " + option(arguments, "-c"))
    assert Path(option(arguments, "-j")).is_file()
    print(Path(option(arguments, "-i")).read_text(), end="")


def main() -> None:
    """Run the program named by the first argument."""
    name, *arguments = sys.argv[1:]
    programs = {
        "moses": moses, "train-model.perl": train, "mert-moses.pl": mert, "evaluator": evaluator, "lmplz": lmplz,
        "fast_align": fast_align, "atools": atools,
    }  # fmt: skip
    if name not in programs:
        sys.exit(f"{name}: nobody should call it")
    programs[name](arguments)


if __name__ == "__main__":
    main()
