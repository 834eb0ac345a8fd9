#!/bin/sh
# Groups of version 2, stalls and waits, compared with what the kernel said before and after.
. "$(dirname "$0")/lib.sh"
boot cgroup 1
process=$(cat results/busy.pid)

# kernel_said WHEN FILE KEY: the number beside the key, or after "KEY=" in its first line.
kernel_said() {
    sed -n "s/^$3 \([0-9]*\)\$/\1/p; 1s/.* $3=\([0-9]*\).*/\1/p" "results/$1/$2"
}

# expect_between WHAT BEFORE GOT AFTER
expect_between() {
    { [ "$2" -le "$3" ] && [ "$3" -le "$4" ]; } || wrong "$1 is $3, and was $2 and then $4"
}

# group FILTER: of the group with the limits.
group() {
    host_value host.zip ".cgroups[] | select(.path == \"/limited\") | $1"
}

fact 'a thread is in its group, and the limits are those that were set'
expect_thread host.zip 'its group' /limited .cgroup
expect_same 'the limits' '20000000 100000000 67108864 null 32 1 1' "$(group \
    '"\(.cpu.quota_ns) \(.cpu.period_ns) \(.memory.max_bytes) \(.memory.high_bytes) " +
    "\(.pids.max) \(.pids.current) \(.threads)"')"

fact 'what the group was charged with lies between what the kernel said before and after'
expect_between 'CPU time in µs' "$(kernel_said before cpu.stat usage_usec)" \
    "$(group '.cpu.usage_ns / 1000')" "$(kernel_said after cpu.stat usage_usec)"
expect_between 'throttled periods' "$(kernel_said before cpu.stat nr_throttled)" \
    "$(group .cpu.throttled_periods)" "$(kernel_said after cpu.stat nr_throttled)"
[ "$(group .cpu.throttled_periods)" -gt 0 ] || wrong 'it was never throttled'
expect_same 'its memory is told' true "$(group '.memory.current_bytes > 0')"

fact 'stalls lie between what the kernel said before and after, of the group and of the machine'
expect_between 'µs stalled in the group' "$(kernel_said before cpu.pressure total)" \
    "$(group .pressure.cpu.some.total_us)" "$(kernel_said after cpu.pressure total)"
expect_between 'µs stalled' "$(kernel_said before pressure total)" \
    "$(host_value host.zip .pressure.cpu.some.total_us)" "$(kernel_said after pressure total)"
[ "$(group .pressure.cpu.some.total_us)" -gt 0 ] || wrong 'it never stalled'

fact 'waits are measured once the kernel counts them, and not before'
expect_thread without.zip 'without' 'true false null' \
    '"\(.sched_measured) \(.waits_measured) \(.waits.wait_sum_ns)"'
expect_thread host.zip 'with' 'true true true' \
    '"\(.sched_measured) \(.waits_measured) \(.waits.wait_sum_ns > 0)"'
expect_same 'why not' true "$(host_value without.zip \
    '.summary.unread | any(.group == "waits" and .cause == "disabled")')"

fact 'what ran out of memory is known by the group that it was in, of which files are no part'
run show results/killed.zip
expect_out 'it was probably killed for lack of memory: meanwhile the kernel killed 1 process for it in the control group "/small", which may use 48 MiB'
expect_same 'its group' true "$(value results/killed.zip system.json '.cgroups[0] |
    .path == "/small" and .memory.session_oom_kills == 1 and .memory.file_bytes >= .memory.shmem_bytes')"

finish
