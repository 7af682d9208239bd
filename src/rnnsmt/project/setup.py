"""Setting up the directory of a run."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from rnnsmt.base.io import InputError, atomic_text
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.project.configuration import ROLES, configuration, corpora_of

CONFIG = "config.yaml"
PROFILE = "profiles/default/config.yaml"
"""Files of the directory of a run. Snakemake finds a profile of this name by itself, if it is called there."""


def set_up(args: argparse.Namespace) -> list[str]:
    """Write configuration and profile; return lines about what to do next.

    Args:
        args: options of ``rnnsmt init``.

    Raises:
        InputError: the options contradict each other, a file is missing, or the directory has been set up already.
    """
    corpora = corpora_of({role: getattr(args, role) for role in ROLES})
    if args.demo and (corpora or args.languages):
        raise InputError("--demo: the embedded corpus needs neither files nor --languages")
    directory, pipeline = Path(args.directory), pipeline_directory()
    for name in (CONFIG, PROFILE):
        if (directory / name).exists():
            raise InputError(f"{directory / name} exists; choose another directory, or remove the file")
    has_networks = find_spec("torch") is not None
    text = configuration(
        (pipeline / CONFIG).read_text(encoding="utf-8"), corpora, args.languages, args.demo, has_networks
    )
    profile = (pipeline / "profiles" / args.profile / "config.yaml").read_text(encoding="utf-8")
    for name, content in ((CONFIG, text), (PROFILE, profile)):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(path) as out:
            out.write(content)
    lines = [f"wrote {directory / CONFIG} and {directory / PROFILE}"]
    if not has_networks:
        lines.append("PyTorch is not installed: only the baseline is run (see compare in config.yaml)")
    if not args.demo and not corpora:
        lines.append(f"next: write the names of your files in {directory / CONFIG}")
    cores = "" if args.profile.startswith("slurm") else " --cores 2"
    return [*lines, f"next: cd {directory} && rnnsmt run{cores}"]
