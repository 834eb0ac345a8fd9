#!/bin/sh
# html: the page of a report, and that nothing in a report breaks out of it.
. "$(dirname "$0")/lib.sh"
need python3
cd "$scratch" || exit 1
python3 "$here/make_reports"

fact 'a page is written to standard output, or to a new file'
exits 0 html bad.zip
[ "$(sed -n '1p;$p' out | tr '\n' ' ')" = '<!DOCTYPE html> </html> ' ] || wrong 'it is no page'
mv out bad.html
exits 0 html bad.zip -o page.html
cmp -s page.html bad.html || wrong 'the two differ'
[ "$(stat -c %a page.html)" = 600 ] || wrong 'others can read it'
exits 1 html bad.zip -o page.html
expect_err 'cannot write "page.html": File exists'
run html bad.zip -o -
cmp -s page.html out || wrong 'the page is not on standard output'
[ ! -e ./- ] || wrong '"-" is a file'

fact 'what is on the page is what is in the report'
for text in 'deadlock: a (1) and b (2) wait for each other' 'CPU, at most 19.0 %' 'no answer' ' in f?' \
    'slow' '<br>Next: stacks.txt shows where' 'data:image/png;base64,iVBORw0KGgo' 'Messages over 29.0 s' 'draw' 'timed_out' 'trigger</text>'; do
    grep -q "$text" bad.html || wrong "there is no '$text'"
done
python3 - <<'END' || wrong 'the picture is another one'
import base64, re, zipfile
text = open("bad.html", encoding="utf-8").read()
picture = base64.b64decode(re.search(r"base64,([A-Za-z0-9+/=]*)\"", text).group(1), validate=True)
assert picture == zipfile.ZipFile("bad.zip").read("screenshot.png")
END

fact 'messages are counted in the bar of their own channel, also over years'
python3 -c 'import json, zipfile
lines = [(2001, "a"), (2013, "b"), (2026, "a")]
with zipfile.ZipFile("years.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"timestamp": "2026-01-02T03:04:05Z"}))
    report.writestr("traffic-index.jsonl", "".join(json.dumps(
        {"time": f"{year}-01-01T00:00:00Z", "channel": name, "direction": "sent", "bytes": 1}) + "\n" for year, name in lines))'
exits 0 html years.zip
rm years.zip # it is not ours
[ "$(grep -o 'row">[ab]<\|rect x="[0-9]*"' out | tr '\n' ' ')" = 'row">a< rect x="0" rect x="236" row">b< rect x="112" ' ] ||
    wrong "the bars are $(grep -o 'row">[ab]<\|rect x="[0-9]*"' out)"
grep -q '<dt>Written</dt><dd>2026-01-02T03:04:05Z</dd>' out || wrong 'the page does not say when the report was written'

fact 'messages without a time, and a clock that was set back, leave the others where they are'
python3 -c 'import json, zipfile
lines = [("a", None), ("b", 10), ("b", 5), ("b", 8)]
with zipfile.ZipFile("back.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("traffic-index.jsonl", "".join(json.dumps({"channel": name, "direction": "sent", "bytes": 1,
        **({"time": f"2026-01-01T00:00:{second:02}Z"} if second else {})}) + "\n" for name, second in lines))'
run html back.zip
rm back.zip # it is not ours
grep -q 'Messages over 5.0 s' out || wrong "the time is $(grep -o 'Messages over [^<]*' out)"
[ "$(grep -o 'row">[ab]<\|rect x="[0-9]*"' out | tr '\n' ' ')" = 'row">a< row">b< rect x="0" rect x="140" rect x="236" ' ] ||
    wrong "the bars are $(grep -o 'row">[ab]<\|rect x="[0-9]*"' out)"

fact 'of many message types the first are listed, and the others counted'
python3 -c 'import json, zipfile
with zipfile.ZipFile("types.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("traffic-index.jsonl", "".join(json.dumps({"channel": "a", "direction": "sent", "bytes": 2, **type}) + "\n"
        for type in [{}] + [{"type": i} for i in range(60)] + [{"type": 0}] * 3))'
run html types.zip
rm types.zip # it is not ours
for row in 'no type</th><td class="number">1</td><td class="number">2' '0</th><td class="number">4</td><td class="number">8' \
    'further types</th><td class="number">13</td><td class="number">26'; do
    grep -q "<th scope=\"row\">$row</td>" out || wrong "there is no '$row'"
done

fact 'no text of a report is markup, or obeyed'
exits 0 html everywhere.zip
mv out everywhere.html
if grep -q '<script\|<img src=x\|<b>' everywhere.html; then wrong 'there is markup of the report'; fi
if LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" everywhere.html; then wrong 'there are controls'; fi
if grep -q "$(printf '\342\200\256')" everywhere.html; then wrong 'there is a bidirectional control'; fi
grep -q 'script&#62;alert(1)' everywhere.html || wrong 'the text is missing'

fact 'what is damaged, too large or foreign costs itself'
for zip in plain broken empty bomb; do
    exits 0 html --max-bytes 2M $zip.zip
    mv out $zip.html
done
grep -q 'logs/a.log is not shown: its 3145728 bytes' bomb.html || wrong 'the large entry is not named'
exits 1 html page.html
exits 2 html

fact 'a page that cannot be written whole is removed'
if [ -w /dev/full ] || not_tried 'a full disk (there is no /dev/full)'; then
    "$BUGPACK" html bad.zip >/dev/full 2>err && wrong 'a full disk is no failure'
    grep -q 'cannot write the page: No space left' err || wrong "it says $(cat err)"
fi
(ulimit -f 1; "$BUGPACK" html bad.zip -o cut.html 2>err) && wrong 'a file over the limit is no failure'
[ ! -e cut.html ] || wrong 'half a page is left'

fact 'a browser shows it without a message, a request or a violation of accessibility'
start sleep 300
run capture --pid "$pid" --output real.zip
run html real.zip -o real.html
expect_page bad.html everywhere.html broken.html empty.html real.html
# They are not ours.
rm -f bad.zip everywhere.zip plain.zip broken.zip bomb.zip crash.zip empty.zip
finish
