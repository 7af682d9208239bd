"""Text files of every kind: corpora, SGM, TMX, alignments, tables, LMs, inis, n-best lists, vocabularies, JSON."""

import random
import shutil
import tarfile
import zipfile
from contextlib import chdir
from pathlib import Path

from ..unit.test_malformed_input import READERS, STAGES, valid_files
from .harness import Case, Harness, command
from .mutation import mutated_text

NBEST = (
    "search decode --ini moses.ini --input dev.en --output decoded --nbest 4 --nbest-file lists --report report.json "
    "--output-details details"
)

SEPARATE = "corpus separate --source-lang en --target-lang fr --output-source O1 --output-target O2 --bitext"

COMMANDS = {
    **STAGES,
    "sgm": "corpus prepare --source set.sgm --target ref.sgm --output-source O1 --output-target O2 --report O3 "
    "--keep-all",
    "marked": "search decode --ini marked.ini --input marked.en --output O1",
    "rerank": "tuning rerank --ini moses.ini --nbest lists --input dev.en --output O1",
    "optimise": "tuning optimise --ini moses.ini --nbest lists --source dev.en --reference dev.fr --output-ini O1 "
    "--seed 1 --restarts 1",
    "text": "cslm prepare --input tok.fr --vocabulary vocabulary --output-dir OD",
    "interpolate": "lm interpolate --models lm.arpa second.arpa --tune dev.fr --output O1",
    "scores": "evaluation table --scores bleu.json --output-tsv O1 --output-md O2 --output-html O3",
    "joint": "nnjm prepare --source tok.en --target tok.fr --alignment al --vocab-size 30 --output-dir OD",
    "binarise": "search binarise --ini moses.ini",
    **{end: f"{SEPARATE} corpus.{end}" for end in ("tmx", "zip")},
    "unpack": "corpus unpack --archive corpus.tar --member dev.en --output O1",
}
"""The stages of ``test_malformed_input``, and more of them."""

FILES = [
    *READERS,
    *(("sgm", "set.sgm"), ("sgm", "ref.sgm"), ("marked", "marked.en"), ("decode", "moses.ini"), ("mert", "moses.ini")),
    *(("rerank", "lists"), ("rerank", "moses.ini"), ("optimise", "lists"), ("text", "vocabulary"), ("text", "tok.fr")),
    *(("interpolate", "second.arpa"), ("scores", "bleu.json"), ("joint", "al"), ("binarise", "pt")),
    *(
        ("binarise", "lm.arpa"),
        ("table", "lex.f2e"),
        ("symmetrize", "fwd"),
        ("unpack", "corpus.tar"),
        ("tmx", "corpus.tmx"),
        ("zip", "corpus.zip"),
    ),
]
"""(command, a text file that it reads)."""

TOKENS: dict[str, list[bytes]] = {
    name: words.encode().split(b"~")
    for name, words in {
        "sgm": "<seg>~</seg>~<seg id=1>~<doc>~</doc>~<!--~-->~&#x110000;~&#55296;~&amp;~<src lang=~<srcset~<![CDATA["
        '~<seg~>~<~&~<?xml version="1.0"?>',
        "arpa": "\\data\\~\\end\\~\\1-grams:~\\2-grams:~\\3-grams:~ngram 1=3~ngram 9=9~ngram 2=-1~ngram 1=99999999999"
        "~<unk>~<s>~</s>~-99~0.5~\t",
        "ini": "[weight]~[feature]~[mapping]~[x]~0 T 0~path=/dev/zero~path=/~path=nothing~num-features=0~#~="
        "~num-features=99999999~order=0~LM0= 1~KENLM~Distortion~WordPenalty0= -1~name=LM0~[distortion-limit]"
        "~type=hier-mslr-backward-f-collapseff~[xml-input]\ninclusive",
        "lists": "|||~ ||| ~LM0=~LM0= nan~0-0=0-0~1=2~-1=5~0-99999=1~= ~Distortion0= 1 2",
        "tmx": '<tu>~</tu>~<tuv xml:lang="en">~</tuv>~<seg>~</seg>~<ph>~<!ENTITY a "b">~&a;~<![CDATA[~]]>'
        "~<!DOCTYPE x [~]>~&#0;",
        "marked": '<n translation="x">~<n translation="x||y" prob="0.5||nan">~</n>~<wall/>~<zone>~</zone>~<~>~&lt;~<n'
        "~<n translation=>",
        "json": '{~}~[~]~"~:~null~NaN~Infinity~\\ud800~1e999~{}~[]~true',
        "links": "0-0~1-99~-1-0~0-~-~99999999999-0~0-0-0~0-0 0-0~32768-0~65536-1",
        "table": "|||~ ||| ~||| |||~0-0~1-7~1 1 1~0 0 0~1e-40~e1~f1~e1 e2 e1 e2 e1 e2",
        "text": "<s>~</s>~<unk>~|~|||~&apos;~&#124;~e1~f1~e1 f1~@-@",
    }.items()
}
"""Words of the formats."""


