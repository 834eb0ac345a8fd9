#!/bin/sh
# Reports "from macOS": what the darwin sampler makes of the counting Mach, read as a maintainer reads
# a report. BUGPACK is mac_host, which writes them.
. "$(dirname "$0")/lib.sh"
need unzip jq
run "$scratch"
cd "$scratch" || exit 1

fact 'three reports are written, and no right is left over'
expect_status 0
expect_no_err

# show ZIP FILTER: what jq makes of the metrics.
show() {
    value "$1.zip" runtime-metrics.json "$2"
}

fact '1: the variant of macOS is there, with threads'
for zip in a b; do
    expect_same "the platform of $zip" macos "$(show $zip .platform)"
    expect_same "the threads of $zip" 12 "$(show $zip '.threads | length')"
    expect_same "the keys of $zip" 'sample_window_ms,process,threads,platform' \
        "$(show $zip 'keys_unsorted | join(",")')"
done
expect_same 'the platform in the metadata' 'macos arm64 23.6.0' \
    "$(value a.zip metadata.json '.platform | "\(.os) \(.arch) \(.kernel)"')"

fact '2: nothing says that it is unavailable'
unzip -p a.zip runtime-metrics.json | grep -q reason && wrong 'there is a reason'

fact '3: the CPU is what was used: a quarter of one'
for zip in a b; do
    expect_same "the process of $zip" true "$(show $zip '.process.cpu_percent | . > 12 and . < 38')"
    expect_same "the busy thread of $zip" net-rx "$(show $zip '.threads | max_by(.cpu_percent).name')"
done

fact '4: memory is in KiB'
expect_same 'resident and size' '49152 419430400' "$(show a '.process | "\(.rss_kb) \(.vm_size_kb)"')"

fact '5: uptime counts from the start of the process, and advances'
first=$(show a .process.uptime_secs)
second=$(show b .process.uptime_secs)
expect_same 'the first' true "$(jq -n "$first > 100 and $first < 160")"
expect_same 'the second' true "$(jq -n "$second - $first > 0.5")"

fact '6: threads are sorted and named'
expect_same 'sorted' true "$(show a '[.threads[].tid] | . == sort')"
expect_same 'the named ones' 11 "$(show a '[.threads[] | select(.name != "")] | length')"
unzip -p a.zip runtime-metrics.json | grep -q '"tid": 9007199254740993,' || wrong 'an id is not exact'

fact 'a report without metrics names the call, and so does the ledger'
expect_same 'available' false "$(show refused .available)"
show refused .reason | grep -q '^task_threads failed' || wrong "the reason is $(show refused .reason)"
expect_same 'the ledger' failed "$(ledger refused.zip runtime-metrics.json status)"
expect_same 'the platform' macos "$(show refused .platform)"

fact 'process.json holds what macOS tells, whole'
expect_same 'status' ok "$(ledger a.zip process.json status)"
expect_same 'who' 'Viewer /Applications/Viewer.app/v 12' \
    "$(value a.zip process.json '"\(.name) \(.executable) \(.open_files)"')"
expect_same 'the arguments' 'viewer --full' "$(value a.zip process.json '.command_line | join(" ")')"
expect_same 'limits of our own' 'Max open files' \
    "$(value a.zip process.json '.limits[] | select(.unit == "files").name')"
for zip in a b refused; do
    unzip -p $zip.zip process.json | grep -q SECRET && wrong "the environment is in $zip"
done

finish
