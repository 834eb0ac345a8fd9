/*
 * The file of a command, and why the system refuses to execute it.
 */
#ifndef BP_RUN_EXECUTABLE_H
#define BP_RUN_EXECUTABLE_H

#include <limits.h>
#include <stdbool.h>

enum { BP_EXECUTABLE_REASON_BYTES = 256 };

/*
 * Finds the file as execvp(3) does: `command` itself where it has a slash, or else the first
 * executable file of that name in the folders of `path`, which are separated by colons. False where
 * there is none, or `path` is NULL.
 */
bool bp_run_executable_find(const char *command, const char *path, char ret_file[PATH_MAX]);

/*
 * True where the first line of the file has a NUL: no shell can read it. execvp(3) hands every file
 * of a format that the kernel does not know to sh, also a program for another processor.
 */
bool bp_run_executable_is_binary(const char *file);

/* Why execve(2) refused the file with this errno: for which processor it is, which interpreter does
 * not exist; or no more than the errno says. */
void bp_run_executable_explain(const char *file, int system_errno,
                               char ret_reason[BP_EXECUTABLE_REASON_BYTES]);

#endif
