#!/bin/sh
# capture --host: every thread of every process.
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports

# host ARGUMENT...: a capture into scratch/reports; the path is in `zip`, the JSON in host.json. What is
# tested is in a report whatever its window.
window=100ms
host() {
    run capture --host --window "$window" --output-dir reports "$@"
    zip=$(cat out)
    [ -s "$zip" ] && unzip -p "$zip" host-threads.json >host.json
}

fact 'the report holds the machine, and nothing about one process'
start sleep 300
target=$pid
host
expect_host_status "$zip"
expect_same 'the list of entries' 'metadata.json system.json host-threads.json manifest.json ' \
    "$(entries "$zip" | tr '\n' ' ')"
expect_like 'the name' 'host-bugreport-*' "$(basename "$zip")"

fact 'a process that sleeps is in it with what it is and what it cost'
expect_same 'the thread' "sleep sleep S other true true true" "$(jq -r --argjson pid "$target" \
    '.threads[] | select(.tid == $pid) | "\(.process) \(.name) \(.scheduling.state) \(.scheduling.policy) \(.stat_measured) \(.status_measured) \(.schedstat_measured)"' host.json)"
expect_same 'its start' "$(sed 's/.*) //' "/proc/$target/stat" | cut -d ' ' -f 20)" \
    "$(jq --argjson pid "$target" '.threads[] | select(.tid == $pid) | .start_ticks' host.json)"
expect_same 'its affinity' "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$target/status")" \
    "$(jq -r --argjson pid "$target" '.threads[] | select(.tid == $pid) | .scheduling.affinity' host.json)"

fact 'threads ascend, each once, and the summary counts them'
expect_same 'sorted' true "$(jq '[.threads[] | [.tgid, .tid]] | . == (sort | unique)' host.json)"
expect_same 'the number' "$(jq '.threads | length' host.json)" "$(jq .summary.threads host.json)"
expect_same 'the kernel threads' "$(jq '[.threads[] | select(.kernel_thread)] | length' host.json)" \
    "$(jq .summary.kernel_threads host.json)"
expect_same 'the cgroups' "$(jq -c '[.threads[].cgroup | values] | unique' host.json)" \
    "$(jq -c '[.cgroups[].path] | sort' host.json)"

fact 'what is not measured is not there, and everything else is'
expect_same 'groups' true "$(jq '[.threads[] | . as $t | keys[] | select(endswith("_measured") and . != "scheduling_measured") | . as $k | $t[$k] == ($t | has($k[:-9]))] | all' host.json)"
expect_same 'zeros of groups that were not read' 0 "$(jq '[.threads[] | select(.wakeups_measured | not) | .wakeups | values] | length' host.json)"

fact 'processes have their arguments, and say why their heap was not read'
expect_same 'its arguments' '["sleep","300"]' \
    "$(jq -c --argjson pid "$target" '.processes[] | select(.tgid == $pid) | .command_line' host.json)"
expect_same 'its heap' 'false jemalloc-not-found jemalloc-not-found' "$(jq -r --argjson pid "$target" \
    '(.processes[] | select(.tgid == $pid) | "\(.heap_measured) \(.heap_failure)") + " " +
    (.threads[] | select(.tid == $pid) | .heap_failure)' host.json)"
expect_same 'threads of no process' '[]' \
    "$(jq -c '([.threads[].tgid] | unique) - [.processes[].tgid]' host.json)"

fact 'it is itself in it, and did not look into its own heap'
expect_same 'self' 'true false' "$(jq -r '. as $d | [.threads[] | select(.self)] |
    "\(all(.tgid == $d.summary.self_tgid) and length > 0) \(any(.heap_measured))"' host.json)"

