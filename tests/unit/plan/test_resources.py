"""Resources of jobs by input size, attempt and machine; consistency of the rules with the table."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from rnnsmt.plan.resources import (
    Growth,
    JobNeeds,
    Line,
    Machine,
    Power,
    available_memory_mb,
    needed_memory,
    needs_of_rules,
)

ROOT = Path(__file__).resolve().parents[3]

NONE = SimpleNamespace()
"""Input whose size nobody knows yet."""


def sized(megabytes: float, **files: object) -> SimpleNamespace:
    """Return an input of a size in MB."""
    return SimpleNamespace(size_mb=megabytes, **files)


@pytest.fixture
def machine(resolved):
    """Return a machine with eight cores, 10 GB of memory for its jobs, and a GPU."""
    return Machine(resolved, cores=8, memory_mb=10_000, has_gpu=True, neural_mb=2000, layer_mb={"nnjm": 50})


@pytest.fixture
def cluster(resolved):
    resolved["cluster"] = True
    resolved["rnn"]["device"] = "cuda"
    return Machine(resolved, cores=1, memory_mb=10_000, has_gpu=False, neural_mb=2000, layer_mb={})


def test_lines():
    assert Line(100, 2).at(30) == 160
    assert Line(100).at(30) == 100
    assert Power(3, 2).at(5) == 75


def test_requests_grow_with_the_input_and_every_attempt(machine, cluster):
    assert machine.memory("align_words", sized(10), 1) == 430 + 25 * 10
    assert machine.memory("align_words", sized(10), 2) == 2 * 680
    assert machine.minutes("cslm_prepare", sized(100), 2) == 2 * (15 + 5)
    assert machine.minutes("rnn_score", sized(100), 1) == 30 + 60
    assert machine.minutes("rnn_score", sized(100), 3, parts=4) == 3 * (30 + 15)
    assert cluster.memory("align_words", sized(10), 2) == 2 * 680 + 300, "and Snakemake, which is in the job"


def test_a_request_that_does_not_grow_needs_no_input(machine):
    """A constant request does not read the input size and so is part of the plan."""
    assert machine.memory("symmetrize", NONE, 1) == 450
    assert machine.minutes("score", NONE, 1) == 30
    with pytest.raises(AttributeError):
        machine.memory("lexical", NONE, 1)


def test_limits(machine, cluster):
    """A stage that writes to disk requests at most 16 GB, and on one machine less than half of the jobs' memory."""
    assert machine.memory("extract", sized(10_000), 1) == 4700
    assert machine.memory("align_words", sized(10_000), 1) == 10_000, "all of it: the job runs alone"
    assert machine.memory("moses_train", sized(10_000), 1) == 4700
    assert cluster.memory("align_words", sized(10_000), 1) == 430 + 250_000 + 300
    assert cluster.memory("extract", sized(10_000), 1) == 16_000 + 300
    assert cluster.memory("extract", sized(10_000), 2) == 32_000 + 300


def test_memory_by_preset(resolved, machine):
    assert machine.memory("rnn_train", NONE, 1) == 700
    assert machine.memory("nnjm_train", NONE, 1) == 700
    resolved["rnn"]["preset"], resolved["nnjm"]["preset"] = "paper", "small"
    assert machine.memory("rnn_train", NONE, 1) == 8000
    assert machine.memory("nnjm_train", NONE, 1) == 1500
    assert needed_memory(machine.needs["rnn_score"], resolved, lambda: 0) == 4000


