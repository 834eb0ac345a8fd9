#!/bin/sh
# The stacks of blocked threads, which are not stopped.
# shellcheck disable=SC2016 # await and jq expand it
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1
mkfifo input
exec 9<>input
unset DEBUGINFOD_URLS

# begin PROGRAM [ARGUMENT]: runs it until both of its threads are blocked. Its id is in `target`.
begin() {
    "$@" <input >worker.out 2>&1 &
    target=$!
    started="$started $target"
    await 'grep -q "^0 0x0 " /proc/$target/task/$target/syscall'
    await 'cat /proc/$target/task/*/syscall | grep -q "^202 "'
}

# take [OPTION...]: a report about it, in `zip`.
take() {
    exits 0 capture --pid "$target" --window 0 -o . "$@"
    zip=$(cat out)
}

# stack FIELD THREAD: the values of the frames, on a line; of the first (0) or the second (1).
stack() {
    value "$zip" stacks.json "[.threads[$2].frames[] | .$1 // \"-\"] | join(\" \")"
}

begin "$STACK_WORKER"
refusal=$("$SYSTEM_ALLOWS" stacks "$target") || [ $? -ne 1 ] || skip "stacks cannot be read here: $refusal"
kill "$target"

calls='deeper deeper deeper deeper deeper deeper main'
for program in "$STACK_WORKER" "$STACK_WORKER_STATIC"; do
    fact "${program##*/}: every call is there, down to the outermost"
    begin "$program"
    take
    expect_same 'the calls' "$calls" "$(stack symbol 0 | grep -o "deeper.* main")"
    expect_same 'complete' true "$(value "$zip" stacks.json '[.threads[].complete] | all')"
    # In a shared libc without debug data start_thread has no name.
    expect_same 'the calls of the thread' \
        'deeper deeper deeper deeper _ZN3app6lockerEPv start_thread' \
        "$(stack symbol 1 | sed 's/\(lockerEPv\) -/\1 start_thread/' | grep -o "deeper.* start_thread")"
    expect_same 'the place of the entries' 'stacks.txt stacks.json manifest.json ' \
        "$(entries "$zip" | tail -n 3 | tr '\n' ' ')"
    expect_same 'its name' locker "$(value "$zip" stacks.json '.threads[1].name')"
    unzip -p "$zip" stacks.txt >text
    grep -q "^Thread 1 (LWP $target \"stack_worker" text || wrong "no first thread in $(cat text)"
    expect_same 'frames in the text' "$(stack address 0 | wc -w)" \
        "$(sed '/^Thread 2/,$d' text | grep -c '^#')"
    kill "$target"
done

fact 'a C++ name is written as in its source, or the report says that it is not'
if [ "$(value "$zip" stacks.json .demangled)" = true ]; then
    stack demangled 1 | grep -qF 'app::locker(void*)' || wrong "$(stack demangled 1)"
    grep -q '^#.* in app::locker(void\*) ' text || wrong "$(cat text)"
else
    grep -q '^C++ names are as the files have them' text || wrong "$(cat text)"
fi

fact 'a frame has a line of source where the file has debug data'

begin "$STACK_WORKER"
take
unzip -p "$zip" stacks.txt >text
grep -q '^#[0-9]* .* in main () at .*stack_worker.c:[0-9]*$' text ||
    wrong "no line of main: $(cat text)"

fact 'a function that was inlined is a frame of its own, before the one that it is in'
own='[.threads[0].frames[] | select(.module | endswith("/stack_worker"))]'
if value "$zip" stacks.json "${own}[0].source" | grep -q 'stack_worker.c$' || not_tried 'there are no debug data'; then
    expect_same 'the frames' 'read_byte true wait_for_input null deeper null' \
        "$(value "$zip" stacks.json "${own}[:3] | map(\"\(.symbol) \(.inlined)\") | join(\" \")")"
    expect_same 'the address' true "$(value "$zip" stacks.json "${own} | .[0].address == .[1].address")"
    for function in read_byte wait_for_input; do
        [ $function = read_byte ] && call='read(fd' || call='read_byte('
        line=$(grep -nF "return $call" "$source_dir/tests/support/stack_worker.c")
        grep -q "^#.* in $function () at .*stack_worker.c:${line%%:*}\( \[inlined\]\)*$" text ||
            wrong "no ${line%%:*}: $(cat text)"
    done
    run show "$zip"
    grep -q 'read[^<]* < read_byte < wait_for_input < deeper ×6 < main' out || wrong "$(cat out)"
