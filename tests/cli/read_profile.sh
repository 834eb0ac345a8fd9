#!/bin/sh
# A profile in a report: what show, html and diff say of it, and that it may be hostile.
. "$(dirname "$0")/lib.sh"
need jq python3
cd "$scratch" || exit 1
python3 "$here/make_profiles"

fact 'show says where each thread was, the busiest first'
COLUMNS=200 run show spin.zip
expect_status 0
sed -n '/^Where the CPU time went  \[profile.folded\]/,/^$/p' out >part
for line in '401 samples in 2.00 s; 3 more were lost' '   worker 50 %: 60 % in \[libfoo.so+0x1234\] < take_turn' \
    '   pricer 49 %: 95 % in count_primes < price_all < serve < main' '   idle 1 %: 100 % in main'; do
    grep -q "^$line\$" part || wrong "no '$line' in: $(cat part)"
done

fact 'a spin is named with the place, and how many samples say so'
grep -q '^ ! thread 42 "pricer" used 98 % of one CPU for 2.0 s; 95 % of its 198 samples are in count_primes, called by price_all; it read 0 bytes, and wrote 0  \[profile.folded\]$' out ||
    wrong "it says $(cat out)"
grep -q "thread 43 \"worker\".*; 60 % of the 200 samples of threads of its name are in \[libfoo.so+0x1234\], called by take_turn" out ||
    wrong 'two threads of one name are one'
if grep -q 'next: capture --stacks=all' out; then wrong 'it says how to find what it has found'; fi

fact '--json has the same, with whole names'
exits 0 show --json spin.zip
holds '.profile.samples == 401 and .profile.lost == 3 and .profile.window_ms == 2003
    and (.profile.threads | map(.name, .samples, .share) == ["worker", 200, 0.6, "pricer", 198, 0.9495, "idle", 3, 1])
    and .profile.threads[1].path == ["count_primes", "price_all", "serve", "main"]
    and (.findings | map(select(.id == "spin")) | length == 2 and all(.entry == "profile.folded" and .path == null and .next == null))' \
    out || wrong "it is $(cat out)"

fact 'the page has a flame graph, and a table that says the same without it'
exits 0 html spin.zip -o spin.html
python3 - <<'END' || wrong 'the flame graph is another one'
import html, re
page = open("spin.html", encoding="utf-8").read()
boxes = {}
found = re.findall(
        r'<svg x="([0-9.]+)%" y="(\d+)" width="([0-9.]+)%" height="18"(?: class="([a-z ]*)")?><title>(.*?)</title>', page)
for x, y, width, kind, title in found:
    boxes[html.unescape(title).rsplit(":", 1)[0]] = (float(x), int(y) // 18, float(width), kind)
assert boxes["worker"] == (0, 0, 49.88, "hot"), boxes
assert boxes["pricer"] == (49.88, 0, 49.38, "hot"), boxes
assert boxes["count_primes"] == (49.88, 7, 46.88, "hot"), boxes
assert boxes["[libfoo.so+0x1234]"][3] == "hot" and boxes["pthread_mutex_lock"][3] == "", boxes
assert boxes["std::vector<int, std::allocator<int> >::at(unsigned long)"][2:] == (1.5, "thin"), boxes
assert len(found) == 20, len(found)
rows = re.findall(r'<th scope="row"><code>(.*?)</code></th><td class="number">(\d+)</td><td class="number">([0-9.]+) %', page)
assert rows[:3] == [("count_primes", "188", "46.9"), ("[libfoo.so+0x1234]", "120", "29.9"), ("pthread_mutex_lock", "80", "20.0")], rows
END
grep -q '<li>pricer 49 %: 95 % in count_primes &#60; price_all' spin.html || wrong 'the path is missing'

fact 'a page draws no more than 2,000 boxes, and what is narrow is one'
exits 0 html wide.zip -o wide.html
count=$(grep -c '^<svg x=' wide.html)
if [ "$count" -gt 2000 ] || [ "$count" -le 1000 ]; then wrong "there are $count boxes"; fi
grep -q '<title>narrower ones: ' wide.html || wrong 'nothing stands for what is narrow'

fact 'a hostile profile costs what is wrong with it, and says so'
COLUMNS=200 LC_ALL=C run show hostile.zip
expect_status 0
grep -q '4 of its 7 lines are malformed, and left out  \[profile.folded\]' out || wrong "it says $(cat out)"
grep -q '104 samples$' out || wrong "it says $(cat out)"
if sed 's/…//g; s/×//g' out | LC_ALL=C grep -q '[^ -~]'; then wrong 'there are control or foreign bytes in a pipe'; fi
run show --json hostile.zip
holds '.profile.samples == 104 and (.profile.threads | map(.path | length) | max) == 511
    and (.profile.threads | map(.name | length) | max) <= 255' out || wrong 'it is not bounded'
exits 0 html hostile.zip -o hostile.html
if grep -q '<script\|<img src=x\|onerror=alert(1)>' hostile.html; then wrong 'there is markup of the report'; fi
[ "$(wc -c <hostile.html)" -lt 1000000 ] || wrong "the page has $(wc -c <hostile.html) bytes"
exits 0 html cut.zip -o cut.html

fact 'diff names the functions whose share has changed, the largest change first'
exits 1 diff spin.zip later.zip
sed -n '/^profile.folded/,/^$/p' out >part
grep -q '^  functions\[count_primes\].self_percent: 46.9 .* 29.9 ' part || wrong "it says $(cat out)"
grep -q '^  functions\[\[kernel\]\].self_percent: 1.0 .* 18.0 ' part || wrong "it says $(cat out)"
run diff --json spin.zip later.zip
holds '.changes | map(select(.entry == "profile.folded")) | .[:2] | map(.path, .before, .after, .delta) ==
    ["functions[[kernel]].self_percent", 1, 18, 17, "functions[count_primes].self_percent", 46.9, 29.9, -17]' out ||
    wrong "it is $(jq -c .changes out)"
exits 0 diff spin.zip spin.zip

fact 'the documents match their schema'
for zip in spin hostile; do
    "$BUGPACK" show --json $zip.zip >$zip.json
    expect_schema show.json $zip.json
done

fact 'a browser shows it without a message, a request or a violation of accessibility'
expect_page spin.html wide.html hostile.html
# They are not ours.
rm -f spin.zip later.zip hostile.zip cut.zip wide.zip
finish
