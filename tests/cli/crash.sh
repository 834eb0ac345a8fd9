#!/bin/sh
# A host that crashes leaves a page, which becomes crash.json; see tests/support/crash_host.c.
. "$(dirname "$0")/lib.sh"

need unzip zip jq
[ -x "${CRASH_HOST:-}" ] || skip 'the host that crashes is not built'
mkdir -m 700 "$scratch/sessions"
cd "$scratch" || exit 1
host=$CRASH_HOST

# dies STATUS MODE...: as the shell tells it: 128 and the number of the signal.
dies() {
    wanted=$1
    shift
    for mode in "$@"; do
        fact "$mode: the host ends with $wanted"
        timeout 60 "$CRASH_HOST" "$mode" "$scratch/sessions" </dev/null >host.out 2>err
        expect_status "$wanted" $?
        [ "$status" -ne 124 ] || finish # the others would hang as long
        [ "$wanted" -ge 128 ] || expect_no_err
    done
}

# The shell says how its children died; that is not the host's.
exec 2>/dev/null
dies 139 segv null-call sent thread beside two overflow-main overflow overflow-plain inside constructor early kept kept-none \
    no-descriptors small-stack chained-default truncated without
dies 135 bus
dies 132 ill
dies 136 fpe
dies 134 abort assert abort-handler abort-ignored jump-abort jump-thread shared
dies 133 trap
dies 159 sys
dies 137 kept-killed killed resumed-killed jump-killed shared-killed
dies 7 chained-exit
dies 0 resumed jump fork others
ls sessions/kept_killed-*/stored-entries >kept.out || wrong 'kept-killed has stored nothing'
grep -l hunter2secret sessions/kept_killed-*/* >secrets.out
# A busy machine may let it finish first.
for _ in 1 2 3 4 5; do
    timeout 60 "$CRASH_HOST" midst "$scratch/sessions" </dev/null >host.out 2>err
    status=$?
    [ "$status" -eq 137 ] || [ "$status" -eq 139 ] || wrong "midst: the exit status is $status"
done
cp "$CRASH_HOST" copied_host && CRASH_HOST=$scratch/copied_host
dies 139 replaced
cp /bin/true copied_host # the same inode, and another program
exec 2>&1

fact 'each session that died becomes a report, and no other'
# Forty reports take a loaded machine longer than the limit of `run`.
timeout 600 "$BUGPACK" recover "$scratch/sessions" >out 2>err </dev/null
status=$?
expect_status 3 # for the pages that are not whole
for mode in segv null-call sent thread beside two overflow-main overflow overflow-plain inside constructor kept kept-none kept-killed \
    no-descriptors small-stack chained-default chained-exit truncated without bus ill fpe abort assert abort-handler \
    abort-ignored trap sys killed resumed-killed jump-abort jump-thread jump-killed shared shared-killed \
    replaced; do
    echo "$mode"
done | sort >wanted
sed 's|.*/\(.*\)-crash-.*|\1|' out | grep -v '^midst' | sort | diff wanted - >diff.out || wrong "$(cat diff.out)"
[ "$failures" -eq 0 ] || finish # what follows is about these reports
sed -n 's|.*/\(.*\)-crash-.*|\1 &|p' out >zips
ls "$scratch"/sessions/midst-crash-*.zip >midst.out # the next host may have been faster
# A host that recovers the one before it may be killed between publishing the report and removing the
# session, which is then recovered again.
[ "$(wc -l <midst.out)" -ge 5 ] || wrong "there are $(wc -l <midst.out) reports of five hosts"
grep -v '^midst ' zips >others && mv others zips

while read -r mode zip; do
    unzip -qo "$zip" -d "$mode"
done <zips

# of MODE FILTER: of its crash.json.
of() {
    jq -r "$2" "$1/crash.json"
}

# line MODE KEY: what its manifest says of crash.json.
line() {
    jq -r --arg key "$2" '.artefacts[] | select(.name == "crash.json") | .[$key]' "$1/manifest.json"
}

