#!/usr/bin/env bash
# Looks for sentences that pages of the site have to contain: first in the pages' data, and then in the pages that headless Chromium shows. A page that a script
# fails on shows nothing. Without Chromium only the data is looked at.
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
# A page that says nothing yet is opened again, with more time: a slow machine may need that. The limit is for a browser that hangs.
check() {
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
check coredata "The Core Data API for servers"
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
pages=Eleven
if [ -e "$site/data/documentation/coredatapostgresql.json" ]; then
    check coredatapostgresql/nspostgresqlreplicasoption "the URLs of the store"
    pages=Twelve
fi
[ $faults -eq 0 ] && echo "$pages pages contain what they should."
exit $faults
