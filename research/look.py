"""Print lines of files, and log which lines were printed: the measurement of ten-changes.md.

    python look.py LOG TASK FILE [FIRST LAST]      lines FIRST to LAST of a file, or all
    python look.py LOG TASK --grep PATTERN [PATH ...]   matching lines (regular expression), in files tracked by git
    python look.py LOG --summary                   distinct lines and files per task, and the median

Run it in the top directory of the checkout that is measured.
"""

import re
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path


def numbered(path: str) -> list[tuple[int, str]]:
    """Return the lines of a file with their numbers."""
    return list(enumerate(Path(path).read_text(encoding="utf-8", errors="replace").splitlines(), 1))


def summary(log: Path) -> None:
    """Print the distinct lines and files that were opened for each task."""
    opened: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for line in log.read_text().splitlines():
        task, path, number = line.split("\t")
        opened[task].add((path, int(number)))
    for task, lines in opened.items():
        print(f"{task}: {len(lines)} lines in {len({path for path, _ in lines})} files")
    print(f"median: {statistics.median(map(len, opened.values())):g} lines")


def main() -> None:
    log, arguments = Path(sys.argv[1]), sys.argv[2:]
    if arguments == ["--summary"]:
        return summary(log)
    task, *arguments = arguments
    if arguments[0] == "--grep":
        if re.fullmatch("-[a-zA-Z]", arguments[1]):
            sys.exit(f"{arguments[1]}: unknown option; (?i) at the beginning of a pattern ignores case")
        pattern = re.compile(arguments[1])
        files = subprocess.run(["git", "ls-files", *arguments[2:]], capture_output=True, text=True, check=True).stdout
        binary = {".png", ".xz", ".gz", ".bz2", ".ico"}
        paths = [p for p in files.splitlines() if Path(p).suffix not in binary and Path(p).is_file()]
        shown = [(p, n, line) for p in paths for n, line in numbered(p) if pattern.search(line)]
    else:
        path = arguments[0]
        first, last = map(int, arguments[1:3]) if len(arguments) > 1 else (1, sys.maxsize)
        shown = [(path, n, line) for n, line in numbered(path) if first <= n <= last]
    with log.open("a") as file:
        for p, n, line in shown:
            file.write(f"{task}\t{p}\t{n}\n")
            print(f"{p}:{n}: {line}"[:300])


if __name__ == "__main__":
    main()
