/*
 * Filling a caller's error. Every function that can fail ends in one of these, so that a status
 * never travels without its sentence.
 */
#ifndef BP_BASE_STATUS_H
#define BP_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/*
 * Writes the formatted sentence and `status` into `error`, when there is one, and returns `status`:
 * `return bp_fail(error, BUGPACK_ERR_INVALID, "the application needs a name");`
 * Bytes that are not UTF-8, and control characters, become '?' so that a hostile file name can
 * neither break a terminal nor a JSON text. Any thread.
 */
bugpack_status bp_fail(bugpack_error *error, bugpack_status status, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/*
 * The same for a failed system call: appends ": " and the description of `system_errno`, and keeps
 * the number. ENOMEM gives NO_MEMORY, everything else IO; the form for calls about a process turns
 * ESRCH and ENOENT into NO_PROCESS, and EACCES and EPERM into DENIED.
 */
bugpack_status bp_fail_errno(bugpack_error *error, int system_errno, const char *format, ...)
    BUGPACK_PRINTF(3, 4);
bugpack_status bp_fail_process_errno(bugpack_error *error, int system_errno, const char *format,
                                     ...) BUGPACK_PRINTF(3, 4);

/*
 * True if nothing can be concluded from an errno, because it is about us or a device: no
 * descriptors, no memory, failed input or output, or an error that the call should not return.
 * False when the thing is absent, of another kind or denied, or the system cannot do it at all.
 */
bool bp_errno_is_trouble(int system_errno);

#define BP_ERRNO_BYTES 128

/* INVALID with `argument` and the rule in its sentence, unless `text` has `min_bytes` to
 * `max_bytes` bytes. NULL is fine where an empty text is. */
bugpack_status bp_check_text(const char *argument, const char *text, size_t min_bytes,
                             size_t max_bytes, bugpack_error *error);

/* The system's name of an errno: "Too many open files"; "error 4711" for one it does not know. */
void bp_describe_errno(int system_errno, char out[BP_ERRNO_BYTES]);

/* "cannot …: out of memory" without allocating. */
bugpack_status bp_fail_memory(bugpack_error *error, const char *what);

/* "trace" to "fatal", "unknown" for what is no bugpack_level. Static. */
const char *bp_level_name(uint8_t level);

#endif
