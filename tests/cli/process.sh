#!/bin/sh
# Processes that do not exist, end, belong to somebody else or have hostile names.
# shellcheck disable=SC2016 # await and the inner shells expand it
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1
mkdir reports none

fact 'a process that does not exist is told as such, and nothing is written'
sleep 0 &
wait $!
for pid in $! 2147483647; do
    exits 4 capture --pid "$pid" -o none
    expect_err "$pid"
    expect_no_out
    exits 4 sample --pid "$pid"
    expect_no_out
done
expect_empty none

# end_inside SIGN COMMAND...: the process of `target` ends once bugpack, as `watcher`, has begun with
# it.
end_inside() {
    sign=$1
    shift
    "$BUGPACK" "$@" --pid "$target" >out 2>err </dev/null &
    watcher=$!
    started="$started $watcher"
    await "$sign"
    kill "$target"
    wait "$watcher"
    status=$?
}

fact 'a process that ends inside the window leaves a report of the part that passed, which says so'
start sh -c 'while :; do :; done'
target=$pid
# Providers are called after the first sample.
end_inside 'grep -qx bugpack-provide /proc/$watcher/task/*/comm 2>/dev/null' capture --window 8 -o reports
expect_status 3
expect_err 'runtime-metrics.json: '
expect_err 'has ended'
zip=$(cat out)
expect_same 'complete' false "$(value "$zip" manifest.json .complete)"
# Whether there was a sample in between, no sign says: stress/sampler_other ends a process after one.
case $(ledger "$zip" runtime-metrics.json status) in
    truncated)
        expect_same 'a part of the window' true \
            "$(value "$zip" runtime-metrics.json '.sample_window_ms < 8000')"
        ;;
    *) expect_same 'available' false "$(value "$zip" runtime-metrics.json .available)" ;;
esac

fact 'a sample of a process that ends inside the window is none'
start sleep 300
target=$pid
end_inside 'find /proc/$watcher/fd -lname "/proc/$target/statm" 2>/dev/null | grep -q .' sample --window 2.5
expect_status 4
expect_no_out

fact 'the program can capture itself'
timeout 60 sh -c 'exec "$0" capture --pid $$ --window 100ms -o reports' "$BUGPACK" >out 2>err
expect_status 0 $?
expect_same 'the name' bugpack "$(basename "$(cat out)" | cut -d- -f1)"

fact 'a stopped process is captured without being woken'
start sleep 300
kill -STOP "$pid"
target=$pid
captures 0 --window 50ms
expect_same 'its state' T "$(ps -o stat= -p "$target" | cut -c1)"
expect_same 'its CPU' 0 "$(value "$zip" runtime-metrics.json .process.cpu_percent)"

fact 'a target is neither stopped nor traced, and its threads go on'
start python3 -c 'import time
while True: time.sleep(0.01)'
target=$pid
captures 0 --window 50ms
expect_same 'its tracer' 0 "$(awk '/^TracerPid/ { print $2 }' "/proc/$target/status")"
case $(ps -o stat= -p "$target") in
    T* | t* | Z*) wrong 'it is not running any more' ;;
esac

fact 'a process name of any bytes cannot break the report, its name or a terminal'
esc=$(printf '\033')
name=$(printf 'a) R 1\n\033[3\377')
cp "$(command -v sleep)" "./$name"
start "./$name" 300
target=$pid
captures 0 --window 50ms
basename "$zip" | grep -Eq '^[A-Za-z0-9_.-]+-bugreport-[0-9TZ-]+\.zip$' || wrong "it is called $zip"
for entry in metadata.json runtime-metrics.json process.json manifest.json; do
    unzip -p "$zip" "$entry" | python3 -c 'import json, sys; json.loads(sys.stdin.buffer.read())' ||
        wrong "$entry is not JSON"
    unzip -p "$zip" "$entry" | grep -q "$esc" && wrong "$entry holds a control character"
done
expect_same 'the process id' "$target" "$(value "$zip" process.json .pid)"
expect_same 'the parent' $$ "$(value "$zip" process.json .parent_pid)"

fact 'the padding of a title that a program wrote over its arguments is no argument'
start python3 -c '
import sys, time
stat = open("/proc/self/stat").read().rpartition(")")[2].split()
begin, end = int(stat[45]), int(stat[46])
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(begin)
    memory.write(b"server: writer".ljust(end - begin, b"\0"))
time.sleep(300)' one two ''
target=$pid
await "grep -q '^server: writer' /proc/$target/cmdline"
captures 0 --window 50ms
expect_same 'the command line' '["server: writer"]' "$(value "$zip" process.json '.command_line | tojson')"

