"""bugpack for Python: one call, and a zip explains the bug of a running program.

    import bugpack, logging

    with bugpack.Session("viewer", report_dir="/var/tmp/viewer", create_report_dir=True) as session:
        logging.getLogger().addHandler(bugpack.LogHandler(session))
        session.provide("session.json", lambda writer: {"frames": 17})
        print(session.report("the picture is torn").path)

Options, limits, and methods that are not defined here are those of the C headers, without
"bugpack_": session.set_tag("gpu", "none"), session.gap("display:unimpl:rop3"). A number or text at
the end may be left out: 0, NULL. A call that fails raises Error. Any thread may make any call.

No Python of the host runs on a thread of the library, where stacks are small: each call of a
provider has a thread, and callbacks run one after the other on "bugpack-python". An exception
stays there. After os.fork the child's session is inert, and Error(INERT) is raised.
"""

import atexit
import concurrent.futures
import ctypes
import enum
import faulthandler
import itertools
import json
import logging
import os
import queue
import re
import sys
import threading
import traceback
import types

NEEDS = (0, 1)  # the version of the library, or a later one of the same major version


def _enum(name, words, step):
    return enum.IntEnum(name, [(word, step * value) for value, word in enumerate(words.split())])


Status = _enum("Status", "OK INVALID NO_MEMORY IO NO_PROCESS TIMEOUT DENIED BUSY INERT CLOSED "
               "UNSUPPORTED CORRUPT CANCELLED LIMIT NO_TICKET", -1)
Level = _enum("Level", "DEFAULT TRACE DEBUG INFO WARN ERROR FATAL OFF", 1)
EventKind = _enum("EventKind", "STARTED PROGRESS WRITTEN FAILED HANG_ENDED", 1)
OFF = 0xFFFFFFFFFFFFFFFF
WHEN_BUSY_QUEUE, WHEN_BUSY_REFUSE, WHEN_BUSY_COALESCE = range(3)
STACKS_BLOCKED, STACKS_NONE, STACKS_ALL, STACKS_ALL_PTRACER = range(4)
PIXELS_RGBA, PIXELS_BGRA, PIXELS_RGBX, PIXELS_BGRX = range(4)
PROVIDE_JSON, PROVIDE_TEXT, PROVIDE_BYTES, PROVIDE_SCREENSHOT = range(4)
FILE_WHOLE, FILE_LOG_TAIL, FILE_JSON = range(3)
SENT, RECEIVED = range(2)
PAYLOAD_REDACTED, PAYLOAD_NONE, PAYLOAD_EXACT = range(3)
REDACT_REPORTS, REDACT_AT_CALL, REDACT_NEVER = range(3)
PART_CONTINUES, PART_UNFINISHED = 1, 2
LOG_MESSAGE_MAX_BYTES = 4096

