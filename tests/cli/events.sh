#!/bin/sh
# --json of the commands that do something: a line for each event, as its schema says.
# shellcheck disable=SC2016 # await expands it
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports kept
mkdir -m 700 runtime
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
: >events.jsonl

# events STATUS ARGUMENT...: runs bugpack, whose output has to be the members without the time.
events() {
    wanted=$1
    shift
    exits "$wanted" "$@"
    cat out >>events.jsonl
    jq -c 'del(.time)' out >said || wrong "it is no JSON: $(cat out)"
}

fact 'run prints its reports among what the command prints to standard error'
exits 3 run --json -o reports --app ran --gap-pattern 'gap ([a-z]+)' -- sh -c 'echo gap one; echo mine >&2; exit 3'
expect_same 'the output' 'gap one' "$(cat out)"
grep -v '^mine$' err >lines
grep -qx mine err || wrong 'what the command prints is missing'
cat lines >>events.jsonl
expect_same 'the events' 'report report' "$(jq -r .event lines | tr '\n' ' ' | sed 's/ $//')"
for path in $(jq -r .path lines); do
    unzip -tq "$path" >unzipped 2>&1 || wrong "it is no zip: $path"
    expect_same 'whether it is complete' "$(jq -c 'select(.path == "'"$path"'") | .complete' lines)" \
        "$(unzip -p "$path" manifest.json | jq -c .complete)"
done
exits 1 run --json --quiet -o /nowhere -- true

fact 'trigger prints the report, or those that it could ask'
start "$BUGPACK" run -q -o reports --app asked -- sleep 1000
asked=$pid
await '[ "$(find runtime -name trigger -type s | wc -l)" -eq 1 ]'
events 0 trigger --json "$asked"
zip=$(jq -r .path out)
expect_same 'the event' "{\"event\":\"report\",\"path\":\"$zip\",\"complete\":true,\"missing\":0}" "$(cat said)"
start "$BUGPACK" run -q -o reports --app other -- sleep 1000
await '[ "$(find runtime -name trigger -type s | wc -l)" -eq 2 ]'
# Sessions of other programs of this user are listed as well.
events 1 trigger --json
expect_same 'the sessions' 'session asked sleep session other sleep' "$(jq -sr --argjson asked "$asked" --argjson other "$pid" \
    'map(select(.pid == $asked or .pid == $other)) | sort_by(.app)[] | .event, .app, .target' said | tr '\n' ' ' | sed 's/ $//')"

fact 'recover prints where it looked, what runs and what it wrote'
events 0 recover --json -o reports runtime/bugpack
expect_same 'the events' 'running running searched' "$(jq -r .event said | sort | tr '\n' ' ' | sed 's/ $//')"
kill -9 "$asked"
await '! kill -0 "$asked" 2>/dev/null'
run recover --json --app asked -o reports runtime/bugpack
cat out >>events.jsonl
expect_same 'the reports' 1 "$(jq -r 'select(.event == "report") | .path' out | grep -c asked-crash)"
events 1 recover --json nowhere

fact 'verify prints one event for each report'
head -c 5000 "$zip" >cut.zip
events 1 verify --json "$zip" cut.zip nowhere.zip
entries=$(unzip -Z1 "$zip" | wc -l | tr -d ' ')
expect_same 'the events' "verified true $entries;verified false 0;failed null null;" \
    "$(jq -r '"\(.event) \(.whole) \(.entries);"' said | tr -d '\n')"
expect_same 'the paths' "$zip cut.zip nowhere.zip" "$(jq -r .path said | tr '\n' ' ' | sed 's/ $//')"

fact 'redact prints the report'
events 0 redact --json "$zip" -o redacted.zip
expect_same 'the event' '{"event":"redacted","path":"'"$scratch"'/redacted.zip","from":"'"$zip"'","replaced":0}' "$(cat said)"
events 1 redact --json nowhere.zip -o other.zip
expect_same 'the event' 'failed nowhere.zip' "$(jq -r '"\(.event) \(.path)"' said)"
echo nonsense >rules
events 2 redact --json --redact rules "$zip" -o other.zip
expect_same 'the event' "failed $zip" "$(jq -r '"\(.event) \(.path)"' said)"
expect_misuse '--json excludes --output -' redact --json --output=- "$zip"

fact 'html prints the page'
events 0 html --json "$zip" -o page.html
expect_same 'the event' '{"event":"page","path":"page.html","from":"'"$zip"'"}' "$(cat said)"
events 1 html --json "$zip" -o page.html
expect_same 'the event' "failed $zip" "$(jq -r '"\(.event) \(.path)"' said)"
expect_misuse '--json needs --output FILE' html --json "$zip"

fact 'prune prints each report and a sum'
for day in 1 2 3; do
    head -c 1000 /dev/zero >"kept/viewer-bugreport-2026-01-0${day}T00-00-00Z.zip"
done
events 0 prune --json --keep 2 --dry-run kept
expect_same 'the events of a dry run' 'would-remove pruned ' "$(jq -r .event said | tr '\n' ' ')"
events 0 prune --json --keep 2 kept/
expect_same 'the events' \
    '{"event":"removed","path":"kept/viewer-bugreport-2026-01-01T00-00-00Z.zip","bytes":1000} {"event":"pruned","path":"kept","dry_run":false,"removed":1,"removed_bytes":1000,"left":2,"left_bytes":2000}' \
    "$(tr '\n' ' ' <said | sed 's/ $//')"
events 1 prune --json --keep 2 nowhere

fact 'a name that is no text is one line of JSON'
bad=$(printf 'a\nb\033\377"c.zip')
cp "$zip" "$bad"
events 0 verify --json "$bad"
expect_same 'the lines' 1 "$(wc -l <out | tr -d ' ')"

rm -r kept cut.zip "$bad" # no reports

fact 'each event matches its schema'
if { [ -n "${BUGPACK_SCHEMA_NODE_MODULES:-}" ] && command -v node >/dev/null 2>&1; } || not_tried 'the schema'; then
    run capture --json --quiet --pid "$pid" --window 0 -o reports
    expect_schema events.jsonl events.jsonl
    expect_schema capture.json out
    sed 's/"path"/"way"/' events.jsonl >broken && mkdir broken.d && mv broken broken.d/events.jsonl
    if node "$source_dir/tests/schema/validate.mjs" broken.d/events.jsonl >out 2>err; then
        wrong 'a line without its members is accepted'
    fi
fi

finish
