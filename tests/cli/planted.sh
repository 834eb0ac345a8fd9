#!/bin/sh
# 400 secrets of 40 shapes in every input: none is in any byte of a report, nor in its name.
. "$(dirname "$0")/lib.sh"
need unzip strings
: "${PLANTED_HOST:?name the program that plants}"

cd "$scratch" || exit 1
mkdir runtime
export XDG_RUNTIME_DIR="$scratch/runtime" PLANTED_HOST

fact 'reports are written of every input'
sh "$here/plant" >out 2>err || wrong "planting ended with $?"
{
    "$PLANTED_HOST" secrets
    echo 4f7c2a91b07dd7e1
} >planted
expect_same 'the inputs that have secrets' 6 "$(grep -lF -f planted inputs/* | wc -l | tr -d ' ')"
[ "$(find reports -name '*.zip' | wc -l)" -gt 100 ] || wrong 'there are few reports'
for kind in bugreport pedantic disconnect crash; do
    find reports -name "*-$kind-*" | grep -q . || wrong "there is no report of the kind $kind"
done

fact 'no secret is in any byte of them, nor in a name'
sh "$here/find_planted" planted reports || wrong 'there are secrets'

fact 'and they are found where nothing was replaced'
mkdir plain
cp inputs/plain.zip plain
if sh "$here/find_planted" planted plain >out; then
    wrong 'none is found'
fi
: >err
finish
