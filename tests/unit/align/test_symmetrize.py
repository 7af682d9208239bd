"""Symmetrisation: by hand, against a slow reference implementation, against atools on Multi30k; malformed input."""

import lzma
from bisect import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.align.symmetrization import symmetrize_links
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.formats.pharaoh import from_lists, to_lists
from rnnsmt.registries import SYMMETRIZATIONS

Link = tuple[int, int]


def one(forward: list[Link], reverse: list[Link], heuristic: str) -> list[Link]:
    return to_lists(symmetrize_links(from_lists([forward]), from_lists([reverse]), heuristic))[0]


def twin(forward: list[Link], reverse: list[Link], heuristic: str) -> list[Link]:
    """Apply a heuristic on sets of links, as the papers define it."""
    union, taken = set(forward) | set(reverse), set(forward) & set(reverse)
    if heuristic == "union":
        return sorted(union)
    aligned = [{i for i, _ in taken}, {j for _, j in taken}]

    def add(link: Link) -> None:
        taken.add(link)
        aligned[0].add(link[0])
        aligned[1].add(link[1])

    if heuristic.startswith("grow-diag"):
        grown = True
        while grown:
            grown = False
            for i, j in sorted(union - taken):
                near = any((i + x, j + y) in taken for x in (-1, 0, 1) for y in (-1, 0, 1))
                if near and not (i in aligned[0] and j in aligned[1]):
                    add((i, j))
                    grown = True
    if heuristic.startswith("grow-diag-final"):
        both = heuristic.endswith("and")
        for links in (forward, reverse):
            for i, j in sorted(set(links) - taken):
                free = (i not in aligned[0]) + (j not in aligned[1])
                if free == 2 or (free == 1 and not both):
                    add((i, j))
    return sorted(taken)


# forward 0-0 1-1 3-3, reverse 0-0 1-2 2-1 4-4: the intersection is 0-0
FORWARD, REVERSE = [(0, 0), (1, 1), (3, 3)], [(0, 0), (1, 2), (2, 1), (4, 4)]


@pytest.mark.parametrize(
    ("heuristic", "expected"),
    [
        ("intersection", [(0, 0)]),
        ("union", [(0, 0), (1, 1), (1, 2), (2, 1), (3, 3), (4, 4)]),
        # 1-1 is a neighbour of 0-0; then 1-2, a neighbour of 1-1, adds target word 2, and 2-1 adds source word 2;
        # 3-3 has no neighbour among the chosen links: 1-2 and 2-1 are two steps away
        ("grow-diag", [(0, 0), (1, 1), (1, 2), (2, 1)]),
        ("grow-diag-final", [(0, 0), (1, 1), (1, 2), (2, 1), (3, 3), (4, 4)]),
        ("grow-diag-final-and", [(0, 0), (1, 1), (1, 2), (2, 1), (3, 3), (4, 4)]),
    ],
)
def test_by_hand(heuristic, expected):
    assert one(FORWARD, REVERSE, heuristic) == expected


def test_final_and_wants_both_words_unaligned():
    forward, reverse = [(0, 0), (3, 3), (5, 0)], [(0, 0), (3, 3), (0, 6)]
    assert one(forward, reverse, "grow-diag-final-and") == [(0, 0), (3, 3)]
    assert one(forward, reverse, "grow-diag-final") == [(0, 0), (0, 6), (3, 3), (5, 0)]


def test_a_link_once_grown_lets_others_grow_in_the_next_pass():
    # 2-2 is tried before 1-3, which connects it to 0-4: only the second pass adds it
    assert one([(0, 4), (1, 3), (2, 2)], [(0, 4)], "grow-diag") == [(0, 4), (1, 3), (2, 2)]
    assert one([(4, 0), (3, 1), (2, 2)], [(4, 0)], "grow-diag") == [(2, 2), (3, 1), (4, 0)]


