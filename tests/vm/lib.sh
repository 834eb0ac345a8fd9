# What every test in a virtual machine begins with. Source it: . "$(dirname "$0")/lib.sh"
# shellcheck shell=sh disable=SC2034,SC2154 # some names are for the tests, some are from cli/lib.sh
#
# The machine is a kernel, a file system in memory with bugpack, the workers and a shell, and a disk
# on which it leaves its results. It has no network, and needs neither privileges nor KVM. What it
# does is tests/vm/guest/NAME; what came of it is judged here, outside.
#
# With BUGPACK_VM_ROOT it is a machine with another processor, aarch64: the programs are for that, and
# what they are linked with is below that directory (tests/cross/fetch-root).
. "$(dirname "$0")/../cli/lib.sh"

# mke2fs and its kin are in nobody's path but root's.
PATH=$PATH:/usr/sbin:/sbin
: "${BUGPACK_VM_KERNEL:?name the kernel to boot}"
if [ -z "${BUGPACK_VM_ROOT:-}" ]; then
    [ "$(uname -m)" = x86_64 ] || skip "the kernel to boot is for x86_64, and this is $(uname -m)"
    need qemu-system-x86_64 busybox ldd ldconfig
    emulator=qemu-system-x86_64 console=ttyS0
    busybox=$(command -v busybox)
    libdw=$(ldconfig -p | sed -n 's/.*libdw\.so\.1 .*x86-64.* => //p' | head -n 1)
else
    need qemu-system-aarch64 readelf
    emulator='qemu-system-aarch64 -machine virt -cpu cortex-a72' console=ttyAMA0
    busybox=$BUGPACK_VM_ROOT/bin/busybox
    libdw=$(find "$BUGPACK_VM_ROOT" -name libdw.so.1)
fi
need cpio tar jq unzip
[ -r "$BUGPACK_VM_KERNEL" ] ||
    skip "there is no kernel to boot; src/scripts/fetch-kernel fetches one"
cd "$scratch" || exit 1
deadline_secs=300

# add FILE NAME: a program goes into the machine as /bin/NAME, and what it is linked with.
add() {
    cp "$1" "root/bin/$2" || exit 1
    add_libraries "$1"
}

add_libraries() {
    if [ -n "${BUGPACK_VM_ROOT:-}" ]; then
        add_below_root "$1"
        return
    fi
    ldd "$1" 2>/dev/null | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p' >libraries
    while IFS= read -r library; do
        add_library "$library"
    done <libraries
}

# add_below_root FILE: what the file says that it needs, and what that needs in turn.
add_below_root() {
    for needed in $(readelf -dl "$1" |
        sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*program interpreter: .*\/\(.*\)\]/\1/p'); do
        [ ! -e "root/lib/$needed" ] || continue
        found=$(find "$BUGPACK_VM_ROOT" "${BUGPACK%/*}/../packaging" -name "$needed" 2>/dev/null | head -n 1)
        [ -n "$found" ] || continue
        add_library "$found"
        add_below_root "$found"
    done
}

# Under the same path as here, since that is where the program will look. What was built, or is for
# another processor, goes where the loader looks last: its own place may be one that the machine mounts over.
add_library() {
    case ${BUGPACK_VM_ROOT:+another }$1 in
    /lib/* | /lib64/* | /usr/*) to=$1 ;;
    *) to=/lib/${1##*/} ;;
    esac
    [ ! -e "root$to" ] || return 0
    mkdir -p "root${to%/*}"
    cp -L "$1" "root$to" || exit 1
}

