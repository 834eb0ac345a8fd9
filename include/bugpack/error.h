/*
 * Errors.
 *
 * A function that can fail returns a bugpack_status: BUGPACK_OK, which is 0, or a negative value.
 * It takes an optional bugpack_error, which the caller owns and may pass as NULL. It is written
 * only on failure. There is no thread-local "last error". Calls of a provider that write have none:
 * the manifest says why an artefact failed.
 */
#ifndef BUGPACK_ERROR_H
#define BUGPACK_ERROR_H

#include <bugpack/common.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/*
 * The kinds of failure. Later versions may add kinds, always negative; a value never changes its
 * meaning.
 */
typedef enum bugpack_status {
    BUGPACK_OK = 0,
    BUGPACK_ERR_INVALID = -1,      /* an argument is not acceptable: a bug in the caller */
    BUGPACK_ERR_NO_MEMORY = -2,    /* an allocation failed */
    BUGPACK_ERR_IO = -3,           /* the operating system refused to read or write */
    BUGPACK_ERR_NO_PROCESS = -4,   /* the target process does not exist, or has ended */
    BUGPACK_ERR_TIMEOUT = -5,      /* the time that the caller allowed has passed */
    BUGPACK_ERR_DENIED = -6,       /* the operating system denies access to the target */
    BUGPACK_ERR_BUSY = -7,         /* a report is under way, or too many wait; nothing was queued */
    BUGPACK_ERR_INERT = -8,        /* the session belongs to the parent of this forked process */
    BUGPACK_ERR_CLOSED = -9,       /* the session is being closed */
    BUGPACK_ERR_UNSUPPORTED = -10, /* this system has no way to do it */
    BUGPACK_ERR_CORRUPT = -11,     /* the data read are not what they claim to be */
    BUGPACK_ERR_CANCELLED = -12,   /* the host cancelled the report */
    BUGPACK_ERR_LIMIT = -13,    /* a bound of the library, or one that the host set, is reached */
    BUGPACK_ERR_NO_TICKET = -14 /* no such report waits, runs or is retained */
} bugpack_status;

/* Bytes of a message, with its NUL. A longer one is cut at its end. */
#define BUGPACK_ERROR_MESSAGE_BYTES 512

/*
 * A failure, in the caller's storage. `message` is one sentence of valid UTF-8 without a final
 * newline, which names the thing: `cannot write "/x/y.zip": No space left on device`.
 * `system_errno` is the errno of the operating system, or 0. This struct never grows.
 */
typedef struct bugpack_error {
    bugpack_status status;
    int system_errno;
    char message[BUGPACK_ERROR_MESSAGE_BYTES];
} bugpack_error;

#define BUGPACK_ERROR_INIT                                                                         \
    { BUGPACK_OK, 0, "" }

/*
 * A short English name of a status, such as "no such process". Static and never NULL, also for a
 * value that this version does not know. Any thread.
 */
BUGPACK_API const char *bugpack_status_name(bugpack_status status);

BUGPACK_END_DECLS

#endif
