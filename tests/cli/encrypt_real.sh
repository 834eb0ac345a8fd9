#!/bin/sh
# --encrypt-to with age and GnuPG: what is decrypted is the report.
. "$(dirname "$0")/lib.sh"
need age age-keygen gpg unzip jq ssh-keygen

cd "$scratch" || exit 1
printf 'login password=hunter2hunter2\n' >app.log
start sleep 1000
target=$pid
export GNUPGHOME="$scratch/ring"
mkdir -m 700 ring
trap 'gpgconf --kill all 2>/dev/null; clean_up' EXIT

# is_report FILE: it is a zip, whole, with the log and without the password.
is_report() {
    unzip -tq "$1" >out 2>err || wrong "$1 is no zip"
    expect_same 'the log' 1 "$(unzip -p "$1" logs/app.log | grep -c 'password=REDACTED-')"
    expect_same 'complete' true "$(value "$1" manifest.json .complete)"
}

captured() {
    run capture --pid "$target" --window 0 --log app.log "$@"
    expect_status 0
}

age-keygen -o key 2>err || wrong 'no key'
recipient=$(sed -n 's/^# public key: //p' key)

fact 'age encrypts a capture'
captured --output one.zip --encrypt-to "$recipient"
expect_same 'the path' "$scratch/one.zip.age" "$(cat out)"
expect_same 'the mode' 600 "$(stat -c %a one.zip.age)"
age -d -i key -o one.zip one.zip.age || wrong 'it is not decrypted'
is_report one.zip

fact 'and to a key of ssh and to several recipients'
ssh-keygen -q -t ed25519 -N '' -f ssh
captured --output two.zip --encrypt-to "$recipient" --encrypt-to "$(cat ssh.pub)"
age -d -i ssh -o two.zip two.zip.age || wrong 'it is not decrypted'
is_report two.zip
age -d -i key -o three.zip two.zip.age || wrong 'it is not decrypted by the other key'
cmp -s two.zip three.zip || wrong 'they differ'

fact 'so does redact'
run redact one.zip -o four.zip --encrypt-to "$recipient"
expect_status 0
age -d -i key -o four.zip four.zip.age || wrong 'it is not decrypted'
is_report four.zip
expect_same 'the manifest' true "$(value four.zip manifest.json .redacted_again)"
run redact --list one.zip --encrypt-to "$recipient"
expect_status 2

gpg --batch -q --passphrase '' --quick-gen-key 'Maintainer <bugs@example.org>' default default never \
    2>err || skip 'gpg makes no key here'
# The key of somebody else, whom nobody trusts.
gpg --batch -q --export bugs@example.org >public
mkdir -m 700 other
GNUPGHOME=$scratch/other gpg --batch -q --import public 2>err || wrong 'no import'
listing() {
    find other -type f -exec sha256sum {} + | sort
}
listing >before

fact 'gpg encrypts to a key that is not trusted, and leaves the key ring alone'
GNUPGHOME=$scratch/other captured --output five.zip --encrypt-to bugs@example.org
expect_same 'the path' "$scratch/five.zip.gpg" "$(cat out)"
listing | cmp -s - before || wrong 'the key ring has changed'
gpg --batch -q -o five.zip -d five.zip.gpg 2>err || wrong 'it is not decrypted'
is_report five.zip

fact 'a key that is not there costs no report'
run capture --pid "$target" -o . --encrypt-to nobody@example.org
expect_status 1
expect_err 'No public key'
GNUPGHOME=$scratch/absent run capture --pid "$target" -o . --encrypt-to nobody@example.org
expect_status 1
[ ! -e absent ] || wrong 'a key ring was made'
expect_same 'the files' '' "$(find . -maxdepth 1 -name '*bugreport*')"

finish
