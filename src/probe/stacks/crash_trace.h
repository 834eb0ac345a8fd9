/*
 * Traces a child process, and copies what it dies of.
 *
 * A tracee stops for each signal before it is delivered, and goes on at once, except at one that
 * ends the process because nobody handles it: what a handler of fatal signals would see is copied
 * first. A process that handles its faults, as runtimes do, is never taken for dead. Threads are
 * traced, child processes are not. PTRACE_SEIZE without EXITKILL: the end of the tracer leaves the
 * process running.
 */
#ifndef BP_STACKS_CRASH_TRACE_H
#define BP_STACKS_CRASH_TRACE_H

#include <sys/types.h>

#include <bugpack/error.h>

#include "base/aside.h"
#include "model/stacks.h"
#include "platform/crash_page.h"

/*
 * Starts a thread that traces process `pid`, which is about to execute `program`, whose file is
 * `file`, until it has ended. A process has one trace, once. Files are read by `run_aside`: without
 * an answer in five seconds, the words of an abort and the functions of Python are missing.
 *
 * While it lasts, waitid and waitpid of the parent also return the stops of the process, where the
 * parent is this process: use WNOWAIT until they return its end.
 *
 * Errors: DENIED (it may not be traced, or tracing would take a privilege from the program),
 * UNSUPPORTED (another system), NO_PROCESS, NO_MEMORY, IO.
 */
bugpack_status bp_crash_trace_start(pid_t pid, const char *program, const char *file,
                                    bp_aside_runner *run_aside, bugpack_error *error);

/*
 * After the end of the process by signal `number`, and before a process that waits for it has
 * reaped it: the copy, which stays valid; or NULL with the reason. May be called without a trace.
 */
const bp_crash_page *bp_crash_trace_finish(int number, const char **ret_reason);

/* The functions of Python of the thread that crashed, as bp_page_python has them. As valid. */
const bp_stacks *bp_crash_trace_python(void);

#endif
