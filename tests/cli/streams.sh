#!/bin/sh
# Inputs that can be read only once, commands, and names that stand for several files.
. "$(dirname "$0")/lib.sh"
need unzip jq mkfifo
start sleep 300
target=$pid
cd "$scratch" || exit 1

# capture_from FILE ARGUMENT...: with this standard input.
capture_from() {
    input=$1
    shift
    mkdir -p reports
    timeout 60 "$BUGPACK" capture --pid "$target" --window 0 -o reports "$@" >out 2>err <"$input"
    status=$?
    zip=$(cat out)
}

fact 'standard input is a log, of which the newest whole lines are kept'
seq -f 'line %09.0f' 1 1000 >lines
capture_from lines --log -
expect_status 0
unzip -p "$zip" logs/stdin.log | cmp -s - lines || wrong 'it is not what was given'
expect_same 'the status' ok "$(ledger "$zip" logs/stdin.log status)"
seq -f 'line %09.0f' 1 100000 >many
mkfifo pipe
cat many >pipe &
capture_from pipe --log - --log-limit 1K
expect_status 0
unzip -p "$zip" logs/stdin.log >newest
tail -n 68 many | cmp -s - newest || wrong "it has $(wc -l <newest) lines"
expect_same 'the reason' 'the newest whole lines are kept, of 1500000 bytes' \
    "$(ledger "$zip" logs/stdin.log reason)"

fact 'one long line keeps its end, cut at a character'
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "\303\274" }' >wide
capture_from wide --log - --log-limit 999
unzip -p "$zip" logs/stdin.log >newest
expect_same 'the size' 998 "$(wc -c <newest | tr -d ' ')"
tail -c 998 wide | cmp -s - newest || wrong 'it is not its end'

fact 'an input without an end is read until the time limit'
exec 7<>pipe # this shell is a writer that has said all it will
cat lines >pipe
capture --log pipe --input-timeout 3
exec 7>&-
expect_status 0
unzip -p "$zip" logs/pipe | cmp -s - lines || wrong 'it is not what came'
expect_same 'the reason' '15000 bytes came within 3.0 s, and it had not ended' \
    "$(ledger "$zip" logs/pipe reason)"

fact 'a FIFO can be attached, up to the limit'
cat lines >pipe &
captures 0 --attach notes.txt=pipe
unzip -p "$zip" notes.txt | cmp -s - lines || wrong 'it is not what came'
cat many >pipe 2>/dev/null &
captures 3 --attach notes.txt=pipe --attach-limit 20000
expect_err 'over the limit of 20000 bytes'

fact 'standard input is read once'
capture_from lines --log - --attach -
expect_usage 'standard input can be read only once'

fact 'a directory stands for its files, and a pattern for those that match'
mkdir -p logs/old 'logs/a b'
for name in logs/one.log logs/two.txt logs/old/three.log 'logs/a b/four'; do
    echo "$name" >"$name"
done
ln -s /etc/passwd logs/link.log
mkfifo logs/pipe
capture --log logs
expect_same 'the logs' 'logs/one.log logs/two.txt ' "$(entries "$zip" | grep / | tr '\n' ' ')"
capture --attach logs --attach mine=logs/
expect_same 'the attachments' 'logs/a b/four logs/old/three.log logs/one.log logs/two.txt mine/a b/four mine/old/three.log mine/one.log mine/two.txt ' \
    "$(entries "$zip" | grep / | tr '\n' ' ')"
expect_same 'one' logs/old/three.log "$(unzip -p "$zip" mine/old/three.log)"
captures 3 --log 'logs/*.log' --attach 'logs/*.txt' --attach 'few=logs/o*' --attach none='logs/*.none'
expect_err 'none: '
expect_same 'all' 'few/one.log logs/one.log two.txt ' \
    "$(entries "$zip" | grep -v -e json -e "^stacks" | sort | tr '\n' ' ')"
captures 3 --log 'logs/l*'
expect_same 'the entry of links alone' failed "$(ledger "$zip" 'logs/l*' status)"
captures 0 --log logs/link.log
expect_same 'a link that was named' "$(cat /etc/passwd)" "$(unzip -p "$zip" logs/link.log)"
mkdir lots
seq -f 'lots/%g' 1 300 | xargs touch
expect_misuse "'lots' stands for more than 256 files" capture --pid "$target" --log lots
# A name that has a pattern's characters is that of a file, if there is one.
echo odd >'x[1]'
captures 0 --attach 'x[1]'
expect_same 'the attachment' odd "$(unzip -p "$zip" 'x\[1\]')"

fact 'a command is in the report with its output and its end, and no shell is used'
# shellcheck disable=SC2016 # nobody expands it
captures 0 --command 'printf "%s\n" $HOME "a  b"' --command "sh -c 'echo out; echo bad >&2; exit 3'" \
    --command "sh -c 'kill -TERM \$\$'"