# The declarations of the headers, without "bugpack_": `self` is a bugpack_session, `str` a const char *,
# `ptr` any other pointer. A test compiles them beside the headers, and the constants above.
_STRUCTS = """
error: status status; int system_errno; char message[512];
region: uint32_t x, y, width, height;
picture: ptr pixels; size_t stride; uint32_t width, height; pixel_format format; uint32_t reserved;
options: size_t struct_size; str app_name, app_version, app_build_id, report_dir; bool
 create_report_dir, with_hostname, answers_trigger, without_process,
 target_with_descendants; pid_t target_pid; when_busy when_busy; stacks stacks; uint64_t
 sample_window_ms; str without_entries, calibrator_path; ptr on_event, on_event_context,
 on_diagnostic, on_diagnostic_context, before_publish, before_publish_context; str recorder.dir; bool
 recorder.is_in_memory; level recorder.log_level; uint64_t recorder.log_ring_bytes,
 recorder.traffic_budget_bytes, recorder.history_interval_ms, recorder.profile_hz,
 recorder.crash_refresh_interval_ms, recorder.reserved[4]; bool pedantic.is_enabled; str pedantic.dir;
 uint64_t pedantic.cap, pedantic.channel_cap;
 uint64_t pedantic.reserved[4], auto_snapshot.interval_ms; str auto_snapshot.dir; uint64_t
 auto_snapshot.max_count, auto_snapshot.max_bytes, auto_snapshot.reserved[4]; redaction_mode
 redaction.mode; str redaction.rules; uint64_t redaction.reserved[4], limits.provider_timeout_ms,
 limits.artefact_bytes, limits.max_zip_bytes, limits.report_dir_max_count, limits.report_dir_max_bytes,
 limits.min_free_bytes, limits.disconnect_cooldown_ms, limits.disconnect_cap,
 limits.hang_cooldown_ms, limits.hang_cap, limits.condition_cooldown_ms, limits.condition_cap,
 limits.per_signature, limits.reserved[4];
report_request: size_t struct_size; str description, channel, output_path; uint64_t timeout_ms;
 bool all_traffic; ptr screenshot; region region; uint64_t retained; ptr ret_ticket,
 screenshot_context, screenshot_release;
report_result: size_t struct_size; status status; error error; uint32_t missing_count; uint64_t
 zip_bytes, elapsed_ns; char path[4096], missing[2048], not_searched[512];
recorder_location: size_t struct_size; uint64_t survives; char path[4096], reason[256];
event: size_t struct_size; event_kind kind; uint64_t ticket; char report_type[24]; uint32_t
 percent, missing_count; error error; char path[4096], watchdog[65]; uint64_t duration_ms;
channel_options: size_t struct_size; uint64_t weight; bool host_is_server; uint16_t
 host_port, peer_port; payload payload; uint64_t pin_bytes, snap_bytes; ptr filter,
 filter_context;"""
_CALLS = """
str version(void); str status_name(status); status open(const options*, self**, error*);
void close(self*); status flush(self*, uint64_t, error*);
status cancel(self*, uint64_t, error*); status redact_add(self*, str, error*);
status set_tag(self*, str, str, error*); status crash_handler_install(self*, error*);
status condition_add(self*, str, error*); status recorder_locate(self*, recorder_location*, error*);
int events_fd(self*, error*); bool next_event(self*, event*); bool log_wants(const self*, level);
void log_set_level(self*, level); void log_part(self*, level, str, const void*, size_t, unsigned);
void notify_text(self*, level, str, uint64_t*, str);
status report_async(self*, const report_request*, report_callback*, void*, error*);
status disconnect(self*, str, str, const disconnect_details*, error*); bool pedantic_enable(self*, bool); void gap(self*, str);
void gap_unknown(self*, str, uint64_t, const void*, size_t);
status provide(self*, str, provider_kind, provider_callback*, void*, error*);
status provide_file(self*, str, str, file_kind, uint64_t, error*); bool unprovide(self*, str);
status write(writer*, const void*, size_t); status write_picture(writer*, const picture*);
str report_channel(const writer*); int fail_text(writer*, str); int omit_text(writer*, str);
void truncate_text(writer*, bool, str);
status channel_open(self*, str, const channel_options*, channel**, error*);
void traffic(channel*, direction, uint32_t, str, const void*, size_t);
void channel_close(channel*); status watchdog_open(self*, str, uint64_t, watchdog**, error*);
void watchdog_beat(watchdog*); void watchdog_pause(watchdog*); void watchdog_close(watchdog*);"""

_TYPES = {"void": None, "bool": ctypes.c_bool, "char": ctypes.c_char, "int": ctypes.c_int,
          "unsigned": ctypes.c_uint, "pid_t": ctypes.c_int, "size_t": ctypes.c_size_t,
          "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64,
          "str": ctypes.c_char_p, "ptr": ctypes.c_void_p}


def _type(name):
    return ctypes.c_void_p if "*" in name else _TYPES.get(name, ctypes.c_int)  # an enumeration


