# How the programs of the corpus begin that are not just `sick NAME`, and the other instruments.
# shellcheck shell=sh disable=SC2009,SC2016,SC2034,SC2046,SC2086,SC2154 # of driver.sh; texts for other shells

# --- variants of ours -----------------------------------------------------------------------------

# variant SUFFIX NAME: the same program, built in another way.
variant() {
    [ -x "$sick$1" ] || leave_out "diagnose_sick$1 is not built"
    begin_ready "$sick$1" "$2"
}
begin_spin_with_frames() { variant _frames spin; }
begin_spin_static() { variant _static spin; }
begin_lock_held_static() { variant _static lock-held; }
begin_cpp_spin() { variant _cpp cpp-spin; }
begin_cpp_lock_held() { variant _cpp cpp-lock-held; }
begin_cpp_future_never_set() { variant _cpp cpp-future-never-set; }

begin_deleted_executable() {
    cp "$sick" "${sick%/*}/libdiagnose_library.so" .
    begin ./diagnose_sick deleted-executable
    await "[ \"\$(readlink /proc/$pid/exe)\" = \"$PWD/diagnose_sick\" ]"
    rm diagnose_sick
}

# --- mounts and control groups --------------------------------------------------------------------

# mount_tmpfs OPTIONS: a file system of its own under `mounted`.
mount_tmpfs() {
    needs_root
    mkdir mounted
    mount -t tmpfs -o "$1" sick mounted || leave_out 'nothing can be mounted'
}
# mount_image OPTIONS: the same, of ext4 in a file.
mount_image() {
    needs_root
    needs mke2fs losetup
    mkdir mounted
    truncate -s 8M image
    mke2fs -q -F -t ext4 image
    mount -o "$1" image mounted || leave_out 'nothing can be mounted'
}
# mount_small OPTIONS NAME: the first, and the sick program NAME in it.
mount_small() {
    mount_tmpfs "$1"
    begin_ready "$sick" "$2"
}
begin_file_not_served() {
    needs_root
    [ -c /dev/fuse ] || leave_out 'there is no /dev/fuse'
    mkdir mounted
    begin_ready "$sick" file-not-served
}

# begin_beside_log SIZE: a program that has nothing open, and its log of 1 MiB in a file system of that size.
begin_beside_log() {
    mount_tmpfs "size=$1"
    yes 'a line' | head -c 1048576 >mounted/app.log
    log=mounted/app.log
    begin sleep 1000
}
begin_file_system_frozen() {
    needs fsfreeze
    mount_image loop
    fsfreeze --freeze mounted || leave_out 'nothing can be frozen'
    : >frozen
    begin sh -c 'echo ready; echo line >mounted/journal'
    await "is_in_state $pid D"
    grep -q . "/proc/$pid/stack" || leave_out 'kernel stacks may not be read'
}

begin_log_disk_full() { begin_beside_log 1m; }
begin_log_disk_in_use() { begin_beside_log 2m; }

begin_disk_full() { mount_small size=1m disk-full; }
begin_inodes_exhausted() { mount_small nr_inodes=32 inodes-exhausted; }

# ext4 becomes read-only when the kernel finds an error in it (ext4(5), errors=remount-ro).
begin_disk_read_only() {
    mount_image loop,errors=remount-ro
    begin_ready "$sick" disk-read-only
    device=$(findmnt -n -o SOURCE mounted)
    echo 1 >"/sys/fs/ext4/${device##*/}/trigger_fs_error" || leave_out 'no error can be made'
}

begin_group_memory() {
    make_group memory
    set_group 67108864 memory.limit_in_bytes memory.max
    begin_in_group "$sick" group-memory
    await "grep -q '^ready' said"
}

begin_group_tasks() {
    make_group pids
    set_group 32 pids.max
    begin_in_group "$sick" group-tasks
    await "grep -q '^ready' said"
}

# As a user who has nothing else.
begin_as_user() {
    needs_root
    needs setpriv
    user=$((60000 + $$ % 5000))
    setpriv --reuid $user --clear-groups test -x "$sick" 2>/dev/null || leave_out 'no other user may run it'
    begin setpriv --reuid $user --clear-groups "$@"
    await "grep -q '^ready' said"
}
begin_inotify() {
    [ "$(cat /proc/sys/fs/inotify/max_user_instances)" -le 512 ] || leave_out 'there may be too many instances'
    begin_as_user "$sick" inotify
}
begin_processes_of_user() { begin_as_user "$sick" processes-of-user; }

begin_throttled() {
    make_group cpu
    if [ -e "$group/cpu.max" ]; then
        set_group '2000 100000' cpu.max
    else
        set_group 2000 cpu.cfs_quota_us
    fi
    begin_in_group "$sick" spin
    await "[ \$(sed -n 's/^nr_throttled //p' $group/cpu.stat) -ge 12 ]"
}

begin_frozen() {
    make_group freezer
    begin_in_group "$sick" server
    await "grep -q '^ready' said"
    if [ -e "$group/freezer.state" ]; then
        set_group FROZEN freezer.state
        await "grep -q FROZEN $group/freezer.state"
    else
        set_group 1 cgroup.freeze
        await "grep -q 'frozen 1' $group/cgroup.events"
    fi
}

prepare_out_of_memory() {
    make_group memory
    set_group 67108864 memory.limit_in_bytes memory.max
    export group
}

# bugpack is in the group from the beginning, as in a container.
prepare_out_of_memory_of_child() {
    prepare_out_of_memory
    printf '#!/bin/sh\necho $$ >"%s/cgroup.procs" && exec "%s" "$@"\n' "$group" "$BUGPACK" >bugpack-in-group
    chmod +x bugpack-in-group
    BUGPACK=./bugpack-in-group
}

# Files that a group reads fill its memory up to the limit; the kernel drops them when it needs the room.
begin_group_of_files() {
    make_group memory
    set_group 67108864 memory.limit_in_bytes memory.max
    head -c 83886080 /dev/zero >data
    mkfifo idle
    begin_in_group sh -c 'cat data >/dev/null; echo ready; read -r _ <>idle'
    await "grep -q '^ready' said"
}

