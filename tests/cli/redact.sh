#!/bin/sh
# Redaction from outside: what capture and run leave out, and bugpack redact.
. "$(dirname "$0")/lib.sh"

need unzip jq
cd "$scratch" || exit 1
printf 'login password=hunter2hunter2 of TKT-12345\n' >app.log
printf '[ticket]\npattern = TKT-[0-9]+\n' >rules
# A target whose command line has a password.
start sh -c 'while :; do sleep 300; done' --password=hunter2hunter2
target=$pid

fact 'a capture has no password, neither of a command line nor of a log, and counts it'
exits 0 capture --pid "$target" --window 0 --log app.log -o .
zip=$(cat out)
expect_same 'the number of entries with the password' 0 "$(unzip -p "$zip" | grep -c hunter2)"
expect_same 'the log' 1 "$(unzip -p "$zip" logs/app.log | grep -c 'password=REDACTED-password-')"
expect_same 'the tags' 1 "$(unzip -p "$zip" logs/app.log process.json |
    grep -o 'REDACTED-password-[0-9a-f]*' | sort -u | wc -l | tr -d ' ')"
expect_same 'the counts' 'process.json 1,logs/app.log 1' "$(unzip -p "$zip" manifest.json | jq -r \
    '[.artefacts[] | .name as $n | .redactions[]? | "\($n) \(.count)"] | join(",")')"

fact 'the folder of a process whose name has a secret has none'
cp "$(command -v sleep)" 'token=ab12CD34'
start ./token=ab12CD34 300
exits 0 capture --pid "$target" --pid "$pid" --window 0 --output named.zip
expect_same 'the folder' 1 "$(unzip -Z1 named.zip | grep -c "^processes/$pid-token_REDACTED-secret-[0-9a-f]*/process.json")"
expect_same 'the number of entries with the secret' 0 "$(unzip -Z1 named.zip | grep -c ab12CD34)"
expect_same 'the lines with the secret' 0 "$(unzip -p named.zip | grep -c ab12CD34)"

fact 'rules of a file apply too'
exits 0 capture --pid "$target" --window 0 --log app.log --redact rules --output ticket.zip
expect_same 'the ticket' 0 "$(unzip -p ticket.zip logs/app.log | grep -c TKT-)"

fact 'rules behind a NUL, which would not be read, are refused'
{ cat rules && printf '\0' && cat rules; } >halved
exits 1 capture --pid "$target" --window 0 --redact halved --output cut.zip
expect_err '"halved" is no text'

fact 'without redaction all is there, and the manifest says so'
exits 0 capture --pid "$target" --window 0 --log app.log --no-redact --output plain.zip
expect_same 'the password' 1 "$(unzip -p plain.zip logs/app.log | grep -c hunter2hunter2)"
expect_same 'the manifest' false "$(unzip -p plain.zip manifest.json | jq .redacted)"

fact 'a report of bugpack run has none'
exits 2 run --no-redact --redact rules -- true
run run -o . --redact rules -- sh -c 'echo token=8c1f0a77b2 TKT-12345; kill -SEGV $$'
crash=$(ls sh-crash-*.zip)
expect_same 'the output' 0 "$(unzip -p "$crash" | grep -c -e 8c1f0a77b2 -e TKT-)"

fact 'redact makes a whole report of one that was taken'
exits 0 redact plain.zip -o clean.zip
expect_same 'the password' 0 "$(unzip -p clean.zip | grep -c hunter2)"
expect_same 'the manifest' 'true true' "$(unzip -p clean.zip manifest.json |
    jq -r '"\(.redacted) \(.redacted_again)"')"
expect_same 'the entries' "$(unzip -Z1 plain.zip)" "$(unzip -Z1 clean.zip)"
expect_same 'the size' "$(unzip -p clean.zip logs/app.log | wc -c | tr -d ' ')" \
    "$(unzip -p clean.zip manifest.json | jq '.artefacts[] | select(.name == "logs/app.log").bytes')"
exits 0 redact clean.zip -o again.zip
expect_err '0 replaced'
expect_same 'the log' "$(unzip -p clean.zip logs/app.log)" "$(unzip -p again.zip logs/app.log)"

fact 'an entry that somebody added is searched, counted and listed, also where the manifest lies'
cp clean.zip added.zip
python3 - <<'END'
import json, zipfile
with zipfile.ZipFile("clean.zip") as report:
    entries = {name: report.read(name) for name in report.namelist()}
manifest = json.loads(entries["manifest.json"])
next(line for line in manifest["artefacts"] if line["name"] == "metadata.json")["bytes"] = 0
entries["manifest.json"] = json.dumps(manifest).encode()
entries["notes.txt"] = b"password=correct-horse-9\n"
entries["core.bin"] = b"\0\1password=correct-horse-9"
with zipfile.ZipFile("added.zip", "w") as report:
    for name in [name for name in entries if name != "manifest.json"] + ["manifest.json"]:
        report.writestr(name, entries[name])
