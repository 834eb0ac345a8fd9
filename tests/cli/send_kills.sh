#!/bin/sh
# bugpack send --queue under kill -9: each of REPORTS reports arrives once or more, whatever KILLS senders
# and those who add to the queue were at.
. "$(dirname "$0")/lib.sh"
need python3 unzip
cd "$scratch" || exit 1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HOME="$scratch" XDG_STATE_HOME="$scratch/state"
mkdir -p server reports
start sleep 1000
target=$pid
capture --window 0
mv "$zip" one.zip
start python3 "$source_dir/tests/support/report_server.py" "$scratch/server"
await '[ -s server/port ]'
http=http://127.0.0.1:$(cat server/port)
"$BUGPACK" send -y --to "$http/put/x" one.zip >out 2>err || ! grep -q libcurl err || skip "$(cat err)"
for consent in ask always; do # who adds does not send
    printf '[destination "s"]\nurl = %s/put/\nconsent = %s\n[queue]\nmaxCount = 100000\n' "$http" $consent >$consent
    chmod 600 $consent
done
: >server/requests

fact 'every report arrives, whatever was killed'
REPORTS=${REPORTS:-60} KILLS=${KILLS:-16} python3 - "$BUGPACK" >out 2>err <<'END' || wrong "$(cat out)"
import json, os, random, re, subprocess, sys, time, zipfile

bugpack, count, kills = sys.argv[1], int(os.environ["REPORTS"]), int(os.environ["KILLS"])
random.seed(38)
with zipfile.ZipFile("one.zip") as made:
    entries = {name: made.read(name) for name in ("metadata.json", "manifest.json")}
old_id = json.loads(entries["metadata.json"])["report_id"].encode()
ids = [f"{number:032x}" for number in range(1, count + 1)]
paths = []
for report_id in ids:
    paths.append(f"reports/r{report_id[-5:]}.zip")
    with zipfile.ZipFile(paths[-1], "w") as out:
        for name, text in entries.items():
            out.writestr(name, text.replace(old_id, report_id.encode()))


def queued():
    try:
        return {name[:32] for name in os.listdir("state/bugpack/queue/s") if name.endswith(".zip")}
    except FileNotFoundError:
        return set()


def arrived():
    with open("server/requests", encoding="utf-8") as lines:
        return {json.loads(line)["headers"]["idempotency-key"] for line in lines if line.endswith("\n")}


def begin(config, *arguments):
    return subprocess.Popen([bugpack, "send", "--queue", "--config", config, *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_after(process, path, grown):
    """Kills it, unless it ends, once the file or directory has grown so often, and a little later."""
    def size():
        return os.stat(path).st_size // 300 if os.path.isfile(path) else len(queued())
    first = size()
    while process.poll() is None and size() < first + grown:
        time.sleep(0.0005)
    time.sleep(random.random() * 0.004)
    process.kill()
    process.wait()


added = 0
for number in range(kills):
    if number % 4 == 0:  # who adds is killed as well, and does it again
        batch = paths[added:added + 4 * count // kills]
        kill_after(begin("ask", "--to", "s", *batch), "reports", random.randrange(len(batch)))
        added += len(batch)
        assert begin("ask", "--to", "s", *batch).wait() == 3
    else:
        kill_after(begin("always", "--retry"), "server/requests", random.randrange(8))
    lost = set(ids[:added]) - queued() - arrived()
    assert not lost, f"lost: {sorted(lost)[:5]}"
assert begin("ask", "--to", "s", *paths[added:]).wait() == 3
assert begin("always", "--retry").wait() == 0
missing = set(ids) - arrived()
assert not missing, f"{len(missing)} did not arrive: {sorted(missing)[:5]}"
assert not queued(), "the queue is not empty"
left = os.listdir("state/bugpack/queue/s")
assert all(re.fullmatch(r"\.bugpack-[0-9a-f]{32}\.tmp|.*\.json", name) for name in left), left
END

fact 'what arrived is what was sent'
python3 - >out 2>err <<'END' || wrong 'one is damaged'
import os, zipfile
for name in os.listdir("server/bodies"):
    assert zipfile.ZipFile(f"server/bodies/{name}").testzip() is None, name
END
finish
