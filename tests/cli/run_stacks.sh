#!/bin/sh
# bugpack run --stacks: what an unmodified program died of; see tests/support/crash_target.c.
# shellcheck disable=SC2016,SC2317,SC3045 # await calls and expands; every sh on Linux has ulimit -c
. "$(dirname "$0")/lib.sh"
need unzip jq
[ -x "${CRASH_TARGET:-}" ] || skip 'the program that crashes is not built'
cd "$scratch" || exit 1
mkdir reports
cp "$CRASH_TARGET" target

# dies MODE STATUS: under --stacks; its reports are then in reports/MODE.
dies() {
    mkdir "reports/$1"
    run run --stacks -q -o "reports/$1" -- ./target "$1"
    [ "$status" -eq "$2" ] || wrong "$1: the exit status is $status"
}

# of MODE FILTER: of its crash.json.
of() {
    unzip -p "reports/$1"/*.zip crash.json | jq -r "$2"
}

# line MODE KEY: what its manifest says of crash.json.
line() {
    ledger reports/"$1"/*.zip crash.json "$2"
}

frames() {
    of "$1" '.backtrace.frames[] | .symbol // "??"' | sed '/^main$/q' | tr '\n' ' '
}

fact 'a crash has its summary and its backtrace: in main, in a thread, after an exec by a thread'
exec 2>/dev/null # the shell says how its children died
for mode in main thread alone exec ignored; do
    dies "$mode" 139
    of "$mode" .summary | grep -q 'SIGSEGV at 0x0 in thread [a-z]* ([0-9]*): nothing is mapped there' ||
        wrong "$mode: $(of "$mode" .summary)"
done
expect_same 'the name of the thread' decoder "$(of thread .thread.name)"
# One that was joined may be there for a moment.
expect_same 'its others' true "$(of thread '.other_threads as $others | .pid | IN($others[])')"
expect_same 'where they were' "$(of thread .pid) blocked" \
    "$(unzip -p reports/thread/*.zip stacks.json | jq -r '.pid as $pid | .threads[] | select(.tid == $pid) | "\(.tid) \(.state)"')"
expect_same 'the exit' SIGSEGV "$(unzip -p reports/thread/*.zip metadata.json | jq -r .exit.name)"
expect_same 'the build id' 1 "$(of main '[.mappings[] | select(.build_id and (.line | test("/target$")))] | length')"

fact 'an overflow of the stack, an abort, and signals that somebody sent'
dies overflow 139
of overflow .summary | grep -q 'the stack has overflowed' || wrong "$(of overflow .summary)"
dies abort 134
dies term 143
dies pipe 141
dies xcpu 152
dies realtime 165
expect_same 'a signal of real time' SIG37 "$(of realtime .name)"
expect_same 'the names' 'SIGABRT SIGTERM SIGPIPE SIGXCPU ' \
    "$(for mode in abort term pipe xcpu; do of "$mode" .name; done | tr '\n' ' ')"
expect_same 'the sender' true "$(of term '.sender.pid == .pid')"

if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    dies assert 134
    expect_same 'what glibc aborts for' "target: target.c:1: draw: Assertion \`rows == 7' failed." "$(of assert .abort_message)"
fi

if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || not_tried 'an abort of Python of 3.11 or later'; then
    fact 'of more functions of Python than the limit, the innermost are there, and that others are missing'
    mkdir -p reports/deep
    run run --stacks -o reports/deep -- python3 -c 'import os
def deep(left): deep(left - 1) if left > 0 else os.abort()
deep(400)'
    expect_status 134
    expect_same 'them' '256 there are more frames than the limit' \
        "$(of deep '.backtrace | "\(.python_frames | length) \(.python_reason)"')"
fi

fact 'a handler of its own that recovers is no crash; one that gives up is one, seen through it'
for mode in recovers child cloned traces; do
    dies "$mode" 0
    expect_empty "reports/$mode"
done
dies fails 3
expect_same 'the line' '' "$(line fails name)"
dies later 134
expect_same 'the signal' SIGABRT "$(of later .name)"
dies handler 139
dies reset 139

fact 'what cannot be seen is said'
dies kill 137
expect_same kill omitted "$(line kill status)"

fact 'a system call that a filter refused is named'
dies filter 159
expect_same 'the cause' 'a filter (seccomp) refused the system call getppid' "$(of filter .cause)"
expect_same 'the signal' 'SIGSYS SYS_SECCOMP' "$(of filter '"\(.name) \(.code_name)"')"
exec 2>&1

if [ "$(of main '.backtrace.frames | length')" -gt 0 ]; then
    fact 'the backtrace is that of the crash, to its outermost frame'
    expect_same 'main' 'crash_inner crash_middle crash_outer main ' "$(frames main)"
    expect_same 'exec' "$(frames main)" "$(frames exec)"
    expect_same 'alone' 'crash_inner crash_middle crash_outer crash_thread ' "$(frames alone | cut -d ' ' -f 1-4) "
    expect_same 'ignored' "$(frames main)" "$(frames ignored)"
    expect_same 'complete' true "$(of main .backtrace.complete)"
    expect_same 'overflow' 'recurse recurse ' "$(of overflow '.backtrace.frames[:2][].symbol' | tr '\n' ' ')"
    of abort '.backtrace.frames[].symbol' | grep -qx abort_here || wrong "$(frames abort)"
    frames handler | grep -q 'raise die_of .* crash_inner crash_middle crash_outer main $' ||
        wrong "$(frames handler)"
    if command -v gdb >/dev/null 2>&1; then
        for mode in main thread; do
            fact "gdb has the same functions: $mode"
            timeout 60 gdb -nx -batch -iex 'set debuginfod enabled off' -ex run -ex bt --args ./target "$mode" \
                </dev/null 2>/dev/null |
                sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\{0,1\}\([A-Za-z_0-9?]*\) (.*/\2/p' |
                sed '/^main$/q; /^start_thread$/q' >gdb.out
            if [ -s gdb.out ] || not_tried "gdb runs nothing here"; then
                of "$mode" '.backtrace.frames[].symbol' | head -n "$(wc -l <gdb.out)" |
                    diff gdb.out - >diff.out || wrong "$(cat diff.out)"
            fi
        done
    fi
fi

fact 'a core is dumped as without it'
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ] || not_tried 'another program takes cores here'; then
    for options in '' --stacks; do
        mkdir "core$options"
        # shellcheck disable=SC2086 # an option, or none
        (ulimit -c unlimited && cd "core$options" && "$BUGPACK" run $options -q -o . -- ../target main) \
            </dev/null >/dev/null 2>&1
        [ -s "core$options/core" ] || echo core >>"cores$options"
        jq_of=$(unzip -p "core$options"/*.zip metadata.json | jq .exit.core_dumped)
        echo "$jq_of" >>"cores$options"
    done
    cmp -s cores cores--stacks || wrong "$(cat cores cores--stacks)"
fi

fact 'on a terminal of its own, too'
if command -v script >/dev/null 2>&1 || not_tried 'script is not installed'; then
    mkdir reports/pty
    SHELL=/bin/sh timeout 60 script -qec "'$BUGPACK' run --stacks -q -o reports/pty -- ./target thread" /dev/null \
        </dev/null >out 2>&1
    expect_same 'the thread' decoder "$(of pty .thread.name)"
fi

fact 'a stopped command stays stopped, and goes on'
"$BUGPACK" run --stacks -q -o reports -- ./target stops >stops.out 2>err </dev/null &
pid=$!
started="$started $pid"
command_pid() {
    command=
    read -r command _ <"/proc/$pid/task/$pid/children" # without a newline
    [ -n "$command" ]
}
await 'grep -q stopping stops.out && command_pid'
await 'grep -q "^State:.*stop" /proc/$command/status'
kill -CONT "$command"
wait "$pid"
expect_status 0 $?
grep -q continued stops.out || wrong 'it did not go on'

fact 'a command goes on without bugpack, wherever its threads stood'
for round in 1 2 3 4 5 6 7 8; do
    rm -f begun enough finished
    "$BUGPACK" run --stacks -q -o reports -- ./target busy >/dev/null 2>&1 </dev/null &
    pid=$!
    await '[ -e begun ] && command_pid'
    started="$started $command"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    : >enough
    await '[ -e finished ]'
done
[ "$round" -eq 8 ] || wrong "only $round rounds"

fact 'where tracing is forbidden the command runs, and both say so'
if command -v strace >/dev/null 2>&1 || not_tried 'strace is not installed'; then
    mkdir reports/denied
    timeout 60 strace -f -qq -e trace=none -o /dev/null "$BUGPACK" run --stacks -q -o reports/denied -- ./target main \
        </dev/null >out 2>err
    expect_status 139 $?
    expect_err 'bugpack: no stacks of a crash: the command may not be traced: another program traces it, kernel.yama.ptrace_scope is over 1, or the container forbids it'
    expect_same 'the status' omitted "$(line denied status)"
    line denied reason | grep -q 'may not be traced' || wrong "$(line denied reason)"
fi

fact 'a program with privileges of its own keeps them'
if { [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; } ||
    not_tried 'only root can make such a program and be somebody else'; then
    nobody='setpriv --reuid 65534 --regid 65534 --clear-groups'
    chmod 755 . "$scratch"
    cp "$BUGPACK" bugpack
    chmod 4755 target
    mkdir -m 700 reports/privileged && chown 65534:65534 reports/privileged
    # shellcheck disable=SC2086 # words
    timeout 60 $nobody env "PATH=/nowhere:$scratch" "$scratch/bugpack" run --stacks -q -o reports/privileged \
        -- target fails </dev/null >out 2>err
    expect_status 3 $?
    expect_err "bugpack: no stacks of a crash: 'target' has privileges of its own, which it would not get if it was traced"
fi

finish
