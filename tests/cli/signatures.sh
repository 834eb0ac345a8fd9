#!/bin/sh
# Signatures of 6,000 reports about 160 bugs, of 2,000 machines and 20 builds: see make_sick_fleet.
if [ "$(df -kP /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 1000000 ] 2>/dev/null && [ -w /dev/shm ]; then
    export TMPDIR=/dev/shm
fi
. "$(dirname "$0")/lib.sh"
need python3 jq
cd "$scratch" || exit 1

fact 'of the pairs with one signature, and of those about one bug, over 95 of 100 are both'
python3 "$here/make_sick_fleet" 6000 || wrong 'no reports were made'
exits 0 index reports
python3 "$here/judge_signatures" out truth.json >figures || wrong 'there is no line for a report'
holds '.reports == 6000 and .bugs == 160 and .precision > 0.95 and .recall > 0.95 and .weak == 0' figures ||
    wrong "they are $(cat figures)"
cat figures

fact 'show prints the signature of the index'
for path in $(jq -r .path out | awk 'NR % 600 == 1'); do
    jq --arg path "$path" 'select(.path == $path) | .signature' out >wanted
    "$BUGPACK" show --json "$path" | jq .signature >said
    cmp -s wanted said || wrong "show prints $(cat said), and index $(cat wanted)"
done
rm -r reports # they have no manifest
finish
