#!/bin/sh
# The man pages know exactly the options that the program has, and shells complete them.
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
man=$source_dir/docs/man
completion=$source_dir/src/command/cli/completion

# Every "--word" of a text, without the hyphens, a line each.
long_options() {
    grep -oE -e '(^|[^-a-z])--[a-z][-a-z0-9]*' | sed 's/^[^-]*--//' | sort -u
}

run --help
sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p' out | grep -v '^help$' >commands
[ -s commands ] || wrong 'no commands are listed'

while read -r command; do
    fact "the man page of $command has its options, each in synopsis and list"
    exits 0 "$command" --help
    sed -n '/^Options:/,$p' out | sed -n 's/^  \(-., \|    \)\(--[-a-z0-9]*\).*/\2/p' |
        long_options >options
    [ -s options ] || wrong 'the help lists no options'
    page=$man/bugpack-$command.1
    sed -n 's/^\.It .*Fl -\([-a-z0-9]*\).*/\1/p' "$page" | sort -u >in_page
    cmp -s options in_page || wrong "they differ: $(diff options in_page | grep '^[<>]' | tr '\n' ' ')"
    fact "what completes $command has its options"
    "$BUGPACK" --complete "$command" -- | long_options | cmp -s options - || wrong 'they differ'
    fact "the main man page names $command"
    grep -q "^\.It Cm $command" "$man/bugpack.1" || wrong 'it does not'
done <commands

fact 'the main man page has the options and exit statuses of the program'
for word in 'Fl -help' 'Fl -version' '^\.It 0$' '^\.It 1$' '^\.It 2$' '^\.It 3$' '^\.It 4$' '^\.It 5$'; do
    grep -qe "$word" "$man/bugpack.1" || wrong "it lacks $word"
done

fact 'the man pages are well formed'
if command -v mandoc >/dev/null 2>&1; then
    mandoc -T lint -W warning "$man"/*.1 >out 2>err || wrong "mandoc: $(head -n 3 out)"
elif command -v man >/dev/null 2>&1; then
    for page in "$man"/*.1; do
        LC_ALL=C.UTF-8 man --warnings -l "$page" >/dev/null 2>err </dev/null
        expect_no_err
    done
else
    echo 'not tried: neither mandoc nor man is installed'
fi

fact 'the completions are well formed'
for shell in bash zsh fish; do
    case $shell in
        bash) file=bugpack.bash ;;
        zsh) file=_bugpack ;;
        fish) file=bugpack.fish ;;
    esac
    if command -v $shell >/dev/null 2>&1 || not_tried "$shell is not installed"; then
        $shell -n "$completion/$file" 2>err || wrong "$shell refuses $file"
    fi
done

ln -s "$BUGPACK" bugpack
fact 'bash completes process ids, with their names beside'
if command -v bash >/dev/null 2>&1 || not_tried 'bash is not installed'; then
    start sleep 300
    # shellcheck disable=SC2016 # bash is to expand it
    bash -c 'source "$0"
        COMP_WORDS=(./bugpack capture --pid "$1") COMP_CWORD=3; _bugpack; printf "%s\n" "${COMPREPLY[@]}"
        COMP_WORDS=(./bugpack capture --pid sle) COMP_CWORD=3; _bugpack; printf "%s\n" "${COMPREPLY[@]}"
        COMP_WORDS=(./bugpack capture --name sle) COMP_CWORD=3; _bugpack; printf "%s\n" "${COMPREPLY[@]}"
    ' "$completion/bugpack.bash" "$pid" >out 2>err
    grep -Eqx "$pid( \(sleep\))?" out || wrong "the id is not among $(head -n 3 out)"
    grep -qx sleep out || wrong 'the name is not offered'
fi

fact 'bash completes commands, options and files'
if command -v bash >/dev/null 2>&1 || not_tried 'bash is not installed'; then
    # shellcheck disable=SC2016 # bash is to expand it
    bash -c 'source "$0"
        COMP_WORDS=(./bugpack sam) COMP_CWORD=1; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack capture --log) COMP_CWORD=2; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack capture --log comman) COMP_CWORD=3; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack redact -o comman) COMP_CWORD=3; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack logs --level w) COMP_CWORD=3; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack run --without thr) COMP_CWORD=3; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack help wat) COMP_CWORD=2; _bugpack; echo "${COMPREPLY[*]}"
        COMP_WORDS=(./bugpack show comman) COMP_CWORD=2; _bugpack; echo "${COMPREPLY[*]}"
    ' "$completion/bugpack.bash" >out 2>err
    printf '%s\n' sample '--log --log-limit' commands commands warn 'threads.json thread-heap.json' watch \
        commands >wanted
    cmp -s out wanted || wrong "it offers $(tr '\n' '|' <out)"
fi

finish
