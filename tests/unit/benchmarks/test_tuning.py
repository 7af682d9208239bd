"""What benchmarks/tuning.py reads and compares."""

import importlib.util
import json
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def tuning() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks/tuning.py"
    spec = importlib.util.spec_from_file_location("tuning_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lists_of_moses_extractor(tuning, tmp_path):
    """Lists of several iterations are joined; matches and totals are in the order of the package."""
    for number, row in ((1, "1 2"), (2, "3 4")):
        features = f"FEATURES_TXT_BEGIN_0 0 1 2 A_0 B_0\n{row}\nFEATURES_TXT_END_0\n"
        scores = "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n4 5 3 4 2 3 1 2 6\nSCORES_TXT_END_0\n"
        (tmp_path / f"run{number}.features.dat").write_text(features + features.replace("_0 0 1", "_0 1 1"))
        (tmp_path / f"run{number}.scores.dat").write_text(scores + scores.replace("_0 0 1", "_0 1 1"))
    pool = tuning.pool_of(tmp_path, 2)
    assert pool.features.T.tolist() == [[1, 2], [3, 4]] * 2
    assert pool.statistics[0].tolist() == [4, 3, 2, 1, 5, 4, 3, 2, 6]
    assert pool.offsets.tolist() == [0, 2, 4]


def test_agreement_is_the_mean_over_the_cells(tuning, tmp_path, capsys):
    for optimizer, system, seed in ((o, s, n) for o in ("moses", "mert") for s in ("baseline", "rnn") for n in (1, 2)):
        path = tmp_path / f"fresh1/tuning/{optimizer}/{system}/run{seed}/result.json"
        path.parent.mkdir(parents=True)
        better = 0.4 * (optimizer == "mert" and system == "rnn")
        path.write_text(json.dumps({"dev": 50 + seed / 10 + better, "test": 40 + seed / 10, "seconds": 9}))
    tuning.agreement(Namespace(split=[str(tmp_path / "fresh1")], seeds=[1, 2]))
    printed = capsys.readouterr().out
    assert "| fresh1 | rnn | dev | 50.15 ± 0.07 | 50.55 ± 0.07 | +0.40 (" in printed
    assert "mean over the 4 cells: +0.10" in printed
    assert "mert: sd over seeds 0.07 on dev, 0.07 held out; 9 CPU s a run" in printed
