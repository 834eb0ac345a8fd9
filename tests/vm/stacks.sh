#!/bin/sh
# Stacks and the backtrace of a crash, on a machine with another processor.
. "$(dirname "$0")/lib.sh"
: "${STACK_WORKER:?name the program with known stacks}" "${CRASH_TARGET:?name the program that crashes}"
boot stacks 2

fact 'the stacks of a process have all its calls'
unzip -p results/living.zip stacks.txt >stacks || wrong 'there are none'
expect_same 'calls of deeper()' 10 "$(grep -c ' in deeper ()' stacks)"
grep -q ' in main ()' stacks || wrong "no main() in $(cat stacks)"
grep -q ' in wait_for_lock ()' stacks || wrong "no wait for the mutex in $(cat stacks)"

fact 'a crash has its signal, its thread and its backtrace'
expect_same 'the status of the command' 139 "$(cat results/crash.status)"
value results/crash.zip crash.json .summary | grep -q 'SIGSEGV at 0x0 in thread decoder' ||
    wrong "it is $(value results/crash.zip crash.json .summary)"
expect_same 'the backtrace' 'crash_inner crash_middle crash_outer crash_thread' \
    "$(value results/crash.zip crash.json '[.backtrace.frames[:4][].symbol] | join(" ")')"

finish
