"""Components of systems: tables, networks, inis, smaller systems, LSTMs."""

import pytest

from rnnsmt.config.features import label, share_networks
from rnnsmt.config.sections import Engines, Phrases, SystemEntry
from rnnsmt.plan.paths import PHRASE_TABLE, REORDERING_TABLE, TABLE_BINARY
from rnnsmt.plan.systems import Systems, column_options, network_file, settings_options

from .conftest import changed


@pytest.fixture
def trained_twice(resolved):
    """Set four tuning runs with two training runs."""
    return changed(resolved, networks={"seeds": 2}, tuning={"runs": 4})


def test_kinds_of_systems(resolved):
    systems = Systems(changed(resolved, compare=["baseline", "cslm", "lstm", "cslm_rnn+lstm_tuned"]))
    assert (systems.phrase_based[:3], systems.phrase_based[-1]) == (["baseline", "rnn", "cslm"], "cslm_rnn_nnjm")
    ensembles = ["lstm_pair", "lstm_ensemble", "lstm_ensemble_beam1", "lstm_ensemble_beam2"]
    assert systems.lstms_alone == ["lstm", "lstm_forward", *ensembles]
    assert [systems.beam(name) for name in ensembles] == [12, 12, 1, 2]
    assert systems.rescored[:3] == ["baseline+cslm", "baseline+lstm", "baseline+lstm_forward"]
    assert systems.tuned_on_lists[1] == "baseline+lstm_tuned" and len(systems.tuned_on_lists) == 5
    assert systems.compared == ["baseline", "cslm"]
    assert systems.networks == ["rnn", "cslm"], "also those of a system that is rescored; columns first"


@pytest.mark.parametrize(
    ("system", "networks", "columns"),
    [
        ("baseline", [], []),
        ("baseline_wp", [], ["wp"]),
        ("rnn", ["rnn"], ["rnn"]),
        ("cslm", ["cslm"], []),
        ("cslm_nnjm", ["cslm", "nnjm"], []),
        ("cslm_rnn_nnjm", ["rnn", "cslm", "nnjm"], ["rnn"]),
        ("cslm_rnn_wp", ["rnn", "cslm"], ["rnn", "wp"]),
    ],
)
def test_a_system_needs_its_own_features_only(resolved, system, networks, columns):
    systems = Systems(changed(resolved, compare=[system]))
    assert (systems.networks, systems.columns_used, systems.lstm_models) == (networks, columns, [])
    assert systems.tuned == [system]


def test_features_are_in_the_order_of_directories(resolved):
    resolved.systems["mine"] = SystemEntry(features=["wp", "rnn", "cslm"])
    systems = Systems(resolved)
    assert systems.features("mine") == ["cslm", "rnn", "wp"]
    assert systems.columns(systems.features("mine")) == ["rnn", "wp"]
    assert systems.untuned_inis("mine") == ["results/augmented/cslm_rnn_wp/network1/moses.ini"]
    assert systems.untuned_inis("baseline") == ["results/model/moses.ini"]
    assert systems.table_directory(systems.features("mine"), 3) == "augmented/rnn_wp/network3"
    assert systems.table_directory(["cslm", "wp"], 3) == "augmented/wp/network1", "all trainings have one"
    assert systems.table_directory(["cslm"], 3) == "model"


def test_scores_of_columns(resolved):
    systems = Systems(resolved)
    assert systems.score_pattern("rnn", 2) == "results/columns/rnn/network2/{scatteritem}.safetensors"
    assert systems.score_pattern("wp", 2) == "results/columns/wp/network1/1-of-1.safetensors"
    assert systems.column_models("rnn", 2) == ["results/rnn/network2/model.safetensors"]
    assert systems.column_models("wp", 2) == []
    assert column_options([2, 1], ["a", "b c", "d"]) == "--column a 'b c' --column d"


