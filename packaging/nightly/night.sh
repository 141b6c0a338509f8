#!/bin/bash
# One night: build a tree's kernel, run its selftests over seeds and the benchmark, and compare with the night before.
#
#   night.sh TREE STATE [SUITE..]
#
# STATE is the folder that keeps results from one night to the next. SEEDS (5) is the number of seeds. KERNEL names a
# kernel instead of building one, and BENCHMARK=no leaves the benchmark out. Exit code 1: something fails newly.
set -u
tree=${1:?name the source tree of Linux} state=${2:?name the folder for results}
shift 2
mkdir -p "$state"
kernel=${KERNEL-night}
[ -n "${KERNEL+set}" ] || plait kernel build --tree "$tree" --name night || exit 3
words=("$@" --tree "$tree" ${kernel:+--kernel "$kernel"} --seeds "${SEEDS:-5}" --junit "$state/new.xml" --logs "$state/logs")
[ -f "$state/old.xml" ] && words+=(--against "$state/old.xml")
if [ "${BENCHMARK:-yes}" != no ]; then
    plait benchmark ${kernel:+--kernel "$kernel"} --name night --out "$state/benchmark" || exit 3
    cp "$state/benchmark/results.json" "$state/new.json"
    [ -f "$state/old.json" ] && words+=(--against "$state/old.json" --figures "$state/new.json")
fi
plait selftest "${words[@]}" | tee "$state/table.txt"
code=${PIPESTATUS[0]}
for results in "$state"/new.*; do
    mv "$results" "${results/new./old.}"
done
exit "$code"