def symal_twin(forward: list[Link], reverse: list[Link]) -> list[Link]:
    """Apply grow-diag-final-and as symal does: links (target, source) are added to a sorted list during the scan."""
    directions = [{(j, i) for i, j in links} for links in (forward, reverse)]
    union, taken = directions[0] | directions[1], sorted(directions[0] & directions[1])
    aligned = [{point[side] for point in taken} for side in (0, 1)]
    beside, across = [(-1, 0), (0, -1), (1, 0), (0, 1)], [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    size = -1
    while size != len(taken):
        size, at = len(taken), 0
        while at < len(taken):
            here = taken[at]
            for x, y in beside + across:
                point = here[0] + x, here[1] + y
                if point in union and not (point[0] in aligned[0] and point[1] in aligned[1]):
                    place = bisect(taken, point)
                    taken.insert(place, point)
                    at += place <= at
                    aligned[0].add(point[0])
                    aligned[1].add(point[1])
            at += 1
    for links in directions:
        for point in sorted(links):
            if point[0] not in aligned[0] and point[1] not in aligned[1]:
                taken.append(point)
                aligned[0].add(point[0])
                aligned[1].add(point[1])
    return sorted((i, j) for j, i in taken)


LINKS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12, unique=True)


OF_MOSES = ("grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")


@given(LINKS, LINKS, st.sampled_from(OF_MOSES))
def test_equals_the_twin(forward, reverse, heuristic):
    assert one(forward, reverse, heuristic) == twin(forward, reverse, heuristic)


@given(LINKS, LINKS)
def test_equals_the_twin_of_symal(forward, reverse):
    links = symmetrize_links(from_lists([forward]), from_lists([reverse]), "grow-diag-final-and", "symal")
    assert to_lists(links)[0] == symal_twin(forward, reverse)


def test_equals_atools_on_multi30k(moses_fixture, tmp_path):
    directory = moses_fixture / "align"
    output = tmp_path / "aligned"
    directions = [
        "--forward",
        str(directory / "fast_align.forward.xz"),
        "--reverse",
        str(directory / "fast_align.reverse.xz"),
    ]
    assert main(["align", "symmetrize", *directions, "--output", str(output)]) == 0
    expected = lzma.decompress((directory / "atools.grow-diag-final-and.xz").read_bytes()).decode().splitlines()
    ours = output.read_text().splitlines()
    assert len(ours) == len(expected) == 29_000
    assert [set(line.split()) for line in ours] == [set(line.split()) for line in expected]