def _fields(members):
    for declared, names in re.findall(r"(\w+) (.+?);", members):
        for name, count in re.findall(r"([\w.]+)(?:\[(\d+)\])?", names):
            yield name, _type(declared) * int(count) if count else _type(declared)


for _name, _members in re.findall(r"^(\w+):(.*(?:\n .*)*)", _STRUCTS, re.MULTILINE):
    _fields_of = list(_fields(" ".join(_members.split())))
    _TYPES[_name] = type(_name, (ctypes.Structure,), {"_fields_": _fields_of})
_PROTOTYPES = {call: (result, parameters.split(", ")) for result, call, parameters in
               re.findall(r"(\w+) (\w+)\((.*?)\);", " ".join(_CALLS.split()))}


def _load():
    name = "libbugpack.0.dylib" if sys.platform == "darwin" else "libbugpack.so.0"
    try:
        library = ctypes.CDLL(name)
        library.bugpack_version.restype = ctypes.c_char_p
        version = library.bugpack_version().decode()
        has = tuple(int(part) for part in version.split(".")[:2])
        if has[0] != NEEDS[0] or has < NEEDS:
            raise ImportError(f"{name} is version {version}; this module needs version "
                              f"{NEEDS[0]}.{NEEDS[1]}, or a later one of the same major version")
        calls = types.SimpleNamespace()
        for call, (result, parameters) in _PROTOTYPES.items():
            function = getattr(library, "bugpack_" + call)
            function.restype = _type(result)
            function.argtypes = [_type(each) for each in parameters if each != "void"]
            setattr(calls, call, function)
        return calls
    except OSError as error:
        raise ImportError(f"the library of bugpack cannot be loaded: {error}") from None
    except AttributeError as error:
        raise ImportError(f"the library is too old for this module: {error}") from None


_library = _load()


class Error(Exception):
    """A call failed: `status` is one of Status, or of a newer library."""

    def __init__(self, status, text="", system_errno=0):
        super().__init__(text or _library.status_name(status).decode())
        self.status = status
        self.system_errno = system_errno


def _bytes(text):
    """Text for C, where a NUL would end it."""
    if text is None:
        return None
    if not isinstance(text, bytes):
        try:
            text = str(text).encode("utf-8", "surrogateescape")  # as in paths
        except UnicodeEncodeError:
            text = str(text).encode("utf-8", "replace")
    return text.replace(b"\0", "\ufffd".encode())


def _python(value):
    """A value of C, as Python has it."""
    if isinstance(value, _TYPES["error"]):
        return Error(value.status, _python(value.message), value.system_errno)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _read(struct):
    return types.SimpleNamespace(**{name: _python(getattr(struct, name))
                                    for name, _ in struct._fields_ if name != "struct_size"})


def _do(call, *arguments):
    """A call with an error at its end."""
    error = _TYPES["error"]()
    result = getattr(_library, call)(*arguments, ctypes.byref(error))
    if error.status != Status.OK:
        raise _python(error)
    return result


def _method(call):
    """The method of a call. Arguments that are left out are 0 or NULL."""
    _, *parameters = _PROTOTYPES[call][1]
    can_fail = "error*" in parameters
    parameters = [each for each in parameters if each != "error*"]

    def method(self, *given):
        arguments, left = [self._open if can_fail else self._handle], list(given)
        for each in parameters:
            if each == "size_t":  # of the bytes before
                arguments.append(len(arguments[-1]))
            else:
                value = left.pop(0) if left else None
                if each == "str":
                    value = _bytes(value)
                arguments.append(bytes(value or b"") if each == "const void*" else
                                 0 if value is None and each != "str" else value)
        if left:
            raise TypeError(f"{call} has fewer arguments: {left!r}")
        return _do(call, *arguments) if can_fail else getattr(_library, call)(*arguments)

    return method


