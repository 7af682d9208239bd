"""An installation of Moses: where its programs are, what each part of the pipeline needs of them, whether they work."""

import gzip
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rnnsmt.config import parts_of_moses
from rnnsmt.io import InputError, sha256
from rnnsmt.moses.ini import default_ini

FOLDERS = ("bin", "tools", "training-tools", "mgiza", "scripts/training", "scripts/generic", ".")
"""Where the programs of Moses, MGIZA, GIZA++ and fast_align lie below an installation."""

MOSES, TRAIN, MERT = "moses", "train-model.perl", "mert-moses.pl"

GIZA = (("mgiza", "snt2cooc", "merge_alignment.py", "mkcls"), ("GIZA++", "snt2cooc.out", "mkcls"))
"""MGIZA and GIZA++, each with what ``train-model.perl`` calls beside it, in one folder."""

OF_TRAIN = ("symal", "extract", "score", "consolidate", "lexical-reordering-score")
"""What ``train-model.perl`` calls in the folder ``bin`` beside its ``scripts``, and nowhere else."""

OF_MERT = ("mert", "pro", "kbmira", "evaluator", "megam_i686.opt")
"""What ``mert-moses.pl`` wants in the folder of ``extractor``: the first four whatever it optimises by."""

NEEDED: dict[str, tuple[str, ...]] = {
    "model4": (TRAIN, "symal"),
    "fast_align": ("fast_align", "atools"),
    "training": (TRAIN, *OF_TRAIN[1:], "lmplz"),
    "tuning": (MERT, "extractor", *OF_MERT[:-1], MOSES),
    "mert": (),
    "mira": (),
    "pro": OF_MERT[-1:],
    "decoding": (MOSES,),
}
"""Programs of the parts, of the aligners and of the optimisers. Without megam the script would download one."""

SECONDS = 60
"""A program that only says what it is, or translates one word, has ended by then."""


class Needs(NamedTuple):
    """What a run asks of Moses: the parts that it does, and with which settings.

    lm_order: of the language model that the decoder must be able to read.
    """

    parts: Collection[str]
    aligners: Collection[str] = ()
    optimiser: str = "mert"
    lm_order: int = 5


def needs_of(config: Mapping[str, Any]) -> Needs:
    """What a checked configuration asks of Moses."""
    aligners, optimiser, order = config["alignment"]["aligners"], config["tuning"]["optimiser"], config["lm"]["order"]
    return Needs(parts_of_moses(config), aligners, optimiser, order)


class Installation:
    """A folder with a built Moses, as its own guide leaves it: ``bin``, ``scripts``; the aligners in ``tools``."""

    def __init__(self, home: str | Path) -> None:
        """home: the folder.

        Raises:
            InputError: there is no such folder.
        """
        self.home = Path(home).expanduser().resolve()
        if not self.home.is_dir():
            raise InputError(f"moses_home: {home} is no folder; give that of an installation of Moses")
        check_path(self.home)

    def find(self, name: str) -> Path | None:
        """The path of a program: where Moses' scripts call it, below the installation, on PATH; None for none."""
        if name in (*OF_TRAIN, *OF_MERT):
            caller = self.find(TRAIN if name in OF_TRAIN else "extractor")
            if caller is None:
                return None
            path = (caller.resolve().parents[2] / "bin" if name in OF_TRAIN else caller.parent) / name
            return path if os.access(path, os.X_OK) else None
        for folder in FOLDERS:
            path = self.home / folder / name
            if path.is_file() and os.access(path, os.X_OK):
                return path
        found = shutil.which(name)
        return None if found is None else Path(found)

    def program(self, name: str) -> Path:
        """As ``find``.

        Raises:
            InputError: it is in neither.
        """
        found = self.find(name)
        if found is None:
            raise InputError(f"{self.home}: has no program {name} in {', '.join(FOLDERS[:-1])}; nor is it on PATH")
        return found

    def giza(self) -> tuple[str, Path] | None:
        """``mgiza`` or ``GIZA++``, whichever is there with all that belongs to it, and the folder of both."""
        for names in GIZA:
            first = self.find(names[0])
            if first is not None and all(os.access(first.parent / name, os.X_OK) for name in names):
                return names[0], first.parent
        return None

    def scripts(self) -> Path:
        """The folder of Moses' scripts, which they call each other in."""
        return self.program(MERT).parent.parent

    def _wanted(self, needs: Needs) -> dict[str, str]:
        """Programs, and the part that needs each first."""
        wanted: dict[str, str] = {}
        for part in needs.parts:
            every = needs.aligners if part == "alignment" else (part, needs.optimiser) if part == "tuning" else (part,)
            for key in every:
                wanted.update((name, part) for name in NEEDED[key] if name not in wanted)
        return wanted

    def missing(self, needs: Needs) -> list[str]:
        """A line for every program that is missing, and what it is for."""
        lines = [f"{name} (for {part})" for name, part in self._wanted(needs).items() if self.find(name) is None]
        if "alignment" in needs.parts and "model4" in needs.aligners and self.giza() is None:
            choices = " or ".join(" ".join(names) for names in GIZA)
            lines.append(f"{choices} in one folder (for alignment)")
        return lines

    def check(self, needs: Needs) -> None:
        """See that everything is there, and that the decoder translates with what a model of ours asks of it.

        Raises:
            InputError: programs are missing, all of them named; the decoder does not run, or cannot read such models.
        """
        if lines := self.missing(needs):
            raise InputError(
                f"moses_home: {self.home} lacks {', '.join(lines)}; docs/moses.md says where they are looked for"
            )
        if {"tuning", "decoding"} & set(needs.parts):
            try_decoder(self.program(MOSES), needs.lm_order)

    def about(self, needs: Needs) -> dict[str, dict[str, str]]:
        """Path and hash of every program that takes part, for the provenance."""
        paths = {name: self.program(name) for name in self._wanted(needs)}
        giza = self.giza() if "alignment" in needs.parts and "model4" in needs.aligners else None
        if giza is not None:
            names = next(names for names in GIZA if names[0] == giza[0])
            paths |= {name: giza[1] / name for name in names}
        return {name: {"path": str(path), "sha256": sha256(path)} for name, path in paths.items()}