fi

fact 'each of both can be left out alone'
cp text both
take --without stacks.json
expect_same 'stacks.json' disabled "$(ledger "$zip" stacks.json status)"
unzip -p "$zip" stacks.txt | cmp -s both - || wrong "$(unzip -p "$zip" stacks.txt)"
take --without stacks.txt
expect_same 'stacks.txt' disabled "$(ledger "$zip" stacks.txt status)"
expect_same 'stacks.json' ok "$(ledger "$zip" stacks.json status)"

fact 'without libdw there are no stacks, and the report is complete'
mkdir none
: >none/libdw.so.1
LD_LIBRARY_PATH=none take
for name in stacks.json stacks.txt; do
    expect_same "$name" omitted "$(ledger "$zip" $name status)"
done
expect_same 'the reason' 'libdw.so.1 cannot be loaded; Debian has it as libdw1' \
    "$(ledger "$zip" stacks.json reason)"

fact 'where libdw crashes, the stacks are lost and nothing else'
reason=
if [ -n "${FAILING_PRELOAD:-}" ]; then
    # In libdw 0.188 a failure of the 27th to 29th allocation is a fault, and one of some later ones ends the
    # process.
    cat >failing <<END
#!/bin/sh
FAULTS_MALLOC=\$nth,1 FAULTS_MALLOC_LIBRARY=libdw LD_PRELOAD=$FAILING_PRELOAD exec "$BUGPACK" "\$@"
END
    chmod +x failing
    for nth in $(seq 26 60); do
        export nth
        BUGPACK=./failing run capture --pid "$target" --window 0 -o .
        expect_status 3
        zip=$(cat out)
        reason=$(ledger "$zip" stacks.json reason)
        [ "$(ledger "$zip" stacks.json status)" = failed ] && break
    done
    case $reason in
        'the unwinder died by signal '* | 'the unwinder ended with status '*)
            expect_same 'the text' 'stacks.json has no stacks either' "$(ledger "$zip" stacks.txt reason)"
            expect_same 'the process' "$target" "$(value "$zip" process.json .pid)"
            expect_same 'what is missing' 'stacks.json' \
                "$(value "$zip" manifest.json '[.artefacts[] | select(.status == "failed") | .name] | join(" ")')"
            ;;
        *) wrong "no allocation ended libdw: $reason" ;;
    esac
else
    echo 'not tried: no allocation can be made to fail under a sanitizer'
fi

fact 'nothing is stopped, and the thread is where it was'
grep -q '^State:.S' "/proc/$target/status" || wrong "$(grep State "/proc/$target/status")"
kill "$target"

fact 'without symbols a frame has file, offset and build id'
begin "$STACK_WORKER_STRIPPED"
take
expect_same 'frames of the program' true "$(value "$zip" stacks.json '[.threads[0].frames[] |
    select(.module | endswith("stripped")) | .offset and .build_id and (.symbol | not)] |
    length >= 7 and all')"
run show "$zip"
expect_same 'what show prints' "$(value "$zip" stacks.json '[.threads[0].frames[] |
    select(.module | endswith("stripped")) | "+\(.offset)"] |
    "stack_worker_stripped\(.[0]) < \(.[1]) < \(.[2]) ×5"')" \
    "$(sed -n '/^Busiest threads/,$p' out | grep -o 'stack_worker_stripped+.* ×5')"
