#!/bin/sh
# A machine in which nothing runs but its kernel, a shell and the capture.
. "$(dirname "$0")/lib.sh"
boot bare 1

fact 'a bare machine is captured'
expect_same 'complete' true "$(host_value host.zip .summary.complete)"
expect_same 'its processes outside the kernel' 'bugpack init sh' "$(host_value host.zip \
    '[.threads[] | select(.kernel_thread | not) | .process] | unique | join(" ")')"

fact 'kthreadd is there, and has no heap'
process=2
expect_thread host.zip 'kthreadd' 'kthreadd true false null null' \
    '"\(.name) \(.kernel_thread) \(.heap_measured) " +
    (.heap | "\(.allocated_bytes) \(.deallocated_bytes)")'

fact 'no thread has counters, and that is no failure'
expect_same 'threads with counters' 0 \
    "$(host_value host.zip '[.threads[] | select(.heap_measured or has("heap"))] | length')"
expect_same 'failures' 0 "$(host_value host.zip '.summary.heap.failures | length')"

# Workers of the kernel's may end in the midst of it.
fact 'what all threads have is read of all threads, for root sees everything'
expect_same 'threads that lack something' 0 "$(host_value host.zip '[.threads[] |
    select(.name | startswith("kworker") | not) | select((.stat_measured and .status_measured and
    .schedstat_measured and .io_measured and .sched_measured) | not)] | length')"

finish