def _struct(name, given):
    """A struct of the host with these members."""
    struct = _TYPES[name]()
    struct.struct_size = ctypes.sizeof(struct)
    kinds = dict(struct._fields_)
    inside = {f"{group}.{member}": value for group, members in given.items()
              if isinstance(members, dict) for member, value in members.items()}
    alone = {member: value for member, value in given.items() if not isinstance(value, dict)}
    for member, value in {**alone, **inside}.items():
        kind = kinds.get(member, ctypes.c_void_p)
        if kind is ctypes.c_void_p or member == "struct_size":
            raise TypeError(f"{name} has no {member!r} that can be given here")
        setattr(struct, member, _bytes(value) if kind is ctypes.c_char_p else value)
        if kind is not ctypes.c_char_p and getattr(struct, member) != value:
            raise ValueError(f"{member} cannot be {value!r}")
    return struct


_sessions = set()  # that are open
_objects = {}  # by their numbers, which are the contexts of callbacks
_numbers = itertools.count(1)
_callbacks = None  # the thread of the host's callbacks


def _keep(thing):
    number = next(_numbers)
    _objects[number] = thing
    return number


class _Callbacks(threading.Thread):
    def __init__(self):
        super().__init__(name="bugpack-python", daemon=True)
        self._waiting = queue.SimpleQueue()
        self.start()

    def post(self, function, *arguments):
        self._waiting.put((function, arguments))

    def run(self):
        while True:
            function, arguments = self._waiting.get()
            try:
                function(*arguments)
            except BaseException:  # also SystemExit, which would end this thread alone
                logging.getLogger("bugpack").exception("a callback of bugpack failed")
            del function, arguments


def _after_fork():
    global _callbacks
    _callbacks = None
    for session in _sessions:
        session._end_faults()
    _sessions.clear()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all():
    for session in list(_sessions):
        session.close()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def _on_event(event, number):
    _callbacks.post(_objects[number], _read(_TYPES["event"].from_address(event)))


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def _on_diagnostic(level, text, number):
    _callbacks.post(_objects[number], Level(level), _python(text))


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def _on_done(result, number):
    result, future = _read(_TYPES["report_result"].from_address(result)), _objects.pop(number)
    if result.status == Status.OK:
        _callbacks.post(future.set_result, result)
    else:
        _callbacks.post(future.set_exception, result.error)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def _on_provide(address, number):
    try:
        writer = Writer(_python(_library.report_channel(address)))
        thread = threading.Thread(target=writer._run, args=(_objects[number],), daemon=True,
                                  name="bugpack-fill")
        thread.start()
        thread.join()
        result = 0
        for call, *arguments in writer._calls:
            result = call(address, *arguments)
        return result or 0  # of the last one
    except BaseException as error:
        return _library.fail_text(address, _bytes(repr(error)))


class Picture(_TYPES["picture"]):
    """Pixels of four bytes: `height` rows of `width`, the upper row first."""

    def __init__(self, pixels, width, height, pixel_format=PIXELS_RGBA):
        self._kept = bytes(pixels)
        if min(width, height) < 1 or len(self._kept) != 4 * width * height:
            raise ValueError("a picture needs four bytes for each of its pixels")
        super().__init__(ctypes.cast(self._kept, ctypes.c_void_p), 0, width, height, pixel_format)


class Writer:
    """What a provider is called with. `channel` is what the report is about, or None."""

    def __init__(self, channel):
        self.channel = channel
        self._calls = []  # for the thread of the library

    def write(self, content):
        """Appends text and bytes as they are, a Picture as a PNG, anything else as JSON."""
        if isinstance(content, Picture):
            self._calls.append((_library.write_picture, ctypes.byref(content)))
            return
        if not isinstance(content, (str, bytes, bytearray, memoryview)):
            content = json.dumps(content, allow_nan=False)
        raw = content.encode("utf-8", "replace") if isinstance(content, str) else bytes(content)
        self._calls.append((_library.write, raw, len(raw)))

    def omit(self, reason):
        """There is nothing to collect: the entry is left out, and does not count as missing."""
        self._calls.append((_library.omit_text, _bytes(reason)))

    def truncate(self, reason, is_missing=False):
        """The entry is incomplete, because of a limit, or of a failure if `is_missing`."""
        self._calls.append((_library.truncate_text, is_missing, _bytes(reason)))

    def _run(self, fill):
        try:
            content = fill(self)
            for piece in content if hasattr(content, "__next__") else (content,):
                if piece is not None:
                    self.write(piece)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = "".join(traceback.format_exception_only(type(error), error)).strip()
            said = f"{said} ({os.path.basename(place.filename)}:{place.lineno})"
            self._calls.append((_library.fail_text, _bytes(said)))