@pytest.mark.parametrize(
    ("forward", "reverse", "says"),
    [
        ("0-0 1-x\n", "0-0\n", "forward, line 1: '1-x' is not a link"),
        ("0-0\n0-0 2\n", "0-0\n0-0\n", "forward, line 2: '2' is not a link"),
        ("0-0\n", "0-0\n-1-0\n", "reverse, line 2: '-1-0' is not a link"),
        ("0-0  1-1\n", "0-0\n", "forward, line 1: '' is not a link"),
        ("0-0\t1-1\n", "0-0\n", "is not a link"),
        ("0-0\n", "0-0\n0-0\n", "forward has 1 lines, but"),
        ("0-0\n", "0-123456\n", "has a position above 9999"),
        ("0-0\n", "0-99999999999999999999\n", "is not a link"),
        ("0:0\n", "0-0\n", "forward, line 1: '0:0' is not a link"),
        ("\ufeff0-0\n", "0-0\n", "is not a link"),
        ("0-0\n", None, "no such file"),
    ],
)
def test_malformed(tmp_path, capsys, forward, reverse, says):
    (tmp_path / "forward").write_text(forward)
    if reverse is not None:
        (tmp_path / "reverse").write_text(reverse)
    names = ["--forward", str(tmp_path / "forward"), "--reverse", str(tmp_path / "reverse")]
    assert main(["align", "symmetrize", *names, "--output", str(tmp_path / "out.gz")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.gz").exists()
    assert not list(tmp_path.glob(".tmp*"))


def test_empty_lines_and_empty_files_pass(tmp_path):
    for name, text in (("forward", "\n0-0 \n\n"), ("reverse", "0-0\r\n0-0\n\n")):
        (tmp_path / name).write_bytes(text.encode())
    names = ["--forward", str(tmp_path / "forward"), "--reverse", str(tmp_path / "reverse")]
    assert main(["align", "symmetrize", *names, "--output", str(tmp_path / "out"), "--heuristic", "union"]) == 0
    assert (tmp_path / "out").read_text() == "0-0\n0-0\n\n"
    (tmp_path / "nothing").write_text("")
    names = ["--forward", str(tmp_path / "nothing"), "--reverse", str(tmp_path / "nothing")]
    assert main(["align", "symmetrize", *names, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == ""


def test_both_doors_write_the_same_bytes(tmp_path):
    """Files and lists give the same links, in Python and on the command line."""
    lists = {"forward": [FORWARD, [], [(0, 0)]], "reverse": [REVERSE, [(2, 1)], [(0, 0)]]}
    for name, sentences in lists.items():
        lines = (" ".join(f"{i}-{j}" for i, j in links) + "\n" for links in sentences)
        (tmp_path / name).write_text("".join(lines))
    names = ["--forward", str(tmp_path / "forward"), "--reverse", str(tmp_path / "reverse")]
    options = ["--heuristic", "grow-diag", "--order", "symal", "--output", str(tmp_path / "out.gz")]
    assert main(["align", "symmetrize", *names, *options]) == 0
    combined = rnnsmt.align.symmetrize(**lists, heuristic="grow-diag", order="symal")
    files = {name: tmp_path / name for name in lists}
    written = rnnsmt.align.symmetrize(**files, output=tmp_path / "py.gz", heuristic="grow-diag", order="symal")
    assert (tmp_path / "py.gz").read_bytes() == (tmp_path / "out.gz").read_bytes()
    assert list(written) == combined == [[(0, 0), (1, 1), (1, 2), (2, 1)], [], [(0, 0)]]
    assert written.figures == combined.figures == {
        "sentences": 3, "forward links": 4, "reverse links": 6, "links": 5
    }  # fmt: skip
    assert rnnsmt.align.symmetrize(written, combined) == combined


@pytest.mark.parametrize("links", [["0-0"], [[(0, -1)]], [[(0, 1, 2)]], [[(0.5, 1)]], [[0, 1]], [[(0, 10_000)]], 3])
def test_what_are_no_links(links):
    with pytest.raises(InputError, match=r"^forward.*must be a path,? or a list of links"):
        rnnsmt.align.symmetrize(links, [[(0, 0)]])


@pytest.mark.parametrize("order", ["atools", "symal"])
@pytest.mark.parametrize("name", SYMMETRIZATIONS)
def test_of_all_symmetrisations(name, order):
    """Links of one sentence pair, of several pairs and of none; equal directions are left as they are."""
    for sentences in ([], [[]], [FORWARD], [FORWARD, [], REVERSE]):
        links = from_lists(sentences)
        assert to_lists(symmetrize_links(links, links, name, order)) == sentences
    several = symmetrize_links(from_lists([FORWARD, [], REVERSE]), from_lists([REVERSE, [], FORWARD]), name, order)
    assert (
        to_lists(several)[0] == to_lists(symmetrize_links(from_lists([FORWARD]), from_lists([REVERSE]), name, order))[0]
    )


def test_the_documented_symmetrisation_of_another_package(other_package, documented, tmp_path):
    other_package(SYMMETRIZATIONS, "undisputed", "undisputed", documented("A symmetrisation"))
    lists = {"forward": [FORWARD, [(1, 1), (0, 0)]], "reverse": [REVERSE, [(0, 0)]]}
    expected = [[(0, 0), (3, 3), (4, 4)], [(0, 0), (1, 1)]]
    assert rnnsmt.align.symmetrize(**lists, heuristic="undisputed") == expected
    for name, links in lists.items():
        (tmp_path / name).write_text("".join(" ".join(f"{i}-{j}" for i, j in line) + "\n" for line in links))
    names = ["--forward", str(tmp_path / "forward"), "--reverse", str(tmp_path / "reverse")]
    assert main(["align", "symmetrize", *names, "--heuristic", "undisputed", "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == "0-0 3-3 4-4\n0-0 1-1\n"
    with pytest.raises(InputError, match=r"^heuristic 'undisputd': must be .*; did you mean undisputed\?"):
        rnnsmt.align.symmetrize(**lists, heuristic="undisputd")


def test_a_symmetrisation_that_loses_sentence_pairs(other_package):
    code = "def lost(forward, reverse, order):\n    return type(forward)(forward.offsets[:1], *forward[1:])\n"
    other_package(SYMMETRIZATIONS, "lost", "lost", code)
    with pytest.raises(InputError, match=r"lost of other-lost 1\.2 returns the links of 0 of 1 sentence pairs"):
        rnnsmt.align.symmetrize([FORWARD], [REVERSE], heuristic="lost")
