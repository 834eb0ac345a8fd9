/*
 * Who owns a session directory: a record lock between processes, a list of names inside this one,
 * because POSIX record locks do not conflict within a process.
 */
#ifndef BP_RECORDER_SESSION_LOCK_H
#define BP_RECORDER_SESSION_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Lists a directory's name as used by this process; false when it is already, or without memory.
 * Any thread. */
bool bp_session_lock_claim(const char *name);
void bp_session_lock_release(const char *name);

/* Takes the write lock of a file without waiting. Held until the process closes any descriptor of
 * the file, so claim the name before opening one. */
bool bp_session_lock_take(int fd);

/* The process that holds it: -1 for nobody, 0 for one in another pid namespace. */
int64_t bp_session_lock_holder(int fd);

#endif
