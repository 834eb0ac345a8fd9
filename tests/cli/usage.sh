#!/bin/sh
# What the program says of itself, and how it refuses a command line that is not acceptable.
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
mkdir empty && cd empty || exit 1
me=$$

fact 'help goes to standard output, and names the commands that there are'
exits 0 --help
expect_no_err
expect_out 'Usage: bugpack COMMAND'
expect_out '  capture  '
expect_out '  sample  '
cp "$scratch/out" "$scratch/help"

fact 'bugpack help and -h say the same as --help'
for way in help -h; do
    exits 0 "$way"
    cmp -s "$scratch/out" "$scratch/help" || wrong "$way differs"
done

fact 'every command that the help lists has a help of its own, in two ways'
sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p' "$scratch/help" | grep -v '^help$' \
    >"$scratch/commands"
[ -s "$scratch/commands" ] || wrong 'no commands are listed'
while read -r command; do
    exits 0 help "$command"
    expect_out "Usage: bugpack $command"
    cp "$scratch/out" "$scratch/help"
    exits 0 "$command" --help
    cmp -s "$scratch/out" "$scratch/help" || wrong "$command --help differs from help $command"
    awk 'length > 80 { exit 1 }' "$scratch/out" || wrong "the help of $command is over 80 columns"
done <"$scratch/commands"

fact 'the version is the first line, with the libraries behind it'
exits 0 --version
expect_no_err
wanted=$(sed -n 's/.*define BUGPACK_VERSION "\(.*\)"/\1/p' "$source_dir/include/bugpack/version.h")
expect_same 'the first line' "bugpack $wanted" "$(head -n 1 "$scratch/out")"
for library in libzip zlib cJSON; do
    grep -Eq "$library [0-9]+\.[0-9]+" "$scratch/out" || wrong "it does not tell of $library"
done

fact 'a command that does not exist is refused'
expect_misuse "unknown command 'frobnicate'" frobnicate
expect_misuse "unknown command 'frobnicate'" help frobnicate
expect_misuse "unexpected argument 'more'" help capture more
run
expect_usage 'a command is missing'
expect_misuse "unknown option '--frob'" --frob

for command in capture sample; do
    fact "$command refuses options that it does not know, or that are used wrongly"
    expect_misuse "unknown option '--frob'" $command --pid $me --frob
    expect_err "Try 'bugpack $command --help'."
    expect_misuse "unknown option '--frob'" $command --pid $me --frob=3
    expect_misuse "unknown option '-Z'" $command --pid $me -Z
    expect_misuse "option '--help' takes no value" $command --help=yes
    expect_misuse "option '--pid' needs a value" $command --pid
    expect_misuse "unexpected argument 'more'" $command --pid $me more

    fact "$command refuses what is not a process id"
    for bad in 0 -1 -- 1x ' 1' +1 0x1 1.0 2147483648 18446744073709551617 ''; do
        expect_misuse '--pid takes a process id from 1 to 2147483647' $command --pid "$bad" --window 0
    done

    fact "$command refuses a window that is not a time up to ten minutes"
    for bad in 601 600.001 601s 11min 11m 1h 2S s . 1.2.3 -1 +1 0x1 1e1 ' 1' '2 s' inf nan '' \
        99999999999999999999 99999999999999s; do
        expect_misuse '--window takes seconds from 0 to 600, or a time such as 500ms or 2s' $command --pid $me --window "$bad"
    done
done

expect_misuse "option '--pid' is missing" sample
expect_misuse 'a target is missing: --pid, --name, --unit, --cgroup, --core or --host' capture

fact 'what was mistyped is suggested'
expect_misuse "unknown command 'captrue'; did you mean 'capture'?" captrue
expect_misuse "unexpected argument 'viewer': a process is named by --name or --pid" why viewer
expect_misuse "unknown option '--atach'; did you mean '--attach'?" capture --pid $me --atach x
run capture --pid $me --stacks blokced
expect_usage "--stacks takes blocked, all or none, not 'blokced'; did you mean 'blocked'?"
expect_misuse "did you mean 'signal'?" run --on-failure singal true
exits 2 capture --pid $me --window 0 --without 'process.json thread.json'
expect_err "'thread.json' is not the name of an entry to leave out; did you mean 'threads.json'?"

fact 'a path below /dev and a directory are no place for a report'
ln -s /dev ../devices
for path in /dev/null /dev/stdout //dev/fd/1 /dev/../dev/null /tmp/../dev/new ../devices/null ../devices/new; do
    expect_misuse '- is standard output' capture --pid $me --output "$path"
done
expect_misuse 'is no place for a report' redact some.zip --output /dev/null
expect_misuse "--output: cannot write '..': it names no file" redact some.zip --output ..
expect_misuse "--output: cannot write '../': it names no file" redact some.zip --output ../
for command in 'capture --pid 1' recover 'run true'; do
    # shellcheck disable=SC2086 # words
    set -- $command
    expect_misuse 'is no place for a report' "$1" --output-dir /dev
done

fact 'an option that is shortened too far is told to be so'
for short in --out --lo=x --attach-; do
    run capture --pid $me $short x
    case $short in
    --attach-) expect_usage '--attach-limit takes bytes' ;;
    *) expect_usage "option '${short%%=*}' is ambiguous" ;;
    esac
done
expect_misuse "unknown option '--outt'" capture --pid $me --outt x

fact 'capture refuses sizes, times and texts out of bounds'
for bad in 0 -1 4T 4MB 4.5M M '' 17179869184G 18446744073709551616; do
    expect_misuse '--log-limit takes bytes' capture --pid $me --log-limit "$bad"
    expect_misuse '--attach-limit takes bytes' capture --pid $me --attach-limit "$bad"
done
for bad in 4294968 50d -1 1M ''; do
    expect_misuse '--timeout takes seconds from 0 to 4294967' capture --pid $me --timeout "$bad"
done
expect_misuse '--app takes at most 64 bytes' capture --pid $me --app "$(printf '%065d' 0)"
expect_misuse '--description takes at most 65536 bytes' capture --pid $me --description "$(printf '%065537d' 0)"
for option in --log --attach --session --output --output-dir --app --description; do
    expect_misuse "$option takes a value that is not empty" capture --pid $me $option ''
done
expect_misuse '--attach takes a value that is not empty' capture --pid $me --attach name=
expect_misuse '--output-dir and --output exclude each other' capture --pid $me -o . --output x.zip

fact 'a message cannot steer the terminal'
esc=$(printf '\033')
exits 2 capture --pid "${esc}[31m$(printf '\302\233')2J$(printf '\377')"
expect_err '\x1b[31m\xc2\x9b2J\xff'
LC_ALL=C grep -q "[$(printf '\001')-$(printf '\010')$esc]" "$scratch/err" && wrong 'a control got through'

fact 'nothing was written by all that'
expect_empty "$scratch/empty"

finish
