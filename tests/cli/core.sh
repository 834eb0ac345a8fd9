#!/bin/sh
# bugpack capture --core: what a process died of, from its core; see tests/support/crash_target.c.
# shellcheck disable=SC2016,SC3045 # scripts are written, and every sh on Linux has ulimit -c
. "$(dirname "$0")/lib.sh"

need unzip jq
[ -x "${CRASH_TARGET:-}" ] || skip 'the program that crashes is not built'
cd "$scratch" || exit 1
cp "$CRASH_TARGET" target && mkdir reports bin

# of ENTRY FILTER: of the newest report.
of() {
    unzip -p "$zip" "$1" | jq -r "$2"
}

# takes STATUS OPTION...: a report, whose path is in `zip`.
takes() {
    wanted=$1
    shift
    run capture -o reports "$@"
    expect_status "$wanted"
    zip=$(cat out)
}

fact 'what excludes each other'
expect_misuse '--pid, --name, --unit, --cgroup, --core, --coredump and --host exclude each other' capture --core core --coredump target
expect_misuse '--pid, --name, --unit, --cgroup, --core, --coredump and --host exclude each other' capture --core core --pid 1
expect_misuse '--exe needs --core or --coredump' capture --exe target --pid 1

fact 'what is no core is refused with a reason'
run capture --core nothing
expect_status 1
expect_err 'bugpack: cannot open "nothing": No such file or directory'
run capture --core target
expect_status 1
expect_err 'bugpack: cannot read the core "target": it is no core of a process'
run capture --core /dev/null
expect_status 1
expect_err 'bugpack: cannot read the core "/dev/null": it is not a regular file'

fact 'coredumpctl that is not there, or has none'
PATH="$scratch/bin" "$BUGPACK" capture --coredump target >out 2>err
expect_same 'status' 1 $?
expect_err 'bugpack: there is no coredumpctl here: give the core itself to --core'
printf '#!/bin/sh\nexit 1\n' >bin/coredumpctl && chmod +x bin/coredumpctl
PATH="$scratch/bin" "$BUGPACK" capture --coredump target >out 2>err
expect_same 'status' 1 $?
expect_err 'bugpack: coredumpctl has no core for "target"'

[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip 'another program takes cores here'
(ulimit -c unlimited && exec ./target thread) >/dev/null 2>&1
set -- core*
mv "$1" dumped 2>/dev/null || skip 'no core is dumped here'

fact 'a core has the crash, and the stacks of all threads'
takes 0 --core dumped
expect_same 'signal' 'SIGSEGV SEGV_MAPERR 0x0' "$(of crash.json '"\(.name) \(.code_name) \(.address)"')"
expect_same 'kind' 'crash SIGSEGV true target' \
    "$(of metadata.json '"\(.report_type) \(.exit.name) \(.exit.core_dumped) \(.target.name)"')"
expect_same 'pid' "$(of crash.json .pid)" "$(of metadata.json .pid)"
expect_same 'all threads' "$(of crash.json '.other_threads | length + 1')" "$(of stacks.json '.threads | length')"
expect_same 'states' 'crashed stopped ' "$(of stacks.json '[.threads[].state] | unique[]' | tr '\n' ' ')"
if [ "$(of crash.json '.backtrace.frames | length')" -gt 0 ]; then
    expect_same 'the crash' 'crash_inner crash_middle crash_outer crash_thread ' \
        "$(of crash.json '.backtrace.frames[0:4][].symbol' | tr '\n' ' ')"
    expect_same 'the thread that waits' 1 "$(of stacks.json '[.threads[].frames[].symbol | select(. == "main")] | length')"
    expect_same 'complete' true "$(of stacks.json '[.threads[].complete] | all')"
    run show "$zip"
    grep -q '^!! crash in crash_inner: ' out || wrong "$(cat out)"

    fact 'a program that was moved is found with --exe, and another one is refused'
    mv target moved
    takes 0 --core dumped
    expect_same 'without' null "$(of crash.json '.backtrace.frames[0].symbol')"
    takes 0 --core dumped --exe moved
    expect_same 'with' crash_inner "$(of crash.json '.backtrace.frames[0].symbol')"
    run capture --core dumped --exe "$BUGPACK"
    expect_status 1
    grep -q ' is not the program of the core: its build id is ' err || wrong "$(cat err)"
fi

fact 'a core of coredumpctl, whose time is not known'
printf '#!/bin/sh\n[ "$*" = "--quiet dump -- -x" ] && exec /bin/cat "%s"\n' "$scratch/dumped" >bin/coredumpctl
PATH="$scratch/bin:$PATH" "$BUGPACK" capture --coredump=-x -o reports >out 2>err
expect_same 'status' 0 $?
zip=$(cat out)
expect_same 'signal and time' 'SIGSEGV null' "$(of crash.json '"\(.name) \(.crashed_at)"')"

if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    fact 'what glibc aborted for is in the core, and is the cause'
    [ -x target ] || mv moved target
    (ulimit -c unlimited && exec ./target assert) >/dev/null 2>&1
    mv core* aborted
    takes 0 --core aborted
    expect_same 'the message' "Assertion \`rows == 7' failed." "$(of crash.json .abort_message | sed 's/.*draw: //')"
    run show "$zip"
    grep -q "^!! crash.*: draw: Assertion \`rows == 7' failed.: SIGABRT in thread" out || wrong "$(cat out)"
fi

if python3 -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || not_tried 'a core of Python of 3.11 or later'; then
    fact 'a core of Python has the functions of the thread that crashed'
    (ulimit -c unlimited && exec python3 -c 'import ctypes
def read_name(): return ctypes.string_at(16)
read_name()') >/dev/null 2>&1
    mv core* snake
    takes 0 --core snake
    expect_same 'them' '["read_name",2] ["<module>",3] ' "$(of crash.json '.backtrace.python_frames[] |
        select(.source == "<string>") | [.function, .line] | tojson' | tr '\n' ' ')"
fi

fact 'a core that is cut short says so, wherever it ends'
for bytes in 0 1 63 64 1000 4096; do
    head -c "$bytes" dumped >short
    run capture --core short
    expect_status 1
    grep -q '^bugpack: cannot read the core "short": it' err || wrong "$bytes: $(cat err)"
done
head -c 200000 dumped >short
takes 3 --core short
grep -q 'crash.json: the core is cut short by [0-9]* KiB: stacks may end early' err || wrong "$(cat err)"
expect_same 'signal' SIGSEGV "$(of crash.json .name)"

fact 'a sparse core that claims two million segments is not read into memory'
head -c 64 dumped >endless && truncate -s 200M endless
printf '\000\020' | dd of=endless bs=1 seek=40 conv=notrunc 2>/dev/null   # where the number is that has no room
printf '\377\377' | dd of=endless bs=1 seek=56 conv=notrunc 2>/dev/null   # in the file header
printf '\001\000\040\000' | dd of=endless bs=1 seek=4140 conv=notrunc 2>/dev/null
run capture --core endless
expect_status 1
expect_err 'bugpack: cannot read the core "endless": its headers make no sense, or it is cut short'

fact 'damaged headers and notes are refused, or read as far as they make sense'
for turn in $(seq 40); do
    cp dumped damaged
    at=$((turn * 397 % 16000))
    printf '\377\377\377\377\377\377\377\177' | dd of=damaged bs=1 seek="$at" conv=notrunc 2>/dev/null
    timeout 60 "$BUGPACK" capture --core damaged --output damaged.zip >out 2>err
    status=$?
    case $status in
    0 | 1 | 3) ;;
    *) wrong "at $at: the exit status is $status: $(cat err)" ;;
    esac
done

finish
