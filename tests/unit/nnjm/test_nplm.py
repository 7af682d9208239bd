"""Joint models in the files of Moses' BilingualNPLM: against an independent reader, and as features of the search."""

import random
import string

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.io import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.moses.ini import MosesIni  # noqa: E402
from rnnsmt.moses.nplm_file import BilingualSizes  # noqa: E402
from rnnsmt.networks.data import Vocabulary  # noqa: E402
from rnnsmt.networks.feed_forward import FeedForwardLM  # noqa: E402
from rnnsmt.nnjm.model import TrainedNnjm, load_model, read_nplm, save_model, write_nplm  # noqa: E402  # noqa: E402
from rnnsmt.nnjm.scorer import JointScorer, NplmScorer  # noqa: E402
from rnnsmt.nnjm.settings import JointSizes  # noqa: E402

from ..search.twin import tiny_model  # noqa: E402

SOURCE, TARGET = ["a", "b", "c"], ["v", "u", "w", "é"]
SIZES = JointSizes(
    vocabulary=len(TARGET) + 3,
    source_vocabulary=len(SOURCE) + 3,
    order=3,
    window=2,
    projection=4,
    hidden_1=6,
    hidden_2=5,
)
FILES = ("model.nplm", "vocab.source", "vocab.target", "info")


def trained(activation="relu", seed=1, **changes):
    """Return a random network with scores between about -6 and 4."""
    sizes = JointSizes(**{**SIZES.__dict__, "activation": activation})
    model = FeedForwardLM(sizes, seed=seed, spread=0.9)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for bias in (model.b_1, model.b_2, model.b_o):
            bias.uniform_(-0.8, 0.8, generator=generator)
    network = TrainedNnjm(model, Vocabulary(TARGET), Vocabulary(SOURCE), "direct", True, 5, {})
    return network._replace(**changes)


class Moses:
    """Computation of Moses from its files: words by spelling, units one by one."""

    def __init__(self, directory, order, window):
        self.order, self.window = order, window
        target, source = ((directory / f"vocab.{side}").read_text().split() for side in ("target", "source"))
        self.target = {word: number for number, word in enumerate(target)}
        self.source = {word: number + len(target) for number, word in enumerate(source)}
        self.unknown_source = len(target)
        blocks = (directory / "model.nplm").read_text().split("\n\n")
        assert blocks[-1] == "\\end\n"
        self.config = dict(line.split() for line in blocks[0].splitlines()[1:])
        self.matrix = {}
        for name, *rows in (block.splitlines() for block in blocks[1:-1]):
            if name != "\\input_vocab":
                self.matrix[name] = np.array([[float(number) for number in row.split()] for row in rows])

    def score(self, source, center, history, word):
        """Return the output unit of a word in float64."""
        words = ["<s>"] * 9 + source + ["</s>"] * 9
        around = words[9 + center - self.window : 9 + center + self.window + 1]
        before = (["<s>"] * 9 + history)[-(self.order - 1) :]
        ids = [self.source.get(one, self.unknown_source) for one in around]
        ids += [self.target.get(one, 0) for one in before]
        assert len(ids) + 1 == int(self.config["ngram_size"])
        f = {"tanh": np.tanh, "rectifier": lambda x: np.maximum(x, 0)}[self.config["activation_function"]]
        layer = np.concatenate([self.matrix["\\input_embeddings"][one] for one in ids])
        for number in (1, 2):
            weights, biases = (self.matrix[f"\\hidden_{kind} {number}"] for kind in ("weights", "biases"))
            layer = f(weights @ layer + biases[:, 0])
        place = self.target.get(word, 0)
        return float(self.matrix["\\output_weights"][place] @ layer + self.matrix["\\output_biases"][place, 0])


def scores(scorer, source, places, target):
    """Return the scores of the words of a translation."""
    row = [0] * (scorer.order - 1) + scorer.ids(target).tolist()
    histories = np.lib.stride_tricks.sliding_window_view(np.array(row[:-1], np.int32), scorer.order - 1)
    contexts = np.concatenate([scorer.windows(source)[places], histories], 1)
    return scorer.score(contexts, np.arange(len(target), dtype=np.int32), scorer.ids(target))