fact 'signal, code and address; and the metadata has the signal if it ended the process'
cat >wanted <<'END'
abort SIGABRT 6 SI_TKILL null
abort-handler SIGABRT 6 SI_TKILL null
abort-ignored SIGABRT 6 SI_TKILL null
assert SIGABRT 6 SI_TKILL null
beside SIGSEGV 11 SEGV_MAPERR 0x0
bus SIGBUS 7 BUS_ADRERR address
chained-default SIGSEGV 11 SEGV_MAPERR 0x0
chained-exit SIGSEGV 11 SEGV_MAPERR 0x0
constructor SIGSEGV 11 SEGV_MAPERR 0x0
fpe SIGFPE 8 FPE_INTDIV address
ill SIGILL 4 ILL_ILLOPN address
inside SIGSEGV 11 SEGV_MAPERR 0x0
jump-abort SIGABRT 6 SI_TKILL null
jump-thread SIGABRT 6 SI_TKILL null
kept SIGSEGV 11 SEGV_MAPERR 0x0
kept-none SIGSEGV 11 SEGV_MAPERR 0x0
no-descriptors SIGSEGV 11 SEGV_MAPERR 0x0
null-call SIGSEGV 11 SEGV_MAPERR 0x0
overflow SIGSEGV 11 SEGV_ACCERR address
overflow-main SIGSEGV 11 SEGV_MAPERR address
replaced SIGSEGV 11 SEGV_MAPERR 0x0
segv SIGSEGV 11 SEGV_MAPERR 0x0
sent SIGSEGV 11 SI_USER null
shared SIGABRT 6 SI_TKILL null
small-stack SIGSEGV 11 SEGV_MAPERR 0x0
sys SIGSYS 31 SYS_SECCOMP address
thread SIGSEGV 11 SEGV_MAPERR 0x0
trap SIGTRAP 5 SI_KERNEL null
two SIGSEGV 11 SEGV_MAPERR 0x0
END
if [ "$(uname -m)" = x86_64 ]; then
    jq -r '(input_filename | split("/")[1]) as $mode | (.address // "null" |
        sub("0x[0-9a-f]{2,}"; "address")) as $address |
        "\($mode) \(.name) \(.signal) \(.code_name) \($address)"' ./*/crash.json | sort |
        diff wanted - >diff.out || wrong "$(cat diff.out)"
fi
expect_same 'the exit' "$(jq -s -c '[.[] | select(.passed_to_host == false).signal]' ./*/crash.json)" \
    "$(jq -s -c '[.[].exit.signal | select(.)]' ./*/metadata.json)"

fact 'the thread, and the others'
expect_same 'name' decoder "$(of thread .thread.name)"
expect_same 'the first one' true "$(of thread '.other_threads[0] == .pid')"
expect_same 'of two' decoder "$(of two .thread.name)"
expect_same 'inside' bugpack-provide "$(of inside .thread.name)"
expect_same 'after another thread jumped' decoder "$(of jump-thread .thread.name)"
expect_same 'of the parent' true "$(of shared '.thread.tid == .pid')"

if [ "$(of segv .backtrace.complete)" = true ]; then
    fact 'the metadata has the signature that a reader of crash.json finds, of functions that are not inlined'
    signed='crash SIGSEGV: crash_inner < crash_middle'
    expect_same 'the signature' "$signed" "$(jq -r .signature segv/metadata.json)"
    mkdir unsigned
    cp segv/crash.json unsigned
    echo '{}' >unsigned/metadata.json
    (cd unsigned && zip -q ../unsigned.zip metadata.json crash.json)
    run index unsigned.zip
    expect_same 'what is read' "$signed" "$(jq -r .signature out)"
    rm -r unsigned unsigned.zip # its documents are not ours
fi

if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    fact 'what glibc aborts for is in the report, and is the cause'
    message="crash_host: host.c:1: draw: Assertion \`rows == 7' failed."
    expect_same 'the message' "$message" "$(of assert .abort_message)"
    run show "$(sed -n 's/^assert //p' zips)"
    grep -q "^!! crash.*: $message: SIGABRT in thread" out || wrong "$(cat out)"
fi
expect_same 'an abort without words' null "$(of abort .abort_message)"

fact 'the mappings have the program, with its build id'
expect_same 'count' 1 "$(of segv '[.mappings[] | select(.build_id and (.line | test("crash_host$")))] | length')"

fact 'an overflow is called one, and its stack was copied'
for mode in overflow overflow-main; do
    of "$mode" .summary | grep -q 'the stack has overflowed' || wrong "$(of "$mode" .summary)"
    [ "$(of "$mode" .stack.copied_bytes)" -ge 65536 ] || wrong "$(of "$mode" .stack)"
