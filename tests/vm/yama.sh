#!/bin/sh
# Yama's four scopes (ptrace(2)): who may read another process's counters, and what it is told.
. "$(dirname "$0")/lib.sh"
[ -n "${ALLOC_WORKER_SHARED:-}" ] || skip 'there was no jemalloc to build a worker with'
boot yama 1
worker=$(cat results/worker.pid)

# expect_read NAME: the counters were read.
expect_read() {
    expect_same "the status of $1" 0 "$(cat "results/$1.status")"
    expect_same "the counters of $1" true \
        "$(jq '.snapshots[0].threads[0].allocated_bytes >= 16777216' "results/$1.json")"
}

# expect_refused NAME ADVICE: they were not, and the user is told why.
expect_refused() {
    expect_same "the status of $1" 1 "$(cat "results/$1.status")"
    expect_same "the counters of $1" 'false null' "$(jq -r \
        '.snapshots[0].threads[0] | "\(.measured) \(.allocated_bytes)"' "results/$1.json")"
    grep -qF -e "$2" "results/$1.err" || wrong "$1 is told: $(cat "results/$1.err")"
}

fact 'under scope 0 a user may look into a process of his own, and root into any'
expect_read root-0
expect_read nobody-0

fact 'under scope 1 root may, and the user is told of the scope'
expect_read root-1
expect_refused nobody-1 'for children only (kernel.yama.ptrace_scope is 1)'

fact 'under scope 2 root may, and the user is told of the scope'
expect_read root-2
expect_refused nobody-2 'for administrators only (kernel.yama.ptrace_scope is 2)'

fact 'under scope 3 nobody may, not even root'
expect_refused root-3 'to everybody until the next boot (kernel.yama.ptrace_scope is 3)'
expect_refused nobody-3 'to everybody until the next boot (kernel.yama.ptrace_scope is 3)'

fact 'a capture of the machine is made all the same, and says what was denied'
process=$worker
expect_thread host.zip 'the worker' 'true true false null' \
    '"\(.stat_measured) \(.status_measured) \(.heap_measured) \(.heap.allocated_bytes)"'
expect_same 'complete' false "$(host_value host.zip .summary.complete)"
expect_same 'the status of the command' 0 "$(cat results/host.status)"
expect_same 'the failure' true "$(host_value host.zip \
    '.summary.heap.failures | any(.reason | contains("kernel.yama.ptrace_scope is 3"))')"

fact 'a report of the process is written, and its ledger says why the counters are not in it'
expect_same 'its status' omitted "$(ledger results/one.zip thread-heap.json status)"
expect_like 'the reason' '*kernel.yama.ptrace_scope is 3*' "$(ledger results/one.zip thread-heap.json reason)"
expect_same 'the status of the command' 0 "$(cat results/one.status)"

finish
