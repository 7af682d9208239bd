"""Archives of `rnnsmt pack`: random damage, and changed files with the right ``SHA256SUMS``."""

import hashlib
import io
import json
import random
import shutil
import tarfile

from rnnsmt.base.io import InputError
from rnnsmt.translation.system import FILE, INI, SUMS, System

from ..unit.search.twin import TARGET, tiny_model
from .harness import Case, Harness, command, one_thread
from .mutation import flipped, mutated_text, mutated_value
from .networks import forged
from .texts import tokens_of

NAME = "packed"

KINDS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]

LINKS = ["/etc/passwd", "/dev/zero", "..", SUMS, f"{NAME}/{INI}", "nothing", "../../outside"]


class Archives(Harness):
    """A system with a CSLM and a truecaser, as ``.tar`` and ``.tar.gz``."""

    name = "archives"

    def prepare(self) -> None:
        """Create the system and its archives."""
        from rnnsmt.cslm.model import save_model
        from rnnsmt.cslm.settings import CslmSizes
        from rnnsmt.networks.data import Vocabulary
        from rnnsmt.networks.feed_forward import FeedForwardLM

        one_thread()
        model, run = self.directory / "model", self.directory / "run1"
        tiny_model(model, 12)
        words = Vocabulary(TARGET[:3])
        network = FeedForwardLM(CslmSizes(len(words), 4, 5, 7, 6), seed=3, spread=2.0)
        save_model(model / "cslm.pt", network, words, False, 3, {})
        (model / "true").write_text("a (9/9)\nb (9/9)\nc (9/9)\nd (9/9)\n")
        run.mkdir()
        files = "--lm lm.arpa --reordering-table reordering --phrase-table phrase-table --cslm cslm.pt"
        for words_of_command in (
            f"moses ini --model-dir {model} {files} --output {run}/moses.ini",
            f"translation describe --name tiny --source-lang en --target-lang fr --truecaser {model}/true "
            f"--output-dir {run}",
            *(f"translation pack --system {run} --output {self.directory}/{NAME}.{end}" for end in ("tar", "tar.gz")),
        ):
            command(words_of_command.split())
        for end in ("tar", "tar.gz"):
            self.originals[end] = (self.directory / f"{NAME}.{end}").read_bytes()
        with tarfile.open(self.directory / f"{NAME}.tar") as archive:
            self.files = {
                one.name.partition("/")[2]: archive.extractfile(one).read()  # type: ignore[union-attr]
                for one in archive.getmembers()
            }

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a damaged archive, or one with a forged file."""
        target = self.target(number)
        if rng.random() < 0.4:
            return Case(target, flipped(self.originals[target], rng))
        files = dict(self.files)
        name = rng.choice([*files, INI, FILE])
        data, other = files[name], rng.choice(list(files.values()))
        kind = None
        if rng.random() < 0.12:
            kind = rng.choice(KINDS)
        elif rng.random() < 0.08:
            del files[name]
        elif name == FILE:
            content = mutated_value(json.loads(data), rng, ["name", "truecaser", "rnn", "columns", "examples"])
            files[name] = json.dumps(content).encode()
        elif name.endswith(".pt"):
            files[name] = forged(name, data, rng)
        else:
            files[name] = mutated_text(data, rng, tokens_of(name), other)
        if name != SUMS and rng.random() < 0.95:
            sums = {one: hashlib.sha256(content).hexdigest() for one, content in files.items() if one != SUMS}
            files[SUMS] = "".join(f"{digest}  {one}\n" for one, digest in sums.items()).encode()
        if name != SUMS and rng.random() < 0.1:
            del files[SUMS]
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for one, content in files.items():
                about = tarfile.TarInfo(f"{NAME}/{one}")
                about.size = len(content)
                if one == name and kind is not None:
                    about.type, about.size, about.linkname = kind, 0, rng.choice(LINKS)
                archive.addfile(about, io.BytesIO(content))
        return Case("tar", out.getvalue(), True)

    def use(self, case: Case) -> str:
        """Unpack and translate; return the translations."""
        place = self.directory / "unpacked"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            with tarfile.open(fileobj=io.BytesIO(case.content)) as archive:
                archive.extractall(place, filter="tar")
        except (tarfile.TarError, EOFError, OSError, ValueError, LookupError) as error:  # refused by tar, not by rnnsmt
            raise InputError(f"the archive cannot be unpacked ({type(error).__name__})") from None
        except Exception as error:
            if type(error).__module__ not in ("zlib", "lzma"):
                raise
            raise InputError(f"the archive cannot be unpacked ({type(error).__name__})") from None
        system = System(place / NAME)
        return str([system.translate_all(["A b c, d!", "", "c c D b."]), system.nbest("a b", 3)])
