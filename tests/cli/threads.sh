#!/bin/sh
# threads.json: where threads stand, who waits for whom, and how it is left out.
# shellcheck disable=SC2016 # jq and await expand it
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports none crashes

# capture_one ARGUMENT...: of the process `pid`, into `zip`.
capture_one() {
    run capture --pid "$pid" --window 0 -o reports "$@"
    zip=$(cat out)
}

fact 'a thread is shown with its state, its scheduling and its system call'
start sleep 300
await 'grep -q "^State:.S" /proc/$pid/status && grep -q sleep /proc/$pid/comm'
capture_one
expect_status 0
expect_same 'the status' ok "$(ledger "$zip" threads.json status)"
expect_same 'the process' "$pid sleep" "$(value "$zip" threads.json '"\(.pid) \(.name)"')"
expect_same 'the thread' "$pid sleep sleeping other $(nice) clock_nanosleep" "$(value "$zip" threads.json '.threads[] |
    "\(.tid) \(.name) \(.state) \(.scheduling.policy) \(.scheduling.nice) \(.syscall.name)"')"
expect_same 'the arguments' 6 "$(value "$zip" threads.json '.threads[0].syscall.arguments | length')"
expect_same 'no deadlock' 0 "$(value "$zip" threads.json '.deadlocks | length')"

fact 'what is left out on request is not in the report, and the manifest says so'
capture_one --without 'threads.json process.json'
expect_status 0
expect_same 'what is there of them' '' "$(entries "$zip" | grep -e threads -e process)"
for entry in threads.json process.json; do
    expect_same 'the status' disabled "$(ledger "$zip" "$entry" status)"
    expect_same 'the reason' 'left out on request' "$(ledger "$zip" "$entry" reason)"
done
expect_same 'complete' true "$(value "$zip" manifest.json .complete)"

fact 'an entry that cannot be left out is refused, and nothing is written'
for name in metadata.json manifest.json threads thread.json threads.json,process.json; do
    exits 2 capture --pid "$pid" --window 0 -o none --without "$name"
    expect_err "--without: '"
done
expect_empty none

fact 'run leaves the same out'
run run -o crashes --without threads.json -- sh -c 'kill -SEGV $$'
zip=$(find crashes -name '*-crash-*.zip')
expect_same 'the status' disabled "$(ledger "$zip" threads.json status)"

fact 'of threads that come and go each entry has those of its own instant, and misses none in between'
rm -f churning
start "${ALLOC_WORKER_SHARED:-$ALLOC_WORKER_PLAIN}" --bytes 4096 --ready churning --churn
await '[ -s churning ]'
exits 0 capture --pid "$pid" --window 200ms -o reports
for entry in stacks threads thread-heap runtime-metrics; do
    unzip -p "$(cat out)" $entry.json >$entry || echo null >$entry # stacks need libdw
done
# The ids of each list, in the order of their instants.
jq -s '[.[0], .[1], .[2].snapshots[]?, .[3]] | map(select(.) | [.threads[].tid])' \
    stacks threads thread-heap runtime-metrics >lists
expect_same 'the lists with the thread that stays' "$(jq length lists)" \
    "$(jq "map(select(index($pid))) | length" lists)"
expect_same 'threads that are missed between two lists that have them' '[]' "$(jq -c '. as $lists | add | unique |
    map(select(. as $tid | $lists | map(index($tid) != null) | .[index(true):rindex(true)] | all | not))' lists)"
expect_same 'threads of the end that are in no earlier list, and not said to be new' '[]' \
    "$(jq -c --slurpfile lists lists '[.threads[] | select(.born_in_window | not) | .tid] - $lists[0][0]' runtime-metrics)"
expect_same 'what is said of those that ended' number \
    "$(jq -r 'select(.) | .vanished_threads | type' threads stacks | sort -u)"
kill "$pid"

if [ -n "${STRESS_THREAD_WAITS:-}" ]; then
    fact 'a deadlock is named in the entry and in the manifest'
    "$STRESS_THREAD_WAITS" two >hanging 2>&1 &
    pid=$!
    started="$started $pid"
    await 'grep -q ready hanging'
    capture_one
    expect_status 0
    sentence=$(value "$zip" threads.json '.deadlocks[].description')
    expect_same 'the sentence' "w-0 and w-1 wait for each other's mutexes" "$(echo "$sentence" | sed 's/ ([0-9]*)//g')"
    expect_same 'the note' "deadlock: $sentence" "$(ledger "$zip" threads.json note)"
    expect_same 'who waits for whom' true "$(value "$zip" threads.json '(.deadlocks[0].tids) as [$one, $two] |
        [.threads[] | select(.name | startswith("w-")) | [.tid, .waits_for.tid]] == [[$one, $two], [$two, $one]]')"
fi

finish
