#!/bin/sh
# A disk that is full before a report or in the midst of it: an error, nothing left, and the next
# report is written.
. "$(dirname "$0")/lib.sh"
need mke2fs
truncate -s 8M disk.img
mke2fs -q -t ext4 -m 0 disk.img 2>mke2fs.log ||
    skip "mke2fs cannot make an image: $(cat mke2fs.log)"
boot full_disk 1 disk.img

for kind in tmpfs ext4; do
    for room in full part; do
        fact "on $kind, $room: the report fails, says why and leaves nothing"
        expect_same 'the status' 1 "$(cat "results/$kind-$room.status")"
        cp "results/$kind-$room.err" err
        expect_err 'No space left on device'
        expect_same 'the output' '' "$(cat "results/$kind-$room.out")"
        expect_same 'what is left' '' "$(cat "results/$kind-$room.left")"
    done
    fact "on $kind: not a block is lost"
    expect_same 'free blocks after and before' "$(sed -n 1p "results/$kind-free")" \
        "$(sed -n 2p "results/$kind-free")"
    fact "on $kind: with room again the report is written"
    : >err
    expect_same 'the status' 0 "$(cat "results/$kind-room.status")"
    expect_same 'what was attached' 1000000 \
        "$(unzip -p "results/$kind.zip" big | wc -c | tr -d ' ')"
done

finish
