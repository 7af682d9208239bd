"""Build of the package: a wheel contains the workflow, too. Everything else is in pyproject.toml."""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PIPELINE = ("Snakefile", "config.yaml", "workflow", "envs", "profiles")
"""Files and directories of the workflow at the top level of the repository."""

TARGET = Path("rnnsmt", "pipeline")
"""Their directory in a wheel, see ``rnnsmt.plan.pipeline``."""


def pipeline_files() -> Iterator[Path]:
    """Yield the files of the workflow, as paths from the top level of the repository."""
    for name in map(Path, PIPELINE):
        paths = sorted(name.rglob("*")) if name.is_dir() else [name]
        yield from (path for path in paths if path.is_file())


class BuildWithPipeline(build_py):
    """Copy the workflow into the package of a wheel; an editable installation finds it in the checkout."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if not self.editable_mode:
            for source, target in self.pipeline_targets().items():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def pipeline_targets(self) -> dict[Path, Path]:
        """Return the file of the build directory for every file of the workflow."""
        return {path: Path(self.build_lib, TARGET, path) for path in pipeline_files()}

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return all files of the build directory that the wheel contains."""
        own = [] if self.editable_mode else map(str, self.pipeline_targets().values())
        return [*super().get_outputs(include_bytecode), *own]

    def get_source_files(self) -> list[str]:
        """Return all files that a source distribution needs."""
        return [*super().get_source_files(), *map(str, pipeline_files())]


setup(cmdclass={"build_py": BuildWithPipeline})
