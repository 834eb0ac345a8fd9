#!/bin/sh
# Files that cannot be read, are not what they should be, or have hostile names.
. "$(dirname "$0")/lib.sh"
need unzip jq mkfifo
start sleep 300
target=$pid
cd "$scratch" || exit 1
echo text >plain

# lacks ENTRY REASON: the report is there without it, and both the ledger and the person know why.
lacks() {
    expect_status 3
    expect_err "$1"
    expect_err "$2"
    [ -f "$zip" ] || wrong 'there is no report'
    entries "$zip" | grep -qxF "$1" && wrong "it holds $1"
    expect_same "the status of $1" failed "$(ledger "$zip" "$1" status)"
    ledger "$zip" "$1" reason | grep -qF "$2" || wrong "the ledger does not say: $2"
    expect_same 'complete' false "$(value "$zip" manifest.json .complete)"
}

fact 'a file that is not there costs only itself'
capture --log gone.log --attach plain
lacks logs/gone.log 'No such file or directory'
expect_same 'the attachment' text "$(unzip -p "$zip" plain)"
capture --attach gone
lacks gone 'No such file or directory'

fact 'a FIFO that nobody writes to costs its time limit, and only itself'
mkfifo pipe
capture --log pipe --input-timeout 1
lacks logs/pipe 'nothing came from "pipe" within 1.0 s'
capture --attach pipe --input-timeout 1
lacks pipe 'nothing came'

fact 'directories without a file, and devices, are refused'
mkdir folder
capture --attach folder/
lacks folder 'a directory'
capture --log folder
lacks logs/folder 'a directory'
capture --attach /dev/zero
lacks zero 'a device'
captures 3 --log /dev/tty

fact 'a symbolic link that somebody named is followed'
ln -s plain link
captures 0 --attach link
expect_same 'the attachment' text "$(unzip -p "$zip" link)"

fact 'of a large log the newest whole lines are kept'
seq -f 'line %09.0f' 1 100000 >large.log
captures 0 --log large.log --log-limit 1K
unzip -p "$zip" logs/large.log >newest
[ "$(wc -c <newest)" -le 1024 ] || wrong 'it is over the limit'
[ "$(wc -c <newest)" -gt 1000 ] || wrong 'it is far under the limit'
tail -n "$(wc -l <newest)" large.log | cmp -s - newest || wrong 'it is not the end of the log'
expect_same 'the status' truncated "$(ledger "$zip" logs/large.log status)"
expect_same 'the original size' 1500000 "$(ledger "$zip" logs/large.log original_bytes)"

fact 'a log that just fits is whole'
captures 0 --log large.log --log-limit 1500000
expect_same 'the status' ok "$(ledger "$zip" logs/large.log status)"

fact 'an attachment over the limit is left out, and the person is told'
captures 3 --attach large.log --attach-limit 1M
expect_err 'large.log: '
expect_err 'over the limit of 1048576'
expect_same 'the status' omitted "$(ledger "$zip" large.log status)"
entries "$zip" | grep -q large && wrong 'it is in the report'

fact 'an empty log and an empty attachment are entries of no bytes'
: >empty
captures 0 --log empty --attach empty
expect_same 'the sizes' '0 0' "$(ledger "$zip" empty bytes) $(ledger "$zip" logs/empty bytes)"
expect_same 'the list' 'logs/empty empty ' "$(entries "$zip" | grep empty | tr '\n' ' ')"

if [ -r "/proc/$target/status" ]; then
    fact 'a log that tells no size is read, and said to be whole'
    captures 0 --log "/proc/$target/status"
    expect_same 'the log' sleep "$(unzip -p "$zip" logs/status | sed -n 's/^Name:[[:space:]]*//p')"
    expect_same 'the status' ok "$(ledger "$zip" logs/status status)"
fi

fact 'a mistake in the session file is told with line and column before the window begins'
mkdir none
printf '{\n  "a": 1,\n  "b": 01\n}\n' >bad.json
exits 1 capture --pid "$target" --window 600 -o none --session bad.json
expect_err 'bad.json'
expect_err 'line 3, column'
expect_empty none
for text in '' '{' '{"a":1} x' '{"a":1,"a":2}' 'NaN'; do
    printf '%s' "$text" >bad.json
    exits 1 capture --pid "$target" --window 600 -o none --session bad.json
    expect_err 'line '
