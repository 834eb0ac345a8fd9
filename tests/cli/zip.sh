#!/bin/sh
# The zip itself: what other people's programs make of it.
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1
start python3 -c 'import threading, time
for i in range(5): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
open("ready", "w").close()
time.sleep(300)'
target=$pid
# While it starts, it reads directories, whose positions are of more bits than jq keeps.
await '[ -e ready ]'
seq 1 20000 >count.log
head -c 100000 /dev/urandom >noise
: >nothing
printf '{"state":"\303\274"}' >state.json
captures 0 --log count.log --attach noise --attach "$(printf '\303\274ber/\346\274\242.bin')=noise" \
    --attach nothing --session state.json

fact 'Info-ZIP finds nothing wrong, and gives every byte back'
unzip -tq "$zip" >out 2>&1 || wrong 'unzip -t fails'
mkdir unpacked
unzip -q "$zip" -d unpacked >out 2>err || wrong 'unzip fails'
cmp -s unpacked/noise noise || wrong 'the attachment differs'
cmp -s unpacked/logs/count.log count.log || wrong 'the log differs'
cmp -s "$(printf 'unpacked/\303\274ber/\346\274\242.bin')" noise ||
    [ "$(find unpacked -name '*.bin' -exec cmp -s {} noise \; -print | wc -l)" -eq 1 ] ||
    wrong 'the attachment with a foreign name differs'

fact 'Python finds nothing wrong, and only stored and deflated entries with UTF-8 names'
python3 - "$zip" >out 2>err <<'END' || wrong 'python3 zipfile disagrees'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as report:
    assert report.testzip() is None
    names = report.namelist()
    assert names[-1] == "manifest.json", names
    assert "\u00fcber/\u6f22.bin" in names, names
    assert len(set(name.lower() for name in names)) == len(names)
    for entry in report.infolist():
        assert entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), entry
        assert entry.external_attr >> 16 == 0o100600, (entry, oct(entry.external_attr))
        assert not entry.filename.endswith("/"), entry
    assert report.getinfo("noise").compress_type == zipfile.ZIP_STORED
    assert report.getinfo("logs/count.log").compress_type == zipfile.ZIP_DEFLATED
END

fact '7-Zip finds nothing wrong'
if command -v 7z >/dev/null 2>&1 || not_tried '7z is not installed'; then
    7z t "$zip" >out 2>err || wrong '7z t fails'
fi

fact 'every JSON entry is what jq and Python take, and is indented by two spaces'
entries "$zip" | grep '\.json$' >names
[ "$(wc -l <names)" -ge 6 ] || wrong "the JSON entries are $(tr '\n' ' ' <names)"
while read -r name; do
    unzip -p "$zip" "$name" >entry
    holds . entry >out 2>err || wrong "jq refuses $name"
    python3 -c 'import json, sys
json.load(open("entry", encoding="utf-8"), parse_constant=lambda word: sys.exit(word))' 2>err ||
        wrong "Python refuses $name"
    # jq 1.6 keeps numbers as doubles, which all of these are exact in.
    jq . entry >laid_out
    cmp -s entry laid_out || wrong "$name is not laid out by two spaces"
done <names

fact 'the ledger has the size and the SHA-256 of every entry'
python3 - "$zip" >out 2>err <<'END' || wrong 'it does not'
import hashlib, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as report:
    ledger = json.loads(report.read("manifest.json"))
    sizes = {entry.filename: entry.file_size for entry in report.infolist()}
    del sizes["manifest.json"]
    told = {line["name"]: line["bytes"] for line in ledger["artefacts"]
            if line["status"] != "omitted"}
    assert sizes == told, (sizes, told)
    sums = {name: hashlib.sha256(report.read(name)).hexdigest() for name in sizes}
    told = {line["name"]: line["sha256"] for line in ledger["artefacts"] if "sha256" in line}
    assert sums == told, (sums, told)
    assert ledger["missing"] == 0 and ledger["complete"] is True
    assert ledger["report_id"] == json.loads(report.read("metadata.json"))["report_id"]
END

fact 'times are UTC in the names and the JSON, and right in the zip, wherever it is written'
for zone in Pacific/Kiritimati America/St_Johns '<-12>+12' :/nonsense UTC; do
    TZ=$zone run capture --pid "$target" --window 0 -o reports
    expect_status 0
    TZ=$zone python3 - "$(cat out)" 2>err <<'END' || wrong "in $zone they are not"
import calendar, datetime, json, os, re, struct, sys, time, zipfile
now = time.time()
path = sys.argv[1]
def close_to_now(moment, what):
    assert abs(moment - now) < 60, (what, moment, now)
stamp = re.search(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", os.path.basename(path)).group()
close_to_now(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H-%M-%SZ")), "name")
with zipfile.ZipFile(path) as report:
    metadata = json.loads(report.read("metadata.json"))
    for key in ("timestamp", "triggered_at"):
        moment = datetime.datetime.strptime(metadata[key][:19] + "Z", "%Y-%m-%dT%H:%M:%SZ")
        assert metadata[key].endswith("Z")
        close_to_now(calendar.timegm(moment.timetuple()), key)
    for entry in report.infolist():
        close_to_now(calendar.timegm(entry.date_time + (0, 0, 0)), entry.filename)
        extra, extended = entry.extra, None
        while len(extra) >= 4:
            tag, size = struct.unpack("<HH", extra[:4])
            if tag == 0x5455:
                extended = struct.unpack("<l", extra[5:9])[0]
            extra = extra[4 + size:]
        close_to_now(extended, entry.filename + " extended")
END
done

finish
