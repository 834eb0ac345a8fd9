#!/bin/sh
# The metrics alone.
# shellcheck disable=SC2016 # await and the commands expand it
. "$(dirname "$0")/lib.sh"
need jq
start sleep 300
target=$pid
cd "$scratch" || exit 1

fact 'standard output is the document that a report holds as runtime-metrics.json'
exits 0 sample --pid "$target" --window 100ms
expect_no_err
expect_same 'the keys' 'sample_window_ms,process,threads,platform' \
    "$(jq -r 'keys_unsorted | join(",")' out)"
expect_same 'the keys of the process' 'cpu_percent,ended_threads_cpu_ms,rss_kb,vm_size_kb,uptime_secs' \
    "$(jq -r '.process | keys_unsorted | join(",")' out)"
expect_same 'the keys of a thread' \
    'tid,name,cpu_percent,cpu_ms,user_ms,system_ms,voluntary_switches,involuntary_switches' \
    "$(jq -r '.threads[0] | keys_unsorted | join(",")' out)"
expect_same 'the thread' "$target sleep" "$(jq -r '.threads[] | "\(.tid) \(.name)"' out)"
expect_same 'the platform' linux "$(jq -r .platform out)"
expect_same 'the end of the document' '}' "$(tail -n 1 out)"

fact 'the window is as long as was asked for, also none at all'
run sample --pid "$target" --window 2100ms
expect_same 'over the default' true "$(jq '.sample_window_ms >= 2100' out)"
exits 0 sample --pid "$target" --window 0
expect_same 'finite' true "$(jq '.process.cpu_percent | isnormal or . == 0' out)"

fact 'times and switches of a thread are those of the window'
start sh -c 'while :; do /bin/true; done'
# What the kernel has counted around the sample bounds it.
switches() {
    sed -n 's/^\(non\)\{0,1\}voluntary_ctxt_switches:[^0-9]*//p' "/proc/$pid/status" |
        jq -s 'add'
}
ran='.threads[0] | .user_ms + .system_ms'
begin=$(switches)
run sample --pid "$pid" --window 300ms
expect_same 'times are the CPU time' true \
    "$(jq "(.threads[0].cpu_percent * .sample_window_ms / 100 - ($ran) | fabs) < 1" out)"
expect_same 'switches in between' true "$(jq --argjson first "$begin" --argjson last "$(switches)" \
    '.threads[0] | .voluntary_switches + .involuntary_switches | . > 0 and . <= $last - $first' out)"
kill "$pid"

fact 'a thread that began in the window has what it used since then, in one row of two at its birth'
start python3 -c 'import threading, time
def spin():
    while time.thread_time() < 0.12: pass
while True:
    thread = threading.Thread(target=spin)
    thread.start()
    thread.join()'
# A window may end just after a birth, and on a busy machine the thread gets little of it.
tries=0
is_seen=false
while [ "$is_seen" != true ] && [ $tries -lt 100 ]; do
    run sample --pid "$pid" --window "$((100 + tries * 10))ms"
    is_seen=$(jq 'any(.threads[]; .born_in_window and .cpu_ms >= 20)' out)
    tries=$((tries + 1))
done
expect_same 'one was seen' true "$is_seen"
# Counted in ticks of 10 ms, and read at one time for the process and at another for the thread.
expect_same 'the row' true "$(jq '.sample_window_ms as $window | [.threads[] | select(.born_in_window)] | length == 1
    and (.[0] | .cpu_percent == 0 and (.user_ms + .system_ms - .cpu_ms | fabs) < 0.1
        and .age_ms >= 0 and .age_ms <= $window + 20)' out)"
expect_same 'the first thread was there before' false "$(jq '.threads[0] | has("born_in_window")' out)"
kill "$pid"

fact 'a missing process is status 4, and a window too short for a clock tick is refused'
exits 4 sample --pid 999999999
for window in 1ms 99ms 0.099 0.00001; do
    expect_misuse '--window takes 0, or at least 100 milliseconds' sample --pid "$target" --window "$window"
done

fact 'a name cannot steer the terminal, neither by ESC nor by its form of one character'
hostile=$(printf 'n\033[7m\302\2337m')
cp "$(command -v sleep)" "./$hostile" || exit 1
start "./$hostile" 300
await '[ "$(cat "/proc/$pid/comm")" = "$hostile" ]'
for command in 'sample --window 100ms' 'heap --json'; do
    # shellcheck disable=SC2086 # two words
    exits 0 $command --pid "$pid"
    expect_out '\u001b[7m\u009b7m'
    LC_ALL=C tr -d '\n\040-\176' <out >rest
    [ ! -s rest ] || wrong "$command lets through a control character"
    expect_same 'the name' "$hostile" "$(jq -r '.name // .threads[0].name' out)"
done

fact 'without /proc the document says why, and the status is not that of a sample'
if unshare -rm sh -c 'mount -t tmpfs none /proc' 2>/dev/null || not_tried 'no file system may be mounted here'; then
    # shellcheck disable=SC2016 # the inner shell expands it
    BUGPACK=$BUGPACK unshare -rm sh -c \
        'mount -t tmpfs none /proc && exec "$BUGPACK" sample --pid $$ --window 0' >out 2>err
    expect_status 1 $?
    expect_err 'this system has no metrics'
    expect_same 'the document' false "$(jq .available out)"
fi

finish
