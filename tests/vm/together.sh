#!/bin/sh
# together.sh CPUS NAME...: what tests/vm/guest/NAME do, one after the other on one machine, and then what
# NAME.sh make of it. A disk is there for all of them.
. "$(dirname "$0")/lib.sh"
cpus=$1 wanted=
shift
for name in "$@"; do
    if BUGPACK_VM_ASKED=1 sh "$here/$name.sh" >said; then
        wanted="$wanted $name"
    else
        echo "not tried: $name: $(sed -n 's/^skipped: //p' said)"
    fi
done
[ -n "$wanted" ] || skip 'nothing can be tried here'
make_disk
deadline_secs=900
# shellcheck disable=SC2086 # words
run_machine "$cpus" disk.img $wanted
for name in $wanted; do
    echo "== $name"
    BUGPACK_VM_RESULTS=$scratch/results sh "$here/$name.sh" || wrong "$name has failed"
done
finish
