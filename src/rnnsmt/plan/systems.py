"""The components of the systems of a run: tables, networks, tuning runs.

Systems with the same additional score columns share a phrase table, and systems with the same features share the ini
before tuning; there is one table and one ini for every training run of the networks. Systems of LSTMs translate alone
or rescore the n-best lists of a phrase-based system; the CSLM can also rescore n-best lists.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnsmt.config.features import CSLM, CSLM_ON_LISTS, LSTM, RNN, has_network
from rnnsmt.config.sections import Config
from rnnsmt.plan.derived import MOSES_OPTIMIZERS, features_of, is_small, parts_of_moses
from rnnsmt.plan.paths import PHRASE_TABLE, REORDERING_TABLE, RUN, TABLE_BINARY
from rnnsmt.registries import COLUMNS, FEATURES, NETWORKS, OPTIMIZERS, SEARCH_FEATURES

LIMITS = ("pop_limit", "stack")
"""Limits of the search that all systems and both decoders have."""

NETWORK_LIMIT = "cslm_cells"
"""Limit of all networks in the search, although it is named after the CSLM."""

PHRASE_SCORES = 4
"""Scores of a phrase pair in the baseline's table."""


def settings_options(settings: Mapping[str, object]) -> str:
    """Return settings as command-line options: ``--NAME VALUE``."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())


def column_options(counts: Iterable[int], files: Iterable[str]) -> str:
    """Return one option ``--column`` for each of ``counts``, with this number of the files."""
    paths = iter(files)
    return " ".join(f"--column {' '.join(shlex.quote(next(paths)) for _ in range(count))}" for count in counts)


COLUMN = "results/columns/{column}/network{network}/{scatteritem}.safetensors"
"""File of the scores of a column, or of one shard of the scores."""


def network_file(name: str, network: int | str) -> str:
    """Return the model file of a network from the training run with this number."""
    return f"results/{name}/network{network}/model.safetensors"


def _ordered(features: Collection[str]) -> list[str]:
    """Return features in the order of directory names: that of the registry, then features of other Python packages."""
    own = [name for name in FEATURES if name in features]
    return own + sorted(name for name in features if name not in own)


class Systems:
    """The systems of a configuration and their components.

    Attributes:
        runs, trainings: 1-based numbers of the tuning runs, and of the training runs of a network.
        phrase_based: systems with a table and a search.
        rescored: systems that rescore a phrase-based system, by LSTMs or the CSLM.
        lstms_alone: systems of LSTMs that translate alone.
        tuned_on_lists: systems of ``rescored`` whose weights are tuned.
        compared: phrase-based systems in the results table.
        tuned: systems with weights in the results table: ``compared``, and the systems of ``rescored`` in the table.
        columns_used: columns of the phrase table that the systems in the results table use.
        networks: networks that the systems in the results table use: first those of columns, then those of the search,
            then the CSLM if it only rescores lists.
    """

    def __init__(self, config: Config) -> None:
        """Read the systems of a checked configuration."""
        self.config = config
        self.runs = range(1, config.tuning.runs + 1)
        self.trainings = range(1, config.networks.seeds + 1)
        systems = config.systems
        self.phrase_based = [name for name, system in systems.items() if system.features is not None]
        self.rescored = [name for name, system in systems.items() if system.rescores is not None]
        self.lstms_alone = [name for name in systems if name not in (*self.phrase_based, *self.rescored)]
        self.tuned_on_lists = [name for name in self.rescored if systems[name].weight == "tuned"]
        self.compared = [name for name in config.compare if name in self.phrase_based]
        used = {name for system in config.compare for name in self.features(system)}
        trained = [feature for feature in map(FEATURES.__getitem__, _ordered(used)) if feature.network]
        networks = [feature.network for feature in sorted(trained, key=lambda feature: feature.in_search)]
        self.columns_used = self.columns(_ordered(used))
        self.tuned = [*self.compared, *(name for name in self.rescored if name in config.compare)]
        on_lists = [CSLM] if any(map(self.has_cslm_on_lists, config.compare)) else []
        self.networks = list(dict.fromkeys([*networks, *on_lists]))

    # Features and their files.

    def features(self, system: str) -> list[str]:
        """Return the features of a system, or of the one that it rescores, in the order that names directories."""
        return _ordered(features_of(self.config, system))

    def columns(self, features: Iterable[str]) -> list[str]:
        """Return the features that are columns of the phrase table."""
        return [name for name in features if name not in SEARCH_FEATURES]

    def score_pattern(self, column: str, network: int | str) -> str:
        """Return the file of the scores of a column, with ``{scatteritem}`` if they are computed in shards."""
        if COLUMNS[column].network:
            return COLUMN.format(column=column, network=network, scatteritem="{scatteritem}")
        return COLUMN.format(column=column, network=1, scatteritem="1-of-1")

    def search_models(self, features: Iterable[str], network: int | str) -> list[str]:
        """Return the model files of the networks that the search queries for these features."""
        used = (SEARCH_FEATURES[name] for name in features if name in SEARCH_FEATURES)
        return [network_file(feature.network, network) for feature in used]

    def column_models(self, column: str, network: int | str) -> list[str]:
        """Return the model file of the network that computes a column; an empty list if no network computes it."""
        name = COLUMNS[column].network
        return [network_file(name, network)] if name else []

    # Training runs of the networks.

    def network_of(self, run: int | str) -> int:
        """Return the number of the training run that a tuning run uses; tuning runs cycle through the training runs."""
        return (int(run) - 1) % len(self.trainings) + 1

    def network_seed(self, network: int | str) -> int:
        """Return the random seed of the training runs with this number."""
        return self.config.seed + int(network) - 1

    @property
    def trainable(self) -> list[str]:
        """Return the names of all networks that the workflow can train: of features, and the LSTMs."""
        others = [name for name in self.networks if name not in list(NETWORKS)]
        return [*(name for name in NETWORKS if name != LSTM), *others, *self.config.seq2seq.networks]

    def kind_of(self, name: str) -> str:
        """Return the kind of a network, a name in ``NETWORKS``; all LSTMs are of the same kind."""
        return LSTM if name in self.config.seq2seq.networks else name

    def has_section(self, name: str) -> bool:
        """Return whether a section of the configuration has the preset and settings of a network.

        ``networks.settings`` has the settings of networks without a section, such as those of other Python packages.
        """
        return hasattr(getattr(self.config, self.kind_of(name), None), "preset")

    def preset(self, name: str) -> str:
        """Return the preset of a network."""
        if self.has_section(name):
            return str(getattr(self.config, self.kind_of(name)).preset)
        network = NETWORKS[name]
        return "demo" if "demo" in network.presets and is_small(self.config) else network.default

    def network_settings(self, name: str) -> dict[str, Any]:
        """Return the settings of a network that differ from the preset."""
        if not self.has_section(name):
            return dict(self.config.networks.settings.get(name, {}))
        settings: dict[str, Any] = getattr(self.config, self.kind_of(name)).settings
        return {**settings, **self.config.seq2seq.networks.get(name, {})}

    def trainings_of(self, system: str) -> list[int]:
        """Return the number of the training run for every tuning run of a system; 1 if it has no network."""
        return [self.network_of(run) if has_network(self.features(system)) else 1 for run in self.runs]

    def of_every_training(self, pattern: str, names: Iterable[str] | None = None) -> list[str]:
        """Return the paths of a pattern with {name} and {n} for all training runs of all networks, or of ``names``."""
        return [
            pattern.format(name=name, n=n)
            for name in (self.networks if names is None else names)
            for n in self.trainings
        ]

    def _of_every_network(self, system: str, path: Callable[[int], str]) -> list[str]:
        """Return ``path(number of the training run)`` for every tuning run, or only one path if all are the same."""
        paths = [path(network) for network in self.trainings_of(system)]
        return paths if len(set(paths)) > 1 else paths[:1]

    # Tables and inis.

    def table_directory(self, features: Collection[str], network: int | str) -> str:
        """Return the directory, below results, of the phrase table for these features."""
        columns = self.columns(features)
        return f"augmented/{'_'.join(columns)}/network{network if has_network(columns) else 1}" if columns else "model"

    def columns_of_table(self, table: str) -> tuple[list[str], str]:
        """Return the columns of a ``table_directory``, and the number of the training run of their networks."""
        parts = table.split("/")
        return (parts[1].split("_"), parts[2].removeprefix("network")) if len(parts) > 1 else ([], "1")

    def tables(self, features: Collection[str], network: int | str) -> tuple[str, str]:
        """Return the paths, below results, of the phrase table and the reordering table of an ini."""
        directory = self.table_directory(features, network)
        return f"{directory}/{PHRASE_TABLE}", f"model/{REORDERING_TABLE}"

    def model_files(self, system: str) -> list[str]:
        """Return exported tables, networks and ini files of a system before tuning, for every training run."""
        numbers = dict.fromkeys(self.trainings_of(system))
        tables = [f"results/{path}" for n in numbers for path in self.tables(self.features(system), n)]
        if self.config.phrases.export == "baseline":
            tables = [path for path in tables if path.startswith("results/model/")]
        return list(dict.fromkeys([*tables, *self.networks_in_search(system), *self.untuned_inis(system)]))

    def table_files(self, system: str, part: str) -> list[str]:
        """Return the tables of every training run of a system, selected for the dev set (dev) or all sets (all).

        These are binary forms, or text files if Moses reads them.
        """
        by_moses = {"dev": "tuning", "all": "decoding"}[part] in parts_of_moses(self.config)
        return self._tables(system, part, (PHRASE_TABLE, REORDERING_TABLE) if by_moses else (TABLE_BINARY,))

    def selected_tables(self, system: str, part: str) -> list[str]:
        """Return the binary forms of the tables of every training run of a system, selected for a part of the sets."""
        return self._tables(system, part, (TABLE_BINARY,))

    def _tables(self, system: str, part: str, names: Sequence[str]) -> list[str]:
        directories = dict.fromkeys(
            self.table_directory(self.features(system), network) for network in self.trainings_of(system)
        )
        return [f"results/{directory}/selected/{part}/{name}" for directory in directories for name in names]

    def table_directories(self, system: str, tables: Sequence[str]) -> list[str]:
        """Return the directories of the selected tables: one for all runs, or one for each run."""
        directories = list(dict.fromkeys(str(Path(table).parent) for table in tables))
        trainings = self.trainings_of(system)
        numbers = list(dict.fromkeys(trainings))
        return [directories[numbers.index(n)] for n in trainings] if len(directories) > 1 else directories

    def untuned_inis(self, system: str) -> list[str]:
        """Return the ini of a system before tuning for each run, or only one if it is the same for all runs."""
        features = self.features(system)
        if not features:
            return ["results/model/moses.ini"]
        return self._of_every_network(system, lambda n: f"results/augmented/{'_'.join(features)}/network{n}/moses.ini")

    def ini_options(self, features: Collection[str], network: int | str) -> str:
        """Return the options of ``moses write-ini`` for a set of features, with paths relative to results/model."""
        table, reordering = (
            path.removeprefix("model/") if path.startswith("model/") else f"../{path}"
            for path in self.tables(features, network)
        )
        columns = self.columns(features)
        options = [f"--phrase-table {table} --reordering-table {reordering}"]
        options.append(f"--num-features {PHRASE_SCORES + len(columns)}")
        if columns:
            options.append(f"--further-weights {' '.join(str(COLUMNS[name].weight) for name in columns)}")
        for name in features:
            if name in SEARCH_FEATURES:
                (model,) = self.search_models([name], network)
                unknown = getattr(getattr(self.config, SEARCH_FEATURES[name].network, None), "unknown", "class")
                options.append(f"--network {name}=../{model.removeprefix('results/')} --unknown {name}={unknown}")
        return " ".join(options)

    def rnn_models(self, system: str) -> list[str]:
        """Return the RNN Encoder-Decoder of every run of a system that has it."""
        if RNN not in self.features(system):
            return []
        return self._of_every_network(system, lambda n: network_file(RNN, n))

    # Search and tuning.

    def networks_in_search(self, system: str) -> list[str]:
        """Return the networks that the search of a system queries, of every training run."""
        features, trainings = self.features(system), dict.fromkeys(self.trainings_of(system))
        return [model for n in trainings for model in self.search_models(features, n)]

    def moses_limits(self) -> str:
        """Return the options for the limits of the search that Moses also has."""
        return settings_options({name: getattr(self.config.search, name) for name in LIMITS})

    def search_options(self, system: str) -> str:
        """Return the options for the limits of the search, including ``NETWORK_LIMIT`` if it queries networks."""
        has_networks = any(name in SEARCH_FEATURES for name in self.features(system))
        names = [*LIMITS, NETWORK_LIMIT] if has_networks else LIMITS
        return settings_options({name: getattr(self.config.search, name) for name in names})

    def optimizer_options(self) -> str:
        """Return the options of ``tuning tune`` and ``tuning optimize`` that select the optimizer."""
        names = ["optimizer", *["restarts"] * OPTIMIZERS[self.config.tuning.optimizer].has_restarts]
        return settings_options({name: getattr(self.config.tuning, name) for name in names})

    def tuning_text(self) -> str:
        """Return a text on how the phrase-based systems are tuned, for the notes of the table."""
        tuning = self.config.tuning
        last = tuning.iterations
        assert last is not None, "see Tuning"
        if "tuning" in parts_of_moses(self.config):
            _, title = MOSES_OPTIMIZERS[tuning.optimizer]
            return f"{title} of Moses (mert-moses.pl), at most {last} iterations, weights of the last one"
        optimizer = OPTIMIZERS[tuning.optimizer]
        if not optimizer.averages:
            return f"every phrase-based system on its own by {optimizer.title}, at most {last} iterations"
        averaged = f"mean weights of iterations {last // 2 + 1} to {last}" if last > 2 else "weights of the last one"
        return f"every phrase-based system on its own by {optimizer.title}, iterations: {last}, {averaged}"

    def smaller(self, system: str) -> list[str]:
        """Return the largest systems of the table whose features are a proper subset of those of a system."""
        features = set(self.features(system))
        compared = [name for name in self.phrase_based if name in self.compared]
        subsets = [name for name in compared if set(self.features(name)) < features]
        return [
            name
            for name in subsets
            if not any(set(self.features(name)) < set(self.features(other)) for other in subsets)
        ]

    # Networks that translate alone or rescore lists: LSTMs, and the CSLM, an ensemble of one network.

    def ensemble_models(self, name: str, size: int | str, run: int | str) -> list[str]:
        """Return the model files of an ensemble in a tuning run; every training run has ``size`` networks."""
        first = (self.network_of(run) - 1) * int(size) + 1
        return [network_file(name, n) for n in range(first, first + int(size))]

    def ensemble_of_every_run(self, name: str, size: int | str) -> list[str]:
        """Return the model files of an ensemble in all runs, without duplicates."""
        return list(dict.fromkeys(path for run in self.runs for path in self.ensemble_models(name, size, run)))

    def ensemble(self, system: str) -> tuple[str, int]:
        """Return the name of the networks of a system with LSTMs, and their number."""
        settings = self.config.systems[system]
        return str(settings.network), settings.ensemble or 1

    def beam(self, system: str) -> int:
        """Return the beam size of a system of LSTMs: its ``beam``, or that of ``seq2seq``."""
        return self.config.systems[system].beam or self.config.seq2seq.beam

    def ensemble_options(self, name: str, size: int | str, files: Sequence[str], times: int = 1) -> str:
        """Return the options ``--model`` with the networks of an ensemble, ``times`` options for every run.

        Args:
            files: paths of ``ensemble_of_every_run``, in the same order, as Snakemake passes them (for example with the
                prefix of a module).
        """
        file_of = dict(zip(self.ensemble_of_every_run(name, size), files, strict=True))
        models = (self.ensemble_models(name, size, run) for run in self.runs for _ in range(times))
        return " ".join(f"--model {' '.join(shlex.quote(str(file_of[path])) for path in paths)}" for paths in models)

    def rescored_by(self, system: str) -> str:
        """Return the phrase-based system whose n-best lists a system rescores."""
        return str(self.config.systems[system].rescores)

    def rescored_lists(self, system: str, run: int | str, name: str) -> str:
        """Return the file of the n-best lists of a set, with the network scores of a system that rescores them."""
        lstm, size = self.ensemble(system)
        directory = RUN.format(system=self.rescored_by(system), run=run)
        return f"{directory}/{name}.{lstm}.{size}.nbest.gz"

    def list_files(self, system: str, sets: Iterable[str]) -> list[str]:
        """Return the files of the original and of the rescored n-best lists of a rescoring system, for every run."""
        files = []
        for run in self.runs:
            directory = RUN.format(system=self.rescored_by(system), run=run)
            files += [f"{directory}/{name}.nbest.gz" for name in sets]
            files += [self.rescored_lists(system, run, name) for name in sets]
        return files

    def has_cslm_on_lists(self, system: str) -> bool:
        """Return whether a system rescores the lists of another one by the CSLM."""
        return system in self.rescored and self.config.systems[system].network == CSLM

    def list_feature(self, system: str) -> str:
        """Return the name of the feature that rescoring adds to the lists of a system."""
        return "CSLM0" if self.has_cslm_on_lists(system) else "LSTM0"

    @property
    def lstm_models(self) -> list[str]:
        """Return the model files of the LSTMs of the systems in the results table."""
        systems = [
            name for name in self.config.compare if name not in self.phrase_based and not self.has_cslm_on_lists(name)
        ]
        return list(
            dict.fromkeys(path for name in systems for path in self.ensemble_of_every_run(*self.ensemble(name)))
        )

    @property
    def lstm_histories(self) -> list[str]:
        """Return the training histories of ``lstm_models``."""
        return [str(Path(path).with_name("history.json")) for path in self.lstm_models]

    @property
    def lstm_names(self) -> list[str]:
        """Return the names of ``lstm_models`` with their numbers: lstm1, lstm2 and so on."""
        return ["".join(Path(path).parts[1:3]).replace("network", "") for path in self.lstm_models]

    @property
    def lstms(self) -> list[str]:
        """Return the names of ``lstm_models``, without duplicates and numbers."""
        return list(dict.fromkeys(Path(path).parts[1] for path in self.lstm_models))

    # Evaluation.

    def table_features(self, systems: Iterable[str]) -> str:
        """Return the values of ``evaluation table --features``, without systems of LSTMs that translate alone."""
        added = {name: self.features(name) for name in systems if name not in self.lstms_alone}
        for name in self.rescored:
            if name in added:
                # rescoring with a CSLM is a different feature from a CSLM in the search
                added[name].append(CSLM_ON_LISTS if self.has_cslm_on_lists(name) else name.partition("+")[2])
        return " ".join(f"{name}={'+'.join(features)}" for name, features in added.items())
