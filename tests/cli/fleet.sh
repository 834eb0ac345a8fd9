#!/bin/sh
# The queries of docs/fleet on the index of 4,000 reports: DuckDB and two ClickHouse servers must
# give the answers that their maker knows.

# So many files take a third of the time in memory.
if [ "$(df -kP /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 1000000 ] 2>/dev/null && [ -w /dev/shm ]; then
    export TMPDIR=/dev/shm
fi
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
need python3 node setpriv clickhouse-server
[ -d "${BUGPACK_SCHEMA_NODE_MODULES:-}/@duckdb" ] ||
    skip 'DuckDB is not installed; tests/schema/install does it'
cd "$scratch" || exit 1

# indexed COUNT DIRECTORY: an index of so many reports, in `out`.
indexed() {
    timeout 200 "$BUGPACK" index "$2" >out 2>err
    expect_status 0 $?
    expect_no_err
    expect_same 'lines' "$1" "$(wc -l <out | tr -d ' ')"
}

fact 'an index has all reports of a directory'
start sleep 600
target=$pid
captures 0 --stacks none
mkdir fleet
cd fleet || exit 1
python3 "$here/make_fleet" "$zip" 4000 || wrong 'no reports were made'
mkdir reports
mv first reports
scratch=$PWD indexed 3600 reports
mv out index.jsonl
mv later reports
scratch=$PWD indexed 400 reports/later
mv out new.jsonl

fact 'both engines give the answers'
timeout 200 node "$here/fleet.mjs" >out 2>err || wrong "$(cat out)"
cat out

# Some for the schemas.
find reports -name '*.zip' ! -name '*00.zip' -delete
rm -r reports/first/*[1-9]
cd ..
finish