expect_same 'complete' true "$(value "$zip" stacks.json '.threads[0].complete')"
kill "$target"

if [ "$(uname -m)" = x86_64 ]; then
    fact 'a call to where no code is has frames below the handler of its signal'
    begin "$STACK_WORKER" null-call
    take
    expect_same 'complete' true "$(value "$zip" stacks.json '.threads[0].complete')"
    expect_same 'the frames' 'wait_in_handler signal 0x0 call_nowhere main' "$(value "$zip" stacks.json '[.threads[0].frames[] |
        if .signal_frame then "signal" else .symbol // .address end] | .[index("wait_in_handler"):index("main") + 1] | join(" ")')"
    run show "$zip"
    grep -qF 'wait_in_handler < <signal handler called> < 0x0 < call_nowhere < main' out || wrong "$(cat out)"
    kill "$target"
fi

fact 'a stack that needs a register that nobody saved ends there, and says so'
begin "$STACK_WORKER_POINTERS"
take
known=$(stack symbol 0 | grep -o 'deeper.* main')
if [ "$(value "$zip" stacks.json '.threads[0].complete')" = true ]; then
    expect_same 'the calls' "$calls" "$known"
else
    value "$zip" stacks.json '.threads[0].reason' | grep -q 'register' || wrong 'no reason'
    unzip -p "$zip" stacks.txt | grep -q '^Backtrace stopped: ' || wrong 'the text has no reason'
fi

fact 'with --stacks=all such a thread is stopped for an instant, and all calls are there'
take --stacks=all
expect_same 'the calls' "$calls" "$(stack symbol 0 | grep -o 'deeper.* main')"
expect_same 'complete' true "$(value "$zip" stacks.json '[.threads[].complete] | all')"
expect_same 'what was taken' all "$(value "$zip" stacks.json .taken)"
grep -q '^State:.S' "/proc/$target/status" || wrong "$(grep State "/proc/$target/status")"

fact 'code without unwind tables ends a stack'
kill "$target"
begin "$STACK_WORKER_UNTABLED"
take
expect_same 'complete' false "$(value "$zip" stacks.json '.threads[0].complete')"
expect_same 'the reason' 'no unwind table reaches this address' "$(value "$zip" stacks.json '.threads[0].reason')"

fact 'with --stacks=all its frame pointers are followed, and each frame that they give is marked'
take --stacks=all
expect_same 'the calls' "$calls" "$(stack symbol 0 | grep -o 'deeper.* main')"
expect_same 'the marks' true "$(value "$zip" stacks.json '[.threads[0].frames[] | select(.symbol == "deeper") |
    .by_frame_pointer] | all')"
kill "$target"
begin "$STACK_WORKER_POINTERS"

fact 'a process that is stopped stays so'
kill -STOP "$target"
await 'grep -q "^State:.T" /proc/$target/status'
take --stacks=all
expect_same 'the calls' "$calls" "$(stack symbol 0 | grep -o 'deeper.* main')"
await 'grep -q "^State:.T" /proc/$target/status'
kill -CONT "$target"
await 'grep -q "^State:.S" /proc/$target/status'
kill "$target"

# A read-only section, which libdw finds by its name, of 3 GiB; the file is sparse.
cat >enlarge.py <<'END'
import struct, sys
file = open(sys.argv[1], 'r+b')
header = file.read(64)
offset, count, names = struct.unpack_from('<40xQ12xHH', header)
sections = []
for index in range(count):
    file.seek(offset + 64 * index)
    sections.append(list(struct.unpack('<IIQQQQIIQQ', file.read(64))))
file.seek(sections[names][4])
text = file.read(sections[names][5])
index = next(i for i, s in enumerate(sections) if text[s[0]:].startswith(b'.eh_frame\0'))
sections[index][5] = 3 << 30
file.truncate(4000 << 20)
file.seek(offset + 64 * index)
file.write(struct.pack('<IIQQQQIIQQ', *sections[index]))
END

