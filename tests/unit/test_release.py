"""Releases: CI workflows, versions, changelog, lock files."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

import rnnsmt

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

by_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])


def jobs(path: Path) -> dict[str, dict]:
    """Return the jobs of a CI workflow."""
    return yaml.safe_load(path.read_text())["jobs"]


def make_targets() -> set[str]:
    """Return the phony targets of the Makefile."""
    (line,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    return set(line.split())


def test_every_phony_target_has_a_rule():
    rules = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert make_targets() <= rules


def test_there_are_workflows_for_tests_wheel_docs_release_and_nightly_table():
    assert {path.stem for path in WORKFLOWS} == {"tests", "wheel", "docs", "release", "nightly"}


@by_workflow
def test_commands_of_workflows_are_targets_of_the_makefile(path):
    """Make targets and scripts in CI workflows exist."""
    scripts = [step["run"] for job in jobs(path).values() for step in job["steps"] if "run" in step]
    called = [word for script in scripts for word in re.findall(r"\bmake ([\w-]+)", script)]
    assert called
    assert set(called) <= make_targets()
    for script in scripts:
        for name in re.findall(r"\bpython (\S+\.py)", script):
            assert (ROOT / name).is_file(), name


@by_workflow
def test_workflows_have_few_rights(path):
    """CI workflows have minimal permissions, one run at a time, time limits, and actions with a fixed version."""
    content = yaml.safe_load(path.read_text())
    assert content["permissions"] == {"contents": "read"}
    assert content["concurrency"]["group"]
    more = {name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job}
    expected = {
        "docs": {"deploy": {"pages": "write", "id-token": "write"}},
        "release": {"publish": {"id-token": "write"}, "page": {"contents": "write"}},
    }
    assert more == expected.get(path.stem, {})
    for job in content["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            action, _, version = step.get("uses", "a@v1").partition("@")
            assert re.fullmatch(r"[0-9a-f]{40}|v\d+|release/v\d+", version), action
            if action == "actions/checkout":
                assert step["with"]["persist-credentials"] is False
            assert "${{ github.event" not in step.get("run", ""), "text of strangers in a script"


def test_an_action_has_one_version():
    used = [
        step["uses"] for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"] if "uses" in step
    ]
    assert len({name.partition("@")[0] for name in used}) == len(set(used))


def test_every_python_of_the_classifiers_is_tested():
    """CI tests every Python version of the classifiers, and the following one."""
    stated = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    matrix = jobs(ROOT / ".github/workflows/tests.yml")["tests"]["strategy"]["matrix"]
    assert matrix["python"] == [*stated, "3.14"]
    assert PROJECT["requires-python"] == f">={stated[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}


release_notes = runpy.run_path(str(ROOT / ".github/scripts/release_notes.py"))["release_notes"]


def test_notes_of_a_release():
    text = "# Changelog\n\n## 1.0.1\n\n* b\n\n## 1.0.0 (2026-12-01)\n\n* a\n* more\n\n## 0.1.0\n\n* z\n"
    assert release_notes("v1.0.0", "1.0.0", text) == "* a\n* more\n"
    assert release_notes("v0.1.0", "0.1.0", text) == "* z\n"
    with pytest.raises(ValueError, match=r"the tag is v1\.0\.0, but .* version 1\.0\.1"):
        release_notes("v1.0.0", "1.0.1", text)
    for changelog in (text, text.replace("1.0.1", "2.0.0").replace("* b\n", "")):
        with pytest.raises(ValueError, match=r"no section `## 2\.0\.0` with text"):
            release_notes("v2.0.0", "2.0.0", changelog)


def test_the_changelog_begins_with_what_is_not_released_or_this_version():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first[1] in ("Unreleased", rnnsmt.__version__)


def pins(path: Path) -> dict[str, str]:
    """Return the versions in a lock file."""
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)", path.read_text(), re.M)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_locks_with_hashes_have_the_versions_of_the_lock():
    plain = pins(ROOT / "requirements.lock")
    base, torch = (pins(ROOT / f"requirements-hashed{suffix}.lock") for suffix in ("", "-torch"))
    assert base == {name: version for name, version in plain.items() if name != "torch"}
    assert torch["torch"] == plain["torch"]
    assert f"whl/cpu torch=={plain['torch']}\n" in (ROOT / "docs/install.md").read_text()
    assert not set(base) & set(torch)
    assert set(base) & set(pins(ROOT / "requirements-hashed-image.lock")) == {"python-dateutil"}, "of botocore"
    for suffix in ("", "-torch", "-image"):
        text = (ROOT / f"requirements-hashed{suffix}.lock").read_text()
        assert "http" not in text
        for entry in re.split(r"^(?=\w)", text, flags=re.M)[1:]:
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


set_version = runpy.run_path(str(ROOT / ".github/scripts/set_version.py"))


def test_set_version_reaches_every_place(tmp_path):
    """A new version is written to all listed files; without a section `Unreleased`, nothing is written."""
    for name in set_version["STATED"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## Unreleased\n\n* a\n\n## 0.0.1\n\n* z\n")
    set_version["set_version"](tmp_path, "7.8.9", "2030-01-02")
    for name, pattern in set_version["STATED"].items():
        if name != "CHANGELOG.md":
            assert set(re.findall(pattern, (tmp_path / name).read_text(), re.M)) == {"7.8.9"}, name
            assert rnnsmt.__version__ in (ROOT / name).read_text()
    assert release_notes("v7.8.9", "7.8.9", changelog.read_text()) == "* a\n"
    for version, reason in (("7.8", "not a version"), ("8.0.0", r"CHANGELOG\.md has no line")):
        with pytest.raises(ValueError, match=reason):
            set_version["set_version"](tmp_path, version, "2030-01-02")
    assert "7.8.9" in (tmp_path / "pyproject.toml").read_text()


def test_every_place_states_one_version_and_the_date_of_its_changelog():
    """The tree, its pages, CITATION.cff, the environment and the changelog state one version."""
    for name, pattern in set_version["STATED"].items():
        if name != "CHANGELOG.md":
            assert set(re.findall(pattern, (ROOT / name).read_text(), re.M)) == {rnnsmt.__version__}, name
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    dates = dict(re.findall(r"^## ([\d.]+) \(([\d-]+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M))
    assert str(citation["date-released"]) == dates[rnnsmt.__version__]
    assert set(citation["authors"][0]) == {"name", "alias"}, "an entity"


def test_nothing_tells_users_to_install_rnnsmt_from_an_index():
    """The package is on no index: pages, notebooks, messages and the catalogue's file name a clone or a wheel."""
    places = [ROOT / "README.md", ROOT / "config/README.md", ROOT / ".snakemake-workflow-catalog.yml"]
    for pattern in ("docs/*.md", "notebooks/*.ipynb", "src/rnnsmt/**/*.py", "workflow/**/*.smk", "profiles/*/*.yaml"):
        places += ROOT.glob(pattern)
    found = [path for path in places if re.search(r"pip install [^\n`]*(?<![./\w])rnnsmt\b(?!-\d)", path.read_text())]
    assert not found


def test_issue_forms_are_complete():
    """Every form has a name, a description and fields with labels; ids are unique."""
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert {path.stem for path in forms} == {"bug", "question", "own-data"}
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert form["name"]
        assert form["description"]
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields)
        assert len({field["id"] for field in fields}) == len(fields)
