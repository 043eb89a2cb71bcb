#!/usr/bin/env bash
# A private PostgreSQL server for tests, demos and benchmarks: on a Unix socket in a folder of its own, for an ordinary user, and with nothing
# else on the machine touched.
#
#   Tests/postgresql-server.sh start FOLDER [setting=value …]   makes and starts it, and prints the URL of a database
#   Tests/postgresql-server.sh stop FOLDER                       stops it, and removes the folder
#   Tests/postgresql-server.sh replica FOLDER PRIMARY [setting=value …]
#                                                                makes and starts one that follows the one in PRIMARY, and prints its URL
#   Tests/postgresql-server.sh pooler FOLDER SERVER [setting=value …]
#                                                                starts a pgbouncer in transaction mode before the one in SERVER, and prints
#                                                                the URL that leads through it; `stop` stops it
#   Tests/postgresql-server.sh portable FOLDER SERVER [EVERY]    starts a proxy before the one in SERVER that refuses what many engines of its wire
#                                                                lack, and prints the URL that leads through it: see postgresql-portable.c. With
#                                                                STRATA_PORTABLE=silent advisory locks lock nothing, otherwise they are missing.
#                                                                One COMMIT in EVERY is answered by 40001, or with `each` each transaction once;
#                                                                without it, STRATA_PORTABLE_EVERY says that, or else 7. `stop` stops it
#   Tests/postgresql-server.sh redirect FOLDER SERVER            makes the pooler lead to the server in SERVER, while its clients stay connected
#   Tests/postgresql-server.sh certificates FOLDER NAME          makes an authority (root.crt) and a server's certificate and key by that name
#                                                                (server.crt, server.key); the folder may be there
#   Tests/postgresql-server.sh promote FOLDER                    lets a replica go its own way
#   Tests/postgresql-server.sh halt FOLDER                       stops it at once, as if it had crashed
#   Tests/postgresql-server.sh resume FOLDER                     starts it again
#   Tests/postgresql-server.sh run COMMAND …                     runs a command with STRATA_TEST_POSTGRESQL=URL beside one, and stops it then;
#                                                                STRATA_POSTGRESQL_SCRIPT tells it where this is, and PGSERVICEFILE names
#                                                                a file that it may write; with STRATA_POOLER=1 the URL leads through a pooler;
#                                                                with STRATA_PORTABLE it leads through `portable`, as does that of `start`;
#                                                                servers that the command starts are copies of STRATA_POSTGRESQL_TEMPLATE,
#                                                                and so one cluster to their clients, unless that is empty
#
# With STRATA_DISK=1 the server's disk is that of postgresql-disk.c: it is full for tables as long as there is a file `full` in the folder, and
# each flush takes STRATA_FLUSH microseconds longer; its clock is STRATA_CLOCK seconds ahead. A C compiler is needed for it.
#
# PostgreSQL refuses to run as root; then the user `postgres`, or `nobody`, runs it. The server lets everybody in who reaches its socket, so only
# that user and root may enter the folder.
#
# By default nothing is flushed to the disk, and a commit does not wait until its record is written. What was written outlives the server, though not
# the machine. So a test that halts the server and looks for its commits afterwards sets synchronous_commit=on; fsync=on is for whoever measures.
set -euo pipefail

# The programs are seldom on the path.
initdb=$(ls -1 /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb 2> /dev/null | sort -V | tail -n 1 || true)
[ -n "$initdb" ] || initdb=$(readlink -f "$(command -v initdb || echo /)")
programs=$(dirname "$initdb")
[ -x "$programs/initdb" ] || { echo "There is no initdb here: install postgresql, please." >&2; exit 1; }

as_user() {
    if [ "$(id -u)" -ne 0 ]; then "$@"; else runuser -u "$user" -- "$@"; fi
}
user=postgres
if [ "$(id -u)" -eq 0 ] && ! id -u "$user" > /dev/null 2>&1; then user=nobody; fi

# The socket is in it, and `-A trust` asks nobody who they are.
make_folder() {
    mkdir -p "$1"
    chmod 700 "$1"
    if [ "$(id -u)" -eq 0 ]; then chown "$user" "$1"; fi
}

# Starts the server in a folder. Settings are kept for the next time.
launch() {
    local folder=$1
    shift
    local options="-c listen_addresses='' -c unix_socket_directories='$folder' -c max_connections=200 -c fsync=off"
    options+=" -c synchronous_commit=off -c full_page_writes=off -c max_locks_per_transaction=512"
    for setting in "$@"; do options+=" -c $setting"; done
    echo "$options" > "$folder/options"
    run_server "$folder"
}

