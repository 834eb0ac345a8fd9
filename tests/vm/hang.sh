#!/bin/sh
# A watchdog of a host counts no time in which the host could not run.
. "$(dirname "$0")/lib.sh"
[ -n "${HANG_HOST:-}" ] || skip 'the host was not built'
boot hang 1

fact 'the machine was suspended to memory, and slept for some seconds'
grep -q 'ACPI: PM: Waking up from system sleep state S3' results/kernel ||
    wrong 'the kernel says nothing of it'
slept=$(($(cat results/after) - $(cat results/before)))
[ "$slept" -ge 4 ] || wrong "it took $slept s"

fact 'a host that is stopped, frozen or suspended for longer than the limit does not hang'
expect_same 'its reports' '' "$(cat results/innocent)"

fact 'one that does not beat has one report, while it hangs, and its end is told'
expect_same 'the number of its reports' 1 "$(wc -l <results/guilty)"
grep -q '^hang_host-hang-loop-.*\.zip$' results/guilty || wrong "it is $(cat results/guilty)"
expect_same 'the watchdog' 'loop 1000 1' \
    "$(value results/hang.zip hang.json '"\(.name) \(.limit_ms) \(.hang)"')"
expect_same 'the ends' 1 "$(grep -c '^ended' results/told)"
lasted=$(sed -n 's/ended after \([0-9]*\) ms/\1/p' results/told)
[ "$lasted" -ge 2500 ] || wrong "it lasted ${lasted:-no} ms"

finish
