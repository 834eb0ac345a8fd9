#!/bin/sh
# A machine of two CPUs on which threads come and go while it is captured.
. "$(dirname "$0")/lib.sh"
[ -n "${ALLOC_WORKER_SHARED:-}${ALLOC_WORKER_STATIC:-}" ] ||
    skip 'there was no jemalloc to build a worker with'
boot churn 2

# Of the helpers that a capture has met, few lived until it had read them.
met=0
for round in 1 2 3 4; do
    zip=host-$round.zip
    fact "in capture $round every worker's first thread is there, with its counters"
    expect_same 'complete' true "$(host_value "$zip" .summary.complete)"
    for pid_file in results/*.pid; do
        process=$(cat "$pid_file")
        expect_thread "$zip" "$pid_file" 'true true' \
            '"\(.heap_measured) \(.heap.allocated_bytes >= 1048576)"'
        met=$((met + $(host_value "$zip" \
            "[.threads[] | select(.tgid == $process and .tid != $process)] | length")))
    done
    met=$((met + $(host_value "$zip" .summary.vanished_threads)))
    expect_same 'the threads, each once' true \
        "$(host_value "$zip" '[.threads[] | [.tgid, .tid]] | . == (sort | unique)')"
done

fact 'threads did come and go meanwhile'
[ "$met" -gt 0 ] || wrong 'no capture has met a helper'

finish
