#!/usr/bin/env bash
# jobs-on-postgresql.sh PROGRAM FOLDER [options]: the demonstration of the job queue on the server that STRATA_TEST_POSTGRESQL names. Twice the server
# ends all sessions of the queue's processes at once. It fails if there were none to end; if no worker was killed, the program itself does.
set -euo pipefail
program=$1 folder=$2
shift 2
"$program" demo --folder "$folder" --store "$STRATA_TEST_POSTGRESQL&schema=jobs" "$@" &
demo=$!
psql=$(ls -1 /usr/lib/postgresql/*/bin/psql /usr/pgsql-*/bin/psql 2> /dev/null | sort -V | tail -n 1 || true)
[ -n "$psql" ] || psql=psql
for blow in 1 2; do
    sleep 2
    ended=0
    # Where the machine has other work to do, the processes may not have come yet.
    while [ "$ended" -eq 0 ] && kill -0 "$demo" 2> /dev/null; do
        ended=$("$psql" -At "$STRATA_TEST_POSTGRESQL" -c "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE application_name = '${program##*/}'")
        [ "$ended" -gt 0 ] || sleep 0.1
    done
    if [ "$ended" -eq 0 ]; then
        wait "$demo"
        echo "WRONG: the demonstration was over before blow $blow. It needs --seconds 6 or more." >&2
        exit 1
    fi
    echo "The server has ended $ended sessions."
done
wait "$demo"
