/*
 * Artefacts that the host contributes: callbacks that are asked when a report is taken, and files
 * that are read then.
 *
 * A provider runs on a thread of bugpack's, never on the thread that triggered the report, and
 * right after the trigger, while the metrics window passes. It has provider_timeout_ms, in which
 * what it gave is checked and converted too. One that fails, gives invalid JSON, gives too much or
 * overruns costs its own artefact only: the report is written, its ledger says what happened, and
 * the result counts one missing artefact. A provider that still hangs when the next report is taken
 * is not called again until it has returned.
 *
 * Two providers never run at the same time, except that one which overran may still be running.
 */
#ifndef BUGPACK_PROVIDE_H
#define BUGPACK_PROVIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* Where a provider writes to. It is valid only until the provider returns. */
typedef struct bugpack_writer bugpack_writer;

/*
 * Appends bytes, or formatted text, to the artefact. What passes the size limit is dropped and the
 * artefact fails; the status says so at once (NO_MEMORY), so that a provider may stop early.
 * Only from within the provider, on the thread that it was called on. Since 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_write(bugpack_writer *writer, const void *bytes,
                                         size_t byte_count);
BUGPACK_API bugpack_status bugpack_printf(bugpack_writer *writer, const char *format, ...)
    BUGPACK_PRINTF(2, 3);
/* Appends `text` as a JSON string: quoted, escaped, made valid UTF-8. Since 0.1.0. */
BUGPACK_API bugpack_status bugpack_write_json_string(bugpack_writer *writer, const void *text,
                                                     size_t byte_count);

/*
 * Fills one artefact. Returns 0, or anything else to say that it failed; a failed provider may call
 * bugpack_fail first so that the ledger says why. Since 0.1.0.
 */
typedef int bugpack_provider(bugpack_writer *writer, void *context);

/* Gives the ledger a reason, cut at 200 bytes. Only from within a provider. Since 0.1.0. */
BUGPACK_API void bugpack_fail(bugpack_writer *writer, const char *format, ...) BUGPACK_PRINTF(2, 3);

/*
 * The channel that the report is about, so that a provider of channel-state.json knows whose state
 * is asked for; NULL when it is about none. Valid during the provider. Since 0.1.0.
 */
BUGPACK_API const char *bugpack_report_channel(const bugpack_writer *writer);

/*
 * Registers an artefact under `name`: 1 to 200 bytes of UTF-8, components separated by '/', none of
 * them empty, "." or "..", no control character, backslash or colon. The names in the table of
 * docs/REPORT_FORMAT.md are reserved, but for session.json and channel-state.json, which are the
 * host's to provide. The name is copied; `context` is passed through and must stay valid until
 * bugpack_close, or bugpack_unprovide, has returned.
 *
 * _json: one JSON document, checked strictly and written indented by two spaces. _text and _bytes:
 * as they are; _text is made valid UTF-8.
 *
 * Errors: INVALID (name, or one that is taken, also when it differs only in case), NO_MEMORY,
 * INERT, CLOSED. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_provide_json(struct bugpack *session,
                                                                  const char *name,
                                                                  bugpack_provider *provider,
                                                                  void *context,
                                                                  bugpack_error *error);
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_provide_text(struct bugpack *session,
                                                                  const char *name,
                                                                  bugpack_provider *provider,
                                                                  void *context,
                                                                  bugpack_error *error);
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_provide_bytes(struct bugpack *session,
                                                                   const char *name,
                                                                   bugpack_provider *provider,
                                                                   void *context,
                                                                   bugpack_error *error);

/* What to read of a file, and how much. */
typedef enum bugpack_file_kind {
    BUGPACK_FILE_WHOLE = 0,    /* all of it; over the limit it is omitted, and the ledger says so */
    BUGPACK_FILE_LOG_TAIL = 1, /* the newest whole lines that fit the limit */
    BUGPACK_FILE_JSON = 2      /* all of it, which must be one valid JSON document */
} bugpack_file_kind;

/*
 * Registers a file that is read whenever a report is taken. Only a regular file is read: a FIFO, a
 * device or a directory fails the artefact and never hangs the report. A symbolic link is followed,
 * because the host named it. `limit_bytes` 0 means the session's artefact_limit_bytes.
 * `name` as above, `path` is copied. Errors as above. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_provide_file(struct bugpack *session, const char *name, const char *path,
                     bugpack_file_kind kind, uint64_t limit_bytes, bugpack_error *error);

/*
 * Checks that a file can be read and is one valid JSON document of at most `limit_bytes` (0: 64
 * MiB), before a report depends on it. Errors: CORRUPT, with a sentence that names the file, the
 * line and the column; IO; NO_MEMORY (too large). Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_check_json_file(const char *path,
                                                                     uint64_t limit_bytes,
                                                                     bugpack_error *error);

/*
 * Takes an artefact off again. When it returns true, the provider is not running and is not called
 * any more, so its context may go; false when there is no such name, when the provider hangs
 * beyond its time limit (the context must then outlive it), or when the session is being closed (it
 * may then go when bugpack_close has returned). Waits for a report that is just using it. Not from
 * within a provider. Any other thread. Since 0.1.0.
 */
BUGPACK_API bool bugpack_unprovide(struct bugpack *session, const char *name);

BUGPACK_END_DECLS

#endif
