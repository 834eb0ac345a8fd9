#!/bin/sh
# power_cut.sh [CUTS]: what is on the disk when the power goes while reports are written and a host
# records on it. Every report that bugpack has named is there, whole. `bugpack recover` makes a crash
# report of the rings that is whole and says that the newest records may be missing, or nothing. And
# nothing else is there.
#
# The machine is stopped at some instant and its disk copied: the kernel in it never learns of that,
# so the copy is what a cut at that instant leaves on a disk that keeps what it was given. Cuts that
# tore no file would show nothing: then more are made, up to five times as many.
. "$(dirname "$0")/lib.sh"
cuts=${1:-6}
most_cuts=$((cuts * 5))
deadline_secs=$((300 + most_cuts * 10))
[ -x "${FAULTS_HOST:-}" ] || skip 'the host of the faults is not built'
need mke2fs e2fsck debugfs python3
truncate -s 48M disk.img
mke2fs -q -t ext4 disk.img 2>mke2fs.log || skip "mke2fs cannot make an image: $(cat mke2fs.log)"
make_machine power_cut
: >console
machine 1 disk.img &
started="$started $!"

# stop_all: every thread of the machine stands still, also those that write to the disk.
stop_all() {
    kill -STOP "$qemu" || return 1
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -qh '^State:[[:space:]]*[^Tt[:space:]]' /proc/"$qemu"/task/*/status || return 0
        sleep 0.05
    done
    return 1
}

# has_begun: a report is written, and the host has recorded for a while.
has_begun() {
    grep -q written console && grep -q 'counting [0-9]* [0-9]\{4\}' console
}

fact 'the machine starts, writes reports, and records'
tries=0
until has_begun || [ "$tries" -ge 2400 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
qemu=$(cat qemu.pid 2>/dev/null)
started="$started $qemu"
if ! has_begun || [ -z "$qemu" ]; then
    wrong 'it has not'
    sed 's/^/    /' console qemu.log
    finish
fi

# take_cut: the disk at an instant, as the directory `disk`, mended as at the next start.
take_cut() {
    # Instants that fall everywhere in the making of a report, which takes some 0.2 s.
    sleep "0.$((cut * 37 % 90 + 10))"
    fact "at cut $cut the machine is stopped, and the file system mends itself as at the next start"
    if ! stop_all; then
        wrong 'the machine cannot be stopped, or has ended'
        finish
    fi
    # The console first: what it names must be on the disk, and never the other way round.
    cp console cut.console
    cp --sparse=always disk.img cut.img
    kill -CONT "$qemu"
    e2fsck -f -p cut.img >err 2>&1
    status=$?
    [ "$status" -le 1 ] || wrong "e2fsck ends with $status"
    : >err
    mkdir disk
    debugfs -R 'rdump / disk' cut.img >/dev/null 2>&1
    rm cut.img
}

torn_copies=0
named_reports=0
queued_reports=0
crash_reports=0
records=0
cut=0
while [ "$cut" -lt "$cuts" ] || [ "$torn_copies" -eq 0 ] && [ "$cut" -lt "$most_cuts" ]; do
    cut=$((cut + 1))
    rm -rf disk recovered
    take_cut
    fact "after cut $cut every report that was named is there"
    # Of each kind, since the machine removes older ones. The last line may lack its end.
    for kind in sleep faulty; do
        sed -n "s|^\(written \)*/mnt/\($kind-[^[:space:]]*\)[[:space:]].*|\2|p" cut.console |
            tail -n 3
    done >named
    while IFS= read -r name; do
        named_reports=$((named_reports + 1))
        [ -s "disk/$name" ] || wrong "$name was named and is not there"
    done <named
    fact "after cut $cut every report that was queued is there, or where it was sent"
    sed -n 's/^queued \(queued-[0-9]*.zip\)[[:space:]].*/\1/p' cut.console | tail -n 5 >named
    while IFS= read -r name; do
        queued_reports=$((queued_reports + 1))
        [ -n "$(find disk/queue disk/inbox -name "*$name" -size +1 2>/dev/null)" ] ||
            wrong "$name was queued and is not there"
    done <named

    fact "after cut $cut the rings give reports that do not claim to be complete, or nothing"
    mkdir recovered
    if [ -d disk/runtime/bugpack ]; then
        run recover -o recovered disk/runtime/bugpack
        [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || wrong "recover ends with $status"
        crash_reports=$((crash_reports + $(wc -l <out)))
        expect_same 'what is not recovered' '' "$(find disk/runtime -name '*.ring')"
    fi
    : >err
    python3 -B "$here/power_cut.py" cut.console disk recovered >judged 2>&1 ||
        wrong "$(sed '$d' judged)"
    tail -n 1 judged >counts
    read -r torn count <counts
    torn_copies=$((torn_copies + torn))
    records=$((records + count))

    fact "after cut $cut nothing else of ours is left"
    rm -rf disk/runtime disk/copy-* disk/synced disk/queue/.lock disk/queue/.changes
    rm -f disk/queue/d/*.zip.json
    expect_same 'what is left' '' "$(find disk ! -type d ! -name '*.zip')"
done
# The last cut's are also checked against the schemas: they are the others' and some more.
kill -KILL "$qemu"

fact 'the cuts are cuts: files that nobody has synced are torn'
[ "$torn_copies" -gt 0 ] || wrong 'every plain copy is whole'
fact 'rings have reached the disk'
[ "$records" -gt 0 ] || wrong "$crash_reports crash reports hold no record"
fact 'reports have been queued'
[ "$queued_reports" -gt 0 ] || wrong 'none has'
echo "$cut cuts: $named_reports reports named and $queued_reports queued, all looked for;" \
    "$torn_copies plain copies torn;" \
    "$crash_reports crash reports with $records records recovered"

finish
