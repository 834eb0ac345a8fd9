#!/bin/sh
# Files of a file system that does not answer any more: no process that waits for it can be killed.
. "$(dirname "$0")/lib.sh"
need unzip jq python3 umount
start sleep 300
target=$pid
cd "$scratch" || exit 1
servers=
mounts=
python=$(python3 -c 'import sys; print(sys.executable)') # not a script that begins it later

unmount() {
    for server in $servers; do
        kill -KILL "$server" 2>/dev/null
    done
    for mount in $mounts; do
        umount -l "$mount" 2>/dev/null
    done
}
trap 'unmount; clean_up' EXIT

# begin NAME STAGE ARGUMENT...: bugpack in the directory NAME, beside the others, with such a file system
# in NAME/files. STAGE is as stalled_files.py has it, or `inside`: it is the current directory.
begin() {
    place=$scratch/$1 stage=$2
    shift 2
    mkdir -p "$place/files" "$place/reports"
    echo text >"$place/plain"
    "$python" "$source_dir/tests/support/stalled_files.py" "$place/files" \
        "$(echo "$stage" | sed 's/inside/read/')" >"$place/ready" 2>&1 &
    server=$!
    servers="$servers $server"
    mounts="$mounts $place/files"
    await "[ -s '$place/ready' ]"
    if [ "$(head -n 1 "$place/ready")" != ready ]; then
        unmount
        skip "no file system can be mounted: $(cat "$place/ready")"
    fi
    cd "$place" || exit 1
    if [ "$stage" = inside ]; then
        cd files || exit 1
        kill -USR1 "$server"
        await "grep -q look '$place/ready'"
    fi
    ({ timeout 100 "$BUGPACK" "$@" 2>"$place/err" </dev/null; echo $? >"$place/status"; } | cat >"$place/out"
        echo >"$place/ended") &
    cd "$scratch" || exit 1
}

# begin_capture NAME STAGE ARGUMENT...
begin_capture() {
    name=$1 stage=$2
    shift 2
    begin "$name" "$stage" capture --pid "$target" --window 50ms --input-timeout 3 "$@"
}

# ends NAME STATUS: so must whoever reads what it prints. Its report is in `zip`.
ends() {
    await "[ -e $1/ended ]"
    cp "$1/err" "$1/out" .
    zip=$(cat out)
    expect_status "$2" "$(cat "$1/status")"
}

# Most wait for ten seconds.
begin_capture files read --output-dir reports --log files/log --attach files/log --log plain
begin_capture command read --output-dir reports --command 'cat files/log'
begin_capture session read --output-dir reports --session files/log
begin_capture names look --output-dir reports --log 'files/*.log' --attach files/log
begin_capture reports look --output-dir files/reports
TMPDIR=$scratch/temporary/files
export TMPDIR
begin_capture temporary look --output -
unset TMPDIR
begin in-capture inside capture --pid "$target" --window 0
begin in-watch inside watch --pid "$target" --when 'threads>0'
begin in-run inside run true

fact 'a file that cannot be read costs only itself, and the command ends'
ends files 3
for name in log logs/log; do
    expect_same "the status of $name" failed "$(ledger "$zip" "$name" status)"
    ledger "$zip" "$name" reason | grep -q 'files/log": nothing came within 3.0 s$' ||
        wrong "the reason is $(ledger "$zip" "$name" reason)"
done
expect_same 'the other log' text "$(unzip -p "$zip" logs/plain)"

fact 'a command that cannot be killed is left, and a session file that cannot be read ends the command'
ends command 3
expect_same 'the reason' 'it did not end within 3.0 s, and was killed' "$(ledger "$zip" commands/cat.txt reason)"
ends session 1
expect_err 'files/log": its file system does not answer'

fact 'so does one that cannot even be found, or matched'
ends names 3
expect_same 'the status' failed "$(ledger "$zip" log status)"
expect_same 'the number of reports' 3 "$(find ./*/reports -name '*.zip' | wc -l | tr -d ' ')"

fact 'a directory of reports that does not answer ends the command, with a word'
ends reports 2
expect_err "--output-dir: the file system of 'files/reports' does not answer"

fact 'so does the current directory, where reports go by default'
for name in in-capture in-watch in-run; do
    ends $name 1
    expect_err 'the file system of the current directory does not answer: use --output-dir'
done

fact 'and so does TMPDIR, where a report waits that is printed'
ends temporary 1
expect_err "the file system of '$scratch/temporary/files' does not answer: set TMPDIR"

unmount
finish
