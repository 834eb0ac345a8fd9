#!/bin/sh
# --encrypt-to with programs that misbehave: nothing is left but a message.
. "$(dirname "$0")/lib.sh"
need strace unzip

cd "$scratch" || exit 1
mkdir reports bin
printf 'a line of the log\n' >app.log
start sleep 1000
target=$pid

# as_age COMMAND: what `age` does with a report; the trial with an empty text succeeds.
as_age() {
    # shellcheck disable=SC2016 # for the script
    printf '#!/bin/sh\nif [ ! -s /dev/stdin ]; then echo empty; exit; fi\n%s\n' "$1" >bin/age
    chmod +x bin/age
}

encrypted() {
    PATH=$scratch/bin:$PATH run capture --pid "$target" --window 0 --log app.log -o reports \
        --encrypt-to age1someone "$@"
}

fact 'a program that fails, dies, hangs or prints nothing costs the report, and leaves nothing'
while read -r wanted command; do
    as_age ": >'$scratch/begun'; $command"
    rm -f begun
    # What hangs has a limit, which is to end after it has begun.
    limit=1
    while [ ! -e begun ] && [ "$limit" -lt 60 ]; do
        limit=$((limit * 2))
        encrypted --timeout "$([ "$wanted" -eq 5 ] && echo "$limit" || echo 0)"
    done
    expect_status "$wanted"
    expect_err 'cannot encrypt the report: age '
    expect_empty reports
    expect_no_out
done <<'END'
1 echo "no key" >&2; exit 3
1 head -c 100; kill -KILL $$
1 cat >/dev/null
5 exec sleep 1000
5 exec >&-; exec sleep 1000
5 head -c 100; sleep 1000 & exit 0
END
as_age 'echo "no key" >&2; exit 3'
encrypted
expect_err 'age failed: no key'

fact 'none of them is left'
# shellcheck disable=SC2009 # pgrep has no such pattern
expect_same 'the processes' '' "$(ps -e -o pgid=,pid=,args= | awk -v ours="$target" \
    '$3 == "sleep" && $4 == 1000 && $2 != ours && $1 == $2' | grep -F "$scratch")"

fact 'a program that is missing, and a recipient that is none, cost no report'
PATH=$scratch "$BUGPACK" capture --pid "$target" -o reports --encrypt-to age1someone >out 2>err
expect_same 'the status' 1 $?
expect_err 'age is not installed'
run capture --pid "$target" -o reports --encrypt-to -r
expect_usage '--encrypt-to takes a recipient'
run capture --pid "$target" -o reports --encrypt-to age1someone --encrypt-to somebody
expect_usage 'of age or of gpg, not of both'
expect_empty reports

fact 'the encrypted file has the ending of the program, and -2 comes before it'
as_age 'tr A-Za-z N-ZA-Mn-za-m'
encrypted
expect_status 0
path=$(cat out)
case $path in *-bugreport-*Z.zip.age) ;; *) wrong "it is $path" ;; esac
: >taken.zip.age
PATH=$scratch/bin:$PATH run capture --pid "$target" --window 0 --encrypt-to age1x --output taken.zip
expect_same 'the name' "$scratch/taken-2.zip.age" "$(cat out)"

fact 'the zip is written to memory alone, and what is published is what the program printed'
as_age 'exec tr A-Za-z N-ZA-Mn-za-m'
PATH=$scratch/bin:$PATH strace -f -o trace -e trace=memfd_create,linkat,pwrite64,write -e signal=none \
    "$BUGPACK" capture --pid "$target" --window 0 --log app.log --output whole.zip \
    --encrypt-to age1someone >out 2>err || skip 'strace does not run here'
# Two files in memory: the zip, and its compressed entries before libzip copies them.
memory=$(sed -n 's/.*memfd_create("bugpack".* = /pwrite64(/p' trace | sed 's/$/,/' | sort -u)
expect_same 'files in memory' 2 "$(printf '%s\n' "$memory" | wc -l)"
expect_same 'where zips are written, but in memory' '' \
    "$(grep -oE '(pwrite64|write)\([0-9]+, "PK' trace | cut -d ' ' -f 1 | sort -u | grep -vF "$memory")"
expect_same 'where else something is placed' '' \
    "$(grep -oE 'pwrite64\([0-9]+,' trace | sort -u | grep -vF "$memory")"
expect_same 'the names' 1 "$(grep -c linkat trace)"
tr A-Za-z N-ZA-Mn-za-m <whole.zip.age >whole.zip
unzip -tq whole.zip >out 2>err || wrong 'what came out is not what went in'

fact 'run encrypts too'
as_age 'tr A-Za-z N-ZA-Mn-za-m'
rm -rf reports && mkdir reports
PATH=$scratch/bin:$PATH run run -q -o reports --app secret --encrypt-to age1someone -- false
expect_status 1
case $(ls reports) in secret-crash-*.zip.age) ;; *) wrong "there is: $(ls reports)" ;; esac

finish