def exported(tmp_path, network):
    save_model(tmp_path / "model.pt", network)
    assert main(["nnjm", "export-nplm", "--model", f"{tmp_path}/model.pt", "--output-dir", f"{tmp_path}/nplm"]) == 0
    return tmp_path / "nplm"


def opened(directory, order=3, window=2):
    vocabularies = directory / "vocab.source", directory / "vocab.target"
    return NplmScorer(directory / "model.nplm", vocabularies, BilingualSizes(order, window), "cpu")


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_scores_are_those_of_a_reader_of_its_own(tmp_path, activation):
    directory = exported(tmp_path, trained(activation))
    moses, scorer, original = Moses(directory, 3, 2), opened(directory), JointScorer(tmp_path / "model.pt", "cpu")
    assert [moses.config[name] for name in ("version", "ngram_size", "input_vocab_size", "output_vocab_size")] == [
        "1", "8", "14", "8",
    ]  # fmt: skip
    rng = random.Random(2)
    for _ in range(40):
        source = rng.choices([*SOURCE, "?"], k=rng.randint(1, 6))
        target = rng.choices([*TARGET, "!"], k=rng.randint(1, 6))
        places = [rng.randrange(len(source)) for _ in target]
        expected = [moses.score(source, place, target[:i], target[i]) for i, place in enumerate(places)]
        assert scores(scorer, source, places, target) == pytest.approx(expected, abs=1e-5)
        assert scores(original, source, places, target).tolist() == scores(scorer, source, places, target).tolist()
    assert (directory / "info").read_text() == "m 2\nn 3\n"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_network_that_is_written_and_read_is_the_same(tmp_path, activation):
    network = trained(activation)
    with torch.no_grad():  # weights whose float32 values need all digits
        network.model.W_1[0, :3] = torch.tensor([1 / 3, -1e-30, 1.0000001])
    directory = exported(tmp_path, network)
    command = ["nnjm", "import-nplm", "--nplm", f"{directory}/model.nplm", "--output-model", f"{tmp_path}/back.pt"]
    assert main(command) == 0
    back = load_model(tmp_path / "back.pt")
    assert back.model.sizes == network.model.sizes
    assert (back.vocabulary.words, back.source_vocabulary.words) == (
        network.vocabulary.words,
        network.source_vocabulary.words,
    )
    for name, parameter in network.model.named_parameters():
        assert torch.equal(parameter, dict(back.model.named_parameters())[name]), name
    assert (back.direction, back.self_normalised, back.unknown_words) == ("direct", True, 1)
    # the same files again
    write_nplm(back, tmp_path / "again", "back.pt")
    assert all((directory / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in FILES)


def test_vocabularies_of_other_programs(tmp_path):
    """Vocabularies may lack special entries (Moses uses <unk>), have another order, or be in the network file."""
    directory = exported(tmp_path, trained())
    lines = (directory / "vocab.target").read_text().split()
    (directory / "vocab.target").write_text("\n".join(["<unk>", "</s>", *lines[2:-2], "<s>", "q"]) + "\n")
    (directory / "vocab.source").write_text("<unk>\nb\n</s>\na\nd\ne\n")
    text = (directory / "model.nplm").read_text()
    (directory / "model.nplm").write_text(
        text.replace("\\input_emb", "\\input_vocab\n<unk>\nx\n\n\\input_emb").replace("\t", " ")
    )
    moses, scorer = Moses(directory, 3, 2), opened(directory)
    source, target = ["a", "c", "b", "e"], ["q", "u", "<null>", "é"]
    expected = [moses.score(source, place, target[:place], target[place]) for place in range(4)]
    assert scores(scorer, source, range(4), target) == pytest.approx(expected, abs=1e-5)
    assert scorer.vocabulary.words[2:-1] == [*TARGET, "q"]


def test_scores_have_the_floor_of_moses(tmp_path):
    network = trained()
    with torch.no_grad():
        network.model.b_o[3] = -1e4
    scorer = opened(exported(tmp_path, network))
    found = scores(scorer, ["a"], [0, 0], ["u", "v"])
    assert found[0] == -100.0 and found[1] > -20


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"direction": "inverse"}, "has the direction inverse, but Moses requires direct"),
        ({"self_normalised": False}, "is not self-normalised, but Moses does not normalise scores; train it with"),
        ({"vocabulary": Vocabulary(["v", "<s>", "w", "x"])}, "contains the word <s>, which is reserved"),
        ({"source_vocabulary": Vocabulary(["<unk>", "b", "c"])}, "contains the word <unk>"),
    ],
)
def test_networks_that_moses_cannot_have(tmp_path, capsys, changes, said):
    save_model(tmp_path / "model.pt", trained(**changes))
    assert main(["nnjm", "export-nplm", "--model", f"{tmp_path}/model.pt", "--output-dir", f"{tmp_path}/x"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("model.nplm", "\\config", "\\conf", "does not begin with \\config"),
        ("model.nplm", "ngram_size 8", "ngram_size 9", "numbers in a row"),
        ("model.nplm", "ngram_size 8", "ngram_size", "in \\config has no value"),
        ("model.nplm", "ngram_size 8\n", "", "ngram_size in \\config is missing"),
        ("model.nplm", "num_hidden 6", "num_hidden 999999999", "not a valid size"),
        ("model.nplm", "num_hidden 6", "num_hidden 0", "has one hidden layer"),
        ("model.nplm", "num_hidden 6", "num_hidden 7", "rows, but \\config specifies 7"),
        ("model.nplm", "num_hidden 6", "num_hidden 5", "has more rows, but \\config specifies 5"),
        ("model.nplm", "rectifier", "hardtanh", "version 1 with tanh or rectifier is supported"),
        ("model.nplm", "version 1", "version 2", "has version 2"),
        ("model.nplm", "\\hidden_biases 2", "\\other", "has no \\hidden_biases 2; not a network of NPLM 0.3"),
        ("model.nplm", "\\hidden_biases 2", "\\hidden_biases 1", "contains \\hidden_biases 1 twice"),
        ("model.nplm", "\\end", "", "ends before \\end"),
        ("model.nplm", "\\output_biases\n", "\\output_biases\nnan\n", "more rows"),
        ("model.nplm", "\\output_biases\n-0.5", "\\output_biases\n1e99", "NaN or infinite"),
        ("model.nplm", "\\output_biases\n-", "\\output_biases\nx", "non-numeric value"),
        ("model.nplm", "output_vocab_size 8", "output_vocab_size 9", "rows, but \\config specifies 9"),
        ("vocab.source", "b\n", "b\nB\n", "and 7 source words; use those that it was trained with"),
        ("vocab.target", "<unk>\n", "", "does not begin with <unk>"),
        ("vocab.target", "u\n", "w\n", "line 5: duplicate word"),
        ("vocab.target", "u\n", "u u\n", "line 4: duplicate word, or more than one word"),
        ("info", "m 2", "m 3", "order 3 and a window of 3 words on each side correspond to 10"),
        ("info", "m 2", "m two", "needs the lines `m WINDOW` and `n ORDER`"),
    ],
)
def test_damaged_files_end_in_a_sentence(tmp_path, capsys, name, old, new, said):
    network = trained()
    with torch.no_grad():
        network.model.b_o.fill_(-0.5)
    directory = exported(tmp_path, network)
    text = (directory / name).read_text()
    assert old in text
    (directory / name).write_text(text.replace(old, new, 1))
    command = ["nnjm", "import-nplm", "--nplm", f"{directory}/model.nplm", "--output-model", f"{tmp_path}/back.pt"]
    assert main(command) == 2
    assert said in capsys.readouterr().err