fact 'a file that was replaced since it was loaded is named, and harms nobody'
for damage in 'rm -f library.so' ': >library.so' 'truncate -s 4096 library.so' \
    'truncate -s 1T library.so' 'python3 enlarge.py library.so' 'rm -f library.so; mkfifo library.so' \
    'rm -f library.so; cp "$STACK_LIBRARY" library.so'; do
    rm -f library.so
    cp "$STACK_LIBRARY" library.so
    begin "$STACK_WORKER" ./library.so
    eval "$damage"
    take
    # With privileges the kernel still gives the file that was removed.
    if value "$zip" stacks.json '.threads[0].complete' | grep -q true; then
        expect_same "the calls ($damage)" 'deeper deeper deeper main' \
            "$(stack symbol 0 | grep -o 'deeper.* main')"
        case $damage in
            rm*) ;;
            *) wrong "nothing is told of the damage ($damage)" ;;
        esac
    else
        expect_same "the trouble ($damage)" true "$(value "$zip" stacks.json \
            'any(.modules[]; (.path | test("library.so")) and .trouble)')"
    fi
    expect_same "the thread beside it ($damage)" true \
        "$(value "$zip" stacks.json '.threads[1].complete')"
    kill -KILL "$target"
done

fact 'a thread that runs has no stack, and is said to run'
start sh -c 'while :; do :; done'
target=$pid
await 'grep -q "^State:.R" /proc/$target/status'
for _ in 1 2 3 4 5; do
    take
    state=$(value "$zip" stacks.json '.threads[0].state')
    [ "$state" = running ] && break
done
expect_same 'the state' running "$state"
expect_same 'frames' null "$(value "$zip" stacks.json '.threads[0].frames')"
expect_same 'the status' ok "$(ledger "$zip" stacks.txt status)"

fact 'with --stacks=all it has one, and runs on'
take --stacks=all
expect_same 'a stack' true "$(value "$zip" stacks.json '.threads[0] |
    .state == "stopped" and .stopped_us > 0 and (.frames | length) > 0')"
unzip -p "$zip" stacks.txt | grep -q '1 was stopped, for at most [0-9]* us each' ||
    wrong "$(unzip -p "$zip" stacks.txt)"
await 'grep -q "^State:.R" /proc/$target/status'
kill "$target"

fact 'the text says where the functions of Python are, or that the frames are those of C'
start python3 -c 'import time; time.sleep(300)'
target=$pid
await 'grep -q "^State:.S" /proc/$target/status && grep -q python /proc/$target/maps'
take
expect_same 'the language' Python "$(value "$zip" stacks.json .interpreter)"
unzip -p "$zip" stacks.txt | grep -q '^The functions of Python 3\|^A Python interpreter is loaded' || wrong 'nothing in the text'

fact 'where the first thread has ended the others have stacks, and the process is found by its name'
start python3 -c 'import ctypes, sys, threading, time
open("/proc/self/comm", "w").write(sys.argv[1])
threading.Thread(target=time.sleep, args=(300,)).start()
ctypes.CDLL(None).pthread_exit(None)' "lone$$"
target=$pid
await 'grep -q "^State:.Z" /proc/$target/status'
exits 0 capture --name "lone$$" --window 0 -o .
zip=$(cat out)
expect_same 'the threads' '1, and 1 that had ended' \
    "$(value "$zip" stacks.json '"\(.threads | length), and \(.vanished_threads) that had ended"')"
expect_same 'the note' 'threads: 1 blocked; 1 had ended' "$(ledger "$zip" stacks.json note)"
stack symbol 0 | grep -q nanosleep || wrong "$(stack symbol 0)"

fact '--stacks=none leaves both entries out, and other words are refused'
start sleep 300
target=$pid
take --stacks=none
unzip -l "$zip" | grep stacks && wrong 'there are stacks'
exits 2 capture --pid "$target" --stacks=some
expect_err 'blocked, all or none'

finish
