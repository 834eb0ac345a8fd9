#!/bin/sh
# What is on the disk when the power goes while reports are written: every report that bugpack has
# named, whole, and nothing else but whole reports.
#
# The machine is stopped at some instant and its disk copied: the kernel in it never learns of that,
# so the copy is what a cut at that instant leaves on a disk that keeps what it was given. At the
# end the machine is killed.
. "$(dirname "$0")/lib.sh"
need mke2fs e2fsck debugfs python3
cuts=6
truncate -s 48M disk.img
mke2fs -q -t ext4 disk.img 2>mke2fs.log || skip "mke2fs cannot make an image: $(cat mke2fs.log)"
make_machine power_cut
: >console
machine 1 disk.img &
started="$started $!"

# stop_all: every thread of the machine stands still, also those that write to the disk.
stop_all() {
    kill -STOP "$qemu"
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -qh '^State:[[:space:]]*[^Tt[:space:]]' /proc/"$qemu"/task/*/status || return 0
        sleep 0.05
    done
    return 1
}

fact 'the machine starts, and writes reports'
tries=0
until grep -q written console || [ "$tries" -ge 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
qemu=$(cat qemu.pid 2>/dev/null)
started="$started $qemu"
if ! grep -q written console || [ -z "$qemu" ]; then
    wrong 'it has not written any'
    sed 's/^/    /' console qemu.log
    finish
fi

cut=0
while [ "$cut" -lt "$cuts" ]; do
    cut=$((cut + 1))
    # Instants that fall everywhere in the making of a report, which takes some 0.2 s.
    sleep "0.$((cut * 37 % 90 + 10))"
    stop_all || wrong 'the machine cannot be stopped'
    # The console first: what it names must be on the disk, and never the other way round.
    cp console "console-$cut"
    cp --sparse=always disk.img "cut-$cut.img"
    [ "$cut" = "$cuts" ] || kill -CONT "$qemu"
done
kill -KILL "$qemu"

torn_copies=0
named_reports=0
cut=0
while [ "$cut" -lt "$cuts" ]; do
    cut=$((cut + 1))
    mkdir "cut-$cut"
    fact "after cut $cut the file system mends itself, as at the next start"
    e2fsck -f -p "cut-$cut.img" >err 2>&1
    status=$?
    [ "$status" -le 1 ] || wrong "e2fsck ends with $status"
    : >err
    debugfs -R "rdump / cut-$cut" "cut-$cut.img" >/dev/null 2>&1
    rm "cut-$cut.img"

    fact "after cut $cut every report that was named is there, and every report is whole"
    sed -n 's/.*written \([^[:space:]]*\).*/\1/p' "console-$cut" >named
    while IFS= read -r name; do
        named_reports=$((named_reports + 1))
        [ -s "cut-$cut/$name" ] || wrong "$name was named and is not there"
    done <named
    for zip in "cut-$cut"/*.zip; do
        [ -e "$zip" ] || continue
        unzip -tqq "$zip" >/dev/null 2>&1 || wrong "${zip##*/} is torn"
        [ "$(value "$zip" manifest.json .complete 2>/dev/null)" = true ] ||
            wrong "${zip##*/} has no whole ledger"
    done

    fact "after cut $cut nothing else of ours is left"
    expect_same 'what is left' '' "$(find "cut-$cut" ! -type d ! -name '*.zip' ! -name 'copy-*')"
    for copy in "cut-$cut"/copy-*; do
        [ -e "$copy" ] || continue
        unzip -tqq "$copy" >/dev/null 2>&1 || torn_copies=$((torn_copies + 1))
        rm -f "$copy"
    done
    # The last cut's are also checked against the schemas: they are the others' and some more.
    [ "$cut" = "$cuts" ] || rm -rf "cut-$cut"
done

fact 'the cuts are cuts: files that nobody has synced are torn'
[ "$torn_copies" -gt 0 ] || wrong 'every plain copy is whole'
echo "$cuts cuts: $named_reports reports named, all looked for; $torn_copies plain copies torn"

finish
