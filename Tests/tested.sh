#!/usr/bin/env bash
# Runs tests, and says again at the end what failed, with the thread that crashed.
#
#   Tests/tested.sh LOG COMMAND …
#
# Output goes to the file LOG as well. A run that has not ended after STRATA_TEST_LIMIT seconds, 2,400 unless that says otherwise, is ended: then
# what its threads do is told, with a debugger if there is one. The line before is of the last test that began.
set -uo pipefail
export NO_COLOR=1

log=$1
shift
limit=${STRATA_TEST_LIMIT:-2400}
mkdir -p "$(dirname "$log")"

# All processes that a process has started, and what those have; without this one and the watch.
family() {
    local child
    for child in $(sed -n 's/^\([0-9]*\) (.*) [A-Za-z] \([0-9]*\) .*/\1 \2/p' /proc/[0-9]*/stat 2> /dev/null | awk -v parent="$1" '$2 == parent { print $1 }'); do
        if [ "$child" -ne "$watch" ]; then
            echo "$child"
            family "$child"
        fi
    done
}

threads() {
    local thread
    if gdb --version > /dev/null 2>&1; then
        timeout 120 gdb -p "$1" -batch -ex "thread apply all bt 40" 2>&1 | grep -E '^(Thread|#)'
    elif lldb --version > /dev/null 2>&1; then
        timeout 120 lldb -p "$1" --batch -o "thread backtrace all -c 40" 2>&1 | grep -E '^ *(\* )?(thread|frame) #'
    else
        # What the kernel knows: where each waits.
        for thread in /proc/"$1"/task/*; do echo "$(cat "$thread/comm"): $(cat "$thread/wchan" 2> /dev/null)"; done
    fi
}

end_late() {
    local watch=$BASHPID pause process processes
    # It holds nothing that others wait for the end of.
    sleep "$limit" > /dev/null 2>&1 &
    pause=$!
    trap 'kill "$pause" 2> /dev/null; exit' TERM
    wait "$pause"
    trap - TERM
    processes=$(family $$)
    echo "The tests have not ended after $limit seconds. This is what their threads do:"
    for process in $processes; do
        case $(readlink "/proc/$process/exe") in
            *.xctest) echo "Process $process:" && threads "$process" | cut -c -250 ;;
        esac
    done
    kill -TERM $processes 2> /dev/null
    sleep 20 > /dev/null 2>&1
    kill -KILL $processes 2> /dev/null
}

end_late &
watch=$!
disown "$watch"
# A line at a time, so that the last test that began is told of when a run stands still.
stdbuf -oL -eL "$@" 2>&1 | tee "$log"
result=${PIPESTATUS[0]}
kill "$watch" 2> /dev/null
if [ "$result" -ne 0 ]; then
    echo
    echo "Failed:"
    grep -E -A 60 '^✘ Test .* recorded an issue|^✘ Test .* failed|[Ff]atal error|crashed' "$log" |
        grep -E '^(✘ Test .* (recorded an issue|failed)|↳ |.*[Ff]atal error| *[0-9]+ .* in |.*crashed)' | cut -c -250 | head -n 120
fi
exit "$result"
