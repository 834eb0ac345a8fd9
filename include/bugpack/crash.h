/*
 * The crash handler: what the process died of, for the report that the next session makes of it.
 */
#ifndef BUGPACK_CRASH_H
#define BUGPACK_CRASH_H

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/session.h>

BUGPACK_BEGIN_DECLS

/*
 * Handles SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP and SIGSYS of this process until
 * bugpack_close. A second call on the same session does nothing.
 *
 * The handler writes signal, code, address, thread, registers, up to 256 KiB of the stack, the list
 * of mappings with their build ids, and names and stacks of the other threads, which it does not
 * stop, into a file of the session directory, 1,336 KiB, which is made now. It takes no lock,
 * allocates nothing, and runs on an alternate stack. Then it does what was there before: it calls
 * the host's handler, or the process dies of its signal, with the same wait status and core dump.
 * The next bugpack_open or `bugpack recover` writes a report of the kind `crash`, with crash.json,
 * stacks.json, process.json, the tags and session.json (bugpack_options,
 * recorder.crash_refresh_interval_ms).
 *
 * A handler that resumes the process, by returning or by siglongjmp, leaves no report. Install
 * yours after this call and pass on what it does not resume: then a signal that it handles costs
 * nothing here. With several threads that crash at once the first is recorded. A forked child has
 * no crash handler until it installs one; it passes signals on.
 *
 * Errors: INERT, CLOSED; INVALID (a session about another process); BUSY (another session of this
 * process has the handler); UNSUPPORTED (another system than Linux, or the rings are in memory:
 * bugpack_recorder_locate says why); IO, NO_MEMORY. on_diagnostic gets the reason, too. Any thread,
 * not in a signal handler.
 */
BUGPACK_API bugpack_status bugpack_crash_handler_install(bugpack_session *session,
                                                         bugpack_error *error);

/*
 * Records the exception that this process is about to die of, for `exception` in crash.json: its
 * type, plain or mangled, of which 255 bytes are kept, and its message, 511, or NULL. For a handler
 * of uncaught exceptions; bugpack.hpp has one. Without it, only exceptions of C++ are found, and a
 * message that std::runtime_error, std::logic_error or a text holds. The last call before the
 * signal counts. Does nothing without an installed crash handler. Any thread, not in a signal
 * handler.
 */
BUGPACK_API void bugpack_crash_explain(bugpack_session *session, const char *type,
                                       const char *message);

/*
 * Gives the calling thread an alternate stack of at least 64 KiB until it ends, so that an overflow
 * of its stack is recorded, too. Without it the process dies as before, and nothing is recorded. A
 * thread that has an alternate stack keeps it. bugpack_crash_handler_install does this for its own
 * caller. It needs no session.
 *
 * Errors: UNSUPPORTED (another system than Linux), NO_MEMORY, IO.
 */
BUGPACK_API bugpack_status bugpack_crash_thread_init(bugpack_error *error);

BUGPACK_END_DECLS

#endif