def _open_private(path, flags):
    return os.open(path, flags, 0o600)


def python_stacks(writer):
    """A provider for "python-stacks.txt": where each thread of Python is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            stack = "".join(traceback.format_stack(frame))
            writer.write(f"thread {names.get(ident, ident)}:\n{stack}\n")


class _Closes:
    _handle = None  # NULL: calls without a status do nothing

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def _open(self):
        if self._handle is None:
            raise Error(Status.CLOSED)
        return self._handle


class Session(_Closes):
    """A session with these bugpack_options; a struct inside is a dict, as in
    pedantic={"is_enabled": True}. on_event(event) and on_diagnostic(level, text) run on a thread of
    Python."""

    def __init__(self, app_name, *, on_event=None, on_diagnostic=None, **options):
        global _callbacks
        given = _struct("options", dict(options, app_name=app_name))
        if _callbacks is None:
            _callbacks = _Callbacks()
        self._kept, self._faults = [], None
        for name, function, callback in (("on_event", on_event, _on_event),
                                         ("on_diagnostic", on_diagnostic, _on_diagnostic)):
            if function is not None:
                self._kept.append(_keep(function))
                setattr(given, name, ctypes.cast(callback, ctypes.c_void_p))
                setattr(given, name + "_context", self._kept[-1])
        handle = ctypes.c_void_p()
        try:
            _do("open", ctypes.byref(given), ctypes.byref(handle))
        except Error:
            self._forget()
            raise
        self._handle = handle.value
        _sessions.add(self)

    def close(self):
        """Writes what was triggered, and ends. Later calls do nothing, or raise Error(CLOSED)."""
        _library.close(self._handle)
        self._handle = None
        self._end_faults()
        if self in _sessions and threading.current_thread() is not _callbacks:
            callbacks_ran = threading.Event()
            _callbacks.post(callbacks_ran.set)
            callbacks_ran.wait(2)
        _sessions.discard(self)
        self._forget()

    def _end_faults(self):
        faults, self._faults = self._faults, None
        if faults is not None:
            faulthandler.disable()
            faults.close()

    def crash_handler_install(self):
        """Records what the process dies of, with the functions of Python of each thread, which
        faulthandler writes for the report. Where the host has enabled that before, it stays as it
        is, and the report lacks them."""
        location = self.recorder_location()
        if location.path and not faulthandler.is_enabled():
            self._faults = open(os.path.join(location.path, "python"), "xb", opener=_open_private)
            faulthandler.enable(self._faults)
        try:
            _do("crash_handler_install", self._open)
        except Error:
            self._end_faults()
            raise

    def recorder_location(self):
        """The bugpack_recorder_location: where the records of the session are."""
        location = _struct("recorder_location", {})
        _do("recorder_locate", self._open, ctypes.byref(location))
        return _read(location)

    def _forget(self):
        while self._kept:
            _objects.pop(self._kept.pop(), None)

    def log(self, level, message, channel=None):
        """Records a message; a long one in parts, and up to 64 KiB of it."""
        raw = message if isinstance(message, bytes) else str(message).encode("utf-8", "replace")
        begin, raw = 0, raw[:16 * LOG_MESSAGE_MAX_BYTES]
        while begin < len(raw) or begin == 0:
            end = begin + LOG_MESSAGE_MAX_BYTES
            while len(raw) > end > begin + LOG_MESSAGE_MAX_BYTES - 4 and raw[end] & 0xC0 == 0x80:
                end -= 1  # not within a character
            part = (PART_CONTINUES if begin else 0) | (PART_UNFINISHED if end < len(raw) else 0)
            piece, begin = raw[begin:end], end
            _library.log_part(self._handle, level, _bytes(channel), piece, len(piece), part)

    def report_async(self, description=None, *, screenshot=None, region=(0, 0, 0, 0), **request):
        """Triggers a report of this instant. Returns at once a concurrent.futures.Future of the
        bugpack_report_result, with its `ticket`. `request` has members of bugpack_report_request,
        `screenshot` is a Picture."""
        given = _struct("report_request", dict(request, description=description))
        ticket, future = ctypes.c_uint64(), concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        given.region = _TYPES["region"](*region)
        given.ret_ticket = ctypes.addressof(ticket)
        given.screenshot = None if screenshot is None else ctypes.addressof(screenshot)
        number = _keep(future)
        try:
            _do("report_async", self._open, ctypes.byref(given), _on_done, number)
        except Error:
            _objects.pop(number, None)
            raise
        future.ticket = ticket.value
        return future

    def report(self, description=None, **request):
        """The same, and waits for the result."""
        if threading.current_thread() is _callbacks:
            raise Error(Status.INVALID, "a report inside a callback would wait for itself")
        return self.report_async(description, **request).result()

    def provide(self, name, fill, kind=None):
        """Calls fill(writer) for each report. What it returns or yields is written by writer.write;
        an exception fails the entry. `kind` is one of PROVIDE_…; without it the name decides."""
        if kind is None:
            kind = PROVIDE_SCREENSHOT if name == "screenshot.png" else (
                PROVIDE_JSON if name.endswith(".json") else PROVIDE_TEXT)
        number = _keep(fill)
        try:
            _do("provide", self._open, _bytes(name), kind, _on_provide, number)
        except BaseException:
            _objects.pop(number, None)
            raise
        self._kept.append(number)

    def next_event(self):
        """The oldest bugpack_event that waits, or None. events_fd() is readable while one does."""
        event = _struct("event", {})
        return _read(event) if _library.next_event(self._handle, ctypes.byref(event)) else None

    def channel(self, name, **options):
        """Opens a Channel with these bugpack_channel_options."""
        given = _struct("channel_options", options)
        return Channel(self, "channel_open", _bytes(name), ctypes.byref(given))

    def watchdog(self, name, limit_ms):
        return Watchdog(self, "watchdog_open", _bytes(name), limit_ms)


class _Part(_Closes):
    """What ends before its session, or with it."""

    def __init__(self, session, call, *arguments):
        handle = ctypes.c_void_p()
        _do(call, session._open, *arguments, ctypes.byref(handle))
        self._session, self._own = session, handle.value

    @property
    def _handle(self):
        return self._own if self._session._handle else None

    def close(self):
        handle, self._own = self._handle, None
        self._end(handle)


class Channel(_Part):
    """traffic(direction, type, type_name, message) records a message."""
    _end = staticmethod(_library.channel_close)
    traffic = _method("traffic")


class Watchdog(_Part):
    """beat() and pause() are for the thread that is watched."""
    _end = staticmethod(_library.watchdog_close)
    beat, pause = _method("watchdog_beat"), _method("watchdog_pause")


for _call, (_, _parameters) in _PROTOTYPES.items():
    if "self*" in _parameters[0] and not hasattr(Session, _call) and \
            not any(each.endswith(("**", "callback*")) for each in _parameters):
        setattr(Session, _call, _method(_call))


class LogHandler(logging.Handler):
    """Records in a session what is logged. The channel is the name of the logger."""

    def __init__(self, session, level=logging.NOTSET):
        super().__init__(level)
        self._session = session

    def emit(self, record):
        level = min(max(record.levelno // 10 + 1, Level.TRACE), Level.FATAL)
        try:
            if _library.log_wants(self._session._handle, level):
                self._session.log(level, self.format(record), record.name)
        except Exception:
            self.handleError(record)