done
of segv .summary | grep -q 'SIGSEGV at 0x0 in thread .*: nothing is mapped there' ||
    wrong "$(of segv .summary)"

# frames MODE: the names of its functions down to main.
frames() {
    of "$1" '.backtrace.frames[] | .symbol // "??"' | sed '/^main$/q'
}

if [ "$(of segv '.backtrace.frames | length')" -gt 0 ]; then
    fact 'the backtrace is that of the crash, to its outermost frame'
    expect_same 'segv' 'crash_inner crash_middle crash_outer run main ' "$(frames segv | tr '\n' ' ')"
    expect_same 'complete' true "$(of segv .backtrace.complete)"
    expect_same 'thread' 'crash_inner crash_middle crash_outer crash_thread' \
        "$(frames thread | sed 4q | tr '\n' ' ' | sed 's/ $//')"
    expect_same 'inside' crash_provider "$(frames inside | sed -n 4p)"
    expect_same 'null-call' '?? call_nowhere crash_plainly run main ' \
        "$(frames null-call | tr '\n' ' ')"
    # Where a thread of ours has just closed one, the other threads are listed.
    expect_same 'without a descriptor' 'crash_inner crash_middle crash_outer run main true' \
        "$(frames no-descriptors | tr '\n' ' ')$(of no-descriptors \
            '.other_threads_are_cut == true or (.other_threads | length > 0)')"
    expect_same 'overflow' 'recurse recurse' "$(frames overflow | sed 2q | tr '\n' ' ' | sed 's/ $//')"
    expect_same 'overflow' false "$(of overflow .backtrace.complete)"
    of abort '.backtrace.frames[].symbol' | grep -qx abort || wrong 'abort is not in it'

    fact 'the stacks of the other threads are there: of the blocked ones, and why a busy one has none'
    # then NAME FILTER: of the thread of that name in stacks.json.
    then_of() {
        jq -r --arg name "$1" ".threads[] | select(.name == \$name) | $2" beside/stacks.json
    }
    expect_same 'how they were taken' crash "$(jq -r .taken beside/stacks.json)"
    expect_same 'the reader' 'blocked await_byte' \
        "$(then_of reader '"\(.state) \([.frames[].symbol | select(. == "await_byte")] | first)"')"
    expect_same 'the spinner' 'running null' "$(then_of spinner '"\(.state) \(.frames)"')"
    expect_same 'the crash' 'crashed crash_inner' \
        "$(jq -r '.threads[] | select(.state == "crashed") | "\(.state) \(.frames[0].symbol)"' beside/stacks.json)"
    expect_same 'the order' true "$(jq '[.threads[].tid] == ([.threads[].tid] | sort)' beside/stacks.json)"
    expect_same 'all' "$(of beside '.other_threads | length + 1')" "$(jq '.threads | length' beside/stacks.json)"
    grep -q '^Process [0-9]*: the stacks of its crashed and blocked threads' beside/stacks.txt || wrong "$(cat beside/stacks.txt)"
    grep -q ' in await_byte ()' beside/stacks.txt || wrong "$(cat beside/stacks.txt)"

    fact 'a host reads no debug data: whoever shows its crash does'
    expect_same 'lines of source' null "$(of segv '[.backtrace.frames[].source | values] | first')"
    inlined=
    if readelf -S "$host" 2>/dev/null | grep -q 'debug_line'; then
        inlined='crash_inlined < '
    fi
    zip=$(sed -n 's/^segv //p' zips)
    run show "$zip"
    grep -q "in ${inlined}crash_inner < crash_middle < crash_outer < run < main" out || wrong "$(cat out)"

    fact 'show has each frame, and the name of the thread'
    while read -r mode text; do
        run show "$(sed -n "s/^$mode //p" zips)"
        grep -q "^!! crash.*: .* in thread $(echo "$text" | sed "s/INLINED /$inlined/")" out || wrong "$mode: $(cat out)"
    done <<'END'
null-call crash_host ([0-9]*), in 0x0 < call_nowhere < crash_plainly < run < main
thread decoder ([0-9]*), in INLINED crash_inner < crash_middle < crash_outer < crash_thread
overflow .*, in recurse ×[0-9]* < …
replaced copied_host ([0-9]*), in copied_host+0x[0-9a-f]* < …
END

    fact 'a file that was replaced is not read, and has the build id that it had'
    expect_same 'reason' 'it was changed since the process ran it' "$(of replaced .backtrace.reason)"
    expect_same 'build id' "$(of segv '.backtrace.frames[0].build_id')" \
        "$(of replaced '.backtrace.frames[0].build_id')"
