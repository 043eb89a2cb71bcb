#!/usr/bin/env bash
# Compares sqlite-only.txt with the sources: whoever writes a test on SQLite alone has to say why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export LC_ALL=C

listed=$(grep -v '^#' sqlite-only.txt | sed 's/: .*//' | sort -k 2)
found=$(grep -rcE '(^ *|\(|, )\.sqlite[,)]' CoreDataTests CoreDataSteppedTests --include='*.swift' | sed -nE 's/^(.*):([1-9][0-9]*)$/\2 \1/p' | sort -k 2)
if ! diff <(echo "$listed") <(echo "$found"); then
    echo "Tests/sqlite-only.txt (<) is not what the sources have (>): use the run's database (\`.database\`), or say there why not." >&2
    exit 1
fi