# make_machine NAME...: what tests/vm/guest/NAME will find, as the file `initrd`.
make_machine() {
    mkdir -p root/bin root/lib root/proc root/sys root/dev root/tmp root/results root/mnt root/etc root/home root/guest
    chmod 755 root
    echo 'root:x:0:0::/:/bin/sh' >root/etc/passwd
    echo 'nobody:x:65534:65534::/home:/bin/sh' >>root/etc/passwd
    printf 'root:x:0:\nnogroup:x:65534:\n' >root/etc/group
    add "$busybox" busybox
    ln -s busybox root/bin/sh
    add "$BUGPACK" bugpack
    for kind in plain shared static; do
        eval "worker=\${ALLOC_WORKER_$(echo "$kind" | tr '[:lower:]' '[:upper:]'):-}"
        [ -z "$worker" ] || add "$worker" "alloc_worker_$kind"
    done
    [ -z "${FAULTS_HOST:-}" ] || add "$FAULTS_HOST" faults_host
    [ -z "${HANG_HOST:-}" ] || add "$HANG_HOST" hang_host
    [ -z "${STACK_WORKER:-}" ] || add "$STACK_WORKER" stack_worker
    [ -z "${CRASH_TARGET:-}" ] || add "$CRASH_TARGET" crash_target
    # bugpack loads it by name, so no program tells of it.
    if [ -n "$libdw" ]; then
        add_library "$libdw"
        add_libraries "$libdw"
    fi
    cp "$here/guest/init" root/init
    for name in "$@"; do
        cp "$here/guest/$name" root/guest
        echo "$name" >>root/parts
    done
    chmod 755 root/init
    (cd root && find . | cpio --quiet -o -H newc -R 0:0) >initrd || exit 1
    rm -rf root
    truncate -s 64M results.img
}

# machine CPUS [DISK]: runs it until it switches itself off, or for deadline_secs; the disk has an
# ext4. Not with KVM, which few places have: everywhere it should be the same machine. Its kernel
# would check its timer against a delay that it counts itself, and panic where QEMU has to wait for
# a processor.
machine() {
    cpus=$1
    set -- ${2:+-drive "if=none,id=disk,format=raw,file=$2"} \
        ${2:+-device nvme-ns,drive=disk,nsid=2}
    # shellcheck disable=SC2086 # an emulator and its options
    timeout --foreground -k 1 "$deadline_secs" $emulator -accel tcg -smp "$cpus" -m 384 \
        -nodefaults -no-user-config -no-reboot -display none -nic none -pidfile qemu.pid \
        -serial file:console -kernel "$BUGPACK_VM_KERNEL" -initrd initrd \
        -append "console=$console quiet panic=-1 no_timer_check random.trust_cpu=on mitigations=off" \
        -device nvme,serial=bugpack -drive if=none,id=results,format=raw,file=results.img \
        -device nvme-ns,drive=results,nsid=1 "$@" </dev/null >qemu.log 2>&1
}

# make_disk: disk.img, with an ext4.
make_disk() {
    need mke2fs
    truncate -s 48M disk.img
    mke2fs -q -t ext4 -m 0 disk.img 2>mke2fs.log || skip "mke2fs cannot make an image: $(cat mke2fs.log)"
}

# run_machine CPUS DISK NAME...: makes the machine, runs it, and unpacks what each has left into results/NAME.
run_machine() {
    fact 'the machine starts, does its part and switches itself off'
    cpus=$1 disk=$2
    shift 2
    make_machine "$@"
    # shellcheck disable=SC2086 # none, or one
    machine "$cpus" $disk || wrong "the machine ended with status $?"
    mkdir results
    tar -xf results.img -C results 2>/dev/null || wrong 'it has left no results'
    rm -f results.img initrd
}

# boot NAME CPUS [DISK]: what the machine has left is in results/; it has run where BUGPACK_VM_RESULTS has what
# it left, and need not where BUGPACK_VM_ASKED only asks whether it could.
boot() {
    [ -z "${BUGPACK_VM_ASKED:-}" ] || exit 0
    if [ -z "${BUGPACK_VM_RESULTS:-}" ]; then
        run_machine "$2" "${3:-}" "$1"
        mv results all
    fi
    ln -s "${BUGPACK_VM_RESULTS:-$scratch/all}/$1" results
    if [ "$(cat results/status 2>/dev/null)" != 0 ]; then
        wrong 'its part ended before its end'
        sed 's/^/    /' qemu.log console results/log 2>/dev/null
        finish
    fi
}

# host_value ZIP FILTER: of a capture of the machine's.
host_value() {
    value "results/$1" host-threads.json "$2"
}

# expect_thread ZIP WHAT WANTED FILTER: of the first thread of the process whose id is in `process`.
expect_thread() {
    expect_same "$2" "$3" "$(host_value "$1" \
        ".threads[] | select(.tgid == $process and .tid == $process) | $4")"
}
