"""A host in Python: a viewer of frames that are made up. `r` and Enter take a report, the end of
the input ends it. Its argument is the directory of the reports."""

import logging
import sys
import threading

import bugpack

log = logging.getLogger("display")


def show_frames(session, state, is_over):
    with session.channel("display", peer_port=5900) as channel, \
            session.watchdog("display", 2000) as watchdog:
        while not is_over.wait(0.01):
            watchdog.beat()
            state["frames"] += 1
            message = state["frames"].to_bytes(4, "little")
            channel.traffic(bugpack.RECEIVED, 7, "frame", message)
            if state["frames"] == 5:
                log.warning("frame 5 has an operation that is not known")
                session.gap("display:unimpl:draw_rop3")


def main():
    session = bugpack.Session("viewer", app_version="1", report_dir=sys.argv[1],
                              create_report_dir=True, pedantic={"is_enabled": True})
    with session:
        session.crash_handler_install()
        logging.getLogger().addHandler(bugpack.LogHandler(session))
        logging.getLogger().setLevel(logging.DEBUG)
        state, is_over = {"frames": 0}, threading.Event()
        session.provide("session.json", lambda writer: state)
        session.provide("python-stacks.txt", bugpack.python_stacks)
        thread = threading.Thread(target=show_frames, args=(session, state, is_over), name="display")
        thread.start()
        for line in sys.stdin:
            if line.strip() == "r":
                try:
                    print(session.report("taken by hand").path, flush=True)
                except bugpack.Error as error:
                    print(f"no report: {error}", file=sys.stderr)
        is_over.set()
        thread.join()


main()
