/*
 * Triggers: one call, one zip.
 */
#ifndef BUGPACK_REPORT_H
#define BUGPACK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* How a pixel's four bytes lie in memory, first byte first. */
typedef enum bugpack_pixel_format {
    BUGPACK_PIXELS_RGBA = 0,
    BUGPACK_PIXELS_BGRA = 1, /* X11's and Windows's 32-bit words on a little-endian machine */
    BUGPACK_PIXELS_RGBX = 2, /* the fourth byte means nothing: the picture is opaque */
    BUGPACK_PIXELS_BGRX = 3
} bugpack_pixel_format;

/* A picture that the host has in memory: `height` rows of `width` pixels of four bytes, each row
 * `stride` bytes behind the one before; 0 means width * 4. The first row is the upper one. Since
 * 0.1.0. */
typedef struct bugpack_picture {
    const void *pixels;
    uint32_t width, height; /* 1 to BUGPACK_PICTURE_MAX_SIDE each */
    size_t stride;
    bugpack_pixel_format format;
} bugpack_picture;

#define BUGPACK_PICTURE_MAX_SIDE 16384u
#define BUGPACK_PICTURE_MAX_BYTES ((size_t)256 << 20) /* of pixels, without the stride's rest */

/* Where in the picture the person pointed; all 0: nowhere. It must lie inside the picture. */
typedef struct bugpack_region {
    uint32_t x, y, width, height;
} bugpack_region;

/*
 * What a trigger may say. Start from BUGPACK_REPORT_REQUEST_INIT; NULL for a whole request means
 * the same. Strings are copied by the call. Since 0.1.0.
 */
typedef struct bugpack_report_request {
    size_t struct_size;
    /* What the person saw; free text, at most 64 KiB. */
    const char *description;
    /* The channel that the report is about, for metadata.json. */
    const char *channel;
    /* A file to write to instead of the session's directory and the standard name. A name that is
     * taken gets "-2", "-3", … before its extension here too. */
    const char *output_path;
    /* The whole report must be done in this time, in milliseconds, or it fails with
     * BUGPACK_ERR_TIMEOUT and leaves nothing behind. 0: no bound but those of its parts. */
    uint32_t timeout_ms;
    /* What was on the screen: becomes screenshot.png. The pixels are copied by the call (a 4K
     * picture is 33 MB, some milliseconds) and encoded by the worker. NULL: none. */
    const bugpack_picture *screenshot;
    /* The part of it that matters: screenshot-region.png, and `region` in metadata.json. */
    bugpack_region region;
    /* Files a report from what bugpack_notify_retain kept: the rings as they were then, and the
     * kind `notification`; the trigger's time is that of the notification too, and elapsed_ns
     * counts from it. 0: an ordinary report. INVALID when it is not kept any more, or another
     * report has it: one that is written uses it up, one that fails gives it back. */
    uint64_t retained;
    /* Gets the report's ticket (bugpack/events.h) when it was accepted. NULL: not wanted. */
    uint64_t *ret_ticket;
    /* With a target_pid: the target has died, and the report is of the kind `crash`. */
    bool is_crash;
} bugpack_report_request;

#define BUGPACK_REPORT_REQUEST_INIT                                                                \
    {                                                                                              \
        sizeof(bugpack_report_request), NULL, NULL, NULL, 0u, NULL, {0u, 0u, 0u, 0u}, 0u, NULL,    \
            false                                                                                  \
    }

#define BUGPACK_REPORT_PATH_BYTES 4096
#define BUGPACK_REPORT_MISSING_BYTES 2048

/*
 * What became of a report. When `status` is BUGPACK_OK the zip is whole and on disk under `path`;
 * otherwise there is no zip and `error` says why. `missing_count` is how many artefacts are not
 * there, or not whole for another reason than a configured limit; manifest.json says which and why,
 * and `missing` repeats it, a line each ("NAME: reason"), cut at its end when there are many.
 * Since 0.1.0.
 */
typedef struct bugpack_report_result {
    size_t struct_size;
    bugpack_status status;
    bugpack_error error;
    uint32_t missing_count;
    uint64_t zip_bytes;
    /* From the trigger to the published zip, in nanoseconds. */
    uint64_t elapsed_ns;
    char path[BUGPACK_REPORT_PATH_BYTES]; /* absolute */
    char missing[BUGPACK_REPORT_MISSING_BYTES];
} bugpack_report_result;

#define BUGPACK_REPORT_RESULT_INIT                                                                 \
    { sizeof(bugpack_report_result), BUGPACK_OK, BUGPACK_ERROR_INIT, 0u, 0u, 0u, "", "" }

/*
 * Takes a report and waits for it: the trigger instant is now, the records and state of now are in
 * it. Takes at least the sample window where there is no metrics history. `ret_result` is optional,
 * is the caller's, starts as BUGPACK_REPORT_RESULT_INIT, and is filled on success and on failure,
 * as far as its struct_size goes.
 *
 * Errors: those in the result. BUSY when too many reports wait already, or one runs and the option
 * when_busy says so; IO, NO_MEMORY, TIMEOUT, CANCELLED; INVALID, also from within a provider or
 * report callback (it would wait for itself); INERT, CLOSED. Any other thread; not a signal
 * handler. Since 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_report(struct bugpack *session,
                                          const bugpack_report_request *request,
                                          bugpack_report_result *ret_result);

/*
 * Told once, on bugpack's worker thread, that a report is written or has failed. `result` is valid
 * during the call. It may trigger further reports with bugpack_report_async, and must return soon:
 * the next report waits for it.
 */
typedef void bugpack_report_done(const bugpack_report_result *result, void *context);

/*
 * Takes a report and returns in microseconds; a worker thread does the rest. `on_done` is optional.
 * When the status is BUGPACK_OK, on_done will be called exactly once; otherwise never.
 *
 * Errors: BUSY when BUGPACK_REPORT_QUEUE_MAX reports wait already, or one runs and the option
 * when_busy says so; INVALID, NO_MEMORY, INERT, CLOSED; IO (a relative output_path, and the working
 * directory is gone).
 * Any thread, also a provider or report callback; not a signal handler. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_report_async(struct bugpack *session, const bugpack_report_request *request,
                     bugpack_report_done *on_done, void *context);

#define BUGPACK_REPORT_QUEUE_MAX 8

BUGPACK_END_DECLS

#endif