# An ELF file of s390x, and a script of nobody's language.
prepare_other_processor() {
    printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\026\000' >other
    head -c 100 /dev/zero >>other
    chmod +x other
}
prepare_no_interpreter() {
    echo '#!/nosuch/python' >script
    chmod +x script
}


# build COMPILER...: makes ./built of its input; without this compiler, or its library, the row is left out.
build() {
    needs "$1"
    "$@" || leave_out "$* cannot build it"
}
prepare_address_sanitizer() {
    build gcc -g -fsanitize=address -w -x c - -o built <<'END'
void free(void *);
void *malloc(unsigned long);
void use_after_free(int *at) { *at = 1; }
int main(void) { int *at = malloc(4); free(at); use_after_free(at); return 0; }
END
}
prepare_valgrind_error() {
    build gcc -g -w -x c - -o built <<'END'
void free(void *);
void *malloc(unsigned long);
void write_beyond(int *at) { at[9] = 1; }
int main(void) { int *at = malloc(4); write_beyond(at); free(at); return 0; }
END
}
prepare_python_in_library() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || leave_out 'there is no Python of 3.11 or later'
}
prepare_go_place() {
    cat >x.go <<'END'
package main
func port(c *[]int) int { return (*c)[0] }
func main() { println(port(nil)) }
END
    build go build -gcflags=-l -o built x.go
}
prepare_go_deadlock() {
    printf 'package main\nfunc main() { make(chan int) <- 1 }\n' >x.go
    build go build -o built x.go
}

# Swap is the whole machine's: only by hand.
begin_swapped() {
    needs_root
    [ -n "${BY_HAND:-}" ] || leave_out 'only by hand: BY_HAND=1'
    fallocate -l 256M swap
    chmod 600 swap
    mkswap swap
    swapon swap || leave_out 'there is no swap'
    begin_ready "$sick" swapped
    await "[ \$(sed -n 's/^VmSwap:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status) -gt 65536 ]"
}

# --- Debian's: made sick --------------------------------------------------------------------------

# Until it has used a processor for a while: it is no longer being started.
await_work() {
    await "[ \$(sed 's/.*) //' /proc/$pid/stat | awk '{ print \$12 + \$13 }') -gt 20 ]"
}

is_in_state() {
    grep -q "^State:.[$2]" "/proc/$1/status"
}

# stop PID: and waits until it is.
stop() {
    kill -STOP "$1"
    await "is_in_state $1 T"
}

begin_python_spin() {
    begin_ready python3 -c 'import re; print("ready", flush=True); re.match(r"(a+)+$", "a" * 64 + "b")'
}

begin_python_thread_spin() {
    begin_ready python3 -c '
import threading
def grind():
    n = 1
    while n:
        n = n + 1 if n < 1000 else 1
threading.Thread(target=grind, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()'
}

begin_python_deadlock() {
    begin python3 -c '
import os, threading
one, two, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        os.write(1, b"waiting\n") # print writes the end of a line apart
        second.acquire()
threads = [threading.Thread(target=take, args=pair) for pair in ((one, two), (two, one))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]'
    await '[ $(grep -c ^waiting said) = 2 ]'
}

# The queue's thread waits until the pipe is read, and its process for the thread.
begin_python_joins_first() {
    cat >joins.py <<'END'
import multiprocessing, os
def work(queue):
    queue.put(b"x" * 10000000)
    os.write(1, b"child=%d\n" % os.getpid())
queue = multiprocessing.get_context("fork").Queue()
child = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
child.start()
child.join()
END
    begin python3 joins.py
    await 'grep -q ^child= said'
    await "grep -qs pipe /proc/$(told child)/task/*/wchan"
}
begin_python_waits_for_pipeline() {
    begin_ready python3 -c '
import subprocess
child = subprocess.Popen("yes | head -c 10000000", shell=True, stdout=subprocess.PIPE)
print("ready", child.pid, flush=True)
child.wait()'
    await "grep -qs pipe /proc/\$(pgrep -s $pid head)/wchan"
}

# java_class NAME: makes it of its input, with half of the work that javac does as it comes.
java_class() {
    needs java javac
    cat >"$1.java"
    javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -proc:none "$1.java"
}

# The child that should have put something has ended.
begin_python_queue_of_ended() {
    needs python3
    begin_ready python3 -c '
import multiprocessing, os
queue = multiprocessing.Queue()
child = multiprocessing.Process(target=os._exit, args=(1,))
child.start()
child.join()
print("ready", flush=True)
queue.get()'
    await "is_in_state $pid S && grep -q pipe /proc/$pid/wchan"
}

begin_java_deadlock() {
    java_class Dead <<'END'
import java.util.concurrent.CountDownLatch;
public class Dead {
    static void take(Object first, Object second, CountDownLatch both) {
        synchronized (first) {
            both.countDown();
            try { both.await(); } catch (InterruptedException e) { }
            System.out.println("waiting");
            synchronized (second) { }
        }
    }
    public static void main(String[] arguments) throws Exception {
        Object one = new Object(), two = new Object();
        CountDownLatch both = new CountDownLatch(2);
        Thread first = new Thread(() -> take(one, two, both)), second = new Thread(() -> take(two, one, both));
        first.start(); second.start(); first.join();
    }
}
END
    begin java -Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1 Dead
    await '[ $(grep -c ^waiting said) = 2 ]'
}

# start_java_held COUNT: a thread sleeps in the monitor of an object that so many want.
start_java_held() {
    java_class Held <<'END'
public class Held {
    static final Object lock = new Object();
    static void take(long millis) {
        System.out.println("waiting");
        synchronized (lock) { try { Thread.sleep(millis); } catch (InterruptedException e) { } }
    }
    public static void main(String[] arguments) throws Exception {
        Thread holder = new Thread(() -> take(1000000), "holder");
        holder.start();
        while (holder.getState() != Thread.State.TIMED_WAITING) Thread.sleep(10);
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            Thread thread = new Thread(() -> take(0), "worker");
            thread.start();
            while (thread.getState() != Thread.State.BLOCKED) Thread.sleep(10);
        }
        System.out.println("ready");
        holder.join();
    }
}
END
    begin_ready java -XX:+UseSerialGC Held "$1"
}

