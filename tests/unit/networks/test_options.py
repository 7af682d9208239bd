"""Options of `networks train`: every training setting has a help text with the values of the presets."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import fields_of
from rnnsmt.base.operations import as_on_command_line
from rnnsmt.base.options import option
from rnnsmt.cli import main
from rnnsmt.cslm.settings import PRESETS as CSLM
from rnnsmt.rnn.settings import PRESETS as RNN
from rnnsmt.rnn.settings import RnnSettings
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ

PACKAGES = {"rnn": RNN, "cslm": CSLM, "seq2seq": SEQ2SEQ}

PRESETS = pytest.mark.parametrize(("package", "presets"), PACKAGES.items(), ids=PACKAGES)


def help_lines(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the help text of every option of a command, from ``--help`` on a terminal without line breaks."""
    monkeypatch.setenv("COLUMNS", "2000")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    found = re.findall(r"^  (--[\w-]+) ?(?:\{[^}]*\}|[A-Z/]+)?\s+(.*)$", capsys.readouterr().out, re.M)
    return dict(found)


@PRESETS
def test_help_lists_the_value_of_every_preset(package, presets, capsys, monkeypatch) -> None:
    lines = help_lines(f"networks train --network {package}", capsys, monkeypatch)
    fields = fields_of(type(presets["demo"]))
    for name, setting in fields.items():
        text = as_on_command_line(setting.field.description, fields)
        assert text and not text.endswith("."), name
        shown = lines[option(name)]
        assert shown.startswith(f"{text} (")
        values = shown[len(text) :].strip(" ()")
        if values.startswith("all presets: "):
            found = dict.fromkeys(presets, values.removeprefix("all presets: "))
        else:
            found = dict(value.split(" ") for value in values.split(", "))
        assert list(found) == list(presets)
        for preset, settings in presets.items():
            value = getattr(settings, name)
            assert type(value)(found[preset]) == value, (name, preset)


def test_help_of_rnn_train(capsys, monkeypatch) -> None:
    lines = help_lines("networks train --network rnn", capsys, monkeypatch)
    assert lines["--hidden"].endswith(" (demo 128, small 256, paper 1000)")
    assert lines["--learning-rate"].endswith(" (demo 0.016, small 0.01, paper 1)")
    assert lines["--optimizer"].endswith(" (demo adam, small adam, paper adadelta)")
    assert lines["--updates"].endswith(" (demo 0, small 0, paper 3000000)")
    assert lines["--variant"].endswith(" (all presets: paper)")
    assert "1 % of it" in lines["--held-out"]


def test_a_preset_with_other_values() -> None:
    assert RnnSettings.preset("demo", epochs=2) == replace(RNN["demo"], epochs=2.0)
    assert repr(RnnSettings.preset("demo", epochs=2)) == "RnnSettings.preset('demo', epochs=2.0)"
    assert RnnSettings.preset("small", variant="supplementary").dropout == 0, "which the variant cannot have"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden": 8.5}, "hidden 8.5: must be an integer"),
        ({"hidden": "12"}, "hidden '12': must be an integer"),
        ({"variant": "lstm"}, "variant 'lstm': must be paper or supplementary"),
        ({"update": 2}, "update 2: unknown setting"),
        ({"weight_decay": 0.1, "optimizer": "sgd"}, 'weight_decay 0.1: requires optimizer="adam"'),
        (
            {"variant": "supplementary", "dropout": 0.2},
            'dropout 0.2: cannot be combined with variant="supplementary"; ',
        ),
    ],
)
def test_wrong_settings(values, message) -> None:
    with pytest.raises(InputError) as error:
        RnnSettings.preset("small", **values)
    assert str(error.value).startswith(message)


def test_an_unknown_preset() -> None:
    with pytest.raises(InputError, match="preset 'large': must be one of demo, small, paper"):
        RnnSettings.preset("large")


def test_the_help_of_a_training_imports_nothing_slow() -> None:
    code = (
        "import sys; from rnnsmt.cli import command_parser; command_parser('networks', 'train').format_help(); "
        "assert not {'numpy', 'pydantic', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
