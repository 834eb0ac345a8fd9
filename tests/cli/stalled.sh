#!/bin/sh
# Files of a file system that does not answer any more: no process that waits for it can be killed.
. "$(dirname "$0")/lib.sh"
need unzip jq python3 umount
start sleep 300
target=$pid
cd "$scratch" || exit 1
mkdir files reports
server=

unmount() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    umount -l files 2>/dev/null
}
trap 'unmount; clean_up' EXIT

# mount_stalled STAGE: as stalled_files.py has it.
mount_stalled() {
    unmount
    : >ready
    python3 "$source_dir/tests/support/stalled_files.py" files "$1" >ready 2>&1 &
    server=$!
    await '[ -s ready ]'
    [ "$(head -n 1 ready)" = ready ] || skip "no file system can be mounted: $(cat ready)"
}

# capture_stalled ARGUMENT...: one that must end, and so must whoever reads what it prints. Its report
# is in `zip`.
capture_stalled() {
    rm -f ended
    ({ "$BUGPACK" capture --pid "$target" --window 50ms --input-timeout 1 "$@" \
        2>err </dev/null || echo $? >status; } | cat >out; echo >ended) &
    await '[ -e ended ]'
    status=$(cat status)
    zip=$(cat out)
}

fact 'a file that cannot be read costs only itself, and the command ends'
mount_stalled read
echo text >plain
capture_stalled --output-dir reports --log files/log --attach files/log --log plain
expect_status 3
for name in log logs/log; do
    expect_same "the status of $name" failed "$(ledger "$zip" "$name" status)"
    ledger "$zip" "$name" reason | grep -q 'files/log": nothing came within 1.0 s$' ||
        wrong "the reason is $(ledger "$zip" "$name" reason)"
done
expect_same 'the other log' text "$(unzip -p "$zip" logs/plain)"

fact 'a command that cannot be killed is left, and a session file that cannot be read ends the command'
capture_stalled --output-dir reports --command 'cat files/log'
expect_status 3
expect_same 'the reason' 'it did not end within 1.0 s, and was killed' "$(ledger "$zip" commands/cat.txt reason)"
capture_stalled --output-dir reports --session files/log
expect_status 1
expect_err 'files/log": its file system does not answer'

fact 'so does one that cannot even be found, or matched'
mount_stalled look
capture_stalled --output-dir reports --log 'files/*.log' --attach files/log
expect_status 3
expect_same 'the status' failed "$(ledger "$zip" log status)"
expect_same 'the number of reports' 3 "$(find reports -name '*.zip' | wc -l | tr -d ' ')"

fact 'a directory of reports that does not answer ends the command, with a word'
capture_stalled --output-dir files/reports
expect_status 2
expect_err "--output-dir: the file system of 'files/reports' does not answer"

fact 'so does the current directory, where reports go by default'
for command in "capture --pid $target --window 0" "watch --pid $target --when threads>0" 'run true'; do
    mount_stalled read
    (
        cd files || exit 1
        kill -USR1 "$server"
        await "grep -q look '$scratch/ready'"
        # shellcheck disable=SC2086
        exec timeout 60 "$BUGPACK" $command </dev/null >"$scratch/out" 2>"$scratch/err"
    )
    status=$?
    expect_status 1
    expect_err 'the file system of the current directory does not answer: use --output-dir'
done

fact 'and so does TMPDIR, where a report waits that is printed'
mount_stalled look
TMPDIR=$scratch/files
export TMPDIR
capture_stalled --output -
unset TMPDIR
expect_status 1
expect_err "the file system of '$scratch/files' does not answer: set TMPDIR"

unmount
finish
