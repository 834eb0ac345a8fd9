#!/bin/sh
# capture --review: what is in a report, and the question, on a terminal.
# shellcheck disable=SC2016,SC2034,SC2317 # what await and tmux run
. "$(dirname "$0")/lib.sh"
need tmux unzip

cd "$scratch" || exit 1
mkdir reports
mkdir -m 700 run
printf 'login password=hunter2hunter2\nfrom 192.0.2.7 bob@example.org\nread /home/someone/.ssh/config\nat 10:00:00.1 version 1.2.3\n' >app.log
start sleep 1000
target=$pid

fact 'without a terminal it is refused'
expect_misuse '--review needs a terminal' capture --review --pid "$target" -o reports
expect_empty reports

tm() {
    tmux -L "bugpack-review-$$" -f /dev/null "$@"
}
trap 'tm kill-server 2>/dev/null; clean_up' EXIT
tm new-session -d -x 120 -y 30 "env PS1='> ' HISTFILE= bash --norc --noprofile" || skip 'tmux does not start here'
tm send-keys "export BUGPACK=$BUGPACK XDG_RUNTIME_DIR=$scratch/run; review() { \$BUGPACK capture --review --pid $target -o reports --log app.log \"\$@\"; echo ended \$?; }" Enter

# see PATTERN: until a line of the screen matches.
see() {
    line=$1
    await 'tm capture-pane -p | grep -q -e "$line"' || wrong "but: $(tm capture-pane -p)"
}

# ask ARGUMENT...: starts a capture, until it asks.
ask() {
    await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
    tm send-keys C-l
    # The question of the last one would be taken for that of this one, and its answer go to the shell.
    await '! tm capture-pane -p | grep -q "^Write this report"'
    tm send-keys "review $*" Enter
    see '^Write this report? \[y/N\]'
}

fact 'it lists what is in the report, asks, and a no leaves nothing'
ask --window 0
see '^logs/app.log  *[0-9][0-9]*  log files: .*; replaced: password 1$'
see '^process.json  *[0-9][0-9]*  command line'
see '^  logs/app.log: 2 lines'
see '^      from 192.0.2.7 bob@example.org'
see '^      read /home/someone/.ssh/config'
expect_empty reports
tm send-keys no Enter
see 'bugpack: the report is not written'
see '^ended 1'
expect_empty reports

fact 'an empty line and the end of input mean no, and nonsense asks again'
ask --window 0
tm send-keys Enter
see '^ended 1'
ask --window 0
tm send-keys C-d
see '^ended 1'
ask --window 0
tm send-keys perhaps Enter
see 'perhaps'
tm send-keys n Enter
see '^ended 1'
expect_empty reports

fact 'Ctrl-C means no, and ends the program by its signal'
ask --window 0
tm send-keys C-c
await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
tm send-keys 'echo status $?' Enter
see '^status 130'
expect_empty reports

fact 'what was typed before the question is no answer to it'
await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
tm send-keys C-l
tm send-keys 'review --window 100ms' Enter yes Enter
see '^Write this report? \[y/N\] *$'
expect_empty reports

fact 'a yes writes it, and the time limit does not count the time to read'
tm send-keys n Enter
see '^ended 1'
for limit in 1 4 16 64; do # a loaded machine may take longer than the first to ask
    await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
    tm send-keys C-l
    # The question of the last one would be taken for that of this one, and its answer go to the shell.
    await '! tm capture-pane -p | grep -q "^Write this report"'
    tm send-keys "review --window 0 --timeout $limit" Enter
    await 'tm capture-pane -p | grep -q -e "^Write this report" -e "^ended"'
    tm capture-pane -p | grep -q '^ended 5' || break
done
asked=$(date +%s)
await '[ "$(($(date +%s) - asked))" -gt "$limit" ]'
tm send-keys Yes Enter
see '^ended 0'
zip=$(echo reports/*.zip)
unzip -tq "$zip" >out 2>err || wrong 'it is no zip'

fact 'run asks when the command has ended, also for the hotkey'
await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
tm send-keys C-l
tm send-keys 'mkdir asked; $BUGPACK run --review -o asked --app asked sh -c "echo begun; read line; exit 3"; echo "ended $?"' Enter
see '^begun'
tm send-keys F12
tm send-keys x Enter
see '^Write this report? \[y/N\]'
expect_empty asked
tm send-keys n Enter
await '[ "$(tm capture-pane -p | grep -c "^Write this report?")" -eq 2 ]'
tm send-keys y Enter
see '^bugpack: no report: the report is not written'
see '^ended 3'
case $(ls asked) in asked-exit-*.zip) ;; *) wrong "there is: $(ls asked)" ;; esac

fact 'recover asks, and a no keeps the session'
rm -f reports/*
# The command begins when all of the session is there.
XDG_RUNTIME_DIR=$scratch/run start "$BUGPACK" run -o reports -- sh -c 'echo $$ >begun && exec sleep 1000'
await '[ -s begun ]'
started="$started $(cat begun)"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
for answer in n y; do
    await '[ "$(tm display-message -p "#{pane_current_command}")" = bash ]'
    tm send-keys C-l
    await '! tm capture-pane -p | grep -q "^Write this"'
    tm send-keys '$BUGPACK recover --review $XDG_RUNTIME_DIR/bugpack; echo "ended $?"' Enter
    see '^Write this report? \[y/N\]'
    tm send-keys "$answer" Enter
    see '^ended [01]'
    expect_same "the reports after $answer" "$([ "$answer" = n ] || echo 1)" "$(find reports -type f | sed 's|.*|1|')"
done
zip=$(echo reports/*)

fact 'a terminal that hangs up means no'
ask --window 0
tm kill-server
await '! pgrep -f "capture --review --pid $target" >/dev/null'
expect_same 'the reports' "$zip" "$(echo reports/*)"

finish
