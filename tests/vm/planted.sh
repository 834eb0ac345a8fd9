#!/bin/sh
# No file with a name holds a planted secret, also none that existed for a moment: every name that
# was given on the file systems of reports, temporary files and the home directory is known, and is
# that of a file that is still there and was searched.
. "$(dirname "$0")/lib.sh"
: "${PLANTED_HOST:?name the program that plants}"
make_disk
boot planted 2 disk.img
{
    ${BUGPACK_VM_ROOT:+qemu-aarch64-static -L "$BUGPACK_VM_ROOT"} "$PLANTED_HOST" secrets
    echo 4f7c2a91b07dd7e1
} >planted

fact 'reports of all kinds were written'
mkdir mnt tmp home
for place in mnt tmp home; do
    tar -xf "results/$place.tar" -C "$place" || wrong "it has left no $place"
done
for kind in bugreport pedantic disconnect crash; do
    find mnt/reports -name "*-$kind-*.zip" | grep -q . || wrong "there is no report of the kind $kind"
done

fact 'every file that ever had a name is still there'
for place in mnt tmp home; do
    find "$place" -mindepth 1 | sed 's/.*\///' | sort -u >"there-$place"
    grep -vx -e ready "results/names-$place" | sort -u >"named-$place"
    expect_same "the names in $place that are gone" '' "$(comm -13 "there-$place" "named-$place" | tr '\n' ' ')"
done
[ "$(wc -l <named-mnt)" -gt 15 ] || wrong 'few names were seen'
expect_same 'files elsewhere' '' "$(tr '\n' ' ' <results/new-elsewhere)"

fact 'no secret is in a file or a name'
rm mnt/last tmp/last home/last
for place in mnt tmp home; do
    sh "$here/../cli/find_planted" planted "$place" || wrong "there are secrets in $place"
done

finish
