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
    fact "on $kind, full: the report fails, says why and leaves nothing"
    expect_same 'the status' 1 "$(cat "results/$kind-full.status")"
    cp "results/$kind-full.err" err
    expect_err 'No space left on device'
    expect_same 'the output' '' "$(cat "results/$kind-full.out")"
    expect_same 'what is left' '' "$(cat "results/$kind-full.left")"
    fact "on $kind, part: the report is written, and says which entry found no space"
    expect_same 'the status' 3 "$(cat "results/$kind-part.status")"
    cp "results/$kind-part.err" err
    expect_err 'No space left on device'
    expect_same 'what is there' 'false failed' "$(unzip -p "results/$kind-part.zip" manifest.json |
        jq -r '"\(.complete) \(.artefacts[] | select(.name == "big").status)"')"
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