fi

if command -v gdb >/dev/null 2>&1 && [ "$(of segv .backtrace.complete)" = true ]; then
    mkdir -m 700 traced
    for mode in thread null-call; do
        fact "gdb has the same functions: $mode"
        gdb -nx -batch -iex 'set debuginfod enabled off' -ex run -ex bt --args "$host" "$mode" \
            "$scratch/traced" </dev/null 2>/dev/null |
            sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\{0,1\}\([A-Za-z_0-9?]*\) (.*/\2/p' |
            sed 's/^??$/0x0/; /^main$/q; /^crash_thread$/q' >gdb.out
        if [ -s gdb.out ] || not_tried "gdb runs nothing here"; then
            run show "$(sed -n "s/^$mode //p" zips)"
            grep -q ", in $(sed ':a; N; $!ba; s/\n/ < /g' gdb.out)" out ||
                wrong "$(cat gdb.out out)"
        fi
    done
fi

fact 'without room for it no stack is unwound, and the rest is there'
mkdir -m 700 little
(exec "$host" segv "$scratch/little") </dev/null >host.out 2>&1
# shellcheck disable=SC3045 # dash and bash have it
(ulimit -v 60000 && timeout 60 "$BUGPACK" recover "$scratch/little") >out 2>err </dev/null
expect_same 'the reason' 'SIGSEGV cannot read a stack: out of memory' \
    "$(unzip -p "$(cat out)" crash.json | jq -r '"\(.name) \(.backtrace.reason)"')"

fact 'build ids are known on a small stack, too'
expect_same 'build id' "$(of segv '.backtrace.frames[0].build_id')" "$(of small-stack '.backtrace.frames[0].build_id')"

fact 'who sent a signal'
expect_same 'pid' true "$(of sent '.sender.pid == .pid')"

fact 'registers'
case $(uname -m) in
x86_64) expect_same 'rip' string "$(of segv '.registers.rip | type')" ;;
aarch64) expect_same 'pc' string "$(of segv '.registers.pc | type')" ;;
esac

fact 'what providers wrote before is in the report'
expect_same 'the user' ada "$(jq -r .user kept/session.json)"
expect_same 'the process' "$(of kept .pid)" "$(jq -r .pid kept/process.json)"
grep -q 'about to crash' kept/logs.jsonl || wrong 'the log is not in it'
expect_same 'the tag' main "$(jq -r .tags.branch kept/metadata.json)"
note=$(jq -r '.artefacts[] | select(.name == "session.json") | .note' kept/manifest.json)
echo "$note" | grep -qE '^as it was [0-9]+\.[0-9] s before the end$' || wrong "the note is '$note'"

fact 'and so has that of a session without a handler, whose files have no secret'
expect_same 'the tag' main "$(jq -r .tags.branch kept-killed/metadata.json)"
expect_same 'the user' ada "$(jq -r .user kept-killed/session.json)"
grep -c . secrets.out >secrets.count
expect_same 'the files of kept-killed with a secret' 0 "$(cat secrets.count)"
for mode in kept kept-killed; do
    ! grep -rq hunter2secret "$mode" || wrong "$mode has a secret"
done

fact 'but not where the host wants none of it'
[ ! -e kept-none/session.json ] || wrong 'session.json is kept'
expect_same 'the tags' null "$(jq -c .tags kept-none/metadata.json)"

fact 'a process that was killed, or went on, did not crash'
for mode in killed resumed-killed jump-killed shared-killed overflow-plain; do
    expect_same "$mode" omitted "$(line "$mode" status)"
done
expect_same 'complete' true "$(jq -r .complete killed/manifest.json)"

fact 'a page that is not whole is told, and not believed'
expect_same 'truncated' failed "$(line truncated status)"
expect_same 'complete' false "$(jq -r .complete truncated/manifest.json)"

while read -r zip; do
    case $(ledger "$zip" crash.json status) in
    failed | ok) ;;
    *) wrong "the crash that was killed is $(ledger "$zip" crash.json status)" ;;
    esac
    ledger "$zip" crash.json reason
done <midst.out | sort | uniq -c

fact 'a session without a handler has no line of it'
expect_same 'lines' '' "$(line without name)"

finish