fact 'empty arguments are arguments'
start python3 -c 'import time; open("python-runs", "w"); time.sleep(300)' '' '' ''
target=$pid
await '[ -e python-runs ]' # a python3 that is a script passes the words on to others first
capture --window 50ms
expect_same 'the command line' '["","",""]' "$(value "$zip" process.json '.command_line[-3:] | tojson')"

if [ "$(id -u)" -eq 0 ] && can_be_nobody; then
    fact "of somebody else's process what may be read is there, and one warning names the rest"
    start sleep 300
    target=$pid
    mkdir -m 1777 theirs
    chmod 755 .
    as_nobody "$(reachable "$BUGPACK")" capture --pid "$target" --window 50ms -o theirs >out 2>err
    status=$?
    zip=$(cat out)
    expect_status 3
    expect_same 'the number of warnings' 1 "$(wc -l <err | tr -d ' ')"
    expect_err 'process.json'
    expect_err 'Permission denied'
    expect_err 'run as its user or as root'
    expect_same 'the command line' 'sleep 300' \
        "$(value "$zip" process.json '.command_line | join(" ")')"
    expect_same 'the executable' null "$(value "$zip" process.json .executable)"
    expect_same 'the thread count' 1 "$(value "$zip" runtime-metrics.json '.threads | length')"
    expect_same 'the status' truncated "$(ledger "$zip" process.json status)"
    expect_same 'the owner of the report' 65534 "$(stat -c %u "$zip")"
else
    fact "of somebody else's process what may be read is there"
    if { [ -r /proc/1/stat ] && [ ! -r /proc/1/environ ]; } || not_tried 'process 1 is ours, or hidden'; then
        exits 3 capture --pid 1 --window 50ms -o reports
        expect_err 'process.json'
    fi
fi

fact 'a kernel thread has no memory of its own, and that is no failure'
kernel_thread=$(ps -e -o pid=,ppid= | awk '$2 == 2 { print $1; exit }')
if { [ -n "$kernel_thread" ] && [ "$(id -u)" -eq 0 ]; } || not_tried 'no kernel thread can be seen here'; then
    exits 0 capture --pid "$kernel_thread" --window 50ms -o reports
    expect_same 'why it has no stacks' "process $kernel_thread is a kernel thread" \
        "$(ledger "$(cat out)" stacks.json reason)"
    expect_same 'the memory' null "$(value "$(cat out)" runtime-metrics.json .process.rss_kb)"
fi

fact 'a report has nothing of a program that the process begins in its window'
cp "$(command -v sleep)" second
mkfifo order
echo 'read -r line <order; exec ./second 1000' >begin
start sh begin
mkdir mixed
# The command is the last that is asked before the window ends.
exits 3 capture --pid "$pid" --window 1s --output-dir mixed --shell \
    --command "echo >$scratch/order; until cmp -s /proc/$pid/exe $scratch/second; do sleep 0.01; done"
zip=$(cat out)
for entry in runtime-metrics.json profile.folded; do
    expect_same "the status of $entry" omitted "$(ledger "$zip" $entry status)"
    expect_same "the reason of $entry" "process $pid began another program" "$(ledger "$zip" $entry reason)"
done
expect_same 'the command line' 'sh begin' "$(value "$zip" process.json '.command_line | join(" ")')"
for entry in $(entries "$zip"); do
    case $entry in commands/* | manifest.json) continue ;; esac
    unzip -p "$zip" "$entry" | grep -q 'second"\|/second' && wrong "$entry has something of the second program"
done

fact 'what is read after the process began another program is omitted, with the reason'
echo 'sleep 0.01; exec sh again' >again
start sh again
left=' process.json runtime-metrics.json thread-heap.json system.json '
for _ in 1 2 3 4 5 6 7 8 9 10; do
    run capture --pid "$pid" --window 0 --output-dir mixed
    zip=$(cat out)
    for entry in process.json runtime-metrics.json thread-heap.json system.json; do
        key=reason
        [ $entry = system.json ] && key=note
        reason=$(ledger "$zip" $entry $key)
        [ "$reason" = "${reason%"process $pid began another program"}" ] && continue
        left=${left%" $entry "*}" "${left#*" $entry "}
        [ $key = note ] || expect_same "the status of $entry" omitted "$(ledger "$zip" $entry status)"
    done
    [ "$left" = ' ' ] && break
done
expect_same 'entries without that reason' ' ' "$left"

finish
