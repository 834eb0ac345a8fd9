#!/bin/sh
# Standard streams that are closed, full or a terminal.
. "$(dirname "$0")/lib.sh"
need unzip python3 script
start sleep 300
target=$pid
cd "$scratch" || exit 1
mkdir reports

# captured ZIP-COUNT: so many whole reports are there, and no more.
captured() {
    expect_same 'the number of reports' "$1" "$(find reports -type f | wc -l | tr -d ' ')"
    for zip in reports/*.zip; do
        unzip -tqq "$zip" >/dev/null 2>&1 || wrong "$zip is not whole"
    done
}

fact 'a full standard output fails with a sentence, and tells where the report is'
if [ -w /dev/full ] || not_tried 'there is no /dev/full'; then
    "$BUGPACK" capture --pid "$target" --window 0 -o reports >/dev/full 2>err
    expect_status 1 $?
    expect_err 'cannot write to standard output: No space left on device'
    expect_err '.zip'
    "$BUGPACK" --help >/dev/full 2>err
    expect_status 1 $?
    "$BUGPACK" sample --pid "$target" --window 0 >/dev/full 2>err
    expect_status 1 $?
    expect_err 'No space left on device'
    captured 1
fi
rm -rf reports && mkdir reports

fact 'a closed standard output fails, and its text lands in no file'
"$BUGPACK" capture --pid "$target" --window 0 -o reports >&- 2>err
expect_status 1 $?
expect_err 'cannot write to standard output'
captured 1

fact 'all streams closed at once still leave a whole report'
"$BUGPACK" capture --pid "$target" --window 0 -o reports <&- >&- 2>&-
status=$?
: >err
expect_status 1
captured 2

fact 'a closed standard input does not matter'
"$BUGPACK" capture --pid "$target" --window 0 -o reports <&- >out 2>err
expect_status 0 $?
captured 3

fact 'a reader that goes away is a failure with a sentence'
python3 -c 'import subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=open("err", "w"))
p.stdout.close()
sys.exit(p.wait() & 255)' "$BUGPACK" capture --pid "$target" --window 100ms -o reports
expect_status 1 $?
expect_err 'Broken pipe'
captured 4

# on_terminal ARGUMENT...: runs it with all streams on a terminal; what a person would have been sent
# is in scratch/screen.
on_terminal() {
    script -qec "exec '$BUGPACK' $*" /dev/null </dev/null >screen 2>err
    expect_status 0 $?
}

fact 'a terminal is told how long the window is, and no escape sequence is sent'
on_terminal capture --pid "$target" --window 300ms -o reports
expect_same 'the first line' 'bugpack: measuring for 0.3 s' "$(sed -n 1p screen | tr -d '\r')"
tail -n 1 screen | grep -q '^/.*/reports/.*\.zip' || wrong 'the path is not the last line'
grep -q "$(printf '\033')" screen && wrong 'there is an escape sequence'

fact 'nobody is told with --quiet, with --json, or on no terminal'
for option in --quiet --json; do
    on_terminal capture --pid "$target" --window 100ms -o reports "$option"
    grep -q measuring screen && wrong "it is told with $option"
done
run capture --pid "$target" --window 100ms -o reports
expect_status 0
expect_no_err

# from_input ARGUMENT...: with standard input from the file `input`, through a pipe.
from_input() {
    # shellcheck disable=SC2002 # a pipe is what is tested
    cat input | TMPDIR="$scratch/temporary" timeout 60 "$BUGPACK" "$@" >out 2>err
    status=$?
}
mkdir temporary
set -- reports/*.zip
cp "$1" input

fact 'each reader takes a report from standard input, and leaves no copy'
for command in 'show' 'show --json' 'logs' 'html' 'redact --list' 'verify'; do
    # shellcheck disable=SC2086 # words
    run $command input
    sed 's/^input: /-: /; s/"path": "input"/"path": "-"/' out >wanted
    wanted_status=$status
    # shellcheck disable=SC2086
    from_input $command -
    expect_status "$wanted_status"
    cmp -s wanted out || wrong "$command - prints something else: $(diff wanted out | head -n 5)"
done
from_input show - metadata.json
unzip -p input metadata.json | cmp -s - out || wrong 'the entry is not the one of the report'
from_input diff input -
expect_status 0
from_input redact - -o redacted.zip
expect_status 0
"$BUGPACK" verify redacted.zip >out 2>err || wrong 'the redacted report is not whole'
expect_empty temporary

fact 'a file is read from its beginning or from where it stands'
"$BUGPACK" show - metadata.json <input >out 2>err || wrong 'a file is refused'
unzip -p input metadata.json | cmp -s - out || wrong 'the entry is not the one of the report'
{ printf 'before\n' && cat input; } >later
{ read -r _ && "$BUGPACK" verify -; } <later >out 2>err || wrong 'the rest of a file is refused'

fact 'an input that is no report fails with a sentence, and leaves nothing'
: >input
from_input show -
expect_status 1
expect_err 'standard input is empty'
echo 'no zip' >input
for command in show logs html verify 'redact --list'; do
    # shellcheck disable=SC2086
    from_input $command -
    expect_status 1
    grep -q 'zip' err out || wrong "$command does not say what it is"
done
from_input diff - "$1"
expect_status 2
head -c 1000 "$1" >input
from_input show -
expect_status 1
expect_err 'zip'
from_input verify -
expect_status 1
expect_out 'not whole'
"$BUGPACK" show - <reports >out 2>err && wrong 'a directory was read'
expect_err 'cannot read standard input: Is a directory'
"$BUGPACK" show - <&- >out 2>err && wrong 'a closed standard input was read'
expect_err 'cannot read standard input'
expect_empty temporary

fact 'a terminal is no input, and a place without room is told'
printf '\004' | script -qec "'$BUGPACK' show - >screen 2>&1" /dev/null >out 2>err && wrong 'a terminal was read'
grep -q 'it is a terminal' screen || wrong "it says: $(cat screen)"
cat "$1" "$1" >input
(ulimit -f 1 && exec "$BUGPACK" show - <input) >out 2>err
expect_status 1 $?
expect_err 'cannot copy standard input: cannot write a temporary file for a report: File too large'
TMPDIR=$scratch/gone "$BUGPACK" show - <input >out 2>err && wrong 'it has no directory'
expect_err 'cannot use the directory'

finish
