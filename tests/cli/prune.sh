#!/bin/sh
# prune: which reports are removed, and that nothing else is.
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
fill() {
    rm -rf dir
    mkdir dir
    for day in 01 02 03 04; do
        head -c 1000 /dev/zero >"dir/viewer-bugreport-2026-01-${day}T00-00-00Z.zip"
    done
    head -c 1000 /dev/zero >"dir/other-crash-2026-01-02T12-00-00Z.zip"
    head -c 1000 /dev/zero >"dir/viewer-bugreport-$(date -u +%Y-%m-%dT%H-%M-%SZ).zip"
    ln -s /etc/passwd "dir/viewer-bugreport-2025-01-01T00-00-00Z.zip"
    mkdir "dir/viewer-bugreport-2025-01-02T00-00-00Z.zip"
    : >dir/notes.zip
    : >"dir/viewer-bugreport-2026-01-01T00-00-00Z.zip.age"
}
# left: the days of the reports that remain; `others` are what is never touched.
left() {
    find dir -type f -name '*-*-*Z.zip' | sed 's/.*-2026-01-\(..\).*/\1/; s/.*bugreport-.*/now/' | sort | tr '\n' ' '
}
others() {
    [ -L dir/viewer-bugreport-2025-01-01T00-00-00Z.zip ] && [ -d dir/viewer-bugreport-2025-01-02T00-00-00Z.zip ] &&
        [ -f dir/notes.zip ] && [ -f dir/viewer-bugreport-2026-01-01T00-00-00Z.zip.age ]
}

fact 'the newest are kept, and what goes is printed'
fill
exits 0 prune dir --keep 3
expect_same 'what is left' '03 04 now ' "$(left)"
expect_same 'what is printed' 3 "$(wc -l <out | tr -d ' ')"
grep -qx 'dir/other-crash-2026-01-02T12-00-00Z.zip' out || wrong "it is $(cat out)"
expect_err 'dir: removed 3 reports (2.9 KiB); 3 left (2.9 KiB)'
others || wrong 'something else is gone'

fact 'bytes, age and the program are limits, too'
fill
run prune --max-bytes 2500 dir/
expect_same 'what is left' '04 now ' "$(left)"
fill
run prune --older-than 1d dir
expect_same 'what is left' 'now ' "$(left)"
others || wrong 'something else is gone'
fill
run prune --app other --older-than 1d dir
expect_same 'what is left' '01 02 03 04 now ' "$(left)"

fact 'each unit of an age is its own'
for age in 60:12h:12min 2:90min:45s 1500:2d:1d 2:0.5h:45 2:3m:1.5m; do
    fill
    rm -rf dir/*.zip
    aged=dir/viewer-bugreport-$(date -u -d "-${age%%:*} min" +%Y-%m-%dT%H-%M-%SZ).zip
    head -c 1000 /dev/zero >"$aged"
    age=${age#*:}
    run prune --older-than "${age%:*}" dir
    [ -f "$aged" ] || wrong "it is not older than ${age%:*}"
    run prune --older-than "${age#*:}" dir
    [ ! -f "$aged" ] || wrong "it is older than ${age#*:}"
done

fact 'a dry run removes nothing'
fill
exits 0 prune --keep 1 --dry-run dir
expect_same 'what is printed' 5 "$(wc -l <out | tr -d ' ')"
expect_same 'what is left' '01 02 02 03 04 now ' "$(left)"
expect_err 'would remove 5 reports'

fact 'what cannot be is refused'
expect_misuse '--keep, --max-bytes or --older-than is needed' prune dir
expect_misuse 'a directory is missing' prune --keep 1
for time in 0 0.9 -1 1x d 1dd 1000001d 99999999999999999999 ''; do
    run prune --older-than "$time" dir
    expect_usage "--older-than takes a time such as 30d, 12h, 90min or 45s, not '$time'"
done
exits 1 prune --keep 1 missing
rm -rf dir # these are no reports
finish
