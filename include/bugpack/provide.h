/*
 * Artefacts of the host: callbacks that fill one when a report is taken, and files that are read
 * then.
 *
 * A provider runs on a thread of the library, never on the thread that triggered the report. It
 * starts right after the trigger, while the metrics window passes. limits.provider_timeout_ms
 * bounds the call and the checking of its output. A provider that fails, writes invalid JSON,
 * writes too much or overruns costs its own artefact only: the report is written, its manifest says
 * what happened, and the result counts one missing artefact. A provider that still hangs when the
 * next report is taken is not called again until it has returned.
 *
 * Two providers never run at the same time, unless one of them has overrun.
 */
#ifndef BUGPACK_PROVIDE_H
#define BUGPACK_PROVIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* The output of a provider. Valid until the provider returns. */
typedef struct bugpack_writer bugpack_writer;

/*
 * Append bytes, or formatted text, to the artefact. Beyond the size limit bytes are dropped and the
 * artefact fails; LIMIT says so at once, and a provider may stop early.
 *
 * Errors: LIMIT, TIMEOUT (the time limit has passed), NO_MEMORY, INVALID. An error repeats on every
 * later call, so checking the last one suffices. Only inside the provider, on its thread.
 */
BUGPACK_API bugpack_status bugpack_write(bugpack_writer *writer, const void *bytes,
                                         size_t byte_count);
BUGPACK_API bugpack_status bugpack_printf(bugpack_writer *writer, const char *format, ...)
    BUGPACK_PRINTF(2, 3);

/* Appends `text` as a JSON string: quoted, escaped, made valid UTF-8. Errors and threads as above.
 */
BUGPACK_API bugpack_status bugpack_write_json_string(bugpack_writer *writer, const void *text,
                                                     size_t byte_count);

/*
 * Fills one artefact. Returns 0, or anything else on failure; `return bugpack_fail(writer, …);`
 * gives the reason too.
 */
typedef int bugpack_provider_callback(bugpack_writer *writer, void *context);

/*
 * Sets the reason of a failure for the manifest, cut at 200 bytes. Returns -1, for the provider to
 * return. Only inside the provider, on its thread.
 */
BUGPACK_API int bugpack_fail(bugpack_writer *writer, const char *format, ...) BUGPACK_PRINTF(2, 3);

/*
 * Marks the artefact as incomplete, with the reason for the manifest, cut at 200 bytes: its status
 * is `truncated` if the provider returns 0. `is_missing`: because of a failure, so that the report
 * is incomplete, too; otherwise a limit that somebody set is the reason. Only inside the provider,
 * on its thread.
 */
BUGPACK_API void bugpack_truncate(bugpack_writer *writer, bool is_missing, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/*
 * Says why there is nothing to collect: the artefact is not in the report, its status is `omitted`
 * with this reason, cut at 200 bytes, and it does not count as missing. Returns 0, for the provider
 * to return. Only inside the provider, on its thread.
 */
BUGPACK_API int bugpack_omit(bugpack_writer *writer, const char *format, ...) BUGPACK_PRINTF(2, 3);

struct bugpack_picture;

/*
 * Appends a picture (bugpack/report.h) as a PNG, encoded on the calling thread: some 8 ms for a
 * megapixel of text, 60 ms for one of noise. In a provider of the kind BUGPACK_PROVIDE_SCREENSHOT
 * it copies the pixels, in 1 ms or less for a megapixel, and they are encoded when the provider has
 * returned; so a lock may be held that a thread that draws waits for. Errors: as bugpack_write;
 * INVALID also for a picture over the limits of bugpack/report.h.
 */
BUGPACK_API bugpack_status bugpack_write_picture(bugpack_writer *writer,
                                                 const struct bugpack_picture *picture);

/*
 * The channel that the report is about, so that a provider of channel-state.json knows whose state
 * to write; NULL if it is about none. Valid until the provider returns.
 */
BUGPACK_API const char *bugpack_report_channel(const bugpack_writer *writer);

/* The form of the entry that a provider fills. */
typedef enum bugpack_provider_kind {
    BUGPACK_PROVIDE_JSON = 0,  /* one JSON document, checked strictly and indented by two spaces */
    BUGPACK_PROVIDE_TEXT = 1,  /* text, which is made valid UTF-8 */
    BUGPACK_PROVIDE_BYTES = 2, /* bytes, written as they are */
    /* screenshot.png, for reports whose request brings no `screenshot`: those that the library
     * takes itself, such as of gaps, disconnects and hangs, those of `bugpack trigger`, and
     * requests without one. The provider calls bugpack_write_picture once, and no other function
     * that writes; otherwise the artefact fails. The picture is of the time of the call, shortly
     * after the trigger; the manifest has it. */
    BUGPACK_PROVIDE_SCREENSHOT = 3
} bugpack_provider_kind;

/*
 * Registers a provider under `name`: 1 to 200 bytes of UTF-8, components separated by '/', none of
 * them empty, "." or "..", no control character, backslash or colon. The names in the table of
 * docs/REPORT_FORMAT.md are reserved, except session.json and channel-state.json, which are for the
 * host to provide, screenshot.png, which is the name of a screenshot and of nothing else, and
 * crash.json in a session about another process or none. The name is copied. `context` is passed to
 * the provider and must stay valid until bugpack_unprovide has returned true or bugpack_close has
 * returned.
 *
 * Errors: INVALID (the kind; the name, or one that is taken, also if it differs only in case),
 * LIMIT, NO_MEMORY, INERT, CLOSED. Any thread.
 */
BUGPACK_API bugpack_status bugpack_provide(bugpack_session *session, const char *name,
                                           bugpack_provider_kind kind,
                                           bugpack_provider_callback *provider, void *context,
                                           bugpack_error *error);

/* The part of a file that is read. */
typedef enum bugpack_file_kind {
    BUGPACK_FILE_WHOLE = 0,    /* all of it; a file over the limit is omitted with a reason */
    BUGPACK_FILE_LOG_TAIL = 1, /* the newest whole lines that fit the limit */
    BUGPACK_FILE_JSON = 2      /* all of it, as one valid JSON document */
} bugpack_file_kind;

/*
 * Registers a file that is read whenever a report is taken. Only regular files are read: a FIFO, a
 * device or a directory fails the artefact and never blocks the report. Symbolic links are
 * followed. `limit_bytes` 0 means limits.artefact_bytes of the session. `name` as above; `path` is
 * copied, and made absolute with the current directory. Errors and threads as above.
 */
BUGPACK_API bugpack_status bugpack_provide_file(bugpack_session *session, const char *name,
                                                const char *path, bugpack_file_kind kind,
                                                uint64_t limit_bytes, bugpack_error *error);

/*
 * Removes an artefact. True means that the provider is not running and will not be called again, so
 * its context may be freed. False means that there is no such name, that the provider hangs beyond
 * its time limit (the context must outlive it), or that the session is being closed (the context
 * may be freed when bugpack_close has returned). Waits while a report is using the provider. Any
 * thread, but not inside a provider.
 */
BUGPACK_API bool bugpack_unprovide(bugpack_session *session, const char *name);

BUGPACK_END_DECLS

#endif
