"""The package as a wheel, with its workflow, in directories without a checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import rnnsmt
from tests.workflow.conftest import ROOT, SMALL, Workflow, copy_of_checkout

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|cpp|c89|c99|ld|as|nvcc)(-[\d.]+)?")
"""Names of the programs of a compiler."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Build a wheel of this checkout without network."""
    directory = tmp_path_factory.mktemp("wheel")
    copy_of_checkout(directory / "source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, directory / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [*command, "--wheel-dir", str(directory), str(directory / "source")], check=True, capture_output=True
    )
    (path,) = directory.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """Unpack the wheel into a directory that precedes the package of this checkout on the path."""
    directory = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def call(installed: Path, directory: Path, *words: str) -> subprocess.CompletedProcess:
    """Run the package of the wheel in a directory."""
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_the_wheel_has_the_workflow_of_the_checkout(installed):
    """The wheel contains exactly the workflow files of the checkout, in the same places."""

    def files(root: Path) -> dict[str, bytes]:
        names = ["Snakefile", "config.yaml", "workflow", "envs", "profiles"]
        paths = [path for name in names for path in (root / name, *(root / name).rglob("*")) if path.is_file()]
        return {str(path.relative_to(root)): path.read_bytes() for path in paths}

    there = files(installed / "rnnsmt/pipeline")
    assert there == files(ROOT)
    assert len(there) == sum(path.is_file() for path in (installed / "rnnsmt/pipeline").rglob("*"))


def test_a_source_distribution_has_it_too(tmp_path):
    """A source distribution, as built by `python -m build`, contains the workflow."""
    copy_of_checkout(tmp_path)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run([sys.executable, "setup.py", "-q", "sdist", "--formats=tar"], cwd=tmp_path, check=True)
    (archive,) = (tmp_path / "dist").glob("*.tar")
    names = subprocess.run(["tar", "tf", str(archive)], capture_output=True, text=True, check=True).stdout.splitlines()
    inside = {name.partition("/")[2] for name in names}
    assert {"Snakefile", "config.yaml", "workflow/Snakefile", "workflow/rules/align.smk", "setup.py"} <= inside
    assert {"profiles/default/config.yaml", "envs/rnnsmt.yaml", "src/rnnsmt/demo/texts/dev.en.bz2"} <= inside


def test_a_plan_in_an_empty_directory(installed, plan, tmp_path):
    """The plan has the jobs of a checkout and the rules of the wheel, and does not refer to the checkout."""
    done = call(installed, tmp_path, "-m", "rnnsmt", "init", "demo", "--demo")
    assert done.returncode == 0, done.stderr
    done = call(installed, tmp_path / "demo", "-m", "rnnsmt", "run", "--cores", "2", "--dry-run", "--printshellcmds")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.search(rf"^total +{sum(jobs for rule, jobs in plan.items() if ' ' not in rule)}$", said, re.M)
    assert str(ROOT) not in said.replace(sys.prefix, "")
    script = "from rnnsmt.project.running import command_line; print(*command_line([]))"
    assert str(installed / "rnnsmt/pipeline/Snakefile") in call(installed, tmp_path / "demo", "-c", script).stdout
    assert sorted(path.name for path in (tmp_path / "demo").iterdir() if path.name[0] != ".") == [
        "config.yaml",
        "profiles",
    ]


@pytest.fixture
def only_the_configuration(tmp_path) -> Workflow:
    """Return a workflow with a rule that has nothing to do, which checks the package and its configuration."""
    common = f"include: {str(ROOT / 'workflow/rules/common.smk')!r}\n"
    (tmp_path / "Snakefile").write_text(f"{common}rule nothing:\n    output: 'x'\n    shell: 'touch x'\n")
    return Workflow(tmp_path, tmp_path / "Snakefile")


def test_a_wheel_beside_a_checkout_has_its_version(installed, only_the_configuration, tmp_path_factory):
    """Rules of a checkout accept an installed package of the same version and refuse any other."""
    workflow = only_the_configuration
    done = workflow.call("--dry-run", PYTHONPATH=str(installed))
    assert done.returncode == 0, done.stdout
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(installed, other, dirs_exist_ok=True)
    package = other / "rnnsmt/__init__.py"
    package.write_text(package.read_text().replace(f'"{rnnsmt.__version__}"', '"9.9.9"'))
    done = workflow.call("--dry-run", PYTHONPATH=str(other))
    assert done.returncode != 0
    assert f"rnnsmt 9.9.9 is installed, but this workflow requires {rnnsmt.__version__}" in done.stdout


