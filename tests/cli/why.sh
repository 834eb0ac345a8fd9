#!/bin/sh
# why: what is wrong with a running process, on one screen and without a file.
. "$(dirname "$0")/lib.sh"
need script unzip
cd "$scratch" || exit 1
fake=fake$$
cp "$(command -v sleep)" "$fake"
mkdir empty
start "./$fake" 300
target=$pid
kill -STOP "$target"
# shellcheck disable=SC2016 # await expands it
await 'grep -q "^State:.T" "/proc/$target/status"'

# expect_page_in FILE: it is the screen of a report, with the finding.
expect_page_in() {
    grep -q "^$fake: bugreport" "$1" || wrong "no report begins: $(head -n 2 "$1")"
    grep -q '^!! the process is stopped by a signal' "$1" || wrong "no finding in: $(cat "$1")"
    grep -q '^Busiest threads' "$1" || wrong 'no threads'
}

fact 'a process is examined by its name or its id, and no file is left'
for by in "--name $fake" "--pid $target"; do
    # shellcheck disable=SC2086 # two words
    (cd empty && timeout 60 "$BUGPACK" why $by --window 100ms >../out 2>../err </dev/null)
    expect_status 0 $?
    expect_no_err
    expect_page_in out
done
[ -z "$(ls empty)" ] || wrong "there is $(ls empty)"
if [ -n "$(find /dev/shm "${TMPDIR:-/tmp}" -maxdepth 1 -name "$fake*" 2>/dev/null)" ]; then wrong 'a report is left'; fi

fact 'it fits on 80 columns'
env TERM=xterm LC_ALL=C script -qec "stty cols 80; '$BUGPACK' why --pid $target --window 100ms --color never" \
    /dev/null </dev/null >typed 2>&1
tr -d '\r' <typed >text
expect_page_in text
# A word about what a busy machine kept the report from having goes to standard error, which is not wrapped.
# Some programs of awk count bytes, of which the ellipsis has three.
longer=$(grep -v '^bugpack: ' text | sed 's/…/./g' | awk 'length($0) > 80')
[ -z "$longer" ] || wrong "a line is longer: $longer"

fact '--keep writes the zip into the current directory, and -o into another one'
(cd empty && timeout 60 "$BUGPACK" why --pid "$target" --window 0 --keep >../out 2>../err </dev/null)
expect_status 0 $?
expect_page_in out
zip=$(sed -n 's/^bugpack: the report is written: //p' err)
unzip -tqq "empty/$(basename "$zip")" || wrong "there is no report: $zip"
mkdir reports
exits 0 why --pid "$target" --window 0 -o reports
"$BUGPACK" verify reports/*.zip >out 2>err || wrong "it is not whole: $(cat err)"

fact 'what cannot be examined or kept is an error'
exits 4 why --name "$fake-not"
expect_no_out
exits 2 why
expect_err 'a target is missing'
exits 2 why --pid "$target" --name "$fake"
expect_err 'exclude each other'
exits 2 why --pid "$target" --color sometimes
expect_err 'auto, always or never'
exits 1 why --pid "$target" --window 0 -o "$scratch/not-there"
expect_no_out

fact 'a user sees the own process'
if can_be_nobody; then
    chmod 755 "$scratch"
    start_as_nobody sleep 300
    # shellcheck disable=SC2016 # await expands it
    await 'grep -qx sleep "/proc/$pid/comm"'
    as_nobody timeout 60 "$(reachable "$BUGPACK")" why --pid "$pid" --window 100ms >out 2>err </dev/null
    expect_status 0 $?
    expect_no_err
    expect_out 'sleep: bugreport'
else
    echo 'not tried: another user (this one is not root)'
fi

fact 'the page is that of show, with its pager and colours'
printf '#!/bin/sh\ncat >paged\n' >pager
chmod +x pager
env TERM=xterm LC_ALL=C PAGER=./pager script -qec "'$BUGPACK' why --pid $target --window 0" /dev/null </dev/null >typed 2>&1
grep -q "$(printf '\033\\[31m').*stopped" paged || wrong "the pager got: $(cat paged)"
run why --pid "$target" --window 0 --color never
expect_page_in out

finish