def test_runs_cycle_through_the_trainings(trained_twice):
    systems = Systems(trained_twice)
    assert [systems.network_of(run) for run in systems.runs] == [1, 2, 1, 2]
    assert [systems.network_seed(network) for network in ("1", 2)] == [1, 2]
    assert systems.trainings_of("rnn") == [1, 2, 1, 2]
    assert systems.trainings_of("baseline_wp") == [1, 1, 1, 1]
    assert systems.untuned_inis("cslm") == [f"results/augmented/cslm/network{n}/moses.ini" for n in (1, 2, 1, 2)]
    assert systems.untuned_inis("baseline_wp") == ["results/augmented/wp/network1/moses.ini"]
    assert systems.networks_in_search("cslm_rnn") == [f"results/cslm/network{n}/model.safetensors" for n in (1, 2)]
    assert systems.networks_in_search("rnn") == []
    assert systems.rnn_models("rnn") == [f"results/rnn/network{n}/model.safetensors" for n in (1, 2, 1, 2)]
    assert systems.rnn_models("cslm") == []


def test_selected_tables(trained_twice):
    """Tables are listed for every training run, or once if all share one; Moses reads them as text."""
    systems = Systems(trained_twice)
    tables = systems.table_files("rnn_wp", "dev")
    directories = [f"results/augmented/rnn_wp/network{n}/selected/dev" for n in (1, 2)]
    assert tables == [f"{directory}/{TABLE_BINARY}" for directory in directories]
    assert systems.table_directories("rnn_wp", tables) == [*directories, *directories]
    tables = systems.table_files("cslm", "all")
    assert tables == [f"results/model/selected/all/{TABLE_BINARY}"]
    assert systems.table_directories("cslm", tables) == ["results/model/selected/all"]
    moses = Systems(changed(trained_twice, engine=Engines(tuning="moses")))
    text = [f"{directory}/{name}" for directory in directories for name in (PHRASE_TABLE, REORDERING_TABLE)]
    assert moses.table_files("rnn_wp", "dev") == text
    assert moses.table_directories("rnn_wp", text) == [*directories, *directories]
    assert moses.table_files("baseline", "all") == [f"results/model/selected/all/{TABLE_BINARY}"]


def test_exported_tables(trained_twice):
    tables = [f"results/augmented/rnn/network{n}/phrase-table.gz" for n in (1, 2)]
    assert set(tables) < set(Systems(trained_twice).model_files("rnn"))
    few = Systems(changed(trained_twice, phrases=Phrases(export="baseline")))
    assert not set(tables) & set(few.model_files("rnn"))
    assert "results/model/phrase-table.gz" in few.model_files("baseline")


def test_files_of_every_training(trained_twice):
    systems = Systems(changed(trained_twice, compare=["cslm_rnn_nnjm"]))
    pattern = "{name}{n}"
    in_search = ["cslm1", "cslm2", "nnjm1", "nnjm2"]
    assert systems.of_every_training(pattern) == ["rnn1", "rnn2", *in_search]
    assert systems.of_every_training(pattern, ["rnn"]) == ["rnn1", "rnn2"]


def test_options_of_an_ini(resolved):
    systems = Systems(resolved)
    assert systems.ini_options(["cslm", "wp"], 2) == (
        f"--phrase-table ../augmented/wp/network1/phrase-table.gz --reordering-table {REORDERING_TABLE} "
        "--num-features 5 --further-weights 0.0 --network cslm=../cslm/network2/model.safetensors --unknown cslm=class"
    )
    assert systems.ini_options(["cslm"], 1).startswith(
        f"--phrase-table phrase-table.gz --reordering-table {REORDERING_TABLE} --num-features 4 --network cslm="
    )


def test_options_of_the_search(resolved):
    systems = Systems(resolved)
    assert systems.search_options("rnn") == "--pop-limit 150 --stack 100"
    assert systems.search_options("cslm") == "--pop-limit 150 --stack 100 --cslm-cells 50"
    assert settings_options({"batch_size": 3, "keep": "best"}) == "--batch-size 3 --keep best"


@pytest.mark.parametrize(
    ("iterations", "text"),
    [(16, "mean weights of iterations 9 to 16"), (3, "mean weights of iterations 2 to 3"), (2, "weights of the last")],
)
def test_text_on_tuning(resolved, iterations, text):
    tuned = changed(resolved, tuning={"optimizer": "mira", "iterations": iterations})
    assert f"on its own by batch MIRA, iterations: {iterations}, {text}" in Systems(tuned).tuning_text()
    moses = f"batch MIRA of Moses (mert-moses.pl), at most {iterations} iterations, weights of the last one"
    assert Systems(changed(tuned, engine=Engines(tuning="moses"))).tuning_text() == moses