# A server must not inherit what whoever started this may wait for the end of.
close_descriptors() {
    local descriptor
    for descriptor in /proc/$BASHPID/fd/*; do
        descriptor=${descriptor##*/}
        if [ "$descriptor" -gt 2 ] && [ "$descriptor" -ne 255 ]; then eval "exec $descriptor>&-"; fi
    done
}

run_server() {
    local folder=$1 options
    options=$(cat "$folder/options")
    close_descriptors
    local preload=()
    if [ "${STRATA_DISK:-0}" = 1 ]; then
        cc -O1 -shared -fPIC -o "$folder/disk.so" "$(dirname "$0")/postgresql-disk.c" -ldl
        preload=(env LD_PRELOAD="$folder/disk.so" STRATA_DISK_FOLDER="$folder")
        if [ -n "${STRATA_FLUSH:-}" ]; then preload+=(STRATA_FLUSH="$STRATA_FLUSH"); fi
        if [ -n "${STRATA_CLOCK:-}" ]; then preload+=(STRATA_CLOCK="$STRATA_CLOCK"); fi
    fi
    (cd "$folder" && as_user ${preload[@]+"${preload[@]}"} "$programs/pg_ctl" -D "$folder/data" -w -l "$folder/server.log" -o "$options" start > /dev/null) ||
        { cat "$folder/server.log" >&2; exit 1; }
}

# A copy of what `run` has made takes a tenth of the time. It is the same cluster then.
make_data() {
    local folder=$1 template=${STRATA_POSTGRESQL_TEMPLATE:-}
    make_folder "$folder"
    if [ -n "$template" ]; then cp -a "$template" "$folder/data"; return; fi
    (cd "$folder" && as_user "$programs/initdb" -D "$folder/data" -A trust -U strata -E UTF8 --locale=C --no-sync > "$folder.log" 2>&1) ||
        { cat "$folder.log" >&2; exit 1; }
    rm -f "$folder.log"
}

start() {
    local folder=$1
    shift
    make_data "$folder"
    start_made "$folder" "$@"
}

start_made() {
    local folder=$1
    shift
    launch "$folder" "$@"
    as_user "$programs/createdb" -h "$folder" -U strata strata
    if [ -n "${STRATA_PORTABLE:-}" ]; then portable "$folder/p" "$folder"; return; fi
    echo "postgresql:///strata?host=$folder&user=strata"
}

# `pg_basebackup` brings the settings that lead to the primary.
replica() {
    local folder=$1 primary=$2
    shift 2
    make_folder "$folder"
    (cd "$folder" && as_user "$programs/pg_basebackup" -h "$primary" -U strata -D "$folder/data" -R -X stream -c fast --no-sync \
        > "$folder.log" 2>&1) || { cat "$folder.log" >&2; exit 1; }
    rm -f "$folder.log"
    launch "$folder" "$@"
    echo "postgresql:///strata?host=$folder&user=strata"
}

# Few sessions of the server, so that each is given to one transaction after another's.
pooler() {
    local folder=$1 server=$2 program
    shift 2
    program=$(PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer) || { echo "There is no pgbouncer here." >&2; exit 1; }
    make_folder "$folder"
    {
        printf '[databases]\n* = host=%s user=strata\n[pgbouncer]\nlisten_port = 5432\nunix_socket_dir = %s\n' "$server" "$folder"
        printf 'auth_type = any\nadmin_users = strata\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\nmax_db_connections = 0\n'
        printf 'logfile = %s/pooler.log\npidfile = %s/pooler.pid\n' "$folder" "$folder"
        for setting in "$@"; do echo "$setting"; done
    } > "$folder/pooler.ini"
    close_descriptors
    (cd "$folder" && as_user "$program" -q -d "$folder/pooler.ini" < /dev/null > /dev/null 2>&1) ||
        { cat "$folder/pooler.log" >&2; exit 1; }
    # The socket is there before anybody listens.
    for _ in $(seq 200); do
        "$programs/pg_isready" -q -h "$folder" -d strata -U strata && break
        sleep 0.02
    done
    echo "postgresql:///strata?host=$folder&user=strata"
}

# The functions are there, and lock nothing.
silent_locks="CREATE SCHEMA IF NOT EXISTS strata_silent; GRANT USAGE ON SCHEMA strata_silent TO PUBLIC;"
for parameters in bigint 'int, int'; do
    for lock in advisory_lock_shared advisory_xact_lock; do
        silent_locks+="CREATE OR REPLACE FUNCTION strata_silent.pg_$lock($parameters) RETURNS void LANGUAGE sql AS '';"
    done
    for lock in try_advisory_lock try_advisory_xact_lock; do
        silent_locks+="CREATE OR REPLACE FUNCTION strata_silent.pg_$lock($parameters) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
    done
done
silent_locks+="CREATE OR REPLACE FUNCTION strata_silent.pg_advisory_unlock_all() RETURNS void LANGUAGE sql AS '';"

