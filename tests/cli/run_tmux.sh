#!/bin/sh
# bugpack run on a terminal: full-screen programs, the hotkey, the window size, stopping.
. "$(dirname "$0")/lib.sh"
need tmux unzip jq less
cd "$scratch" || exit 1
mkdir reports
seq 1 500 >lines

tm() {
    tmux -L "bugpack-$$" -f /dev/null "$@"
}
trap 'tm kill-server 2>/dev/null; clean_up' EXIT

# The screen without what blanks are behind and below.
screen() {
    tm capture-pane -p | sed 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

# see TEXT: until a line of the screen is that, or the time is up.
see() {
    tries=0
    while ! screen | grep -qxF -e "$1" && [ $tries -lt 200 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    screen | grep -qxF -e "$1" || wrong "the screen does not show <$1> but: $(screen | tail -n 5)"
}

# Until the shell has the terminal: what is typed before the command has ended is the command's.
prompt() {
    tries=0
    while [ "$(tm display-message -p '#{pane_current_command}')" != bash ] && [ $tries -lt 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

# Until the terminal gives each key at once: then bugpack run has it.
wait_for_raw() {
    tries=0
    while ! stty -a -F "$(tm display-message -p '#{pane_tty}')" | grep -q -e -icanon &&
        [ $tries -lt 200 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    [ $tries -lt 200 ]
}

# type KEY...: to the shell, with a prompt on a clean screen before it.
type_command() {
    prompt
    tm send-keys C-l
    tm send-keys "$*" Enter
}

tm new-session -d -x 80 -y 24 "env PS1='> ' HISTFILE= bash --norc --noprofile" || skip 'tmux does not start here'
tm send-keys "export BUGPACK=$BUGPACK; run() { \$BUGPACK run -q -o reports \"\$@\"; }" Enter

fact 'a pager looks as it does without us'
type_command less lines
see 23
screen >without
tm send-keys q
type_command run less lines
see 23
screen >with
cmp -s without with || wrong "the screens differ: $(diff without with | head -n 3)"

fact 'the hotkey takes a report and does not reach the program'
tm send-keys F12
tries=0
while [ -z "$(ls reports)" ] && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
set -- reports/*.zip
[ -e "$1" ] || wrong 'there is no report'
screen >with
cmp -s without with || wrong 'the screen has changed'
expect_same 'the channel' terminal "$(unzip -p "$1" logs.jsonl | jq -r .channel | sort -u)"

fact 'the window size follows'
tm resize-window -x 60 -y 15
tm send-keys g
see 14
tm resize-window -x 80 -y 24

fact 'Ctrl-Z stops both, and fg goes on'
tm send-keys g
see 23
tm send-keys C-z
prompt
tm send-keys C-l
tm send-keys 'stty -a | grep -o -e -*icanon; jobs -s | wc -l' Enter
see icanon
see 1
tm send-keys fg Enter
see 23
tm send-keys G
see 500
tm send-keys q

fact 'a command that was started in the background gets the terminal with fg'
# Not through the function, which would make a shell the leader of the job.
# shellcheck disable=SC2016 # for the shell in tmux
type_command '$BUGPACK run -q -o reports cat &'
sleep 0.5
tm send-keys fg Enter
tries=0
# The shell's own prompt is not canonical either.
while [ "$(tm display-message -p '#{pane_current_command}')" = bash ] && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
wait_for_raw || wrong 'it does not'
tm send-keys C-c

fact 'after the end the terminal is as before, and Ctrl-C went to the command'
type_command run cat
wait_for_raw
tm send-keys abc Enter
see abc
tm send-keys C-c
prompt
# shellcheck disable=SC2016 # for the shell in tmux
tm send-keys 'echo status $?; stty -a | grep -o -e -*icanon' Enter
see 'status 130'
see icanon

fact 'a terminal is a terminal, a pipe is a pipe'
# shellcheck disable=SC2016
type_command 'run sh -c "test -t 0; echo in \$?; test -t 1; echo out \$?; test -t 2; echo err \$? >&2" 2>err.txt'
see 'in 0'
see 'out 0'
prompt
tm send-keys 'cat err.txt; echo' Enter
see 'err 1'

fact 'a pager that reads from a pipe gets its keys'
type_command 'cat lines | run less'
see 23
tm send-keys G
see 500
tm send-keys q

fact 'the terminal is restored when we are killed'
type_command run sleep "77.$$" # a name that no other test has
tries=0
while ! pgrep -f "bugpack run -q -o reports sleep 77[.]$$" >killed && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
wait_for_raw
# The one that the shell started: the monitor has the same name.
kill -KILL "$(head -n 1 killed)" || wrong 'it is not there to be killed'
prompt
tm send-keys 'stty -a | grep -o -e -*icanon' Enter
see icanon

fact 'an editor gets its escape key'
if command -v vim >/dev/null 2>&1 || command -v vi >/dev/null 2>&1; then
    editor=$(command -v vim || command -v vi)
    type_command run "$editor" -u NONE edited
    see '~'
    tm send-keys ihello
    see hello
    tm send-keys Escape
    sleep 0.2
    tm send-keys :wq Enter
    tries=0
    while [ ! -e edited ] && [ $tries -lt 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    expect_same 'what was written' hello "$(cat edited)"
else
    echo 'not tried: there is no vim'
fi

fact 'htop draws its screen'
if command -v htop >/dev/null 2>&1; then
    type_command run htop
    tries=0
    while ! screen | grep -q 'F10Quit' && [ $tries -lt 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    screen | grep -q F10Quit || wrong 'it does not'
    tm send-keys q
else
    echo 'not tried: there is no htop'
fi
tm kill-server

finish