def test_memory_of_a_search(machine):
    """The memory of a search grows with the size of the tables, and with networks also with the text."""
    files = ["dev.en", "table", "lm"]
    sizes = {"size_files_mb": [0.01, 20.0, 29.99]}

    class Files(SimpleNamespace):
        def __iter__(self):
            return iter(files)

    plain = Files(size_mb=50, source="dev.en", network=[], **sizes)
    assert machine.search_memory("decode", plain, 1) == 430 + 10 * 50
    cslm, nnjm = ([f"results/{name}/network{n}/model.pt" for n in (1, 2)] for name in ("cslm", "nnjm"))
    neural = Files(size_mb=50, source=["dev.en"], network=cslm, **sizes)
    assert machine.search_memory("mert", neural, 1) == 430 + 10 * 50 + 200 + 370
    for rule in ("decode", "nbest_lists"):  # they decode once
        assert machine.search_memory(rule, neural, 1) == 430 + 10 * 50 + 100 + 185
    assert machine.search_memory("compare_systems", neural, 1) == 430 + 10 * 50 + 300 + 30
    joint = Files(size_mb=50, source=["dev.en"], network=nnjm, **sizes)
    assert machine.search_memory("mert", joint, 1) == 430 + 10 * 50 + 200 + 370 + 50
    both = Files(size_mb=10, source=["dev.en"], network=cslm + nnjm, **sizes)
    assert machine.search_memory("mert", both, 1) == 430 + 10 * 10 + 2 * (200 + 370) + 50
    large = Files(size_mb=50, source=["table"], network=cslm, **sizes)
    assert machine.search_memory("mert", large, 1) == 430 + 10 * 50 + 2000


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/job/step", {"job/memory.max": "8000000000", "job/step/memory.max": "max"}, 8000),
        ("0::/job", {"job/memory.max": "8000000000", "memory.max": "3000000"}, 3),
        ("4:cpu,memory:/job\n0::/", {"memory/job/memory.limit_in_bytes": "5000000"}, 5),
        ("4:memory:/of/the/host", {"memory/memory.limit_in_bytes": "6000000"}, 6),
        ("4:cpu:/job", {"memory/job/memory.limit_in_bytes": "5000000"}, None),
        ("\ngarbage\n0::/caf\udce9", {"memory.max": "7000000"}, 7),
        (None, {"memory.max": "1"}, None),
    ],
    ids=["parent", "lowest", "version 1", "container", "another controller", "odd lines", "no control groups"],
)
def test_memory_of_a_control_group(tmp_path, monkeypatch, groups, limits, expected):
    monkeypatch.setattr("rnnsmt.plan.resources.CGROUPS", tmp_path)
    monkeypatch.setattr("rnnsmt.plan.resources.CGROUP_OF_PROCESS", tmp_path / "groups")
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    if groups is not None:
        (tmp_path / "groups").write_text(f"{groups}\n", errors="surrogateescape")
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit}\n")
    assert available_memory_mb() == (physical if expected is None else min(expected, physical))


def test_threads(resolved, machine, cluster):
    assert (machine.half, machine.beside_tuning(16), machine.beside_tuning(2)) == (4, 4, 2)
    assert (machine.share(3), machine.share(100)) == (2, 1)
    assert machine.search_threads == 1, "nine systems share eight cores"
    resolved["compare"] = ["baseline", "rnn"]
    assert Machine(resolved, 8, 1, False, 1, {}).search_threads == 4
    assert (cluster.half, cluster.search_threads, cluster.share(3)) == (1, 1, 1)


def test_threads_of_searches(resolved, machine):
    """Give each search more of the eight cores if the memory is sufficient for fewer searches than systems."""

    class Files(SimpleNamespace):
        def __iter__(self):
            return iter(["dev.en", "table"])

    files = [
        Files(size_mb=size, source="dev.en", network=[], size_files_mb=[0.01, size])
        for size in (50, 300, 420, 500, 5000)
    ]
    threads = [[machine.threads_of_search("mert", one, training) for one in files] for training in (False, True)]
    assert threads[0] == [1, 4, 4, 8, 8], "ten, two, two, one and one"
    assert threads[1] == [1, 2, 2, 4, 4], "a network is trained on the other half"
    resolved["cluster"] = True
    cluster = Machine(resolved, 1, 10_000, False, 2000, {})
    assert cluster.threads_of_search("mert", files[-1], training=False) == 1


def test_stage_threads(resolved, machine):
    assert machine.stage_threads == 1, "the demo corpus"
    resolved["corpora"] = [{"name": "train", "role": "bitext", "source": "train.en", "target": "train.fr"}]
    resolved["cluster"] = False
    threads = {cores: Machine(resolved, cores, 1, False, 1, {}).stage_threads for cores in (1, 2, 4, 16)}
    assert threads == {1: 1, 2: 1, 4: 2, 16: 2}, "a stage runs beside the training of a network"


