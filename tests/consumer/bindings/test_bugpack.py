"""The Python module against the installed library, each session in its own directory."""

import faulthandler
import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

import bugpack

QUICK = {"recorder": {"history_interval_ms": bugpack.OFF}, "sample_window_ms": bugpack.OFF,
         "stacks": bugpack.STACKS_NONE}


def entries(path):
    subprocess.run(["bugpack", "verify", path], check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def lines(entry):
    return [json.loads(line) for line in entry.splitlines()]


def run(code, *arguments):
    """A Python of its own."""
    return subprocess.run([sys.executable, "-B", "-c", "import bugpack, sys\n" + code, *arguments],
                          capture_output=True, text=True, timeout=120)


class Bindings(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def open(self, **options):
        recorder = {**QUICK["recorder"], "is_in_memory": True, **options.pop("recorder", {})}
        options = {**QUICK, "recorder": recorder, "report_dir": self.directory, **options}
        session = bugpack.Session("tested", **options)
        self.addCleanup(session.close)
        return session

    def manifest(self, path):
        return {row["name"]: row for row in json.loads(entries(path)["manifest.json"])["artefacts"]}

    def test_what_is_logged_is_in_the_report_and_long_messages_are_whole(self):
        session = self.open(recorder={"log_level": bugpack.Level.TRACE})
        logger = logging.getLogger("display.tile")
        logger.setLevel(1)
        logger.propagate = False
        handler = bugpack.LogHandler(session)
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        long = "ä€" * 5000
        logger.warning("tile %d of %s", 7, "display")
        logger.log(5, "traced")
        logger.critical(long)
        try:
            raise KeyError("rop3")
        except KeyError:
            logger.exception("not handled")
        rows = lines(entries(session.report().path)["logs.jsonl"])
        self.assertEqual((rows[0]["level"], rows[0]["channel"], rows[0]["message"]),
                         ("warn", "display.tile", "tile 7 of display"))
        self.assertEqual((rows[1]["level"], rows[1]["message"]), ("trace", "traced"))
        self.assertEqual("".join(row["message"] for row in rows if row["level"] == "fatal"), long)
        self.assertIn("KeyError: 'rop3'", rows[-1]["message"])

    def test_providers_write_values_text_pieces_and_pictures(self):
        session = self.open()
        session.provide("session.json", lambda writer: {"frames": [1, 2.5, None, "ü"]})
        session.provide("pieces.txt", lambda writer: (f"{n}\n" for n in range(3)))
        session.provide("raw.bin", lambda writer: b"\0\xff", kind=bugpack.PROVIDE_BYTES)
        session.provide("channel.txt", lambda writer: writer.channel)
        session.provide("screenshot.png", lambda writer: bugpack.Picture(b"\1\2\3\4" * 6, 2, 3))
        session.provide("python-stacks.txt", bugpack.python_stacks)
        read = entries(session.report(channel="main").path)
        self.assertEqual(json.loads(read["session.json"]), {"frames": [1, 2.5, None, "ü"]})
        self.assertEqual(read["pieces.txt"], b"0\n1\n2\n")
        self.assertEqual(read["raw.bin"], b"\0\xff")
        self.assertEqual(read["channel.txt"], b"main")
        self.assertTrue(read["screenshot.png"].startswith(b"\x89PNG"))
        self.assertIn(b"test_providers_write_values", read["python-stacks.txt"])

    def test_a_provider_that_fails_costs_its_entry(self):
        def cut(writer):
            yield "half"
            writer.truncate("a limit")

        session = self.open(limits={"provider_timeout_ms": 60000})
        deep = value = []
        for _ in range(100000):
            value.append([])
            value = value[0]
        session.provide("raises.json", lambda writer: {}["rop3"])
        session.provide("exits.txt", lambda writer: sys.exit(3))
        session.provide("nan.json", lambda writer: float("nan"))
        session.provide("deep.json", lambda writer: deep)
        session.provide("broken.json", lambda writer: "{")
        session.provide("omits.txt", lambda writer: writer.omit("there is no scene"))
        session.provide("cut.txt", cut)
        result = session.report()
        rows = self.manifest(result.path)
        self.assertRegex(rows["raises.json"]["reason"], r"^KeyError: 'rop3' \(test_bugpack.py:\d+\)$")
        self.assertIn("SystemExit: 3", rows["exits.txt"]["reason"])
        self.assertIn("ValueError", rows["nan.json"]["reason"])
        self.assertIn("RecursionError", rows["deep.json"]["reason"])
        self.assertIn("not valid JSON", rows["broken.json"]["reason"])
        self.assertEqual((rows["omits.txt"]["status"], rows["omits.txt"]["reason"]),
                         ("omitted", "there is no scene"))
        self.assertEqual((rows["cut.txt"]["status"], rows["cut.txt"]["bytes"]), ("truncated", 4))
        self.assertEqual(result.missing_count, 5)
        session.unprovide("raises.json")
        self.assertNotIn("raises.json", self.manifest(session.report().path))

    def test_a_provider_that_hangs_is_given_up_until_it_returns(self):
        session, is_over = self.open(limits={"provider_timeout_ms": 100}), threading.Event()
        self.addCleanup(is_over.set)
        session.provide("hangs.txt", lambda writer: is_over.wait() and None)
        self.assertEqual(self.manifest(session.report().path)["hangs.txt"]["status"], "timed_out")

    def test_one_session_serves_several_threads(self):
        session = self.open(pedantic={"is_enabled": True}, recorder={"log_ring_bytes": 1 << 20})
        paths, errors = [], []

        def work(number):
            try:
                with session.channel(f"c{number}") as channel:
                    for n in range(200):
                        session.log(bugpack.Level.INFO, f"{number}/{n}", "worker")
                        channel.traffic(bugpack.SENT, n, "frame", b"xyz")
                        session.gap("main:unimpl:rop3")
                paths.append(session.report(f"of {number}").path)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(set(paths)), 6)
        rows = lines(entries(session.report().path)["logs.jsonl"])
        self.assertEqual(len([row for row in rows if row["channel"] == "worker"]), 1200)
        session.close()
        self.assertEqual(len([name for name in os.listdir(self.directory) if "-pedantic-main" in name]), 1)

    def test_events_come_by_callback_and_by_descriptor(self):
        told, kinds = [], []
        session = self.open(on_event=told.append)
        descriptor = session.events_fd()
        future = session.report_async("from outside")
        while not kinds or kinds[-1].kind != bugpack.EventKind.WRITTEN:
            self.assertTrue(select.select([descriptor], [], [], 60)[0])
            kinds.append(session.next_event())
        self.assertIsNone(session.next_event())
        path = future.result(60).path
        session.close()
        self.assertEqual({event.ticket for event in told}, {future.ticket})
        self.assertEqual((told[-1].path, kinds[-1].path), (path, path))

    def test_a_callback_may_fail_and_may_not_wait_for_itself(self):
        said, failed = [], threading.Event()

        def on_event(event):
            if event.kind == bugpack.EventKind.WRITTEN:
                try:
                    session.report()
                except bugpack.Error as error:
                    said.append(error.status)
                failed.set()
                raise ValueError("mine")

        session = self.open(on_event=on_event)
        with self.assertLogs("bugpack", "ERROR") as logs:
            session.report()
            self.assertTrue(failed.wait(60))
            session.close()
        self.assertEqual(said, [bugpack.Status.INVALID])
        self.assertIn("ValueError: mine", logs.output[0])

    def test_errors_have_a_status_and_a_text(self):
        diagnosed = []
        session = self.open(on_diagnostic=lambda level, text: diagnosed.append((level, text)))
        for call, status, text in (
                (lambda: session.condition_add("weather > 3"), "INVALID", "condition 'weather > 3'"),
                (lambda: session.set_tag("a b", "c"), "INVALID", "key \"a b\""),
                (lambda: session.cancel(99), "NO_TICKET", "ticket 99"),
                (lambda: session.provide("../x", lambda writer: 1), "INVALID", "../x"),
                (lambda: session.report(output_path="/nowhere/x.zip"), "IO", "/nowhere"),
                (lambda: self.open(report_dir="/nowhere/reports"), "IO", "/nowhere/reports")):
            with self.assertRaises(bugpack.Error) as raised:
                call()
            self.assertEqual(raised.exception.status, bugpack.Status[status])
            self.assertIn(text, str(raised.exception))
        self.assertRaises(TypeError, self.open, report_directory="x")
        self.assertRaises(TypeError, self.open, on_event_context=3)
        self.assertRaises(TypeError, session.gap, "a", "b")
        self.assertRaises(ValueError, self.open, recorder={"history_interval_ms": -1})
        self.assertRaises(ValueError, bugpack.Picture, b"1234", 1, 2)
        watchdog = session.watchdog("ui", 5000)
        session.close()
        self.assertTrue(diagnosed)
        watchdog.beat()
        watchdog.close()
        session.log(bugpack.Level.INFO, "late")
        with self.assertRaises(bugpack.Error) as raised:
            session.report()
        self.assertEqual(raised.exception.status, bugpack.Status.CLOSED)

    def test_text_of_any_kind_is_recorded(self):
        session = self.open()
        for text in ("a\0b", "\ud800", os.fsdecode(b"\xff"), "100% %s %n", ""):
            session.log(bugpack.Level.INFO, text, text)
            session.notify_text(bugpack.Level.WARN, "server", None, text)
            session.gap(text)
        session.set_tag("gpu", "none %d")
        read = entries(session.report("what\0ever").path)
        self.assertIn("100% %s %n", [row["message"] for row in lines(read["logs.jsonl"])])
        self.assertEqual(json.loads(read["metadata.json"])["tags"], {"gpu": "none %d"})

    def test_a_forked_child_is_inert_and_may_open_its_own(self):
        session = self.open()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.log(bugpack.Level.INFO, "in the child")
                session.report()
            except bugpack.Error as error:
                session.close()
                own = bugpack.Session("child", report_dir=self.directory, **QUICK)
                code = 0 if error.status == bugpack.Status.INERT and own.report().zip_bytes else 2
                own.close()
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertNotIn(b"in the child", entries(session.report().path)["logs.jsonl"])

    def crash(self, before, end="fall()"):
        """What a host that dies has printed, and what is in the report of the next session."""
        died = run(f"""
import ctypes, faulthandler, os, threading
{before}
session = bugpack.Session("dies", report_dir=sys.argv[1])
session.crash_handler_install()
session.crash_handler_install()
session.log(bugpack.Level.INFO, "the last words")
def fall(): ctypes.string_at(0)
{end}""", self.directory)
        self.assertEqual(died.returncode, -signal.SIGSEGV, died.stderr)
        with bugpack.Session("dies", report_dir=self.directory, **QUICK) as session:
            session.flush(bugpack.OFF)
        path, = [name for name in os.listdir(self.directory) if "dies-crash" in name]
        read = entries(os.path.join(self.directory, path))
        self.assertEqual(json.loads(read["crash.json"])["signal"], signal.SIGSEGV)
        self.assertIn(b"the last words", read["logs.jsonl"])
        return died, read

    def functions(self, stack):
        return [frame["function"] for frame in stack.get("python_frames", ())]

    def backtrace(self, read):
        """Of the thread that crashed; None where no stack can be had."""
        return json.loads(read["crash.json"])["backtrace"] if "stacks.json" in read else None

    def test_a_crash_has_the_functions_of_each_thread_of_python(self):
        died, read = self.crash("", """
def wait(end): end.wait()
end = threading.Event()
waits = threading.Thread(target=wait, args=[end], daemon=True)
waits.start()
while not end._cond._waiters: pass
print(waits.native_id, flush=True)
falls = threading.Thread(target=fall)
falls.start(), falls.join()""")
        self.assertEqual(died.stderr, "")
        if self.backtrace(read) is None:
            return
        self.assertEqual(self.functions(self.backtrace(read))[:3], ["string_at", "fall", "run"])
        self.assertIn(b"string_at", read["stacks.txt"])
        thread, = [each for each in json.loads(read["stacks.json"])["threads"] if each["tid"] == int(died.stdout)]
        if thread["state"] == "blocked":  # a busy machine may not have let it get there
            self.assertIn("wait", self.functions(thread))

    def test_faulthandler_of_the_host_still_speaks(self):
        died, read = self.crash("faulthandler.enable()")
        self.assertIn("in fall", died.stderr)
        self.assertEqual(self.functions(self.backtrace(read) or {}), [])

    def test_a_forked_child_writes_into_no_report_and_an_end_disables_faulthandler(self):
        _, read = self.crash("""
with bugpack.Session("first", report_dir=sys.argv[1]) as first:
    first.crash_handler_install()
    assert faulthandler.is_enabled()
assert not faulthandler.is_enabled()""", """
def fall_in_child(): fall()
child = os.fork()
if child == 0: fall_in_child()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -11
fall()""")
        if self.backtrace(read) is not None:
            self.assertEqual(self.functions(self.backtrace(read)), ["string_at", "fall", "<module>"])

    def test_the_end_of_the_program_closes_its_session(self):
        done = run("""
import threading
session = bugpack.Session("ends", report_dir=sys.argv[1], limits={"provider_timeout_ms": 100})
session.provide("hangs.txt", lambda writer: threading.Event().wait())
session.report_async()""", self.directory)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        path, = [name for name in os.listdir(self.directory) if name.endswith(".zip")]
        self.assertEqual(self.manifest(os.path.join(self.directory, path))["hangs.txt"]["status"], "timed_out")

    def test_signals_of_python_arrive_while_a_report_is_waited_for(self):
        came, session, is_over = [], self.open(), threading.Event()

        def kills(writer):
            os.kill(os.getpid(), signal.SIGUSR1)
            is_over.wait(2)

        def see(*_):
            came.append(signal.SIGUSR1)
            is_over.set()

        signal.signal(signal.SIGUSR1, see)
        session.provide("kills.txt", kills)
        session.report()
        self.assertEqual(came, [signal.SIGUSR1])


if __name__ == "__main__":
    faulthandler.enable()
    unittest.main()
