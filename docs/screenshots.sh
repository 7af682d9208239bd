#!/usr/bin/env bash
# Pictures of the report and of the page of a system, from a finished run: docs/screenshots.sh RUN SYSTEM (make screenshots)
# Needs Chromium (Debian: chromium), or the program that CHROMIUM names.
set -euo pipefail
run=$1 system=$2 pictures="$(cd "$(dirname "$0")" && pwd)/pictures"
browser=${CHROMIUM:-chromium}
command -v "$browser" > /dev/null || { echo "there is no $browser on PATH: install Chromium, or set CHROMIUM" >&2; exit 1; }
profile=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; rm -rf "$profile"' EXIT

picture() {  # URL NAME HEIGHT
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" \
        --virtual-time-budget=10000 --window-size="1100,$3" --screenshot="$pictures/$2.png" "$1" 2> /dev/null
    test -s "$pictures/$2.png"
}

picture "file://$(cd "$run" && pwd)/results/report/index.html" report 1000

port=$(python -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
rnnsmt translate --system "$run/results/systems/$system/run1" --serve "$port" &
server=$!
until curl --silent --fail "http://127.0.0.1:$port/health" > /dev/null; do
    kill -0 "$server"
    sleep 0.5
done
picture "http://127.0.0.1:$port/?text=The+boats+are+in+the+harbour.+The+captain+sees+the+old+ship." translate 630
echo "the pictures are $pictures/report.png and $pictures/translate.png"
