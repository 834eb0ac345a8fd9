#!/bin/sh
# bugpack run on a terminal: full-screen programs, the hotkey, the window size, stopping.
# shellcheck disable=SC2016,SC2034,SC2317 # what await and tmux run
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

# see TEXT: until a line of the screen is that.
see() {
    line=$1
    await 'screen | grep -qxF -e "$line"' || wrong "but: $(screen | tail -n 5)"
}

# see_last TEXT: until that is the last line above the prompt of a pager.
see_last() {
    line=$1
    await '[ "$(screen | tail -n 2 | head -n 1)" = "$line" ]' || wrong "but: $(screen | tail -n 5)"
}

running() {
    tm display-message -p '#{pane_current_command}'
}

# Until the shell has the terminal: what is typed before the command has ended is the command's.
prompt() {
    await '[ "$(running)" = bash ]' || wrong "but: $(running)"
}

# Until the terminal gives each key at once: then bugpack run has it, and not the shell, whose prompt
# is not canonical either.
wait_for_raw() {
    await '[ "$(running)" != bash ] &&
        stty -a -F "$(tm display-message -p "#{pane_tty}")" | grep -q -e -icanon' ||
        wrong "but: $(running), and $(screen | tail -n 5)"
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
see lines
screen >without
tm send-keys q
type_command run less lines
see 23
see lines
screen >with
cmp -s without with || wrong "the screens differ: $(diff without with | head -n 3)"

fact 'the hotkey takes a report and does not reach the program'
tm send-keys F12
await '[ -n "$(ls reports)" ]'
set -- reports/*.zip
[ -e "$1" ] || wrong 'there is no report'
screen >with
cmp -s without with || wrong 'the screen has changed'
expect_same 'the channel' terminal "$(unzip -p "$1" logs.jsonl | jq -r .channel | sort -u)"

fact 'the window size follows'
tm resize-window -x 60 -y 15
see_last 14
tm resize-window -x 80 -y 24
see_last 23

# Not before the window has its size: less forgets a stop that comes together with a new size.
fact 'Ctrl-Z stops both, and fg goes on'
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
type_command '$BUGPACK run -q -o reports sh -c "touch begun; exec cat" &'
await '[ -e begun ]'
tm send-keys fg Enter
wait_for_raw
tm send-keys abc Enter C-d # bash's own settings end no input
prompt
tm send-keys C-l 'echo status $?' Enter
see 'status 0'

fact 'after the end the terminal is as before, and Ctrl-C went to the command'
type_command run cat
wait_for_raw
tm send-keys abc Enter
see abc
tm send-keys C-c
prompt
tm send-keys 'echo status $?; stty -a | grep -o -e -*icanon' Enter
see 'status 130'
see icanon

fact 'a terminal is a terminal, a pipe is a pipe'
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

fact 'an editor gets its escape key'
if command -v vim >/dev/null 2>&1 || command -v vi >/dev/null 2>&1 || not_tried 'there is no vim'; then
    editor=$(command -v vim || command -v vi)
    type_command run "$editor" -u NONE edited
    see '~'
    tm send-keys ihello
    see hello
    tm send-keys Escape
    # The cursor goes back from behind the word to its last letter.
    await '[ "$(tm display-message -p "#{cursor_x}")" -eq 4 ]'
    tm send-keys :wq Enter
    await '[ -s edited ]'
    expect_same 'what was written' hello "$(cat edited)"
fi

tm kill-server

finish
