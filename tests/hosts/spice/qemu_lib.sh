# A QEMU without KVM whose boot sector draws. Source it behind lib.sh: . "$here/qemu_lib.sh"
# shellcheck shell=sh disable=SC2016,SC2034,SC2154 # await runs texts; names are for the tests, or of lib.sh
need qemu-system-x86_64 as ld script
if ! as --32 -o bars.o "$source_dir/fixtures/spice/bars.s" ||
    ! ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o bars.img bars.o; then
    skip 'the boot sector cannot be built here'
fi
printf 'secret' >password

# start_qemu ARGUMENT...: -spice options; its port is in `port`. The port is a free one: QEMU takes
# none of its own choice.
start_qemu() {
    port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    run_qemu "$@"
}

run_qemu() {
    rm -f qmp
    qemu-system-x86_64 -M pc -m 16 -accel tcg -nodefaults -vga std -audiodev spice,id=sound \
        -device AC97,audiodev=sound -qmp unix:qmp,server=on,wait=off \
        -object secret,id=pw,file=password -drive file=bars.img,format=raw,snapshot=on,file.locking=off \
        -spice "port=$port,addr=127.0.0.1,password-secret=pw,$1" </dev/null >qemu.out 2>&1 &
    qemu=$!
    started="$started $qemu"
    await '! kill -0 "$qemu" 2>/dev/null || (: </dev/tcp/127.0.0.1/'"$port"') 2>/dev/null ||
        python3 -c "import socket; socket.create_connection((\"127.0.0.1\", $port))" 2>/dev/null'
    kill -0 "$qemu" 2>/dev/null || skip "QEMU does not start: $(cat qemu.out)"
}

# monitor COMMAND [ARGUMENTS]: one of QMP.
monitor() {
    python3 - "$@" <<'END'
import json, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect("qmp")
lines = link.makefile("rw")
lines.readline()
for command in {"execute": "qmp_capabilities"}, {
        "execute": sys.argv[1], "arguments": json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}}:
    lines.write(json.dumps(command) + "\n")
    lines.flush()
    while "return" not in (answer := json.loads(lines.readline())):
        if "error" in answer:
            sys.exit(answer["error"]["desc"])
END
}
