#!/usr/bin/env bash
# The layers of the library, from the manifest: what the picture and the table in Docs/Architecture.md say of them.
#
#   Docs/layers.sh            prints each target with its level and what it imports
#   Docs/layers.sh --write    puts the picture between its markers, and the imports into the last column of the table
#   Docs/layers.sh --check    fails if that would change the page, if a file imports what its target does not name,
#                            or if the library or its tests use the standard library's mutex
#
# Needs Swift, bash, awk, grep and diff. The targets are those below Sources, without the examples and the plugins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=Docs/Architecture.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One line for each target: its level, its name, and what it imports, sorted. A level is one above the highest import.
# The targets for PostgreSQL are always among them, also where libpq is missing: nothing is built here.
STRATA_POSTGRESQL=1 "${SWIFT:-swift}" package describe --type text > "$scratch/package"
awk -v paths="$scratch/paths" '
    /^Targets:/ { isTargets = 1 }
    !isTargets { next }
    /^    Name: / { name = $2; isList = 0 }
    /^    Path: / { if ($2 ~ /^Sources\// && $2 !~ /^Sources\/(Examples|Plugins)\//) { isOurs[name] = 1; path[name] = $2 } }
    /^    [^ ]/ { isList = /^    Target dependencies:/; next }
    isList && /^        / { imports[name] = imports[name] " " $1 }
    END {
        do {
            isDone = 1
            for (name in isOurs) {
                count = split(imports[name], list, " ")
                for (i = 1; i <= count; i++) {
                    if (level[name] <= level[list[i]]) { level[name] = level[list[i]] + 1; isDone = 0 }
                }
            }
        } while (!isDone)
        for (name in isOurs) {
            count = split(imports[name], list, " ")
            for (i = 2; i <= count; i++) {
                for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
            }
            print name, path[name] > paths
            line = level[name] + 0 " " name
            for (i = 1; i <= count; i++) line = line " " list[i]
            print line
        }
    }
' "$scratch/package" | LC_ALL=C sort -k1,1nr -k2,2 > "$scratch/targets"
[ -s "$scratch/targets" ] || { echo "The manifest has no targets below Sources." >&2; exit 1; }

if [ $# -eq 0 ]; then
    cat "$scratch/targets"
    exit
fi

# The page, with the picture and the column made anew.
awk '
    # One line of the boxes of a row, in the middle of the page.
    function line(left, middle, right,    i, j, text, room) {
        room = widest
        for (i = 1; i <= boxes; i++) room -= length(box[i]) + 5
        text = sprintf("%" int(room / 2) "s", "")
        for (i = 1; i <= boxes; i++) {
            text = text (i > 1 ? " " : "") left
            if (middle == "") text = text " " box[i] " "
            else for (j = 0; j < length(box[i]) + 2; j++) text = text middle
            text = text right
        }
        return text
    }
    function row() {
        if (boxes == 0) return
        print line("┌", "─", "┐")
        print line("│", "", "│")
        print line("└", "─", "┘")
        boxes = 0
    }
    function picture(    i) {
        for (i = 1; i <= targets; i++) {
            width[level[i]] += length(name[i]) + 5
            if (widest < width[level[i]]) widest = width[level[i]]
        }
        print "```"
        for (i = 1; i <= targets; i++) {
            if (i > 1 && level[i] != level[i - 1]) row()
            box[++boxes] = name[i]
        }
        row()
        print "```"
    }
    NR == FNR {
        targets++
        level[targets] = $1
        name[targets] = $2
        list = ""
        for (i = 3; i <= NF; i++) list = list (i > 3 ? ", " : "") "`" $i "`"
        imports[$2] = list == "" ? "nothing" : list
        next
    }
    /^<!-- layers -->$/ { print; picture(); isPicture = 1; markers++; next }
    /^<!-- end of layers -->$/ { isPicture = 0; markers++ }
    isPicture { next }
    # A row of the table: | `target` | what it is | imports |
    /^\| `[A-Za-z-]+` \|/ && split($0, cell, "|") == 5 {
        target = cell[2]
        gsub(/[ `]/, "", target)
        if (target in imports) {
            seen[target]++
            print "|" cell[2] "|" cell[3] "| " imports[target] " |"
            next
        }
        if (target ~ /^C?Strata/) complain(target " is in the table and not in the manifest.")
    }
    { print }
    function complain(text) { print text > "/dev/stderr"; isWrong = 1 }
    END {
        if (markers != 2) complain("The page lacks the markers of the picture.")
        for (i = 1; i <= targets; i++) if (seen[name[i]] != 1) complain("The table needs one row for " name[i] ".")
        exit isWrong
    }
' "$scratch/targets" "$page" > "$scratch/page"

case "$1" in
    --write) cat "$scratch/page" > "$page" ;;
    --check)
        diff -u --label "$page" --label "$page, as the manifest has it" "$page" "$scratch/page" || {
            echo "The layers in $page are not those of Package.swift: run \`make layers\`, and read what the page says of them." >&2
            exit 1
        }
        # The package manager lets a target import what happens to be built before it.
        isWrong=0
        while read -r name path; do
            # What a text of several lines contains is no import of its file.
            find "$path" -name '*.swift' -exec awk '
                FNR == 1 { isText = 0 }
                /"""/ { if (gsub(/"""/, "") % 2) isText = !isText; next }
                !isText
            ' {} + | grep -oE '^[@a-zA-Z_() ]*import ([a-z]+ )?(C?Strata[A-Za-z]+|CoreData[A-Za-z]*)' |
                awk '{ print $NF }' | LC_ALL=C sort -u > "$scratch/imports" || true
            while read -r import; do
                grep -qE "^[0-9]+ $name( .*)? $import( |$)" "$scratch/targets" || {
                    echo "$path imports $import, which its target does not name in Package.swift." >&2
                    isWrong=1
                }
            done < "$scratch/imports"
        done < "$scratch/paths"
        # What comments show is for programs of users, and so are the examples and the client. The scheduler decides who gets a
        # `Locked`, so it and its
        # cells cannot use one.
        if grep -rnE --include='*.swift' '\bMutex[<(]' Sources Tests StressTests/stress |
            grep -vE '^(Sources/Examples/|Tests/Client/|Sources/StrataLocks/(Schedule(Run)?|AtomicCell)\.swift:)|^[^:]+:[0-9]+: *//' >&2; then
            echo "Use \`Locked\` of StrataLocks, which says why, in place of the standard library's mutex." >&2
            isWrong=1
        fi
        exit $isWrong ;;
    *) echo "Docs/layers.sh [--write | --check]" >&2; exit 2 ;;
esac
