"""Compare word alignments: links, phrase pairs, CPU seconds and BLEU of the phrase-based system built on each.

The corpus is Multi30k as tokenised by its authors (DATA). The LM and the weights are those of Moses on the alignment of
MGIZA (FIXTURE), so that only the alignment differs:

    python benchmarks/alignment.py --data DATA --fixture FIXTURE --work DIR \
        --aligner fast_align hmm model4 model4+fast_align \
        --alignment mgiza=FIXTURE/align/giza.grow-diag-final-and.xz --mert 3

``NAME+NAME`` and ``NAME=FILE,FILE`` combine the phrases extracted from several alignments of the text. BLEU is
tokenised. Without ``--mert``, it is averaged over two fixed weight vectors (tuned by Moses on the model of MGIZA, and
untuned); with ``--mert N``, over N tuned runs. ``agreement`` is the F-measure of the links against those of MGIZA, in
percent. Finished steps are kept in DIR and are not repeated; the table is written to DIR/alignment.tsv.

With ``--held-out 3000``, this number of training pairs, evenly spread, is held out from all models and replaces the
test sets, so that alignments can be chosen without them. The LM is then estimated by ``rnnsmt lm estimate``.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = ("test_2016_flickr", "test_2017_flickr")
TABLE = "phrase-table.gz"
REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"


def rnnsmt(*words: object) -> float:
    """Run a stage and return its CPU seconds."""
    command = [str(Path(sys.executable).with_name("rnnsmt")), *map(str, words)]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime


def unpack(source: Path, output: Path) -> Path:
    """Decompress an .xz file unless the output exists; return the output path."""
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(lzma.decompress(source.read_bytes()))
    return output


def hold_out(number: int, work: Path) -> None:
    """Split the pairs of ``work``/text/all into held-out (``number`` pairs, evenly spread) and train (the others)."""
    for language in ("en", "fr"):
        lines = (work / "text" / f"all.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
        held = {k * len(lines) // number for k in range(number)}
        for name, wanted in (("train", False), ("held-out", True)):
            text = "".join(line for k, line in enumerate(lines) if (k in held) == wanted)
            (work / "text" / f"{name}.{language}").write_text(text, encoding="utf-8")


def align(name: str, text: list[Path], directory: Path, threads: int) -> float:
    """Align both directions with an aligner, symmetrize into ``directory``/NAME.gz, and return the CPU seconds."""
    forward, reverse = directory / f"{name}.forward.gz", directory / f"{name}.reverse.gz"
    seconds = 0.0
    for direction, output in (("forward", forward), ("reverse", reverse)):
        options = ["--direction", direction, "--output", output, "--threads", threads]
        seconds += rnnsmt("align", "words", "--source", text[0], "--target", text[1], "--aligner", name, *options)
    seconds += rnnsmt(
        *["align", "symmetrize", "--forward", forward, "--reverse", reverse], "--output", directory / f"{name}.gz"
    )
    return seconds


def build(alignments: list[Path], text: list[Path], work: Path, directory: Path, tests: tuple[str, ...]) -> None:
    """Build the model directory of an alignment, or of several alignments whose extracted phrases are combined."""
    many = len(alignments)
    given = ["--source", *[text[0]] * many, "--target", *[text[1]] * many, "--alignment", *alignments]
    extract, lexical = (
        directory / "extract.parquet",
        ["--lex-e2f", directory / "lex.e2f", "--lex-f2e", directory / "lex.f2e"],
    )
    rnnsmt("phrases", "lexical", *given, "--output-e2f", directory / "lex.e2f", "--output-f2e", directory / "lex.f2e")
    rnnsmt("phrases", "extract", *given, "--output", extract)
    rnnsmt("phrases", "score", "--extract", extract, *lexical, "--output", directory / TABLE)
    rnnsmt("phrases", "reordering", "--extract", extract, "--output", directory / REORDERING)
    tables = ["--phrase-table", directory / TABLE, "--reordering-table", directory / REORDERING]
    inputs = [work / "text" / f"{name}.en" for name in ("val", *tests)]
    rnnsmt("phrases", "filter", "--input", *inputs, *tables, "--output-dir", directory / "filtered")


def agreement(found: Path, right: Path) -> float:
    """Return the F-measure of the links of two alignments of the same text, in percent."""
    from rnnsmt.align.pharaoh import read_links, to_lists

    links = [
        {(s, *link) for s, line in enumerate(to_lists(read_links(file))) for link in line} for file in (found, right)
    ]
    return 200.0 * len(links[0] & links[1]) / (len(links[0]) + len(links[1]))


def inis(fixture: Path, work: Path, directory: Path) -> dict[str, Path]:
    """Write the two systems with fixed weights: tuned by Moses, and untuned."""
    lm = directory / "lm.arpa"
    if not lm.exists():
        lm.symlink_to(work / "lm.arpa")
    tuned, neutral = directory / "tuned-by-moses.ini", directory / "neutral.ini"
    tuned.write_bytes((fixture / "search" / "moses.ini").read_bytes())
    rnnsmt("moses", "ini", "--model-dir", directory, "--output", neutral, "--lm", "lm.arpa")
    return {"moses": tuned, "neutral": neutral}


def bleu(ini: Path, work: Path, directory: Path, tests: tuple[str, ...], threads: int) -> dict[str, float]:
    """Return the BLEU of an ini file on each text and on all test sets joined."""
    from rnnsmt.bleu.multi_bleu import corpus_bleu

    scores: dict[str, float] = {}
    joined: tuple[list[str], list[str]] = [], []
    for name in ("val", *tests):
        output = directory / f"{ini.stem}.{name}.fr"
        source = work / "text" / f"{name}.en"
        options = ["--model-dir", directory / "filtered", "--threads", threads]
        rnnsmt("search", "decode", "--ini", ini, "--input", source, "--output", output, *options)
        hypotheses = output.read_text().splitlines()
        references = (work / "text" / f"{name}.fr").read_text().splitlines()
        scores[name] = corpus_bleu(hypotheses, [references]).bleu
        if name != "val":
            joined[0].extend(hypotheses)
            joined[1].extend(references)
    scores["joint"] = corpus_bleu(joined[0], [joined[1]]).bleu
    return scores


def tune(seed: int, work: Path, directory: Path, threads: int) -> Path:
    """Run MERT from the neutral weights and return the tuned ini file."""
    output = directory / f"mert{seed}.ini"
    if not output.exists():
        dev = ["--source", work / "text" / "val.en", "--reference", work / "text" / "val.fr"]
        state = ["--checkpoint-dir", directory / f"state{seed}", "--output-history", directory / f"history{seed}.json"]
        options = ["--model-dir", directory / "filtered", "--seed", seed, "--threads", threads]
        rnnsmt("tuning", "mert", "--ini", directory / "neutral.ini", *dev, "--output-ini", output, *state, *options)
    return output


def measure(name: str, files: list[Path], args: argparse.Namespace, text: list[Path]) -> dict[str, object]:
    """Return all figures of a row."""
    tests = ("held-out",) if args.held_out else TESTS
    directory = args.work / name
    directory.mkdir(parents=True, exist_ok=True)
    done = directory / "figures.json"
    row: dict[str, Any] = json.loads(done.read_text()) if done.exists() else {"alignment": name}
    if not files:
        aligners = name.split("+")
        files = [directory / f"{aligner}.gz" for aligner in aligners]
        if "cpu_s" not in row:
            row["cpu_s"] = sum(align(aligner, text, directory, args.threads) for aligner in aligners)
    if "phrase_pairs" not in row:
        build(files, text, args.work, directory, tests)
        from rnnsmt.align.pharaoh import read_links
        from rnnsmt.base.io import count_lines

        row["links"] = sum(len(read_links(file).source) for file in files)
        row["phrase_pairs"] = count_lines(directory / TABLE)
        if len(files) == 1 and not args.held_out:
            row["agreement"] = agreement(files[0], args.fixture / "align" / "giza.grow-diag-final-and.xz")
        done.write_text(json.dumps(row))
    for kind, ini in inis(args.fixture, args.work, directory).items():
        if f"val_{kind}" not in row:
            row.update(
                {f"{key}_{kind}": value for key, value in bleu(ini, args.work, directory, tests, args.threads).items()}
            )
            done.write_text(json.dumps(row))
    for seed in range(1, args.mert + 1):
        if f"val_mert{seed}" not in row:
            ini = tune(seed, args.work, directory, args.threads)
            scores = bleu(ini, args.work, directory, tests, args.threads)
            row.update({f"{key}_mert{seed}": value for key, value in scores.items()})
            done.write_text(json.dumps(row))
    done.write_text(json.dumps(row))
    for key in ("val", *tests, "joint"):
        kinds = [f"mert{seed}" for seed in range(1, args.mert + 1)] or ["moses", "neutral"]
        row[key] = sum(row[f"{key}_{kind}"] for kind in kinds) / len(kinds)
    return row


def main() -> None:
    """Measure all given alignments and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with train.en.xz, val.en.xz, ...")
    parser.add_argument("--fixture", type=Path, required=True, help="directory with LM, weights and alignment of Moses")
    parser.add_argument("--work", type=Path, required=True, help="output directory; finished steps are not repeated")
    parser.add_argument("--aligner", nargs="*", default=[], help="aligners of 'rnnsmt align words', or NAME+NAME")
    parser.add_argument("--alignment", nargs="*", default=[], metavar="NAME=FILE[,FILE...]", help="existing alignments")
    parser.add_argument("--mert", type=int, default=0, metavar="N", help="number of tuned runs; 0: two fixed vectors")
    parser.add_argument("--held-out", type=int, default=0, metavar="N", help="training pairs that replace the tests")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    args = parser.parse_args()
    args.work = args.work.resolve()
    text = [args.work / "text" / f"train.{language}" for language in ("en", "fr")]
    for language in ("en", "fr"):
        unpack(
            args.data / f"train.{language}.xz", args.work / "text" / f"{'all' if args.held_out else 'train'}.{language}"
        )
        for name in ("val", *TESTS):
            unpack(args.data / f"{name}.{language}.xz", args.work / "text" / f"{name}.{language}")
    if args.held_out:
        hold_out(args.held_out, args.work)
        rnnsmt("lm", "estimate", "--input", text[1], "--output", args.work / "lm.arpa")
    else:
        unpack(args.fixture / "lm.arpa.xz", args.work / "lm.arpa")
    rows = [measure(name, [], args, text) for name in args.aligner]
    for item in args.alignment:
        name, _, files = item.partition("=")
        rows.append(measure(name, [Path(file) for file in files.split(",")], args, text))
    columns = [
        "alignment",
        "links",
        "agreement",
        "phrase_pairs",
        "cpu_s",
        "val",
        *(() if args.held_out else TESTS),
        "joint",
    ]
    lines = ["\t".join(columns)]
    for row in rows:
        values = [row.get(column, "") for column in columns]
        lines.append("\t".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in values))
    (args.work / "alignment.tsv").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