begin_java_monitor_held() { start_java_held 3; }
begin_java_monitor_wanted() { start_java_held 1; } # who looks again once a second

begin_node_spin() {
    begin_ready node -e 'console.log("ready"); for (;;);'
}

begin_awk_spin() {
    begin_ready awk 'BEGIN { print "ready"; fflush(); while (1) n++ }'
}

# Garbage is collected, and the same memory used again.
begin_node_garbage_spin() {
    begin_ready node -e 'console.log("ready"); for (let x;;) x = [1, 2, 3];'
}

begin_sqlite_spin() {
    begin sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c'
    await_work
}

begin_dd_spin() {
    begin dd if=/dev/zero of=/dev/null
    await "is_in_state $pid R"
}

# It is switched a hundred times a second, because the other thread asks for the interpreter's lock.
begin_python_pair_spin() {
    begin_ready python3 -uc 'import threading
def grind():
    n = 1
    while n:
        n = n + 1 if n < 1000 else 1
def chew():
    n = 1
    while n:
        n = n - 1 if n > 1 else 1000
threading.Thread(target=grind).start()
threading.Thread(target=chew).start()
print("ready")'
}

begin_python_queue() {
    begin_ready python3 -uc 'import queue, threading
jobs = queue.Queue(100)
def make():
    while True:
        jobs.put(list(range(100)))
def take():
    while True:
        sum(jobs.get())
threading.Thread(target=make).start()
threading.Thread(target=take).start()
print("ready")'
}

begin_python_shared_spin() {
    begin_ready python3 -uc 'import threading, time
def ask():
    while True:
        time.sleep(0.001)
threading.Thread(target=ask, daemon=True).start()
print("ready")
while True:
    pass'
}

begin_python_looks_for_work() {
    begin_ready python3 -uc 'import time
def look_again():
    while True:
        time.sleep(0.00002)
print("ready")
look_again()'
}

# Of a program that was begun a moment ago growth is no finding.
await_age() {
    await "[ \$(ps -o etimes= -p $pid) -gt 11 ]"
}
begin_growth() {
    begin "$sick" growth
    await_age
}
begin_growth_in_thread() {
    begin "$sick" growth-in-thread
    await_age
}
begin_jemalloc_growth() {
    LD_PRELOAD=libjemalloc.so.2 "$sick" silent 2>&1 | grep -q preload && leave_out 'there is no jemalloc'
    begin env LD_PRELOAD=libjemalloc.so.2 "$sick" growth-in-thread
    await_age
}
# begin_old NAME: it has an age at which growth is a finding, and goes.
begin_old() {
    begin_ready "$sick" "$1"
    await_age
    : >go
}
begin_child_leak() { begin_old child-leak; }
begin_workers_filled() { begin_old workers-filled; }
begin_mapping_leak() { begin_old mapping-leak; }
begin_mappings_in_use() { begin_old mappings-in-use; }
begin_file_leak() { begin_old file-leak; }
begin_thread_leak() { begin_old thread-leak; }
# A server whose load begins: its clients come one by one, and stay.
begin_clients_arrive() {
    begin_ready python3 -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
print("port=%d\nready" % server.getsockname()[1], flush=True)
clients = []
while True:
    clients.append(server.accept())'
    await_age
    setsid python3 -c '
import socket, sys, time
servers = []
while len(servers) < 3000:
    servers.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    if len(servers) == 20:
        print("connected", flush=True)
    time.sleep(0.005)
time.sleep(1000)' "$(told port)" >connected 2>&1 &
    own $!
    await 'grep -q connected connected'
}
begin_files_in_use() { begin_old files-in-use; }
begin_pool_filled() { begin_old pool-filled; }

# It grows from when it is old enough: on a busy machine it would be so large by then that what it
# grows by is little of it.
begin_perl_growth() {
    begin_ready perl -e '$| = 1; print "ready\n"; select undef, undef, undef, 0.1 until -e "go";
        while (@all < 400) { push @all, "x" x 5242880; select undef, undef, undef, 0.1 }'
    await_age
    : >go
}

begin_bash_waits() {
    begin_ready bash -c 'sleep 1000 & kill -STOP $!; echo child=$!; echo ready; wait'
}

begin_make_waits() {
    needs make
    printf 'all:\n\t@echo child=$$$$; kill -STOP $$$$\n' >Makefile
    begin make
    await 'grep -q ^child= said'
    await "is_in_state $(told child) T"
}

# Who took the lock has ended; the daemon that it started has it still.
begin_flock_inherited() {
    begin sh -c 'exec 9>lock; flock 9; sleep 1000 & echo "holder=$!"'
    await "grep -q ^holder= said && ! kill -0 $pid"
    begin flock lock true
    await "grep -q lock /proc/$pid/wchan"
}

# Workers of a server, one of which accepts at a time; and their parent.
begin_workers_take_file_lock() {
    needs perl
    begin perl -MFcntl=:flock -MIO::Socket::INET -e '
        my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => "127.0.0.1:0");
        for (1, 2) {
            fork and next;
            open(my $lock, ">>", "accept.lock");
            flock($lock, LOCK_EX);
            $listener->accept;
            exit;
        }
        wait;'
    await "cat \$(pgrep -P $pid | sed 's,.*,/proc/&/wchan,') | grep -q lock"
}

begin_flock_waits() {
    begin flock -o lock sleep 1000
    tell "holder=$pid"
    await "grep -q '^lock:' /proc/$pid/fdinfo/*"
    begin flock lock true
    await "grep -q -e '-> .* $pid ' /proc/locks"
}

# A server that is begun again while the first one has its lock and waits for a client.
begin_flock_of_server() {
    needs perl
    server='my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => "127.0.0.1:0");
        open(my $lock, ">>", "server.lock");
        flock($lock, LOCK_EX);
        $listener->accept;'
    begin perl -MFcntl=:flock -MIO::Socket::INET -e "$server"
    tell "holder=$pid"
    await "grep -q accept /proc/$pid/wchan"
    begin perl -MFcntl=:flock -MIO::Socket::INET -e "$server"
    await "grep -q -e '-> .* $pid ' /proc/locks"
}
witness_flock_of_server() { witness_flock_waits; }