def test_random_damage_ends_in_a_sentence_or_a_network(tmp_path):
    directory = exported(tmp_path, trained())
    rng = random.Random(5)
    good = {name: (directory / name).read_bytes() for name in FILES[:3]}
    refused = 0
    for _ in range(300):
        name = rng.choice(FILES[:3])
        content = bytearray(good[name])
        at = rng.randrange(len(content))
        match rng.randrange(3):
            case 0:
                content[at] = rng.choice(string.printable.encode())
            case 1:
                content[at : at + rng.randint(1, 200)] = b""
            case 2:
                content[at] = rng.randrange(256)
        (directory / name).write_bytes(bytes(content))
        try:
            found = read_nplm(
                directory / "model.nplm", (directory / "vocab.source", directory / "vocab.target"), BilingualSizes(3, 2)
            )
            assert all(torch.isfinite(parameter).all() for parameter in found.model.parameters())
        except InputError:
            refused += 1
        (directory / name).write_bytes(good[name])
    assert 50 < refused < 300


@pytest.fixture
def system(tmp_path):
    """Create a tiny model with a joint model for Moses."""
    directory = tiny_model(tmp_path / "model", seed=3).directory
    write_nplm(trained(), directory / "nplm", "a network")
    table = (directory / "phrase-table").read_text().splitlines()
    (directory / "phrase-table").write_text(
        "".join(" ||| ".join([*line.split(" ||| ")[:3], "0-0", "1 1 1", "|||"]) + "\n" for line in table)
    )
    files = ["--phrase-table", "phrase-table", "--reordering-table", "reordering", "--lm", "lm.arpa", "--lm-order", "3"]
    line = [
        "moses",
        "ini",
        "--model-dir",
        directory,
        *files,
        "--nplm",
        "nplm/model.nplm",
        "--output",
        directory / "nplm.ini",
    ]
    assert main([str(part) for part in line]) == 0
    (tmp_path / "input").write_text("a b c\nc d\n\nb\n")
    return directory