fact 'threads of the kernel have no heap'
if [ "$(ps -o comm= -p 2 2>/dev/null)" = kthreadd ] || not_tried 'there is no kthreadd'; then
    expect_same 'kthreadd' 'true false null null' "$(jq -r '.threads[] | select(.tid == 2) |
        "\(.kernel_thread) \(.heap_measured) \(.heap) \(.heap_failure)"' host.json)"
    expect_same 'its arguments' null \
        "$(jq '.processes[] | select(.tgid == 2) | .command_line' host.json)"
fi

fact 'the threads of a jemalloc process have its counters'
if [ -n "${ALLOC_WORKER_SHARED:-}" ] || not_tried 'there is no jemalloc to build with'; then
    start "$ALLOC_WORKER_SHARED" --bytes 16777216 --ready "$scratch/ready"
    worker=$pid
    await '[ -s ready ]'
    host
    expect_same 'measured, and within 4 MiB of what it allocated' 'true true true' "$(jq -r \
        --argjson pid "$worker" '.threads[] | select(.tid == $pid) | "\(.heap_measured) \(.heap.allocated_bytes >= 16777216 and .heap.allocated_bytes <= 20971520) \(.heap.deallocated_bytes < 16777216)"' host.json)"

    fact 'a first thread that lives is in every capture, whatever threads come and go beside it'
    start "$ALLOC_WORKER_SHARED" --bytes 1048576 --churn --ready "$scratch/churning"
    worker=$pid
    await '[ -s churning ]'
    for _ in 1 2 3 4 5; do
        host
        expect_host_status "$zip"
        expect_same 'the first thread' "$worker" "$(jq --argjson pid "$worker" \
            '.threads[] | select(.tgid == $pid and .tid == $pid) | .tid' host.json)"
    done
fi

fact 'logs, attachments and a session are for the machine too'
echo 'one line' >a.log
echo '{"a":1}' >state.json
host --log a.log --attach note=a.log --session state.json --app fleet --description slow
expect_host_status "$zip"
expect_same 'the list of entries' \
    'metadata.json system.json session.json logs/a.log host-threads.json note manifest.json ' \
    "$(entries "$zip" | tr '\n' ' ')"
expect_same 'the metadata' 'fleet slow null' \
    "$(value "$zip" metadata.json '"\(.app.name) \(.description) \(.target)"')"
host --log nowhere.log
expect_status 3
host --json
zip=$(jq -r .path out)
expect_same 'complete' "$(value "$zip" manifest.json .complete)" "$(jq .complete out)"

fact 'what runs now is on top, whatever the rest has used before, and bugpack is left out'
start python3 -c 'import os, time
parent = os.fork()
while parent == 0:
    child = os.fork()
    if child == 0:
        while time.process_time() < 0.02: pass
        os._exit(0)
    os.waitpid(child, 0)
open("pids", "w").write(f"{os.getpid()} {parent}\n")
while True: pass'
await 'grep -qs " " pids'
read -r busy parent <pids
# It may get little of a machine with much else to do.
tries=0
is_seen=false
window=300ms
while [ "$is_seen" != true ] && [ $tries -lt 20 ]; do
    used_before=$(cut -d ' ' -f 1 "/proc/$busy/schedstat")
    host
    used_after=$(cut -d ' ' -f 1 "/proc/$busy/schedstat")
    is_seen=$(jq --argjson pid "$busy" --argjson parent "$parent" 'any(.threads[]; .tid == $pid and .window.cpu_ms > 10)
        and any(.threads[]; .tid == $parent and .window.process.children_cpu_ms > 0)' host.json)
    tries=$((tries + 1))
done
expect_same 'seen' true "$is_seen"
expect_same 'within what the kernel has counted' true "$(jq --argjson pid "$busy" --argjson most "$((used_after - used_before))" \
    '.summary.window_ms >= 300 and (.threads[] | select(.tid == $pid) | .window | .process.cpu_ms >= .cpu_ms
        and .cpu_ms * 1000000 <= $most and (has("born_in_window") | not))' host.json)"
