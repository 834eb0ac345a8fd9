#!/bin/sh
# Processes that have allocated 16 MiB, on a machine of one CPU with no other jemalloc on it.
. "$(dirname "$0")/lib.sh"
[ -n "${ALLOC_WORKER_SHARED:-}${ALLOC_WORKER_STATIC:-}" ] ||
    skip 'there was no jemalloc to build a worker with'
boot jemalloc 1

# What is planted is 16 MiB, and what the worker needs besides is under 4 MiB.
planted='.allocated_bytes >= 16777216 and .allocated_bytes <= 20971520 and
    .deallocated_bytes < 16777216'

measured=0
for kind in shared static; do
    if [ ! -e "results/$kind.pid" ]; then
        echo "not tried: a $kind jemalloc (it was not there when this was built)"
        continue
    fi
    measured=$((measured + 1))
    process=$(cat "results/$kind.pid")
    fact "16 MiB under a $kind jemalloc read as 16 to 20 in a capture of the machine"
    expect_thread host.zip 'measured, and within bounds' 'true true' \
        "\"\\(.heap_measured) \\(.heap | $planted)\""
    fact "they do in three readings of the process as well, and never decrease"
    expect_same 'the readings' 'true' "$(jq '[.snapshots[].threads[0]] | length == 3 and
        all(.[]; '"$planted"') and . == sort_by(.allocated_bytes)' "results/$kind.json")"
done

fact 'no process has counters but those, and none failed'
expect_same 'processes measured' "$measured" \
    "$(host_value host.zip .summary.heap.measured_processes)"
expect_same 'failures' 0 "$(host_value host.zip '.summary.heap.failures | length')"
process=$(cat results/plain.pid)
expect_thread host.zip 'the worker without a jemalloc' 'false null null' \
    '"\(.heap_measured) \(.heap.allocated_bytes) \(.heap.deallocated_bytes)"'

finish
