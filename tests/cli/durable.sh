#!/bin/sh
# A report whose path was printed survives a power cut, and a sync that fails is no success. A cut is
# a copy of the disk as it is when the command returns: what was only in the page cache of the file
# system is not on it. For every command that writes a report.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cd "$scratch" || exit 1
start sleep 1000
target=$pid
"$BUGPACK" capture --pid "$target" --window 0 --output whole.zip >/dev/null 2>err || wrong "$(cat err)"

# configure DIRECTORY: what is sent goes there, after it has waited in a queue below.
configure() {
    printf '[destination "d"]\nurl = %s/\nconsent = ask\n[queue]\ndir = %s/queue\n' "$PWD/$1" "$PWD/$1" >send.conf
    chmod 600 send.conf
}
# write COMMAND DIRECTORY [REPORT]: has COMMAND write a report there.
write() {
    case $1 in
    capture) "$BUGPACK" capture --pid "$target" --window 0 -o "$2" ;;
    redact) "$BUGPACK" redact whole.zip -o "$2/redacted.zip" ;;
    run) "$BUGPACK" run -q -o "$2" -- sh -c 'kill -SEGV $$' ;;
    send) "$BUGPACK" send -y --to "$2/" whole.zip ;;
    queue_*) # a copy, or a link where the report is on the same disk
        configure "$2"
        "$BUGPACK" send --queue --config send.conf --to d "$3"
        ;;
    esac
}

if command -v strace >/dev/null || not_tried 'strace is not installed'; then
    fact 'a file that cannot be synced is not published, and the command fails'
    for command in capture redact send; do
        mkdir "$command"
        # strace follows this shell, whose own writes are none of fsync.
        status=0
        BUGPACK_PLAIN=$BUGPACK
        printf '#!/bin/sh\nexec strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=1 "%s" "$@"\n' \
            "$BUGPACK" >traced && chmod +x traced
        BUGPACK=$PWD/traced
        write "$command" "$command" >out 2>err || status=$?
        BUGPACK=$BUGPACK_PLAIN
        [ "$status" != 0 ] || wrong "$command: status 0"
        expect_same "$command: files" '' "$(ls -A "$command")"
        expect_err 'Input/output error'
    done

    # expect_order PATTERN...: calls that match follow each other in the trace.
    expect_order() {
        cp trace left
        for pattern in "$@"; do
            line=$(grep -n -m 1 -- "$pattern" left | cut -d : -f 1)
            [ -n "$line" ] || { wrong "$pattern is not there, or too early: $(cat trace)"; return; }
            sed "1,${line}d" left >rest
            mv rest left
        done
    }
    # traced ARGUMENT...: what bugpack does with files is in `trace`.
    traced() {
        strace -f -qq -y -o trace -e trace=fsync,rename,renameat,link,linkat,unlink,unlinkat \
            "$BUGPACK" "$@" >out 2>err
    }
    fact 'a report leaves the queue when its destination has it on the disk, and not before'
    mkdir order
    configure order
    traced send --queue --config send.conf --to d whole.zip
    expect_order '^[0-9 ]*fsync(.*/order/queue/d/' 'link.*-whole\.zip"' 'fsync(.*/order/queue/d>)' \
        'fsync(.*/order/queue>)'
    cp whole.zip linked.zip
    rm -r order/queue
    traced send --queue --config send.conf --to d linked.zip
    expect_order 'link.*-linked\.zip"' 'fsync(.*/linked\.zip>)' 'fsync(.*/order/queue/d>)' 'fsync(.*/order/queue>)'
    traced send --queue --config send.conf --yes
    expect_order 'fsync(.*/order/[^q]' 'link.*linked\.zip"' 'fsync(.*/order>)' 'unlink.*-linked\.zip"'
    expect_same 'the queue' '' "$(find order/queue -name '*.zip')"
fi

# With a place of its own for the mounts, which end with it.
if [ "$(id -u)" != 0 ] || ! truncate -s 64M disk ||
    ! mke2fs -q -t ext4 disk 2>/dev/null || ! mkdir mounted cut || ! mount -o loop disk mounted 2>err; then
    echo "not tried: no disk can be mounted here: $(tail -n 1 err 2>/dev/null)"
    finish
fi
trap 'umount mounted cut 2>/dev/null; clean_up' EXIT

fact 'what was written is on the disk when the command returns'
cp whole.zip mounted/whole.zip
for command in capture redact run send queue_copy queue_link; do
    mkdir "mounted/$command" && sync
    report=mounted/whole.zip
    [ "$command" = queue_link ] || report=whole.zip
    write "$command" "mounted/$command" "$report" >out 2>err
    cp --sparse=always disk copy
    mount -o loop copy cut || { wrong "$command: the copy cannot be mounted"; continue; }
    expect_same "$command: reports" 1 "$(find "cut/$command" -name '*.zip' | wc -l)"
    "$BUGPACK" verify "$(find "cut/$command" -name '*.zip')" >out 2>&1 || wrong "$command: $(cat out)"
    umount cut
done
umount mounted

finish
