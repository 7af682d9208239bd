"""The table on real text in docs/results.md comes from the published score files."""

import tarfile
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.evaluation.render import interval, or_dash, spread

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("seed", ["seed1", pytest.param("seed101", marks=pytest.mark.slow)])
def test_the_published_table_comes_from_the_archive(seed, tmp_path):
    with tarfile.open(ROOT / "benchmarks/multi30k.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    table = rnnsmt.evaluation.table(
        sorted(tmp_path.glob(f"{seed}/systems/*/run*/*.bleu.json")),
        joint={"flickr": ["test_2016_flickr", "test_2017_flickr"]},
        trainings=3,
    )
    page = (ROOT / "docs/results.md").read_text()
    rows = {(row["system"], row["test_set"]): row for row in table.records}
    for system in ("baseline", "rnn", "cslm_rnn", "cslm_rnn_wp"):
        cells = [spread(rows[system, "dev"]["bleu"], rows[system, "dev"]["bleu_sd"])]
        for name in ("held_out", "flickr"):
            row = rows[system, name]
            ends = interval(row.get("low_baseline"), row.get("high_baseline"))
            gain = f"{or_dash(row.get('diff_baseline'), '+z.2f')} ({ends})"
            cells += [spread(row["bleu"], row["bleu_sd"]), "" if system == "baseline" else gain]
        line = f"{seed.removeprefix('seed')} | {' | '.join(cells)} |".replace("|  |", "| |")
        assert line in page
