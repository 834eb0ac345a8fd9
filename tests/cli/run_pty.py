"""bugpack run on terminals that misbehave. Usage: run_pty.py BUGPACK, in a directory with reports/.

Each fact starts a command under bugpack on a pseudo-terminal of its own, whose session leader is no
shell: it only keeps the terminal, ignores its signals and waits.
"""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time

BUGPACK = os.path.abspath(sys.argv[1])
PATIENCE_SECS = 20
wrong = 0


class Terminal:
    """A command on a new terminal, alone in its foreground group."""

    def __init__(self, arguments):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.output = b""
        pipe_read, pipe_write = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.close(self.master)
            pid = os.fork()
            if pid == 0:
                os.closerange(3, 50)
                os.setpgid(0, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, os.getpid())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                # Python ignores these two itself.
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                os.execvp(arguments[0], arguments)
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_IGN)
            os.write(pipe_write, b"%d\n" % pid)
            os.close(slave)
            for fd in range(3):
                os.close(fd)
            os.waitpid(pid, 0)
            os._exit(0)
        os.close(pipe_write)
        self.pid = int(os.read(pipe_read, 20))
        os.close(pipe_read)

    def until(self, text):
        """Reads until the text has come."""
        end = time.monotonic() + PATIENCE_SECS
        while text not in self.output and time.monotonic() < end:
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536)
        return text in self.output

    def settings(self):
        return termios.tcgetattr(self.slave)

    def hang_up(self):
        os.close(self.slave)
        os.close(self.master)
        self.slave = self.master = -1

    def leader_ends(self):
        """Whether bugpack, for which the leader waits, has ended."""
        return wait_until(lambda: os.waitid(os.P_PID, self.leader, os.WEXITED | os.WNOHANG | os.WNOWAIT))

    def end(self):
        """Ends what is left of it: the command's own session included."""
        for pid in descendants(self.leader) + [self.leader]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(self.leader, 0)
        if self.master >= 0:
            os.close(self.slave)
            os.close(self.master)


def descendants(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return [found for child in children for found in [child] + descendants(child)]


def state(pid):
    return said(f"/proc/{pid}/stat").rpartition(") ")[2][:1]


def wait_until(is_so):
    end = time.monotonic() + PATIENCE_SECS
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    return is_so()


def run(script, *options):
    return Terminal([BUGPACK, "run", "-q", "-o", "reports", *options, "--", "sh", "-c", script])


def fact(name, is_so):
    global wrong
    if not is_so:
        wrong += 1
    print(("ok: " if is_so else "FAIL: ") + name)


def said(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def hangups():
    # The leader ignores SIGHUP, so that only the terminal itself tells of its end.
    terminal = run('trap "" HUP; echo ready; cat; echo "end $?" >read')
    terminal.until(b"ready")
    terminal.hang_up()
    fact("a command that reads sees the end of a terminal that hung up",
         wait_until(lambda: said("read") != ""))
    terminal.end()

    terminal = run('trap "" HUP; echo ready; yes; echo "end $?" >written')
    terminal.until(b"y\r\ny")
    terminal.hang_up()
    fact("a command that writes gets an error from a terminal that hung up",
         wait_until(lambda: said("written") == "end 1\n"))
    terminal.end()

    terminal = run("sh -c 'trap \"echo told >inner; exit\" HUP; echo ready; while :; do sleep 0.05; done'; exit")
    terminal.until(b"ready")
    terminal.hang_up()
    os.kill(terminal.pid, signal.SIGHUP)
    fact("a hang-up reaches the command's whole job",
         wait_until(lambda: said("inner") == "told\n"))
    terminal.end()

    terminal = run("trap 'echo told >stopped; exit' HUP; echo ready; kill -STOP $$")
    terminal.until(b"ready")
    is_stopped = wait_until(lambda: "T" in [state(pid) for pid in descendants(terminal.pid)])
    terminal.hang_up()
    os.kill(terminal.pid, signal.SIGHUP)
    fact("a hang-up reaches a command that is stopped",
         is_stopped and wait_until(lambda: said("stopped") == "told\n"))
    terminal.end()


    # What a shell sends its stopped jobs when it ends; the lowest number comes first.
    terminal = run("echo ready; exec sleep 60", "--app", "hung")
    terminal.until(b"ready")
    os.write(terminal.master, b"\x1a")
    is_stopped = wait_until(lambda: state(terminal.pid) == "T")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT):
        os.kill(terminal.pid, number)
    fact("a stopped command that its shell hangs up has not crashed", is_stopped and terminal.leader_ends()
         and not [name for name in os.listdir("reports") if name.startswith("hung-")])
    terminal.end()


def stops():
    terminal = run("echo ready; exec sleep 60")
    terminal.until(b"ready")
    raw = terminal.settings()
    os.kill(terminal.pid, signal.SIGSTOP)
    # What a shell does when its job has stopped; not each gives the job its own settings back.
    termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)
    os.kill(terminal.pid, signal.SIGCONT)
    fact("the terminal is taken again after a stop",
         raw != terminal.before and wait_until(lambda: terminal.settings() == raw))
    os.write(terminal.master, b"\x03")
    fact("and given back at the end", wait_until(lambda: terminal.settings() == terminal.before))
    terminal.end()


def deaths():
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGXCPU, signal.SIGVTALRM,
                   signal.SIGRTMIN):
        terminal = run("trap '' HUP; echo ready; exec sleep 60")
        terminal.until(b"ready")
        is_raw = wait_until(lambda: terminal.settings() != terminal.before)
        os.kill(terminal.pid, number)
        fact(f"the terminal is restored when bugpack dies by signal {int(number)}",
             is_raw and wait_until(lambda: terminal.settings() == terminal.before))
        terminal.end()


def failures():
    def reports(app):
        return [name for name in os.listdir("reports") if name.startswith(app + "-exit-")]

    terminal = run("trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done", "--app", "typed")
    terminal.until(b"ready")
    os.write(terminal.master, b"\x03")
    fact("a command that its user ends by a key has not failed",
         terminal.leader_ends() and reports("typed") == [])
    terminal.end()

    terminal = run("stty -isig; echo ready; head -c 1; exit 3", "--app", "raw")
    terminal.until(b"ready")
    os.write(terminal.master, b"\x03\r")
    fact("a key that is no signal to the command explains no failure",
         terminal.leader_ends() and len(reports("raw")) == 1)
    terminal.end()


def bells():
    terminal = Terminal([BUGPACK, "run", "-o", "reports", "--app", "belled", "--", "sh", "-c",
                         "echo ready; read line; echo got $line"])
    terminal.until(b"ready")
    os.write(terminal.master, b"\x1b[24~")
    is_rung = terminal.until(b"\x07")
    os.write(terminal.master, b"x\r")
    fact("the hotkey rings the bell once, and the path comes when the command has ended",
         is_rung and terminal.until(b"got x\r\nbugpack: report written: ") and
         terminal.output.count(b"\x07") == 1)
    terminal.end()


try:
    pty.openpty()
except OSError as error:
    print(f"skipped: there is no terminal: {error}")
    sys.exit(77)
hangups()
stops()
deaths()
failures()
bells()
sys.exit(1 if wrong else 0)