def test_the_ini_in_both_directions(system, tmp_path, capsys):
    line = (
        "BilingualNPLM name=NNJM0 order=3 source_window=2 path=nplm/model.nplm source_vocab=nplm/vocab.source "
        "target_vocab=nplm/vocab.target"
    )
    text = (system / "nplm.ini").read_text()
    assert f"\n{line}\n" in text and "\nNNJM0= 0.25\n" in text
    ini = MosesIni.read(system / "nplm.ini")
    ini.write(tmp_path / "elsewhere.ini")
    assert "target_vocab=model/nplm/vocab.target" in (tmp_path / "elsewhere.ini").read_text()
    assert MosesIni.read(tmp_path / "elsewhere.ini").is_same_model(ini)
    command = ["search", "decode", "--ini", f"{system}/bad.ini", "--input", f"{tmp_path}/input", "--output", "x"]
    for old, new, said in [
        (" order=3", "", "NNJM0 has no order=, which BilingualNPLM requires"),
        ("source_window=2", "source_window=-2", "has source_window=-2; it must be a number"),
        (" target_vocab=nplm/vocab.target", "", "NNJM0 has no target_vocab=, which BilingualNPLM requires"),
        ("nplm/vocab.source", "none", "the file of NNJM0 is missing: "),
        ("order=3", "order=4", "has ngram_size 8, but order 4 and a window of 2 words on each side correspond to 9"),
    ]:
        (system / "bad.ini").write_text(text.replace(line, line.replace(old, new)))
        assert main(command) == 2
        assert said in capsys.readouterr().err
    common = ["moses", "ini", "--model-dir", str(system), "--output", f"{tmp_path}/x", "--nplm", "nplm/model.nplm"]
    assert main([*common, "--nnjm", "lm.arpa"]) == 2
    assert "cannot be combined, because both specify the joint model" in capsys.readouterr().err


def test_the_feature_is_that_of_moses(system, tmp_path):
    """The feature is Moses' sum over target words, affiliated with the first word of their phrase, without </s>."""
    outputs = ["--output", tmp_path / "out", "--nbest", "30", "--nbest-file", tmp_path / "nbest"]
    line = ["search", "decode", "--ini", system / "nplm.ini", "--input", tmp_path / "input", *outputs]
    assert main([str(part) for part in line]) == 0
    moses = Moses(system / "nplm", 3, 2)
    sources = [line.split() for line in (tmp_path / "input").read_text().splitlines()]
    lines = (tmp_path / "nbest").read_text().splitlines()
    assert len(lines) > 8
    for line in lines:
        number, text, values, _, segments = line.split(" ||| ")
        words, places = text.split(), []
        for segment in segments.split():
            source, target = ([int(place) for place in side.split("-")] for side in segment.split("="))
            places += [source[0]] * (target[-1] - target[0] + 1)
        expected = sum(moses.score(sources[int(number)], place, words[:i], words[i]) for i, place in enumerate(places))
        assert float(values.split("NNJM0= ")[1].split()[0]) == pytest.approx(expected, abs=1e-4)
