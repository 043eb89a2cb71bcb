#!/usr/bin/env bash
# jobs-on-postgresql.sh PROGRAM FOLDER [options]: the demonstration of the job queue on the server that STRATA_TEST_POSTGRESQL names. After some
# seconds the server ends all sessions of the queue's processes at once.
set -euo pipefail
program=$1 folder=$2
shift 2
"$program" demo --folder "$folder" --store "$STRATA_TEST_POSTGRESQL&schema=jobs" "$@" &
demo=$!
psql=$(ls -1 /usr/lib/postgresql/*/bin/psql /usr/pgsql-*/bin/psql 2> /dev/null | sort -V | tail -n 1 || true)
[ -n "$psql" ] || psql=psql
for _ in 1 2; do
    sleep 2
    ended=$("$psql" -At "$STRATA_TEST_POSTGRESQL" -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '${program##*/}'")
    echo "The server has ended $ended sessions."
done
wait "$demo"
