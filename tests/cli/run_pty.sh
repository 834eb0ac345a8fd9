#!/bin/sh
# bugpack run on terminals that misbehave, which run_pty.py makes: hang-ups, stops, shells that change them.
. "$(dirname "$0")/lib.sh"
need python3
cd "$scratch" || exit 1
mkdir reports

fact 'the facts of run_pty.py'
timeout 120 python3 -B "$here/run_pty.py" "$BUGPACK" >out 2>&1
status=$?
cat out
[ "$status" -ne 77 ] || skip 'there are no pseudo-terminals here'
expect_status 0

finish