expect_same 'a percent' true "$(jq --argjson pid "$busy" '.summary.window_ms as $ms | .threads[] | select(.tid == $pid) | .window |
    (.cpu_percent - .cpu_ms / $ms * 100 | fabs) < 25' host.json)"
run show --json "$zip"
expect_same 'bugpack' true "$(jq --argjson self "$(jq .summary.self_tgid host.json)" '.machine |
    ([.busiest_processes[], .busiest_threads[]] | all(.pid != $self)) and has("collector_cpu_percent")' out)"
expect_same 'the order' true "$(jq '.machine.busiest_processes | map(.cpu_percent) | . == (sort | reverse)' out)"
run show "$zip"
expect_out "Processes by CPU over $(printf %.2f "$(jq '.summary.window_ms / 1000' host.json)") s" # longer on a busy machine
expect_out 'bugpack itself is left out: '
window=0
host
expect_same 'no window' false "$(jq '(.summary | has("window_ms")) or any(.threads[]; has("window"))' host.json)"
run show "$zip"
expect_out 'Processes by CPU since they began'
kill -KILL "$parent" "$busy"

fact 'without privileges it is told what was denied, and to whom the rest belongs'
if can_be_nobody; then
    mkdir theirs
    chmod 1777 theirs
    chmod 755 "$scratch"
    as_nobody timeout 60 "$(reachable "$BUGPACK")" capture --host --window "$window" -o theirs >out 2>err </dev/null
    status=$?
    expect_host_status "$(cat out)"
    expect_like 'the note' \
        'this user may not read: io of * threads (denied)*smaps_rollup of *for root*CAP_SYS_PTRACE' \
        "$(ledger "$(cat out)" host-threads.json note)"
    unzip -p "$(cat out)" host-threads.json >host.json
    "$BUGPACK" show --json "$(cat out)" >shown.json
    holds '.machine.unknown_rss_processes == 0' shown.json ||
        wrong "the memory of $(jq .machine.unknown_rss_processes shown.json) processes is not known"
    holds '.summary.unread | any(.cause == "denied" and .threads > 0)' <host.json ||
        wrong "the causes are $(jq -c .summary.unread host.json)"
fi

fact 'processes that /proc hides are not called complete'
if { can_be_nobody &&
    unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc' 2>/dev/null; } ||
    not_tried '/proc may not be mounted here'; then
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' sh \
        setpriv --reuid=65534 --regid=65534 --clear-groups \
        timeout 60 "$(reachable "$BUGPACK")" capture --host --window "$window" -o theirs >out 2>err </dev/null
    expect_status 0 $?
    expect_no_err
    expect_like 'the note' \
        'this user may not read: /proc hides the processes of other users (hidepid)*' \
        "$(ledger "$(cat out)" host-threads.json note)"
    expect_same 'hidden' true \
        "$(unzip -p "$(cat out)" host-threads.json | jq .summary.processes_hidden)"
fi

fact 'the machine is named, unless that is not wanted'
host
expect_same 'the name' "$(uname -n) $(uname -n)" "$(value "$zip" system.json .hostname) $(value "$zip" metadata.json .machine)"
host --no-hostname
expect_same 'no name' 'null null' "$(value "$zip" system.json .hostname) $(value "$zip" metadata.json .machine)"

fact 'the command line is checked'
expect_misuse '--hostname and --no-hostname exclude each other' capture --host --hostname --no-hostname
expect_misuse '--core, --coredump and --host exclude each other' capture --host --pid 1
expect_misuse '--window takes seconds' capture --host --window 11min
expect_misuse 'a target is missing: --pid, --name, --unit, --cgroup, --core or --host' capture

fact 'the capture names the boot of the machine'
run capture --host --window 0 --output boot.zip
expect_same 'the boot' "$(cat /proc/sys/kernel/random/boot_id)" "$(value boot.zip host-threads.json .summary.boot_id)"

finish