def try_decoder(decoder: Path, lm_order: int) -> None:
    """Translate a word with a model of two phrases, an LM of this order, lexicalised reordering and segmentations.

    Raises:
        InputError: it fails; its last words are in the sentence.
    """
    with tempfile.TemporaryDirectory(prefix="rnnsmt-moses-") as name:
        folder = Path(name)
        pairs = (("a", "b"), ("b", "c"))
        scores = {"table": "1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||", "reordering": "0.2 0.4 0.4 0.2 0.4 0.4"}
        for file, rest in scores.items():
            with gzip.open(folder / f"{file}.gz", "wt") as out:
                out.writelines(f"{source} ||| {target} ||| {rest}\n" for source, target in pairs)
        ngrams = [["<s>", "</s>", "<unk>", "b"], *([" ".join(["b"] * n)] for n in range(2, lm_order + 1))]
        counts = "\n".join(f"ngram {n}={len(found)}" for n, found in enumerate(ngrams, 1))
        blocks = "".join(
            f"\\{n}-grams:\n" + "".join(f"-1\t{one}{'' if n == lm_order else chr(9) + '-1'}\n" for one in found) + "\n"
            for n, found in enumerate(ngrams, 1)
        )
        with gzip.open(folder / "lm.arpa.gz", "wt") as out:
            out.write(f"\\data\\\n{counts}\n\n{blocks}\\end\\\n")
        default_ini(folder, "table.gz", "reordering.gz", "lm.arpa.gz", lm_order).write(folder / "moses.ini")
        options = (
            "-f moses.ini -search-algorithm 1 -cube-pruning-pop-limit 10 -s 10 -threads 2 -v 0 "
            "-output-unknowns unknown -n-best-list nbest 1 distinct -include-segmentation-in-n-best"
        )
        try:
            done = subprocess.run(
                [str(decoder), *options.split()], cwd=folder, input="a\n", capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{decoder}: does not run: {error}") from None
        nbest = (folder / "nbest").read_text() if (folder / "nbest").is_file() else ""
        if done.returncode or done.stdout.split() != ["b"] or not nbest.rstrip().endswith("0=0"):
            raise InputError(
                f"{decoder}: cannot translate a word with an LM of order {lm_order}, lexicalised reordering and n-best "
                f"lists with segmentations: {last_words(done.stderr) or 'its output is none'}; build a newer Moses"
                + (f", with --max-kenlm-order={lm_order}" if lm_order > 6 else "")
            )


COMPLAINTS = (
    "error",
    "exception",
    "cannot",
    "can't",
    "could not",
    "not found",
    "no such",
    "died",
    "terminate",
    "abort",
)

CAUSES = (": not found", "command not found", "No space left", "what():", "Permission denied", "Killed", "write failed")
"""Parts of sentences that say why, which others follow from."""

PLACE = (" at /", " at ./", " at line ")
"""What Perl puts behind a message: where it died."""


BLANKS = re.compile(r"[\s'\"$&;()|<>*?`\\\\]")


def check_path(path: Path) -> None:
    """Refuse a path that Moses' scripts, which quote nothing, would take for several words.

    Raises:
        InputError: it has a blank or a character that means something to the shell.
    """
    if BLANKS.search(str(path)):
        raise InputError(f"{path}: Moses' scripts take no path with blanks, quotes and the like; use another")


def last_words(text: str) -> str:
    """What a failed program said that looks like the reason, in at most 300 characters; without Perl's place.

    The first sentence about something that is not there or does not fit, else the last complaint, else the last line.

    >>> last_words("step 1\\nERROR: no file x at /opt/train-model.perl line 17.\\nExit code: 2\\n")
    'ERROR: no file x'
    >>> last_words("sh: 1: /x/bin/symal: not found\\nExit code: 127\\nERROR: Can't generate the file\\n")
    'sh: 1: /x/bin/symal: not found'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if any(word in line.lower() for word in COMPLAINTS)]
    causes = [line for line in lines if any(word in line for word in CAUSES)]
    said = causes[0] if causes else (reasons or lines or [""])[-1]
    for place in PLACE:
        said = said.split(place)[0]
    return said[:300]