@pytest.mark.parametrize(
    ("device", "is_cluster", "has_gpu", "expected"),
    [
        ("auto", False, True, (1, "auto")),
        ("auto", False, False, (0, "cpu")),
        ("auto", True, True, (0, "cpu")),
        ("cuda", True, False, (1, "cuda")),
        ("cpu", False, True, (0, "cpu")),
    ],
)
def test_devices(resolved, device, is_cluster, has_gpu, expected):
    """On a cluster, the GPUs of the submitting machine are ignored."""
    resolved["rnn"]["device"], resolved["cluster"] = device, is_cluster
    machine = Machine(resolved, 8, 10_000, has_gpu, 1, {})
    assert (machine.gpu, machine.device) == expected


def test_time_of_jobs_that_are_resumed(machine, cluster):
    """Resumable jobs request one day on a cluster; other jobs request at most as much."""
    assert (machine.long, cluster.long) == (3650 * 1440, 1440)
    assert machine.minutes("mert", NONE, 2) == machine.long
    assert machine.needs["decode"].minutes == (240 * 2 * 2, 0), "two sets, two runs"
    resolved = cluster.config
    resolved["tuning"]["runs"] = 9
    assert needs_of_rules(resolved, 1440)["decode"].minutes == (1440, 0)


def test_every_rule_asks_for_what_the_table_says_of_it(resolved):
    """Every rule requests memory and time by its own name; resumable jobs request the time limit."""
    table = needs_of_rules(resolved)
    asked = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for block in re.split(r"\n *rule ", path.read_text())[1:]:
            memory = re.search(r'mem_mb=(search_)?memory\("(\w+)"\)', block)
            minutes = re.search(r'runtime=(?:(LONG)|minutes\("(\w+)"(?:, parts_of)?\)),', block)
            assert memory and minutes, block
            asked[block.split(":")[0]] = (memory[2], bool(memory[1]), minutes[1], minutes[2])
    assert asked.keys() == table.keys()
    for rule, needs in table.items():
        is_resumed = needs.minutes is None
        expected = (rule, needs.neural is not None, "LONG" if is_resumed else None, None if is_resumed else rule)
        assert asked[rule] == expected


MEASURED = {
    "prepare_bitext": 70, "train_truecaser": 74, "truecase": 62, "selection_models": 190, "selection_score_mono": 42,
    "select_mono": 312, "language_model": 427, "selection_score_bitext": 56, "select_bitext": 303, "align_words": 598,
    "symmetrize": 288, "lexical": 270, "extract": 3555, "phrase_table": 596, "rnn_prepare": 362,
    "reordering_table": 398, "filter_tables": 240,
}  # fmt: skip
"""MB of the largest job of each rule on text of 3 million words (docs/scale.md)."""


def test_requests_cover_what_was_measured(resolved):
    """Requests cover the measured memory and are at most ten times as large."""
    table = needs_of_rules(resolved)
    assert {rule for rule, needs in table.items() if needs.growth} == set(MEASURED)
    for rule, used in MEASURED.items():
        growth = table[rule].growth
        read = sum(share * table[name].growth.disk.at(3) for name, share in growth.reads.items())
        request = needed_memory(table[rule], resolved, lambda read=read: read)
        assert used <= request <= 10 * used, (rule, request)


def test_input_of_a_job_is_the_output_of_others(resolved):
    table = needs_of_rules(resolved)
    for needs in table.values():
        if needs.growth:
            assert all(table[rule].growth for rule in needs.growth.reads)
    assert table["extract"].growth.reads == {"select_bitext": 2, "symmetrize": 1}, "once for each of two aligners"
    resolved["alignment"]["external"] = "mine.align"
    assert needs_of_rules(resolved)["extract"].growth.reads == {"select_bitext": 1, "symmetrize": 0.5}


def test_defaults_of_the_table():
    needs = JobNeeds(Line(10), Line(1), growth=Growth("pool", Line(1), Power(1, 1)))
    assert needed_memory(needs, {}, lambda: pytest.fail("its size is not asked for")) == 10
