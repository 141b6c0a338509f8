#!/bin/bash
# Run packetdrill scripts in a guest, each in a network namespace of its own, and print the results as TAP.
#
#   packetdrill.sh PROGRAM TOLERANCE_US [NAME SCRIPT OPTIONS]..
#
# TOLERANCE_US: empty for each script's own tolerance; 0 measures the slack, the smallest tolerance with which the
# script passes. OPTIONS: those of the address family, in one word. A result ends in `# FAIL why` or `# SLACK n us`.
set -u
program=$1 tolerance=$2
shift 2
readonly seconds=300 # of virtual time, after which a script that waits for ever ends
readonly attempts=24 # tolerances to try for one script
number=0 failed=0 runs=0
BASH_ENV=${0%/*}/sysctl.sh # spares the scripts' commands the program of that name
export BASH_ENV

# Run a script with further options, and set `code` and `why`. Its namespace is new, so its only device is tun0.
attempt() { # NAME SCRIPT OPTION..
    local script=$2 namespace=${1//[^A-Za-z0-9_.-]/-}
    shift 2
    runs=$((runs + 1))
    namespace=${namespace:0:60}-$runs
    ip netns add "$namespace" && ip -netns "$namespace" link set lo up || exit 1
    why=$(cd "${script%/*}" && timeout "$seconds" ip netns exec "$namespace" "$program" --send_omit_free "$@" "${script##*/}" 2>&1)
    code=$?
    [ "$code" = 124 ] && why="it did not end within $seconds s of virtual time"
    ip netns del "$namespace"
}

# Print in us by how much an event missed its time, if that is why the script failed: `expected X at 0.1 sec but
# happened at 0.2 sec`, or `in time range 0.1~0.2 sec`.
missed_by() {
    local number='[+-]?([0-9]+)\.([0-9]{6})'
    [[ $why =~ timing\ error:.*\ \+?([0-9.]+~\+?)?$number\ *sec\ but\ happened\ at\ $number\ sec ]] || return 1
    local expected=$((10#${BASH_REMATCH[2]}${BASH_REMATCH[3]})) live=$((10#${BASH_REMATCH[4]}${BASH_REMATCH[5]}))
    echo $((live > expected ? live - expected : expected - live))
}

# Set `slack` to the smallest tolerance in us with which the script passes, or to nothing if none was found.
measure_slack() { # NAME SCRIPT OPTION..
    local most=1 late try
    slack=
    for ((try = 0; try < attempts; try++)); do
        attempt "$@" --tolerance_usecs="$most"
        [ "$code" = 0 ] && slack=$most && return
        if late=$(missed_by) && [ "$late" -gt "$most" ]; then most=$late; else most=$((most * 2)); fi
    done
}

echo "TAP version 13"
while [ $# -ge 3 ]; do
    number=$((number + 1))
    read -ra options <<<"$3"
    own=("${options[@]}")
    [ "${tolerance:-0}" = 0 ] || own+=(--tolerance_usecs="$tolerance")
    attempt "$1" "$2" "${own[@]}"
    [ -z "$why" ] || printf '%s: %s\n' "$1" "$why"
    if [ "$code" != 0 ]; then
        failed=1
        why=$(grep -m1 ':[0-9]*: ' <<<"$why" || tail -n1 <<<"$why")
        echo "not ok $number - $1 # FAIL ${why:-it ended with exit code $code}"
    elif [ "$tolerance" = 0 ]; then
        measure_slack "$1" "$2" "${options[@]}"
        echo "ok $number - $1 # SLACK ${slack:-unknown} us"
    else
        echo "ok $number - $1"
    fi
    shift 3
done
echo "1..$number"
exit "$failed"
