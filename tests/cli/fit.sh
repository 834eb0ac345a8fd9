#!/bin/sh
# A report within a number of bytes: what is left out, and that its manifest says so.
# shellcheck disable=SC2016 # what await and sh run
. "$(dirname "$0")/lib.sh"
need unzip jq pgrep pkill
start sleep 300
target=$pid
cd "$scratch" || exit 1
head -c 1500000 /dev/urandom >noise
od -An -v -tx1 -w32 noise >noise.log
seq -f 'line %09.0f' 1 100000 >lines.log
head -c 100000 noise >small
set -- --log noise.log --log lines.log --log-limit 64M --attach noise --attach small --stacks all

# holds_limit ZIP BYTES: the zip is whole, within the limit and says so.
holds_limit() {
    exits 0 verify "$1"
    [ "$(wc -c <"$1")" -le "$2" ] || wrong "$1 has more than $2 bytes"
    expect_same 'the limit in the manifest' "$2" "$(value "$1" manifest.json .max_zip_bytes)"
}

# is_end_of ZIP ENTRY FILE: the entry has whole lines from the end of the file, and its line says what it lost.
is_end_of() {
    unzip -p "$1" "$2" >kept
    [ -s kept ] || wrong "nothing of $2 is left"
    tail -n "$(wc -l <kept)" "$3" | cmp -s - kept || wrong "$2 is not the end of $3"
    expect_same "the status of $2" truncated "$(ledger "$1" "$2" status)"
    expect_same "what $2 lost" "$(($(wc -c <"$3") - $(wc -c <kept)))" "$(ledger "$1" "$2" left_out_bytes)"
    ledger "$1" "$2" reason | grep -q 'oldest .* bytes, as the report may have at most' ||
        wrong 'the reason does not name the limit'
}

# diagnosis_of ZIP: the entries that findings are made of, which are never cut.
diagnosis_of() {
    for entry in runtime-metrics.json process.json threads.json stacks.json; do
        expect_same "the status of $entry in $1" ok "$(ledger "$1" "$entry" status)"
    done
}

fact 'without a limit nothing is left out, and no limit is named'
captures 0 "$@"
cp "$zip" full.zip
expect_same 'the limit' null "$(value full.zip manifest.json .max_zip_bytes)"
expect_same 'entries that lost something' 0 \
    "$(value full.zip manifest.json '[.artefacts[] | select(.left_out_bytes)] | length')"

fact 'under a limit that is large enough nothing is left out'
captures 0 --max-size 64M "$@"
holds_limit "$zip" 67108864
expect_same 'complete' true "$(value "$zip" manifest.json .complete)"
expect_same 'the entries' "$(entries full.zip)" "$(entries "$zip")"

fact 'a report fits, with what a diagnosis needs and the ends of its logs'
for limit in 128K:131072 1M:1048576; do
    captures 3 --max-size "${limit%:*}" "$@"
    expect_err 'noise: left out, as the report may have at most'
    holds_limit "$zip" "${limit#*:}"
    diagnosis_of "$zip"
    is_end_of "$zip" logs/noise.log noise.log
    expect_same 'the large file' 'omitted 0 1500000' \
        "$(ledger "$zip" noise status) $(ledger "$zip" noise bytes) $(ledger "$zip" noise left_out_bytes)"
    expect_same 'complete' false "$(value "$zip" manifest.json .complete)"
    entries "$zip" | grep -qx noise && wrong 'the large file is there'
done
[ "$(wc -c <"$zip")" -gt 524288 ] || wrong 'less than half of the limit is used'
expect_same 'the small file' ok "$(ledger "$zip" small status)"

fact 'what was cut alone leaves the report complete'
captures 0 --max-size 1M --log noise.log --log-limit 64M
is_end_of "$zip" logs/noise.log noise.log
expect_same 'complete' true "$(value "$zip" manifest.json .complete)"

fact 'secrets are replaced before anything is cut'
{
    cat noise.log
    echo 'password=hunter2hunter2'
} >secret.log
captures 0 --max-size 256K --log secret.log --log-limit 64M
unzip -p "$zip" logs/secret.log | tail -n 1 >last
grep -q 'password=' last || wrong 'the last line is gone'
grep -q hunter2 last && wrong 'the secret is there'

fact 'a report that is there is made to fit, and again'
exits 0 redact full.zip --max-size 1M -o once.zip
holds_limit once.zip 1048576
diagnosis_of once.zip
is_end_of once.zip logs/noise.log noise.log
expect_same 'complete' 'false 1' "$(value once.zip manifest.json '"\(.complete) \(.missing)"')"
expect_same 'the large file' 'omitted 1500000' "$(ledger once.zip noise status) $(ledger once.zip noise left_out_bytes)"
expect_same 'the checksum of what is not there' null "$(ledger once.zip noise sha256)"
exits 0 redact once.zip --max-size 128K -o twice.zip
holds_limit twice.zip 131072
diagnosis_of twice.zip
is_end_of twice.zip logs/noise.log noise.log
expect_same 'the original size' "$(wc -c <noise.log | tr -d ' ')" "$(ledger twice.zip logs/noise.log original_bytes)"
expect_same 'what is missing' 2 "$(value twice.zip manifest.json .missing)"

fact 'a report that fits already keeps every byte'
exits 0 redact full.zip -o whole.zip
exits 0 redact full.zip --max-size 64M -o fits.zip
expect_same 'the checksums' "$(value whole.zip manifest.json '[.artefacts[].sha256]')" \
    "$(value fits.zip manifest.json '[.artefacts[].sha256]')"
expect_misuse '--list excludes --max-size' redact --list full.zip --max-size 1M

fact 'the manifest of a group counts as much as it takes, deflated'
start sh -c 'i=0; while [ $((i += 1)) -le 40 ]; do sleep 1000 & done; wait'
await '[ "$(pgrep -c -P "$pid")" = 40 ]'
"$BUGPACK" capture --pid "$pid" --children --window 0 --output group.zip >out 2>err || [ $? = 3 ] || wrong "$(cat err)"
pkill -P "$pid"
exits 0 redact group.zip --max-size 128K -o small.zip
bytes=$(wc -c <small.zip)
if [ "$bytes" -gt 131072 ] || [ "$bytes" -lt 80000 ]; then
    wrong "it has $bytes bytes"
fi

fact 'a limit that no report can have is refused'
expect_misuse '--max-size takes at least 64K' capture --pid "$target" --max-size 65535
expect_misuse '--max-size takes bytes' capture --pid "$target" --max-size much

check_schemas
finish