unzip -p "$zip" commands/printf.txt >printed
# shellcheck disable=SC2016 # nobody expands it
printf '$ printf "%%s\\n" $HOME "a  b"\n$HOME\na  b\n\n[exit status 0 after S s]\n' >wanted
sed 's/after [0-9.]* s/after S s/' printed | cmp -s - wanted || wrong "it has: $(cat printed)"
expect_same 'the output of both kinds' 'out bad' \
    "$(unzip -p "$zip" commands/sh.txt | sed -n '2,3p' | tr '\n' ' ' | sed 's/ $//')"
unzip -p "$zip" commands/sh.txt | grep -q '^\[exit status 3 after ' || wrong 'it has no status'
unzip -p "$zip" commands/sh-2.txt | grep -q '^\[ended by signal 15 (' || wrong 'it has no signal'

fact 'a log file is read at the end of the window, behind the commands'
echo early >growing.log
captures 0 --log growing.log --command "sh -c 'echo late >>growing.log'"
expect_same 'the log' 'early late' "$(unzip -p "$zip" logs/growing.log | paste -sd ' ')"

fact 'with --shell, sh runs the commands'
captures 0 --shell --command 'seq 3 | wc -l' --command ': ; exit 4'
expect_same 'the output' 3 "$(unzip -p "$zip" commands/seq.txt | sed -n 2p | tr -d ' ')"
unzip -p "$zip" commands/_.txt | grep -q '^\[exit status 4 ' || wrong "$(entries "$zip")"

fact 'a command that does not end is killed with its group, and what it printed is kept'
cat >hang <<'EOF'
sleep 317 &
echo $! >child
echo printed
sleep 317
EOF
captures 3 --command 'sh hang' --input-timeout 3
expect_err 'commands/sh.txt: it did not end within 3.0 s, and was killed'
unzip -p "$zip" commands/sh.txt | grep -qx printed || wrong 'its output is gone'
# shellcheck disable=SC2016 # await expands it
await '! kill -0 "$(cat child)" 2>/dev/null'

fact 'of a command that has ended, and left a process behind with its output, the status is known'
captures 3 --shell --command 'echo printed; sleep 319 & exit 4' --input-timeout 3
expect_err 'commands/echo.txt: it ended, and a process that it left behind did not close its output within 3.0 s'
expect_same 'the entry' 'printed|[exit status 4]' "$(unzip -p "$zip" commands/echo.txt | sed '1d;/^$/d' | paste -sd '|')"

fact 'a signal ends a command, too'
rm -f child
mkdir -p none
"$BUGPACK" capture --pid "$target" --window 0 -o none --command 'sh hang' --input-timeout 60 2>err >out &
capturing=$!
await '[ -s child ]'
kill -TERM "$capturing"
wait "$capturing"
expect_status 143 $?
# shellcheck disable=SC2016 # await expands it
await '! kill -0 "$(cat child)" 2>/dev/null'
expect_empty none

fact 'a command that is not there costs only itself, and a bad one is refused'
captures 3 --command 'no-such-command -x'
expect_err 'no-such-command is not installed, or not in PATH'
expect_misuse 'a quote is not closed' capture --pid "$target" --command "echo 'open"
expect_misuse 'it names no program' capture --pid "$target" --command '  '

fact 'the journal of a unit is what journalctl prints'
mkdir bin
cat >bin/journalctl <<'EOF'
#!/bin/sh
case "$*" in
*'--unit nginx'*) echo '2026-01-01T00:00:00 host nginx: password=hunter2hunter2' ;;
*'--unit other'*) echo 'one line' && echo 'Hint: you are not seeing all' >&2 ;;
*) echo 'no such unit' >&2 && exit 1 ;;
esac
EOF
chmod +x bin/journalctl
old_path=$PATH
PATH=$scratch/bin:$PATH
capture --journal nginx --journal other --journal gone
PATH=$old_path
expect_status 3
unzip -p "$zip" logs/journal-nginx.log | grep -q ' host nginx: password=' || wrong 'it is not there'
expect_same 'the reason' 'journalctl: Hint: you are not seeing all' \
    "$(ledger "$zip" logs/journal-other.log reason)"
expect_same 'the reason' 'journalctl failed: no such unit' \
    "$(ledger "$zip" logs/journal-gone.log reason)"

fact 'secrets are replaced in all of them'
unzip -p "$zip" logs/journal-nginx.log | grep -q hunter2 && wrong 'the journal has one'
echo 'password=hunter2hunter2' >secret
capture_from secret --log - --command 'cat secret' --command 'echo token=hunter2hunter2'
expect_status 0
for entry in logs/stdin.log commands/cat.txt commands/echo.txt; do
    unzip -p "$zip" "$entry" | grep -q hunter2 && wrong "$entry has one"
done

fact 'what a run takes a report of is files alone'
run run --log pipe -o reports -- sh -c 'kill -SEGV $$'
unzip -p "$(find reports -name 'sh-crash-*')" manifest.json | grep -q 'a FIFO' || wrong 'it was read'

finish