def tokens_of(name: str) -> list[bytes]:
    """Return the tokens of the format of a file."""
    kinds = {"marked.en": "marked", "lists": "lists", "al": "links", "fwd": "links", "rev": "links", "pt": "table"}
    kinds |= {"ro": "table", "pairs": "table", "moses.ini": "ini", "lex.e2f": "table", "lex.f2e": "table"}
    return TOKENS[kinds.get(name, name.rpartition(".")[2] if name.rpartition(".")[2] in TOKENS else "text")]


class Texts(Harness):
    """Text files and the commands that read them."""

    name = "texts"

    def prepare(self) -> None:
        """Write valid files."""
        self.place = self.directory / "run"
        self.place.mkdir()
        with chdir(self.place):
            valid_files()
            command(NBEST.split())
            for name, side in (("set.sgm", "en"), ("ref.sgm", "fr")):
                lines = Path(f"raw.{side}").read_text().splitlines()
                segments = "".join(f'<seg id="{n}">{line} &amp; x</seg>\n' for n, line in enumerate(lines, 1))
                Path(name).write_text(f'<srcset setid="s">\n<doc docid="d">\n{segments}</doc>\n</srcset>\n')
            lines = Path("dev.en").read_text().splitlines()
            marked = [f'<n translation="x" prob="0.5">{line}</n> <wall/> {line}' for line in lines]
            Path("marked.en").write_text("\n".join(marked) + "\n")
            Path("marked.ini").write_text(Path("moses.ini").read_text() + "\n[xml-input]\ninclusive\n")
            words = ["<null>", "<unk>", *(f"f{number}" for number in range(12)), "</s>"]
            Path("vocabulary").write_text("\n".join(words) + "\n")
            for line in (
                STAGES["lm"].replace("tok.fr", "dev.fr").replace("O1", "second.arpa"),
                STAGES["bleu"].replace("O1", "bleu.json"),
            ):
                command(line.split())
            with tarfile.open("corpus.tar", "w") as archive:
                for name in ("tok.en", "dev.en", "tok.fr"):
                    archive.add(name)
            raw = zip(Path("raw.en").read_text().split("\n"), Path("raw.fr").read_text().split("\n"), strict=True)
            tuv = '<tuv xml:lang="{}"><seg>{} &amp; <bpt i="1">b</bpt></seg></tuv>'
            units = "".join(f"<tu>{tuv.format('en', one)}{tuv.format('fr', other)}</tu>\n" for one, other in raw)
            head = "<?xml version='1.0'?>\n<!DOCTYPE tmx SYSTEM \"tmx14.dtd\">\n<tmx version='1.4'><header/><body>"
            Path("corpus.tmx").write_text(f"{head}\n{units}</body></tmx>\n")
            with zipfile.ZipFile("corpus.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
                bundle.write("corpus.tmx", "en-fr.tmx")
            rows = [line.split(" ||| ") for line in Path("pt").read_text().splitlines()]
            Path("pairs").write_text("".join(f"{row[0]} ||| x{row[1]} ||| {row[2]}\n" for row in rows[::9]))
        self.originals = {f"{use}: {name}": (self.place / name).read_bytes() for use, name in FILES}
        self.names = {path.name for path in self.place.iterdir()}

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a mutated text."""
        target = self.target(number)
        other = rng.choice(list(self.originals.values()))
        tokens = tokens_of(target.partition(": ")[2])
        return Case(target, mutated_text(self.originals[target], rng, tokens, other), True)

    def use(self, case: Case) -> str:
        """Run the command; return what it wrote."""
        use, _, name = case.target.partition(": ")
        before = (self.place / name).read_bytes()
        with chdir(self.place):
            try:
                Path(name).write_bytes(case.content)
                command(COMMANDS[use].split())
                return "".join(str(Path(out).read_bytes()) for out in ("O1", "O2") if Path(out).exists())
            finally:
                Path(name).write_bytes(before)
                for path in Path().iterdir():
                    if path.name not in self.names:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
