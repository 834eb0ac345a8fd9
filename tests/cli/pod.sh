#!/bin/sh
# The steps of docs/ADMINISTRATION.md, Kubernetes, with namespaces in place of a cluster: a container with a root, user
# and processes of its own, and another one that joins its processes, with the rights that each profile gives.
. "$(dirname "$0")/lib.sh"
need unzip jq unshare nsenter setpriv
cd "$scratch" || exit 1
[ "$(id -u)" = 0 ] || skip 'only root makes containers here'
unshare --mount --pid --uts --ipc --net --cgroup --fork true 2>/dev/null || skip 'there can be no new namespaces here'

for root in target tools; do
    mkdir -p $root/usr $root/proc $root/dev $root/etc $root/old
    mkdir -m 1777 $root/tmp
    for dir in bin lib lib64 sbin; do
        ln -s usr/$dir $root/$dir
    done
    echo "ID=$root" >$root/etc/os-release
done
chmod 755 "$scratch"
# What a container's runtime does before it starts a program.
cat >enter <<'END'
cd "$1" && shift
mount --bind . .
cd "$PWD"
mount --rbind /usr usr
mount -t proc proc proc
mount -t tmpfs tmpfs dev
mknod -m 666 dev/null c 1 3
mkdir -m 1777 dev/shm
pivot_root . old
umount -l old
exec "$@"
END
docker=+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap

start unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child sh -eu enter target \
    setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs sleep 300
# shellcheck disable=SC2016 # await expands it
await 'first=$(cat /proc/$pid/task/$pid/children) && [ "$(cat /proc/${first% }/comm)" = sleep ]'
first=${first% }

# join PROFILE COMMAND...: in an ephemeral container. Its standard output is PROFILE.zip.
join() {
    profile=$1
    shift
    case $profile in
    general) set -- --bounding-set="-all,$docker,+sys_ptrace" "$@" ;;
    baseline) set -- --bounding-set="-all,$docker" "$@" ;;
    restricted) set -- --reuid 1000 --regid 1000 --clear-groups --bounding-set=-all --no-new-privs "$@" ;;
    esac
    timeout 60 nsenter --target "$first" --pid --uts --ipc --net --cgroup unshare --mount sh -eu enter tools \
        setpriv --inh-caps=-all "$@" >"$profile.zip" 2>err
    status=$?
}

fact 'the command comes into the container by standard input'
join general sh -c 'cat >/tmp/bugpack && chmod 755 /tmp/bugpack' <"$BUGPACK"
expect_status 0

for profile in general restricted; do
    fact "with profile $profile the process of the other container is seen, and what is below its root"
    join "$profile" /tmp/bugpack capture --pid 1 --window 10ms --output -
    # A kernel that forbids more than this may leave something out.
    [ $status = 0 ] || expect_status 3
    exits 0 verify "$profile.zip"
    expect_same 'the process' '1 sleep' "$(value "$profile.zip" process.json '"\(.pid) \(.name)"')"
    expect_same 'the distribution' target "$(value "$profile.zip" system.json .distribution.id)"
done
expect_same 'the executable' "$(realpath "$(command -v sleep)")" "$(value general.zip system.json .executable.path)"

fact 'without the right to look at it, nothing of ours is said to be of the process, and the manifest says what is missing'
join baseline /tmp/bugpack capture --pid 1 --window 10ms --output -
expect_status 3
expect_err 'in a container allow it CAP_SYS_PTRACE'
expect_same 'the process' '1 sleep' "$(value baseline.zip process.json '"\(.pid) \(.name)"')"
expect_same 'the distribution' null "$(value baseline.zip system.json .distribution)"
expect_like 'the reason' '* files could not be read: Permission denied' "$(ledger baseline.zip system.json reason)"

fact 'the process is found by its name, and a container without a place for temporary files has one in memory'
mv tools/tmp/bugpack tools && rm -r tools/tmp
join general /bugpack capture --name sleep --window 10ms --output -
expect_status 1
expect_err 'cannot make a directory "/tmp/bugpack-'
join general env TMPDIR=/dev/shm /bugpack capture --name sleep --window 10ms --output -
exits 0 verify general.zip
expect_same 'the process' '1 sleep' "$(value general.zip process.json '"\(.pid) \(.name)"')"

fact 'where the mounts are ours, so is the distribution'
"$BUGPACK" capture --pid $$ --window 0 --output own.zip >/dev/null 2>&1
if can_be_nobody || not_tried 'the distribution as seen by another user (no setpriv)'; then
    as_nobody "$(reachable "$BUGPACK")" capture --pid $$ --window 0 --output - >nobody.zip 2>err
    expect_same 'the distribution' "$(value own.zip system.json .distribution)" "$(value nobody.zip system.json .distribution)"
fi

finish
