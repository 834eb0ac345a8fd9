#!/bin/sh
# bugpack verify from outside: which reports are whole, what is said of those that are not.
. "$(dirname "$0")/lib.sh"

need unzip jq python3
cd "$scratch" || exit 1
start sleep 300
printf 'a line\n' >app.log
exits 0 capture --pid "$pid" --window 0 --log app.log --output good.zip

fact 'a report that was taken is whole'
exits 0 verify good.zip
expect_same 'the line' "good.zip: whole, $(unzip -Z1 good.zip | wc -l | tr -d ' ') entries" \
    "$(sed 's/, [0-9]* bytes$//' out)"
expect_no_err

fact 'so is one that was redacted, and one that was packed again'
run redact good.zip -o redacted.zip
mkdir unpacked && (cd unpacked && unzip -q ../good.zip && zip -q -X -D -r ../again.zip .)
exits 0 verify redacted.zip again.zip
expect_same 'the lines' 2 "$(grep -c ': whole, ' out)"

# repack NAME FILTER: a report in which jq changed the manifest, or a file was changed before.
repack() {
    jq "$2" unpacked/manifest.json >changed && cp changed unpacked/manifest.json
    rm -f "$1"
    (cd unpacked && zip -q -X -D -r "../$1" .)
}

fact 'every fault is named with its entry, in one line for each zip'
printf '{"schema": 2\n' >unpacked/process.json
printf 'x' >unpacked/added
repack bad.zip '.artefacts |= map(select(.name != "logs/app.log"))'
exits 1 verify good.zip bad.zip again.zip
expect_same 'the number of lines' 3 "$(wc -l <out | tr -d ' ')"
expect_out 'bad.zip: not whole: '
expect_out 'entry "added": the manifest does not list it'
expect_out 'entry "logs/app.log": the manifest does not list it'
expect_out 'entry "process.json": the manifest says another size'
expect_out 'entry "process.json": line 2, column 1: expected'
expect_out 'again.zip: whole'

fact 'what cannot be read is named, and the others are checked'
exits 1 verify nowhere.zip . good.zip
expect_err 'nowhere.zip'
expect_out 'good.zip: whole'
expect_same 'the number of lines' 2 "$(wc -l <err | tr -d ' ')"

fact 'a report without any SHA-256 is not whole'
(cd unpacked && rm added && unzip -q -o ../good.zip)
repack old.zip '.artefacts |= map(del(.sha256))'
exits 1 verify old.zip
expect_out 'old.zip: not whole: '
expect_out 'entry "logs/app.log": the manifest says no SHA-256 of it'
repack twice.zip '.artefacts += .artefacts[:1]'
run verify twice.zip
expect_status 1
expect_out 'an artefact is listed twice'

fact 'the limit is for what is in the zip'
exits 1 verify --max-bytes 1000 good.zip
expect_out 'over the limit of 1000'

fact 'a report is needed'
expect_misuse 'a report is missing' verify

fact 'no control byte of a report reaches the terminal'
python3 - <<'EOF'
import zipfile
with zipfile.ZipFile('esc.zip', 'w') as zip:
    zip.writestr('manifest.json', '{"schema": 2, "artefacts": [{"name": "\\u001b[31m\\u009b1m", "status": "ok"}]}')
EOF
cp esc.zip "$(printf 'n\033[31m.zip')"
exits 1 verify "$(printf 'n\033[31m.zip')"
expect_out '\x1b[31m\xc2\x9b1m'
expect_same 'the number of control bytes' 0 "$(tr -d '\n' <out | LC_ALL=C grep -c '[[:cntrl:]]')"

fact '7z saves the whole entries of a report that was cut, as the page says'
if command -v 7z >/dev/null 2>&1 || not_tried '7z is not installed'; then
    head -c "$(($(wc -c <good.zip) * 2 / 3))" good.zip >cut.zip
    7z x -y -osaved cut.zip >out 2>err && wrong 'it takes it for whole'
    expect_err 'Unexpected end of archive'
    cmp -s saved/metadata.json unpacked/metadata.json || wrong 'an entry is not saved'
fi

fact 'every hostile zip is refused for its reason, by one program and in little memory'
mkdir hostile
"$source_dir/fixtures/hostile/make" "$scratch/hostile" >reasons || wrong 'they are not made'
[ "$(wc -l <reasons)" -gt 60 ] || wrong 'there are too few'
cut -f1 reasons >names
cd hostile || exit 1
# One operand for each line.
# shellcheck disable=SC2046
run verify sound.zip $(cat ../names)
cd ..
expect_status 1
expect_out 'sound.zip: whole'
while IFS="$(printf '\t')" read -r name reason; do
    grep -e "^$name: not whole: " out | grep -qF -e "$reason" ||
        wrong "$name: <$(grep -e "^$name: " out)> does not say: $reason"
done <reasons
expect_same 'the number of lines' "$(($(wc -l <reasons) + 1))" "$(wc -l <out | tr -d ' ')"

# They are broken on purpose.
cd "$scratch" && rm -rf ./*
finish