done
exits 1 capture --pid "$target" --window 600 -o none --session gone.json
expect_err 'gone.json'
expect_err 'No such file or directory'
exits 1 capture --pid "$target" --window 600 -o none --session pipe
expect_err 'a FIFO'
expect_empty none

fact 'names that no entry may have are refused, and nothing is written'
tab=$(printf '\t')
for name in .. . /abs ../up a/../b a//b a/ 'a\b' 'c:d' "t${tab}b" "$(printf 'x\377')" \
    "$(printf '%0201d' 0)" ''; do
    exits 2 capture --pid "$target" --window 0 -o none --attach "$name=plain"
    expect_err 'bugpack: '
    expect_err "Try 'bugpack capture --help'."
done
for name in manifest.json metadata.json runtime-metrics.json process.json Manifest.JSON logs.jsonl \
    session.json channel-state.json heap-state.json; do
    exits 2 capture --pid "$target" --window 0 -o none --attach "$name=plain"
    expect_err 'reserved'
done
expect_empty none

fact 'a file with a hostile name gets an entry with a harmless one'
odd=$(printf 'a\033[31m\\:b\377\n.txt')
echo odd >"$odd"
captures 0 --attach "$odd" --log "$odd"
expect_same 'the list' 'logs/a_[31m__b__.txt a_[31m__b__.txt ' \
    "$(entries "$zip" | grep -v -e json -e "^stacks" | tr '\n' ' ')"
expect_same 'the attachment' odd "$(unzip -p "$zip" 'a_\[31m__b__.txt')"

fact 'a file with a very long name keeps its extension'
long=$(printf '%0250d' 0)
echo long >"$long.txt"
captures 0 --attach "$long.txt" --log "$long.txt"
entries "$zip" | grep -Eq '^0{100,190}\.txt$' || wrong "the entries are $(entries "$zip")"

fact 'a directory that a pattern finds by a link is not entered, which is said'
mkdir -p linked real
echo x >real/x.log
ln -s ../real linked/to
captures 3 --log 'linked/*/x.log'
ledger "$zip" logs/x.log reason | grep -q 'a symbolic link leads there, and is not followed$' ||
    wrong "it is $(ledger "$zip" logs/x.log reason)"
captures 0 --log 'linked/to/*.log'
expect_same 'the log below a link that was named' x "$(unzip -p "$zip" logs/x.log)"

fact 'a directory stands for 256 files at most, and for none below 16 others'
mkdir many
(cd many && seq 1 256 | xargs touch)
captures 0 --attach many
expect_same 'the number of files' 256 "$(entries "$zip" | grep -c '^many/')"
: >many/257
exits 2 capture --pid "$target" --window 0 -o none --attach many
expect_err "'many' stands for more than 256 files"
below=deep/$(seq -s / 1 16)
mkdir -p "$below/17"
: >"$below/file"
: >"$below/17/file"
captures 3 --attach deep
expect_same 'the list' "$below/file" "$(entries "$zip" | grep '^deep/')"
lacks "$below/17" 'a directory'

fact 'a directory that has no name of its own still gets one in the ledger'
cd folder || exit 1
capture --attach . --log .
cd "$scratch" || exit 1
expect_status 3
expect_same 'the status' failed "$(ledger "$zip" _ status)"
expect_same 'the status' failed "$(ledger "$zip" logs/_ status)"

if can_be_nobody || not_tried 'a file that may not be read (no setpriv)'; then
    fact 'a file that may not be read costs only itself'
    echo secret >private
    chmod 000 private
    mkdir -m 1777 theirs
    chmod 755 .
    start_as_nobody sleep 300
    as_nobody "$(reachable "$BUGPACK")" capture --pid "$pid" --window 0 -o theirs --attach private >out 2>err
    status=$?
    zip=$(cat out)
    lacks private 'Permission denied'
fi

finish