def test_one_version():
    """The package, its rules and their environment have the same version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rules = re.search(r'^VERSION = "(.*)"$', (ROOT / "workflow/rules/common.smk").read_text(), re.M)
    environment = re.search(r"rnnsmt\S*==(\S+)", (ROOT / "envs/rnnsmt.yaml").read_text())
    assert {project["version"], rules[1], environment[1]} == {rnnsmt.__version__}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text()).get("version") in (None, rnnsmt.__version__)


NO_TORCH = """
import runpy, sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *about: None if name == "torch" else find(name, *about)
sys.argv = ["snakemake", *sys.argv[1:]]
runpy.run_module("snakemake", run_name="__main__")
"""


def test_networks_need_pytorch(only_the_configuration):
    """A run with networks begins with a warning if PyTorch is missing; systems without networks do not require it."""
    for options, warned in (([], True), (["--config", "compare=[baseline]"], False)):
        command = [sys.executable, "-c", NO_TORCH, *only_the_configuration.options("-n", *options)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert ("warning: rnn, cslm, nnjm: these networks require PyTorch" in done.stderr + done.stdout) == warned


MISSING = """
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name}}", name=name)

sys.meta_path.insert(0, Missing)
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {names} else find(name, package)
"""


@pytest.mark.slow
def test_a_run_in_a_new_environment(wheel, tmp_path):
    """A run in a new environment, without checkout or compiler, ends with the rows of the test set.

    The environment has the packages of this one except PyTorch and those for pictures; `rnnsmt init` writes a
    configuration without these. Once they are installed, the same command adds a system with a network, and the
    pictures, to the finished run.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            if not COMPILERS.fullmatch(program.name) and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    } | {"PATH": f"{tmp_path / 'venv/bin'}:{programs}", "OMP_NUM_THREADS": "1"}
    assert shutil.which("cc", path=environment["PATH"]) is None
    assert shutil.which("c++", path=environment["PATH"]) is None
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv/bin/python")
    get = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    purelib = Path(subprocess.run(get, env=environment, capture_output=True, text=True, check=True).stdout.strip())
    (purelib / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")  # without the .pth files that are there
    (purelib / "missing.pth").write_text("import missing_modules\n")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    small = {name: value for name, value in SMALL.items() if name not in ("systems", "compare")}

    def run(init: str, missing: list[str], settings: dict[str, object]) -> tuple[list[str], int]:
        """Return the systems of Table 1, and the modification time of the phrase table."""
        (purelib / "missing_modules.py").write_text(MISSING.format(names=missing))
        (tmp_path / "small.yaml").write_text(yaml.safe_dump(small | settings))
        command = f"rnnsmt run --cores 2 --show-failed-logs --configfile config.yaml {tmp_path}/small.yaml"
        script = f"{init} cd demo && {command} && rnnsmt status"
        done = subprocess.run(
            ["bash", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        table = (tmp_path / "demo/results/table1.md").read_text()
        assert "harbour-test: 2,700 segments, 2 runs\n  System" in done.stdout
        assert re.search(r"^finished: (\d+) of \1 jobs done", done.stdout, re.M)
        systems = re.findall(r"^\| (Baseline|RNN) +\|", table.split("\n## harbour-test:")[1].split("\n## ")[0], re.M)
        return systems, (tmp_path / "demo/results/model/phrase-table.gz").stat().st_mtime_ns

    pictures = tmp_path / "demo/results/figures/mert.svg"
    optional = ["torch", "matplotlib", "sklearn", "scipy"]
    systems, made = run("rnnsmt init demo --demo &&", optional, {})
    assert systems == ["Baseline"]
    assert not pictures.exists()
    systems, later = run("", [], {"compare": ["baseline", "rnn"], "evaluation": {"figures": True}})
    assert systems == ["Baseline", "RNN"]
    assert pictures.exists()
    assert later == made
