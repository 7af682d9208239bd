"""Missing outputs of unfinished jobs: the record, and which of them are requested."""

from pathlib import Path

import pytest

from rnnsmt.monitoring.unfinished import FILE, missing_outputs, needed_for


class Output(str):
    """Path with Snakemake's flags; a path that ends in ~ is temporary."""

    @property
    def flags(self) -> dict[str, bool]:
        """Return the flags of the path."""
        return {"temp": self.endswith("~")}


class Rule:
    """Rule without wildcards, with the interface of Snakemake's rules that ``needed_for`` uses."""

    def __init__(self, inputs: str, outputs: str) -> None:
        self.inputs, self.outputs = inputs.split(), list(map(Output, outputs.split()))

    def is_producer(self, path: str) -> bool:
        """Return whether the rule creates a file."""
        return path in self.outputs

    def get_wildcards(self, path: str) -> dict[str, str]:
        """Return no wildcards."""
        return {}

    def expand_input(self, wildcards: dict[str, str]) -> tuple[list[str]]:
        """Return the inputs as the first of several values."""
        return (self.inputs,)

    def expand_output(self, wildcards: dict[str, str]) -> tuple[list[Output]]:
        """Return the outputs as the first of several values."""
        return (self.outputs,)


@pytest.mark.parametrize(
    ("content", "missing"), [('["a", "b"]', ["b"]), ("[]", []), ("[", []), ("[1]", []), (None, [])]
)
def test_missing_outputs(tmp_path: Path, content: str | None, missing: list[str]):
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "a").touch()
    if content is not None:
        (tmp_path / ".snakemake" / FILE).write_text(content)
    assert missing_outputs(tmp_path) == missing


def test_only_what_the_targets_are_made_from_is_needed():
    """Files of rules that no target depends on are not requested, even if another run has not finished them."""
    rules = [Rule("text", "tuned log"), Rule("tuned", "translation"), Rule("translation", "table"), Rule("", "other")]
    lost = ["tuned", "log", "other", "removed"]
    assert needed_for(["table"], lost, rules) == ["tuned", "log"]
    assert needed_for(["other"], lost, rules) == ["other"]
    assert needed_for(["translation", "other"], lost, rules) == ["tuned", "log", "other"]


def test_temporary_files_are_not_requested():
    """A temporary file is missing after its use; the files that it is made from are found through it."""
    rules = [Rule("text", "model"), Rule("model", "counts~ log"), Rule("counts~", "table")]
    assert needed_for(["table"], ["counts~", "model", "log"], rules) == ["model", "log"]