def test_smaller_systems(resolved):
    """Smaller systems are the largest ones in compare with a subset of the features."""
    systems = Systems(changed(resolved, compare=["cslm_rnn_wp", "baseline", "rnn", "cslm_wp"]))
    assert systems.smaller("baseline") == []
    assert systems.smaller("rnn") == ["baseline"]
    assert systems.smaller("cslm_rnn_wp") == ["rnn", "cslm_wp"]


def test_settings_of_a_network_go_over_those_of_all_lstms(resolved):
    systems = Systems(changed(resolved, seq2seq={"settings": {"epochs": 3}}))
    assert systems.network_settings("lstm_forward") == {"epochs": 3, "source_order": "forward"}


def test_ensembles_of_lstms(trained_twice):
    """The second training run of an ensemble of three has networks 4 to 6."""
    trained_twice.systems["baseline+lstm_ensemble"] = SystemEntry(network="lstm", rescores="baseline", ensemble=3)
    systems = Systems(changed(trained_twice, compare=["baseline+lstm_ensemble", "lstm_forward"]))
    assert systems.ensemble("baseline+lstm_ensemble") == ("lstm", 3)
    assert systems.ensemble("lstm_forward") == ("lstm_forward", 1)
    first, second = ([network_file("lstm", n) for n in numbers] for numbers in ((1, 2, 3), (4, 5, 6)))
    assert systems.ensemble_models("lstm", "3", "4") == second
    assert systems.ensemble_of_every_run("lstm", 3) == first + second
    options = " ".join(f"--model {' '.join(models)} --model {' '.join(models)}" for models in (first, second) * 2)
    assert systems.ensemble_options("lstm", 3, first + second, times=2) == options
    assert systems.lstm_models == [*first, *second, "results/lstm_forward/network1/model.safetensors",
                                   "results/lstm_forward/network2/model.safetensors"]  # fmt: skip
    assert systems.lstm_histories[0] == "results/lstm/network1/history.json"
    assert systems.lstm_names[-3:] == ["lstm6", "lstm_forward1", "lstm_forward2"]
    assert systems.lstms == ["lstm", "lstm_forward"]
    assert systems.rescored_lists("baseline+lstm_ensemble", 2, "dev") == (
        "results/systems/baseline/run2/dev.lstm.3.nbest.gz"
    )


def test_the_cslm_rescores_lists(trained_twice):
    """A tuning run uses the network of its training run."""
    systems = Systems(changed(trained_twice, compare=["baseline+cslm"]))
    assert systems.has_cslm_on_lists("baseline+cslm")
    assert not systems.has_cslm_on_lists("cslm") and not systems.has_cslm_on_lists("baseline+lstm")
    assert systems.list_feature("baseline+cslm") == "CSLM0"
    assert systems.list_feature("baseline+lstm") == "LSTM0"
    assert systems.networks == ["cslm"]
    assert systems.ensemble_of_every_run("cslm", 1) == [network_file("cslm", n) for n in (1, 2)]
    options = " ".join(f"--model {network_file('cslm', n)}" for n in (1, 2, 1, 2) for _ in range(3))
    assert systems.ensemble_options("cslm", 1, systems.ensemble_of_every_run("cslm", 1), 3) == options
    assert systems.rescored_lists("baseline+cslm", 2, "dev") == "results/systems/baseline/run2/dev.cslm.1.nbest.gz"
    assert systems.lstm_models == []
    assert systems.table_features(["baseline+cslm"]) == "baseline+cslm=cslm_lists"
    assert share_networks(["cslm"], ["cslm_lists"]) and label("cslm_lists") == "CSLM on n-best lists"


def test_features_for_the_table(resolved):
    """An LSTM is a feature of the system that it rescores, and not one of the baseline if used alone."""
    names = ["baseline", "lstm", "cslm_rnn+lstm_tuned", "rnn_wp"]
    assert Systems(resolved).table_features(names) == "baseline= cslm_rnn+lstm_tuned=cslm+rnn+lstm_tuned rnn_wp=rnn+wp"