# A FIFO whose name is removed once both ends are open.
begin_fifo_peer_stopped() {
    mkfifo fifo
    begin sh -c 'exec sleep 1000 >fifo'
    tell "peer=$pid"
    begin cat fifo
    await "grep -q pipe /proc/$pid/wchan && grep -q nanosleep /proc/$(told peer)/wchan"
    kill -STOP "$(told peer)"
    rm fifo
}
witness_fifo_peer_stopped() { peer_is_stopped; }

begin_tar_waits() {
    begin sh -c 'tar cf - /usr/share | sleep 1000'
    await "pgrep -P $pid -x tar && pgrep -P $pid -x sleep"
    tell "peer=$(pgrep -P "$pid" -x sleep)"
    pid=$(pgrep -P "$pid" -x tar)
    await "grep -q pipe_w /proc/$pid/wchan"
}

# In WAL mode each has a shared lock of the index, beside the one that is asked for.
begin_sqlite_busy_wal() {
    needs sqlite3
    sqlite3 mail.db 'PRAGMA journal_mode = WAL' >/dev/null
    begin_sqlite_busy
}
begin_sqlite_busy() {
    needs sqlite3
    sqlite3 mail.db 'CREATE TABLE message(x)'
    printf 'BEGIN EXCLUSIVE;\n.print held\n.shell sleep 1000\n' >script
    input=script
    begin sqlite3 mail.db
    input=
    tell "holder=$pid"
    await 'grep -q ^held said'
    begin sqlite3 -cmd '.timeout 600000' mail.db 'INSERT INTO message VALUES (1)'
    await "grep -q nanosleep /proc/$pid/wchan && ls -l /proc/$pid/fd | grep -q mail.db"
}

start_redis() {
    needs redis-server redis-cli
    begin redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --dir "$PWD"
    redis=$pid
    tell "peer=$redis"
    await 'redis-cli -s redis.sock ping'
}

begin_redis_spin() {
    start_redis
    begin redis-cli -s redis.sock eval 'while true do end' 0
    pid=$redis
    await "is_in_state $pid R && ! timeout 1 redis-cli -s redis.sock ping | grep -q PONG"
}

begin_redis_stopped() {
    start_redis
    stop "$pid"
}

begin_redis_client() {
    start_redis
    begin redis-cli -s redis.sock subscribe news
    await 'grep -q news said'
    stop "$redis"
}

# As one that sends a job to a server and does not come back: BLPOP of a list that nobody fills.
begin_redis_healthy_client() {
    start_redis
    begin redis-cli -s redis.sock blpop jobs 0
    await "redis-cli -s redis.sock client list | grep -q cmd=blpop"
}

# run_nginx CONFIGURATION: with this in its http part; sets nginx.
run_nginx() {
    cat >nginx.conf <<END
daemon off;
master_process off;
error_log $PWD/error.log;
pid $PWD/nginx.pid;
events { worker_connections 64; }
http {
    client_body_temp_path $PWD/body;
    proxy_temp_path $PWD/proxy;
    fastcgi_temp_path $PWD/fastcgi;
    uwsgi_temp_path $PWD/uwsgi;
    scgi_temp_path $PWD/scgi;
    $1
}
END
    begin nginx -p "$PWD" -c "$PWD/nginx.conf"
    nginx=$pid
}

start_nginx() {
    needs nginx curl
    truncate -s 128M access.log
    run_nginx "access_log $PWD/access.log; server { listen unix:$PWD/nginx.sock; root $PWD; }"
    tell "peer=$nginx"
    await 'curl -s --unix-socket nginx.sock http://localhost/nginx.conf | grep -q daemon'
}

# start_upstream ANSWER: a server that answers each request with it.
start_upstream() {
    needs python3 ss
    begin_ready python3 -uc 'import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
print(f"upstream={listener.getsockname()[1]}\nready")
def serve(client):
    while client.recv(4096):
        client.sendall(sys.argv[1].encode().decode("unicode_escape").encode())
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()' "$1"
    tell "peer=$pid"
}
await_silence() {
    await "ss -tinH dport = :$(told upstream) | grep -Eq 'lastsnd:[0-9]{4}'"
}

# It looks once a second whether the time is over.
begin_curl_asks_again() {
    needs curl
    start_upstream ''
    begin curl -s "http://127.0.0.1:$(told upstream)/"
    await_silence
}

