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

# on_terminal NAME=VALUE... -- ARGUMENT...: runs it with all streams on a terminal of `columns`, 0
# where it tells none; what a person would have been sent is in scratch/screen.
columns=0
on_terminal() {
    python3 - "$BUGPACK" "$@" >screen 2>err <<END
import fcntl, os, pty, struct, sys, termios
split = sys.argv.index("--")
environment = dict(item.split("=", 1) for item in sys.argv[2:split])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("4H", 24, $columns, 0, 0))
    os.execve(sys.argv[1], ["bugpack"] + sys.argv[split + 1:], environment)
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
    expect_status 0 $?
}
esc=$(printf '\033')
bar='\[.*\.\] 0\.[0-9] of 0\.3 s'

fact 'on a terminal a bar shows the window, and is gone at the end'
on_terminal TERM=xterm -- capture --pid "$target" --window 300ms -o reports
grep -q "$bar" screen || wrong 'there is no bar'
grep -q "${esc}\[32m" screen || wrong 'it has no colour'
tail -n 1 screen | grep -q "${esc}\[K/.*/reports/.*\.zip" || wrong 'the bar was not erased before the path'

fact 'on a narrow terminal no line wraps, for then it could not be erased'
for columns in 60 48 40 30 20 10 5 1; do
    on_terminal TERM=xterm -- capture --pid "$target" --window 300ms -o reports
    grep -q "of 0" screen || [ "$columns" -le 20 ] || wrong "nothing is shown with $columns columns"
    python3 - "$columns" <<'END' || wrong "a line wraps with $columns columns"
import re, sys
text = open("screen", "rb").read().decode()
drawn = text[:text.rindex("\r\033[K")]
lines = re.sub("\033\\[[0-9]*m", "", drawn).split("\r\033[K")
sys.exit(max(map(len, lines)) >= int(sys.argv[1]))
END
done
columns=0

fact 'NO_COLOR takes the colour and leaves the bar'
on_terminal TERM=xterm NO_COLOR=1 -- capture --pid "$target" --window 300ms -o reports
grep -q "$bar" screen || wrong 'there is no bar'
grep -q "${esc}\[[0-9]*m" screen && wrong 'it has a colour'
on_terminal TERM=xterm NO_COLOR= -- capture --pid "$target" --window 300ms -o reports
grep -q "${esc}\[32m" screen || wrong 'an empty NO_COLOR took the colour'

fact 'there is no bar with --quiet, with --json, on a dumb terminal or on none'
on_terminal TERM=xterm -- capture --pid "$target" --window 300ms -o reports --quiet
grep -q "$esc" screen && wrong 'there is one with --quiet'
on_terminal TERM=xterm -- capture --pid "$target" --window 300ms -o reports --json
grep -q "$esc" screen && wrong 'there is one with --json'
on_terminal TERM=dumb -- capture --pid "$target" --window 300ms -o reports
grep -q "$esc" screen && wrong 'there is one on a dumb terminal'
on_terminal NOTHING= -- capture --pid "$target" --window 300ms -o reports
grep -q "$esc" screen && wrong 'there is one without TERM'
TERM=xterm run capture --pid "$target" --window 300ms -o reports
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
