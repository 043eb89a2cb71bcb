#!/usr/bin/env bash
# Looks for sentences that pages of the site have to contain: first in the pages' data, and then in the pages that headless Chromium shows. A page that a script
# fails on shows nothing. Without Chromium only the data is looked at. Then it checks that each page has the line of links, that these lead
# somewhere, that the root of the site leads to the landing page, and that the search finds articles and symbols.
#
#   Docs/check-site.sh SITE
set -euo pipefail
site=$1
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -n "$browser" ]; then
    python3 -u -m http.server --bind 127.0.0.1 --directory "$site" 0 > "$scratch/port" 2> /dev/null &
    server=$!
    for _ in $(seq 3000); do
        port=$(grep -oE 'port [0-9]+' "$scratch/port" | cut -d' ' -f2 || true)
        [ -z "$port" ] || break
        sleep 0.1
    done
else
    echo "Chromium is not installed: the pages are looked at, but not opened." >&2
fi

faults=0
pages=0
# A page that says nothing yet is opened again, with more time: a slow machine may need that. The limit is for a browser that hangs.
check() {
    pages=$((pages + 1))
    if ! grep -qF "$2" "$site/data/documentation/$1.json"; then
        echo "The data of $1 does not contain “$2”." >&2
        faults=1
        return
    fi
    [ -n "$browser" ] || return 0
    for budget in 15000 60000 240000; do
        page=$(timeout 600 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
            --enable-logging=stderr --virtual-time-budget=$budget --dump-dom "http://127.0.0.1:$port/documentation/$1" 2> "$scratch/log" || true)
        if grep -E 'Uncaught|SyntaxError|TypeError' "$scratch/log" >&2; then faults=1; return; fi
        if grep -qF "$2" <<< "$page"; then return; fi
    done
    echo "$1 does not say “$2”." >&2
    faults=1
}
check coredata "an object graph with many contexts at once"
check coredata/gettingstarted "A model in Swift"
check coredata/operating "One context per request"
check coredata/instruments "swift-metrics"
check coredata/nspersistentcontainer "A model, its coordinator"
check coredata/nsmanagedobjectcontext "A unit of work"
check coredata/nsfetchrequest "NSFetchRequest"
check coredata/coredatainstrument "A receiver of events of a coordinator"
check coredata/nspersistentstorecoordinator "The link between contexts and stores"
check coredata/followingchanges "Every change once"
check coredata/trees "A child for work"
check coredata/fromgrdb "objects in place of records"
check coredata/glossary "Words of programs"
check coredata/expressionfunctiontarget "An object that provides functions for "
check coredatajobs "Work that is done later"
check swiftdata "The model classes of an app"
if [ -e "$site/data/documentation/coredatapostgresql.json" ]; then
    check coredatapostgresql "One database for many machines"
    check coredatapostgresql/nspostgresqlreplicasoption "the URLs of the store"
fi

complain() {
    echo "$1" >&2
    faults=1
}
without=$(find "$site/documentation" -mindepth 2 -name index.html -print0 | xargs -0r grep -L 'class="strata-links"' || true)
[ -z "$without" ] || complain "These pages have no line of links: $(head -3 <<< "$without")"
links=$(grep -oE 'href="[^"]*/documentation/[^"]*"' "$site/documentation/coredata/index.html" | grep -oE '/documentation/[^"#]*' | sort -u || true)
[ "$(wc -l <<< "$links")" -ge 5 ] || complain "The line of links has too few of them: $links"
for link in $links; do
    [ -e "$site/data$link.json" ] || complain "The line of links leads to $link, which is not there."
done
for place in . documentation; do
    target=$(sed -nE 's/.*url=([^"]+)".*/\1/p' "$site/$place/index.html" 2> /dev/null || true)
    [ -n "$target" ] && [ -e "$site/$place/$target/index.html" ] || complain "$place/index.html does not lead to the landing page."
done
for title in Glossary "Coming from GRDB" ExpressionFunctionTarget JobWorker; do
    grep -qF "\"title\":\"$title\"" "$site/index/index.json" || complain "The search does not find $title."
done
[ $faults -eq 0 ] && echo "$pages pages contain what they should, and the links above them lead somewhere."
exit $faults