# start_proxy ANSWER: nginx in front of it, and a client that has asked, and keeps its connection.
start_proxy() {
    needs nginx
    start_upstream "$1"
    port=$((20000 + $$ % 10000 + row_count))
    run_nginx "access_log off; upstream behind { server 127.0.0.1:$(told upstream); keepalive 4; }
        server {
            listen 127.0.0.1:$port;
            location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ''; }
        }"
    await "ss -tlnH sport = :$port | grep -q ."
    begin python3 -uc 'import socket, sys, time
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
while client.recv(4096): pass' "$port"
    await_silence
    await "ss -tinH state established sport = :$port | grep -Eq 'lastrcv:[0-9]{4}'"
    pid=$nginx
}
begin_nginx_upstream_silent() { start_proxy ''; }
begin_nginx_upstream_stopped() {
    start_proxy ''
    stop "$(told peer)"
}
begin_nginx_upstream_idle() { start_proxy 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'; }

# A log that was rotated, and the server not told.
begin_nginx_log() {
    start_nginx
    rm access.log
}

# The connection was made by the kernel; the server that should accept it is stopped.
begin_curl_waits() {
    start_nginx
    stop "$nginx"
    begin curl -s --unix-socket nginx.sock http://localhost/
    await "ls -l /proc/$pid/fd | grep -q socket: && is_in_state $pid S"
}

as_postgres() {
    setpriv --reuid postgres --regid postgres --clear-groups "$@"
}

# Its databases are a copy of those that the first of these rows makes, which takes seconds.
databases=${rows%/*}/databases
start_postgres() {
    needs_root
    needs flock
    postgres=$(find /usr/lib/postgresql -name postgres -path '*/bin/*' 2>/dev/null | tail -n 1)
    [ -n "$postgres" ] || leave_out 'postgresql is not installed'
    mkdir run
    (
        flock 9
        [ -d "$databases" ] || {
            mkdir new
            chown postgres new
            as_postgres "${postgres%/*}/initdb" -A trust --no-sync --wal-segsize=1 -D new >/dev/null
            mv new "$databases"
        }
    ) 9>"$databases.lock"
    cp -a "$databases" data
    chown postgres run
    begin setpriv --reuid postgres --regid postgres --clear-groups "$postgres" -D data -k "$PWD/run" \
        -c listen_addresses= -c fsync=off -c shared_buffers=1MB -c log_lock_waits=on
    postmaster=$pid
    await 'sql "SELECT 1"'
}

sql() {
    psql -qAt -h "$PWD/run" -U postgres -c "$1" postgres
}

# backend TITLE: waits for the process of the server whose title ends so.
backend() {
    await "pgrep -P $postmaster -f '$1\$'"
    pid=$(pgrep -P "$postmaster" -f "$1\$")
}

begin_postgres_spin() {
    start_postgres
    begin psql -h "$PWD/run" -U postgres -c 'DO $$ BEGIN LOOP END LOOP; END $$' postgres
    backend ' DO'
}

# The lock is in the server's shared memory: each waits on a semaphore of its own.
begin_postgres_lock() {
    start_postgres
    sql 'CREATE TABLE account(x int)'
    begin psql -h "$PWD/run" -U postgres -c 'BEGIN; LOCK TABLE account; SELECT pg_sleep(1000)' postgres
    backend ' SELECT'
    tell "holder=$pid"
    begin psql -h "$PWD/run" -U postgres -c 'DELETE FROM account' postgres
    backend ' DELETE waiting'
    await "grep -q '^.* LOG:  process $pid still waiting for' said" # it has looked for a deadlock
}

begin_psql_waits_for_lock() {
    start_postgres
    sql 'CREATE TABLE account(x int)'
    begin psql -h "$PWD/run" -U postgres -c 'BEGIN; LOCK TABLE account; SELECT pg_sleep(1000)' postgres
    backend ' SELECT'
    begin psql -h "$PWD/run" -U postgres -c 'DELETE FROM account' postgres
    client=$pid
    backend ' DELETE waiting'
    tell "server=$pid"
    await "grep -q '^.* LOG:  process $pid still waiting for' said"
    pid=$client
}

begin_psql_waits() {
    start_postgres
    begin psql -h "$PWD/run" -U postgres -c 'SELECT pg_sleep(1000)' postgres
    client=$pid
    backend ' SELECT'
    tell "peer=$pid"
    stop "$pid"
    pid=$client
}

start_sshd() {
    needs_root
    needs /usr/sbin/sshd ssh ssh-keygen ss
    mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f key
    printf 'HostKey %s/key\nPidFile none\nUsePAM no\nListenAddress 127.0.0.1\n' "$PWD" >sshd_config
    port=$((20000 + $$ % 10000 + row_count))
    begin /usr/sbin/sshd -D -e -p "$port" -f "$PWD/sshd_config"
    sshd=$pid
    tell "peer=$sshd"
    await "ss -tlnH sport = :$port | grep -q LISTEN"
}

begin_ssh_waits() {
    start_sshd
    stop "$sshd"
    begin ssh -F none -o BatchMode=yes -p "$port" 127.0.0.1
    await "ss -tnpH dport = :$port | grep -q pid=$pid"
}

# It waits as soon as the socket is full: in poll, or ppoll on aarch64.
begin_rsync_waits() {
    needs rsync
    mkdir from to
    truncate -s 1G from/large
    begin rsync -a --bwlimit=2000 from/ to/
    client=$pid
    await "pgrep -P $client -x rsync"
    tell "peer=$(pgrep -P "$client" -x rsync)"
    await "[ -n \"\$(find to -name '.large*')\" ]"
    for member in $(tree "$(told peer)"); do
        stop "$member"
    done
    await "grep -Eq '^(7|73) ' /proc/$client/syscall"
    pid=$client
}

# --- Debian's: healthy ----------------------------------------------------------------------------

begin_redis_idle() { start_redis; }

begin_redis_working() {
    start_redis
    begin redis-benchmark -s redis.sock -c 4 -n 1000000000 -r 1000 -t set,get
    pid=$redis
    await "redis-cli -s redis.sock info stats | grep -q 'instantaneous_ops_per_sec:[1-9]'"
}

begin_nginx_idle() { start_nginx; }

begin_nginx_working() {
    start_nginx
    begin sh -c 'while curl -s --unix-socket nginx.sock http://localhost/nginx.conf; do :; done'
    pid=$nginx
}

begin_postgres_idle() { start_postgres; }

# A session that waits for its client, as of a pool.
begin_postgres_session() {
    start_postgres
    begin_waiting psql -q -h "$PWD/run" -U postgres postgres
    backend ' idle'
}

begin_sshd_idle() { start_sshd; }

# A channel whose sender is still there.
begin_rust_receiver_waits() {
    needs rustc
    cat >receiver.rs <<'END'
use std::sync::mpsc;
fn main() {
    let (sender, receiver) = mpsc::channel::<u32>();
    let waiter = std::thread::spawn(move || receiver.recv());
    println!("ready");
    waiter.join().unwrap().unwrap();
    drop(sender);
}
END
    rustc -g receiver.rs >said 2>&1 || leave_out 'rustc does not link here'
    begin_ready ./receiver
}
begin_rust_locks_twice() {
    needs rustc
    cat >twice.rs <<'END'
fn main() {
    let stock = std::sync::Mutex::new(1);
    let _first = stock.lock().unwrap();
    println!("ready");
    let _second = stock.lock().unwrap();
}
END
    rustc -g twice.rs >said 2>&1 || leave_out 'rustc does not link here'
    begin_ready ./twice
}
# Its main thread is woken by a handler, and its worker by what comes in meanwhile.
begin_python_daemon() {
    begin_ready python3 -c '
import queue, signal, threading
stop, jobs = threading.Event(), queue.Queue()
signal.signal(signal.SIGTERM, lambda *about: stop.set())
threading.Thread(target=jobs.get, daemon=True).start()
print("ready", flush=True)
stop.wait()'
}
# Two clients of a server on the port that it tells: the first sends twice.
ask_twice() {
    await '[ -n "$(told port)" ]'
    python3 -c '
import socket, sys, time
first = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
first.sendall(b"GET / HTTP/1.0\r\n\r\n")
time.sleep(0.3)
first.sendall(b"GET / HTTP/1.0\r\n\r\n")
second = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("asked", flush=True)
time.sleep(1000)' "$(told port)" >asked 2>&1 &
    own $!
    await 'grep -q asked asked'
}
begin_python_asyncio_sleeps() {
    begin python3 -c '
import asyncio, time
async def handle(reader, writer):
    await reader.readline()
    time.sleep(1000)
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print("port=%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())'
    ask_twice
}
begin_node_waits_for_child() {
    begin node -e '
const server = require("http").createServer(() => require("child_process").execSync("sleep 1000"))
server.listen(0, "127.0.0.1", () => console.log("port=" + server.address().port))'
    ask_twice
}
begin_node_waits_in_atomics() {
    begin node -e '
const server = require("http").createServer(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
server.listen(0, "127.0.0.1", () => console.log("port=" + server.address().port))'
    ask_twice
}

# A shim of pyenv is a shell that becomes Python.
begin_python() {
    begin_waiting python3 -c 'import sys; print("ready", flush=True); sys.stdin.read()'
    await "grep -q '^ready' said"
}
begin_python_pool() {
    begin_ready python3 -c '
import concurrent.futures, socket
pool = concurrent.futures.ThreadPoolExecutor(16)
list(pool.map(len, ["x"] * 1000))
server = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
server.accept()'
}

begin_python_http() {
    begin python3 -u -m http.server --bind 127.0.0.1 0
    await 'grep -q Serving said'
}

begin_python_asyncio() {
    begin_ready python3 -c '
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())'
}

begin_python_processes() {
    begin_ready python3 -c '
import multiprocessing, time
if __name__ == "__main__":
    pool = multiprocessing.Pool(3)
    pool.map(len, ["x"] * 9)
    print("ready", flush=True)
    time.sleep(1000)'
}

begin_node_http() {
    begin_ready node -e 'require("http").createServer().listen(0, "127.0.0.1", () => console.log("ready"))'
}

# begin_java_keeping SHARE [work]: one that makes blocks without an end, keeps as many as fill this percent
# of its heap, and may look at each.
begin_java_keeping() {
    java_class Keeping <<'END'
public class Keeping {
    public static void main(String[] arguments) {
        long heap = Runtime.getRuntime().maxMemory();
        byte[][] kept = new byte[(int)(heap / 10100 * Integer.parseInt(arguments[0]) / 100)][];
        for (long i = 0;; i++) {
            if (i == kept.length) System.out.println("ready");
            byte[] block = new byte[10000];
            kept[(int)(i * 7919 % kept.length)] = block;
            if (arguments.length > 1) block[0] = (byte)java.util.Arrays.hashCode(block);
        }
    }
}
END
    begin_ready java -Xmx64m -XX:+UseSerialGC Keeping "$@"
}

begin_java_garbage() {
    begin_java_keeping 92
}

begin_java_works() {
    begin_java_keeping 10 work
}

# It fills the young part of its heap, as a server with a low load.
begin_java_fills_heap() {
    java_class Filling <<'END'
public class Filling {
    static volatile byte[] block;
    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        while (true) {
            for (int i = 0; i < 200; i++) block = new byte[10000];
            Thread.sleep(100);
        }
    }
}
END
    begin_ready java -Xmx1500m -Xmn1200m -XX:+UseSerialGC Filling
    await_age
}

begin_java_idle() {
    java_class Idle <<'END'
public class Idle {
    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        new java.net.ServerSocket(0).accept();
    }
}
END
    begin_ready java -XX:+UseSerialGC Idle
}

# in_terminal COMMAND: the child of script, which has a terminal.
in_terminal() {
    needs script "${1%% *}"
    begin_waiting env TERM=xterm script -qfc "exec $1" screen
    await "pgrep -P $pid && [ -s screen ]"
    pid=$(pgrep -P "$pid" | head -n 1)
    [ -n "$pid" ] || unready "$1 has ended"
    await "! cmp -s /proc/$pid/cmdline /proc/$$/cmdline && is_in_state $pid S"
}
begin_vim() { in_terminal 'vim.tiny driver'; }

# Nobody scrolls.
begin_git_pager() {
    needs git less
    git init -q .
    seq 100000 >numbers
    git add numbers
    git -c user.name=a -c user.email=a@b commit -q -m numbers
    in_terminal 'git -c core.pager=less show'
    await "grep -q pipe /proc/$pid/wchan"
}

begin_less() {
    seq 1000 >lines
    in_terminal 'less lines'
}
begin_htop() { in_terminal htop; }
begin_top() { in_terminal top; }
begin_bash_interactive() { in_terminal 'bash --norc'; }
begin_zsh_interactive() { in_terminal 'zsh -f'; }
begin_python_interactive() { in_terminal 'python3 -q'; }

begin_tmux() {
    needs tmux
    tmux -f /dev/null -S "$PWD/tmux.sock" new-session -d 'sleep 1000'
    pid=$(tmux -S "$PWD/tmux.sock" display-message -p '#{pid}')
    own "$pid"
}

begin_shell_with_jobs() {
    begin_ready bash -c 'sleep 1000 & sleep 1000 & echo ready; wait'
}

begin_shell_pipeline() {
    begin sh -c 'sleep 1000 | cat'
    await "pgrep -P $pid -x cat"
}

# A reader in a pipeline whose writer is quiet.
begin_quiet_writer() {
    begin sh -c 'sleep 1000 | cat'
    await "pgrep -P $pid -x cat"
    pid=$(pgrep -P "$pid" -x cat)
}

begin_make() {
    needs make
    printf 'all:\n\t@echo ready; sleep 1000\n' >Makefile
    begin_ready make
}

begin_tail_follow() {
    echo line >log.txt
    begin tail -f log.txt
    await 'grep -q line said'
}

begin_lock_holder() {
    begin flock lock sleep 1000
    await "grep -q '^lock:' /proc/$pid/fdinfo/*"
}

begin_git_batch() {
    needs git
    git init -q repository
    begin_waiting git -C repository cat-file --batch
    await "is_in_state $pid S"
}

begin_sqlite_shell() {
    begin_waiting sqlite3 mail.db
    await "is_in_state $pid S"
}

# A program that has a database open, and wakes now and then for something else, while another one
# writes to it.
begin_sqlite_open() {
    needs sqlite3
    sqlite3 mail.db 'CREATE TABLE message(x)'
    printf 'BEGIN EXCLUSIVE;\n.print held\n.shell sleep 1000\n' >script
    begin python3 -c '
import sqlite3, time
database = sqlite3.connect("mail.db")
database.execute("SELECT * FROM message").fetchall()
print("ready", flush=True)
while True: time.sleep(0.1)'
    reader=$pid
    await "grep -q ^ready said"
    input=script
    begin sqlite3 mail.db
    input=
    await 'grep -q ^held said'
    pid=$reader
}

# with_children COMMAND...: begins it, and it has begun a child.
with_children() {
    begin "$@"
    await "[ -n \"\$(cat /proc/$pid/task/$pid/children)\" ]"
}

begin_shell_crash_loop() { with_children sh -c 'while :; do /bin/false; done'; }
# What these two start lives for long enough to be seen by most looks.
begin_shell_respawns() { with_children sh -c 'while :; do sh -c "sleep 0.03; exit 1"; sleep 0.1; done'; }
begin_python_crash_loop() {
    begin_ready python3 -c '
import subprocess, time
while True:
    subprocess.run(["sh", "-c", "sleep 0.03; exit 2"])
    print("ready", flush=True)
    time.sleep(0.05)'
}

begin_find_exec() { with_children find / -xdev -type f -exec /bin/false {} \;; }
begin_xargs_works() {
    seq 1000000 >list
    input=list
    with_children xargs -n 1 /bin/true
    input=
}
begin_shell_reads() {
    seq 1000000 >list
    with_children sh -c 'while read -r line; do grep -q nosuch /etc/hostname; done <list'
}
begin_pipes_break() { with_children sh -c 'while :; do yes | head -n1; done >/dev/null'; }
begin_children_stopped() {
    begin_ready python3 -c '
import subprocess, time
while True:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    print("ready", flush=True)
    time.sleep(0.1)
    child.terminate()
    child.wait()'
}
begin_configure() {
    with_children sh -c 'while :; do for header in /usr/include/*.h; do
        echo "#include <$header>" >conftest.c; sed -n 1p conftest.c; expr "$header" : "x"; cat conftest.c
        grep -q x conftest.c; rm -f conftest.c; done; done'
}
begin_make_works() {
    needs make
    # On one line: make looks through all that a target depends on for each line that adds to it.
    { printf 'all: ' && seq -s ' ' 100000 && printf '%%:;@/bin/true $@\n'; } >Makefile
    with_children make -j 2
}
begin_git_works() {
    needs git
    git init -q repository
    git -C repository -c user.name=a -c user.email=a commit -q --allow-empty -m first
    with_children sh -c 'while :; do git -C repository -c user.name=a -c user.email=a commit -q --allow-empty -m next
        git -C repository status; git -C repository log -1; done'
}

begin_tar_works() {
    begin sh -c 'while :; do tar cf - /usr/lib/python3 | cat; done >/dev/null'
    await "pgrep -P $pid -x tar"
}

# The same folder again and again: one that is in memory is packed before the capture ends.
begin_tar_itself() {
    begin sh -c 'tar cf - $(yes /usr | head -n 1000) 2>/dev/null | cat >/dev/null'
    await "pgrep -P $pid -x tar"
    pid=$(pgrep -P "$pid" -x tar)
}

# A large translation unit; the driver, and the compiler proper.
begin_gcc() {
    needs /usr/bin/gcc
    awk 'BEGIN { for (i = 0; i < 60000; i++)
        print "int f" i "(int a) { for (int i = 0; i < a; i++) a += i * " i "; return a; }" }' >large.c
    begin /usr/bin/gcc -O2 -c large.c # not what ccache puts before it
    await "pgrep -P $pid -x cc1"
}

begin_cc1() {
    begin_gcc
    pid=$(pgrep -P "$pid" -x cc1)
}

begin_xz() {
    needs xz
    begin sh -c 'exec xz -9 -c </dev/zero >/dev/null'
    await_work
}

# filter COMMAND...: reads the libraries of the machine, again and again.
filter() {
    needs "$1"
    begin sh -c 'while cat /usr/lib/*/lib*.so*; do :; done 2>/dev/null | "$@" >/dev/null' filter "$@"
    await "pgrep -P $pid -x $1"
    pid=$(pgrep -P "$pid" -x "$1")
    await_work
}
begin_gzip() { filter gzip -c; }
begin_bzip2() { filter bzip2 -c; }
begin_zstd() { filter zstd -q -19 -c; }
begin_sha256sum() { filter sha256sum; }
begin_sort() { filter sort --buffer-size=256M -T .; }

begin_cc1plus() {
    needs /usr/bin/g++
    cat >large.cc <<'END'
#include <map>
#include <string>
template <int N> struct count {
    static int all() {
        std::map<int, std::string> names;
        names[N] = std::to_string(N);
        return count<N - 1>::all() + names.size();
    }
};
template <> struct count<0> {
    static int all() { return 0; }
};
int main() { return count<800>::all(); }
END
    begin /usr/bin/g++ -O2 -c large.cc
    await "pgrep -P $pid -x cc1plus"
    pid=$(pgrep -P "$pid" -x cc1plus)
    await_work
}

begin_sqlite_import() {
    needs sqlite3
    begin sh -c 'seq 100000000 | sqlite3 new.db -cmd "CREATE TABLE n(x)" ".import /dev/stdin n"'
    await "pgrep -P $pid -x sqlite3"
    pid=$(pgrep -P "$pid" -x sqlite3)
    await_work
}

begin_ssh_agent() {
    begin ssh-agent -D -a "$PWD/agent.sock"
    await '[ -S agent.sock ]'
    ls "/proc/$pid/fd" >/dev/null || leave_out 'it protects itself from this user'
}

begin_busybox_httpd() {
    begin busybox httpd -f -p 127.0.0.1:$((30000 + $$ % 10000 + row_count))
    await "ls -l /proc/$pid/fd | grep -q socket:"
}

begin_qemu() {
    begin qemu-system-x86_64 -S -display none -nodefaults -m 64
    await "[ \$(ls /proc/$pid/task | wc -l) -ge 2 ] && is_in_state $pid S"
}

begin_dbus() {
    begin dbus-daemon --session --nofork --print-address --address="unix:path=$PWD/bus"
    await 'grep -q unix: said'
}

# --- other instruments ----------------------------------------------------------------------------

# Of a starved one the second figure of schedstat grows: nanoseconds on a run queue (proc(5)).
witness_starved() { await "[ \$(cut -d' ' -f2 /proc/$pid/schedstat) -gt \$((\$(cut -d' ' -f1 /proc/$pid/schedstat) * 4)) ]"; }

# Both threads are in the function that waits.
witness_deadlock_of_two() {
    command -v gdb >/dev/null || return 0
    gdb -batch -nx -p "$pid" -ex 'thread apply all bt' 2>/dev/null >gdb.txt
    [ "$(grep -c lll_lock_wait gdb.txt)" -ge 2 ]
}

locks_of() { grep -qs "^lock:.*$2" /proc/"$1"/fdinfo/*; }
waits_in_locks() { await "grep -q -e '-> .* $pid ' /proc/locks"; }
witness_flock_held() { locks_of "$(told holder)" FLOCK && waits_in_locks; }
witness_flock_waits() { waits_in_locks; }
witness_posix_lock_held() { locks_of "$(told holder)" POSIX && waits_in_locks; }
witness_description_lock_held() { locks_of "$(told holder)" OFDLCK; }
witness_lease_held() { grep -q "LEASE *BREAK.* $(told holder) " /proc/locks; }

peer_is_stopped() { ps -o stat= -p "$(told peer)" | grep -q ^T; }
witness_pipe_peer_stopped() { peer_is_stopped; }
witness_unix_peer_stopped() { peer_is_stopped; }
witness_tcp_peer_stopped() { needs ss && peer_is_stopped && ss -tnpH state established | grep -q "pid=$pid,"; }
witness_epoll_peer_stopped() { peer_is_stopped && grep -c ^tfd: /proc/"$pid"/fdinfo/* | grep -q ':2$'; }
witness_java_deadlock() { jstack "$pid" | grep -q 'Found one Java-level deadlock'; }
witness_java_monitor_held() { [ "$(jstack "$pid" | grep -c 'waiting to lock')" = 3 ]; }
witness_postgres_lock() { [ "$(sql "SELECT pg_blocking_pids($pid)")" = "{$(told holder)}" ]; }

# The first figure of a listener is how many it has not accepted.
witness_ssh_waits() { peer_is_stopped && ss -tlnH sport = ":$port" | awk '{ exit !($2 == 1) }'; }
witness_not_accepted() { needs ss && ss -tlnpH | grep "pid=$(told peer)," | awk '{ exit !($2 == 1) }'; }
witness_not_accepted_unix() { needs ss && ss -xlpH | grep "pid=$(told peer)," | awk '{ exit !($3 == 1) }'; }
witness_connect_to_full_unix() { await "grep -q unix_wait_for_peer /proc/$pid/wchan"; }
witness_chain_to_stopped() { ps -o stat=,ppid= -p "$(told end)" | grep -q "^T.* $(told middle)\$"; }
witness_chain_to_file_lock() { locks_of "$(told end)" FLOCK; }
witness_child_stopped() { ps -o stat=,ppid= -p "$(told child)" | grep -q "^T.* $pid\$"; }
witness_many_zombies() { [ "$(ps --ppid "$pid" -o stat= | grep -c ^Z)" -ge 300 ]; }

witness_close_wait() {
    command -v ss >/dev/null || return 0
    [ "$(ss -tnpH state close-wait | grep -c "pid=$pid,")" -ge 50 ]
}

# Of a listener the first figure is what waits, the second the backlog (ss(8)).
witness_tcp_accept_queue() {
    command -v ss >/dev/null || return 0
    ss -tlnH sport = ":$(told port)" | awk '{ exit !($2 > $3) }'
}
witness_unix_accept_queue() {
    command -v ss >/dev/null || return 0
    ss -xlpH | grep "pid=$pid," | awk '{ exit !($3 > $4) }'
}
witness_connect_to_full() {
    command -v ss >/dev/null || return 0
    await "ss -tnpH state syn-sent | grep -q 'pid=$pid,'"
}
witness_pipe_full() { await "grep -q pipe_w /proc/$pid/wchan"; }
witness_uninterruptible() { await "is_in_state $pid D"; }
witness_stopped() { await "is_in_state $pid T"; }
witness_traced() { grep -q "^TracerPid:.$(told tracer)\$" "/proc/$pid/status" && is_in_state "$pid" t; }

witness_descriptors() { [ "$(find "/proc/$pid/fd" -type l | wc -l)" -ge 60 ]; }
witness_deleted_file() { find "/proc/$pid/fd" -lname '*sick-*(deleted)' | grep -q .; }
witness_disk_full() { [ "$(df --output=avail mounted | tail -n 1)" -eq 0 ]; }
witness_inodes_exhausted() { [ "$(df --output=iavail mounted | tail -n 1)" -eq 0 ]; }
witness_disk_read_only() { await '! touch mounted/other'; }
witness_growth() { await "[ \$(ps -o rss= -p $pid) -gt 10000 ]"; }
witness_perl_growth() { await "[ \$(ps -o rss= -p $pid) -gt 10000 ]"; }
witness_address_space() { [ "$(ps -o vsz= -p "$pid")" -gt 240000 ]; }
witness_data() { grep -q 'VmData:[^0-9]*2[56]' "/proc/$pid/status"; }
witness_many_threads() { [ "$(ps -o nlwp= -p "$pid")" -ge 600 ]; }
