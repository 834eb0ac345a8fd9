#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/utf8.h"

/* Makes a sentence safe for a terminal and for JSON: file names in it may hold anything. */
static void clean_sentence(char *sentence) {
    unsigned char *bytes = (unsigned char *)sentence;
    size_t left = strlen(sentence);
    while (left > 0) {
        size_t length = bp_utf8_sequence_length(bytes, left);
        bool is_c1_control = length == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0;
        if (length == 0 || is_c1_control || (length == 1 && (*bytes < 0x20 || *bytes == 0x7F))) {
            *bytes = '?';
            length = 1;
        }
        bytes += length;
        left -= length;
    }
}

/* glibc's strerror_r has two signatures and no macro to ask which; overloads by type settle it. */
static const char *strerror_text(int result, const char *buffer) {
    return result == 0 ? buffer : NULL;
}
static const char *strerror_pointer(const char *result, const char *buffer) {
    (void)buffer;
    return result;
}

void bp_describe_errno(int system_errno, char out[BP_ERRNO_BYTES]) {
    char buffer[BP_ERRNO_BYTES] = "";
    const char *text =
        _Generic(strerror_r(system_errno, buffer, sizeof buffer), int
                 : strerror_text, default
                 : strerror_pointer)(strerror_r(system_errno, buffer, sizeof buffer), buffer);
    if (text != NULL && text[0] != '\0') {
        (void)snprintf(out, BP_ERRNO_BYTES, "%s", text);
    } else {
        (void)snprintf(out, BP_ERRNO_BYTES, "error %d", system_errno);
    }
}

bool bp_errno_is_trouble(int system_errno) {
    static const int answers[] = {0,     ENOENT, EFAULT, ENOTDIR, ESRCH,     EACCES,
                                  EPERM, ELOOP,  ESTALE, ENOSYS,  EOPNOTSUPP};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (system_errno == answers[i]) {
            return false;
        }
    }
    return true;
}

/* Puts the reason behind a sentence. It always fits: what it is about is cut where it is long. */
static void append_reason(char *sentence, size_t sentence_bytes, int system_errno) {
    static const char cut_mark[] = "...";
    char reason[BP_ERRNO_BYTES];
    bp_describe_errno(system_errno, reason);
    size_t used = strlen(sentence);
    size_t used_max = sentence_bytes - strlen(": ") - strlen(reason) - 1;
    if (used > used_max) {
        used = used_max - strlen(cut_mark);
        used += (size_t)snprintf(sentence + used, sizeof cut_mark, "%s", cut_mark);
    }
    (void)snprintf(sentence + used, sentence_bytes - used, ": %s", reason);
}

BUGPACK_PRINTF(4, 0)
static void fill(bugpack_error *error, bugpack_status status, int system_errno, const char *format,
                 va_list arguments) {
    if (error == NULL) {
        return;
    }
    error->status = status;
    error->system_errno = system_errno;
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    if (length < 0) {
        error->message[0] = '\0';
    }
    if (system_errno != 0) {
        append_reason(error->message, sizeof error->message, system_errno);
    }
    clean_sentence(error->message);
}

bugpack_status bp_fail(bugpack_error *error, bugpack_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, 0, format, arguments);
    va_end(arguments);
    return status;
}

bugpack_status bp_fail_errno(bugpack_error *error, int system_errno, const char *format, ...) {
    bugpack_status status = system_errno == ENOMEM ? BUGPACK_ERR_NO_MEMORY : BUGPACK_ERR_IO;
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, system_errno, format, arguments);
    va_end(arguments);
    return status;
}

bugpack_status bp_fail_process_errno(bugpack_error *error, int system_errno, const char *format,
                                     ...) {
    bugpack_status status = BUGPACK_ERR_IO;
    if (system_errno == ENOMEM) {
        status = BUGPACK_ERR_NO_MEMORY;
    } else if (system_errno == ESRCH || system_errno == ENOENT) {
        status = BUGPACK_ERR_NO_PROCESS;
    } else if (system_errno == EACCES || system_errno == EPERM) {
        status = BUGPACK_ERR_DENIED;
    }
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, system_errno, format, arguments);
    va_end(arguments);
    return status;
}

bugpack_status bp_fail_memory(bugpack_error *error, const char *what) {
    return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "cannot %s: out of memory", what);
}

bugpack_status bp_check_text(const char *argument, const char *text, size_t min_bytes,
                             size_t max_bytes, bugpack_error *error) {
    if (text == NULL && min_bytes > 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "%s is NULL", argument);
    }
    size_t byte_count = text == NULL ? 0 : strnlen(text, max_bytes + 1);
    if (byte_count > max_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "%s must have at most %zu bytes", argument,
                       max_bytes);
    }
    return byte_count >= min_bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_INVALID, "%s must have %zu to %zu bytes, has %zu",
                         argument, min_bytes, max_bytes, byte_count);
}

const char *bugpack_status_name(bugpack_status status) {
    static const char *const names[] = {
        [-BUGPACK_OK] = "ok",
        [-BUGPACK_ERR_INVALID] = "invalid argument",
        [-BUGPACK_ERR_NO_MEMORY] = "out of memory",
        [-BUGPACK_ERR_IO] = "input or output failed",
        [-BUGPACK_ERR_NO_PROCESS] = "no such process",
        [-BUGPACK_ERR_TIMEOUT] = "timed out",
        [-BUGPACK_ERR_DENIED] = "access denied",
        [-BUGPACK_ERR_BUSY] = "busy with other reports",
        [-BUGPACK_ERR_INERT] = "session of the parent process",
        [-BUGPACK_ERR_CLOSED] = "session closed",
        [-BUGPACK_ERR_UNSUPPORTED] = "not supported on this system",
        [-BUGPACK_ERR_CORRUPT] = "corrupt data",
        [-BUGPACK_ERR_CANCELLED] = "cancelled",
        [-BUGPACK_ERR_LIMIT] = "limit reached",
        [-BUGPACK_ERR_NO_TICKET] = "no such report",
    };
    static const int last = sizeof names / sizeof names[0] - 1;
    return status <= 0 && status >= -last ? names[-status] : "unknown status";
}

const char *bp_level_name(uint8_t level) {
    static const char *const names[] = {
        [BUGPACK_LEVEL_TRACE] = "trace", [BUGPACK_LEVEL_DEBUG] = "debug",
        [BUGPACK_LEVEL_INFO] = "info",   [BUGPACK_LEVEL_WARN] = "warn",
        [BUGPACK_LEVEL_ERROR] = "error", [BUGPACK_LEVEL_FATAL] = "fatal"};
    return level >= BUGPACK_LEVEL_TRACE && level <= BUGPACK_LEVEL_FATAL ? names[level] : "unknown";
}