END
exits 0 redact --list added.zip
grep -q '^notes.txt  *25 .*NOT IN THE MANIFEST' out || wrong "it is $(cat out)"
grep -q '^core.bin  *26 .*NOT IN THE MANIFEST' out || wrong "it is $(cat out)"
grep -q '^metadata.json  *[1-9]' out || wrong "it is $(cat out)"
exits 0 redact added.zip -o searched.zip
expect_err '1 replaced'
expect_same 'the rule' password "$(ledger searched.zip notes.txt redactions | jq -r '.[0].rule')"
expect_same 'what was not searched' true "$(ledger searched.zip core.bin not_searched)"
exits 0 verify searched.zip
run show searched.zip
expect_out 'secrets    not searched for in core.bin'
run show --json searched.zip
expect_same 'what show lists' core.bin "$(jq -r '.not_searched[]' out)"
run show clean.zip
if grep -q '^secrets' out; then wrong "it is $(cat out)"; fi
run show plain.zip
expect_out 'secrets    are not replaced in this report'
printf '\0\1\2' >core.bin
echo password=correct-horse-9 >other.pcap
exits 0 capture --pid "$target" --window 0 --attach core.bin --attach other.pcap --log app.log --output binary.zip
expect_err 'not searched for secrets: core.bin, other.pcap'
run show binary.zip
expect_out 'secrets    not searched for in core.bin, other.pcap'
run capture --pid "$target" --window 0 --log app.log --output binary.zip
if grep -q 'not searched' err; then wrong "it is $(cat err)"; fi
run redact --list searched.zip
grep -q '^core.bin .*NOT SEARCHED for secrets' out || wrong "it is $(cat out)"
if grep -q 'NOT IN' out; then wrong "it is $(cat out)"; fi
rm added.zip

fact 'of a corpus of secrets, few are left'
mkdir corpus
"$here/secrets_corpus" "$BUGPACK" corpus 143 >corpus/left || wrong "$(tail -n 1 corpus/left)"

fact 'the list says what is in a report and what was replaced'
exits 0 redact --list clean.zip
expect_out 'replaced: password 1'
expect_out 'command line'
run redact --list plain.zip
expect_out 'NOT REDACTED'
if grep -q 'logs/app.log: ' out; then wrong "it is $(cat out)"; fi
run redact --list searched.zip
expect_out 'not searched for secrets: core.bin'
run redact --list --json searched.zip
expect_schema redact-list.json out
holds '.redacted and (.replaced == ([.artefacts[].redactions[].count] | add)) and
    (.artefacts | map(select(.not_searched).name) == ["core.bin"])' out || wrong "it is $(cat out)"
cat >who.log <<'END'
from fe80::1c2b:3aff:fe4d:5e6f and 52:54:00:12:34:56
by carol_x of host.example, version 10.2.3.4.5, at 127.0.0.1
{"user":"carol_x","home":"\u002fhome\u002fcarol_x"}
END
USER=carol_x run capture --pid "$target" --window 0 --log who.log --output who.zip
USER=carol_x run redact --list who.zip
expect_out '  logs/who.log: 3 lines'
expect_out '      from fe80::1c2b:3aff:fe4d:5e6f and 52:54:00:12:34:56'
python3 - <<'END'
import json, zipfile
which = {"schema": 2, "report_id": "0" * 32}
with zipfile.ZipFile("lost.zip", "w") as report:
    report.writestr("metadata.json", json.dumps(which))
    report.writestr("manifest.json", json.dumps({**which, "complete": True, "redacted": True, "artefacts": [
        {"name": "metadata.json"}, {"name": "lost.bin", "not_searched": True}]}))
with zipfile.ZipFile("elsewhere.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({**which, "machine": "desk-17.example.net"}))
    report.writestr("logs/a.log", "login at desk-17\nlogin at desk-171\nlogin at desk-17.other\n")
    report.writestr("manifest.json", json.dumps({**which, "complete": True, "artefacts": []}))
END
run redact --list lost.zip
expect_out 'not searched for secrets: lost.bin'
rm lost.zip # it is not ours
run redact --list elsewhere.zip
expect_out '  metadata.json: 1 line'
expect_out '  logs/a.log: 2 lines'
run redact --list --json elsewhere.zip
expect_schema redact-list.json out
holds '(.artefacts | map(.name) == ["metadata.json", "logs/a.log"] and all(.in_manifest | not)) and
    (.mentions | map(.lines) == [1, 2]) and .mentions[1].excerpts[0] == "login at desk-17"' out || wrong "it is $(cat out)"
rm elsewhere.zip # without a manifest

fact 'mistakes are said'
exits 2 redact plain.zip
exits 1 redact app.log -o x.zip
printf 'nonsense\n' >bad
exits 2 redact plain.zip --redact bad -o x.zip
expect_err 'rules, line 1: expected "key = value"'
exits 2 redact plain.zip --redact bad -o x.zip --json
expect_same 'the event' 'failed plain.zip' "$(jq -r '"\(.event) \(.path)"' out)"
exits 1 capture --pid "$target" --redact absent
[ ! -e x.zip ] || wrong 'a report was written'

finish