portable() {
    local folder=$1 server=$2 mode=${STRATA_PORTABLE:-missing}
    "$programs/psql" -q -h "$server" -d strata -U strata -c "$silent_locks" > /dev/null 2>&1 || true # another proxy may make them at this moment
    make_folder "$folder"
    cc -O1 -pthread -o "$folder/portable" "$(dirname "${BASH_SOURCE[0]}")/postgresql-portable.c"
    (
        close_descriptors
        exec "$folder/portable" "$server/.s.PGSQL.5432" "$folder/.s.PGSQL.5432" "$mode" "${3:-${STRATA_PORTABLE_EVERY:-7}}" < /dev/null > /dev/null 2>&1
    ) &
    echo $! > "$folder/portable.pid"
    for _ in $(seq 200); do
        "$programs/pg_isready" -q -h "$folder" -d strata -U strata && break
        sleep 0.02
    done
    echo "postgresql:///strata?host=$folder&user=strata"
}

# The pooler has read its settings again when the command ends.
redirect() {
    sed "s|^\* = host=.*|* = host=$2 user=strata|" "$1/pooler.ini" > "$1/pooler.new"
    cat "$1/pooler.new" > "$1/pooler.ini"
    "$programs/psql" -q -h "$1" -d pgbouncer -U strata -c RELOAD
}

# Elliptic curves, as keys of RSA take a second or more. The key has to be the server's own.
certificates() {
    local folder=$1 name=$2
    mkdir -p "$folder"
    (
        cd "$folder"
        key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
        openssl req -x509 "${key[@]}" -days 2 -subj "/CN=Tests of Strata" -keyout root.key -out root.crt
        openssl req "${key[@]}" -subj "/CN=$name" -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 2 \
            -extfile <(printf 'subjectAltName=DNS:%s\n' "$name") -out server.crt
        chmod 600 server.key
        if [ "$(id -u)" -eq 0 ]; then chown "$user" server.key; fi
    ) > "$folder/openssl.log" 2>&1 || { cat "$folder/openssl.log" >&2; exit 1; }
}

promote() { (cd "$1" && as_user "$programs/pg_ctl" -D "$1/data" -w promote > /dev/null); }

halt() { (cd "$1" && as_user "$programs/pg_ctl" -D "$1/data" -m immediate stop > /dev/null 2>&1) || true; }

stop() {
    for process in "$1/portable.pid" "$1/p/portable.pid"; do
        if [ -f "$process" ]; then kill -KILL "$(cat "$process")" 2> /dev/null || true; fi
    done
    if [ -f "$1/portable.pid" ]; then
        rm -rf "$1"
        return
    fi
    if [ -f "$1/pooler.pid" ]; then
        # Whoever starts it may hold back the signals that ask it to end.
        kill -KILL "$(cat "$1/pooler.pid")" 2> /dev/null || true
        rm -rf "$1"
        return
    fi
    (cd "$1" && as_user "$programs/pg_ctl" -D "$1/data" -m immediate stop > /dev/null 2>&1) || true
    rm -rf "$1"
}

case "${1:-}" in
    start) shift; start "$@" ;;
    stop) stop "$2" ;;
    replica) shift; replica "$@" ;;
    pooler) shift; pooler "$@" ;;
    portable) shift; portable "$@" ;;
    redirect) redirect "$2" "$3" ;;
    certificates) certificates "$2" "$3" ;;
    promote) promote "$2" ;;
    halt) halt "$2" ;;
    resume) run_server "$2" ;;
    run)
        shift
        folder=$(mktemp -d /tmp/strata-pg.XXXXXX)
        trap 'if [ -d "$folder.p" ]; then stop "$folder.p"; fi; stop "$folder"; rm -f "$folder.service"' EXIT
        make_data "$folder"
        cp -a "$folder/data" "$folder/template"
        STRATA_TEST_POSTGRESQL=$(start_made "$folder")
        STRATA_POSTGRESQL_TEMPLATE=$folder/template
        if [ "${STRATA_POOLER:-0}" = 1 ]; then STRATA_TEST_POSTGRESQL=$(pooler "$folder.p" "$folder" default_pool_size=20); fi
        STRATA_POSTGRESQL_SCRIPT=$(readlink -f "${BASH_SOURCE[0]}")
        # A program of several threads cannot change its environment, and libpq finds services by nothing else.
        PGSERVICEFILE="$folder.service"
        : > "$PGSERVICEFILE"
        export STRATA_TEST_POSTGRESQL STRATA_POSTGRESQL_SCRIPT STRATA_POSTGRESQL_TEMPLATE PGSERVICEFILE
        "$@" ;;
    *) sed -n '2,/^set /{/^#/p}' "$0" >&2; exit 2 ;;
esac
