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

/* The four bytes of a pixel in memory, first byte first. */
typedef enum bugpack_pixel_format {
    BUGPACK_PIXELS_RGBA = 0,
    BUGPACK_PIXELS_BGRA = 1, /* 32-bit words of X11 and Windows on a little-endian machine */
    BUGPACK_PIXELS_RGBX = 2, /* the fourth byte is ignored: the picture is opaque */
    BUGPACK_PIXELS_BGRX = 3
} bugpack_pixel_format;

#define BUGPACK_PICTURE_MAX_SIDE 16384u
#define BUGPACK_PICTURE_MAX_BYTES 0x10000000u /* 256 MiB of pixels, without padding of rows */

/* A picture in the host's memory: `height` rows of `width` pixels, the upper row first. This struct
 * never grows. */
typedef struct bugpack_picture {
    const void *pixels;
    size_t stride;          /* bytes from one row to the next; 0: width * 4 */
    uint32_t width, height; /* 1 to BUGPACK_PICTURE_MAX_SIDE each */
    bugpack_pixel_format format;
    uint32_t reserved; /* 0 */
} bugpack_picture;

/* The part of a picture that the user pointed at; all 0: none. What lies outside the picture is cut
 * off. This struct never grows. */
typedef struct bugpack_region {
    uint32_t x, y, width, height;
} bugpack_region;

/*
 * Called exactly once for each call that got a request with it, whatever the call returns and also
 * without a `screenshot`: on the worker thread before the report's result is given, or on the
 * calling thread before the call returns, if it fails or has no use for the pixels. The exception
 * is a struct_size that is refused: then nothing of the request is read. No lock is held. It must
 * not call bugpack_close, and returns soon.
 */
typedef void bugpack_screenshot_release_callback(void *context);

/* The options of a trigger; NULL for the request means the defaults. 0 is the default of every
 * field (bugpack/common.h). */
typedef struct bugpack_report_request {
    size_t struct_size;
    /* The user's words; free text, at most 64 KiB. */
    const char *description;
    /* The channel that the report is about, for metadata.json; at most 256 bytes. The report has
     * the traffic of this channel alone, unless all_traffic is set, or no traffic channel has this
     * name; the note in manifest.json says which. */
    const char *channel;
    /* A file to write instead of a standard name in the session's directory. If the name is taken,
     * "-2", "-3", … is inserted before its extension. */
    const char *output_path;
    /* The time within which the report must be published, in milliseconds. Then it fails with
     * BUGPACK_ERR_TIMEOUT and leaves nothing behind. Default and BUGPACK_OFF: none. */
    uint64_t timeout_ms;
    /* With a `channel`: the report has the traffic of all channels. */
    bool all_traffic;
    /* The picture for screenshot.png. The call copies the pixels (a 4K picture has 33
     * MB and takes some milliseconds) unless there is a screenshot_release; a background thread
     * encodes them. */
    const bugpack_picture *screenshot;
    /* The part of it that matters, for screenshot-region.png and `region` in metadata.json. */
    bugpack_region region;
    /* A ticket of bugpack_notify: the report has the rings and the time of that
     * notification, and the kind `notification`; elapsed_ns counts from it. NO_TICKET if the
     * snapshot has been dropped or another report uses it. A report that is written uses it up; one
     * that fails returns it. */
    uint64_t retained;
    /* Receives the ticket of the accepted report (bugpack/events.h). */
    uint64_t *ret_ticket;
    /* Hands the pixels of `screenshot` over without a copy: they must stay as they are until
     * screenshot_release is called with screenshot_context. NULL: the call copies them. */
    void *screenshot_context;
    bugpack_screenshot_release_callback *screenshot_release;
} bugpack_report_request;

#define BUGPACK_REPORT_REQUEST_INIT BUGPACK_INIT(bugpack_report_request)

#define BUGPACK_REPORT_PATH_BYTES 4096
#define BUGPACK_REPORT_MISSING_BYTES 2048
#define BUGPACK_REPORT_NOT_SEARCHED_BYTES 512

/* The outcome of a report. */
typedef struct bugpack_report_result {
    size_t struct_size;
    bugpack_status status;  /* OK: the zip is complete and on disk under `path` */
    bugpack_error error;    /* why there is no zip */
    uint32_t missing_count; /* artefacts that are absent, or cut for another reason than a limit */
    uint64_t zip_bytes;
    uint64_t elapsed_ns;                  /* from the trigger to the published zip */
    char path[BUGPACK_REPORT_PATH_BYTES]; /* absolute */
    /* One line per missing artefact, "NAME: reason", cut at its end. manifest.json has all. */
    char missing[BUGPACK_REPORT_MISSING_BYTES];
    /* Entries that the rules were not applied to, such as "screenshot.png, traffic.pcap (usb)",
     * which names channels in brackets; a list that is too long ends in "...". "" where all was
     * searched, and without redaction. */
    char not_searched[BUGPACK_REPORT_NOT_SEARCHED_BYTES];
} bugpack_report_result;

#define BUGPACK_REPORT_RESULT_INIT BUGPACK_INIT(bugpack_report_result)

/*
 * Takes a report of this instant and waits until it is published. Without a metrics history that
 * lasts at least the sample window; with one, up to 250 ms right after bugpack_open. `ret_result`
 * is optional, starts as BUGPACK_REPORT_RESULT_INIT, and is filled on success and on failure, as
 * far as its struct_size reaches.
 *
 * Errors, also in the result: BUSY (too many reports wait, or one runs and when_busy refuses); IO,
 * NO_MEMORY, TIMEOUT, CANCELLED; NO_TICKET (retained); INVALID, also inside a provider or report
 * callback, where it would wait for itself; INERT, CLOSED. Any other thread.
 */
BUGPACK_API bugpack_status bugpack_report(bugpack_session *session,
                                          const bugpack_report_request *request,
                                          bugpack_report_result *ret_result, bugpack_error *error);

/*
 * Called once, on the worker thread, when a report is published or has failed. `result` is valid
 * during the call. It may trigger reports with bugpack_report_async. Return soon: the next report
 * waits for it.
 */
typedef void bugpack_report_callback(const bugpack_report_result *result, void *context);

/* The most reports that wait at a time. */
#define BUGPACK_REPORT_QUEUE_MAX 8

/*
 * Triggers a report of this instant and returns in microseconds; a background thread writes it.
 * `on_done` is optional. It is called exactly once if the call returns BUGPACK_OK, and never
 * otherwise.
 *
 * Errors: BUSY (BUGPACK_REPORT_QUEUE_MAX reports wait, or one runs and when_busy refuses);
 * NO_TICKET (retained); INVALID, NO_MEMORY, INERT, CLOSED; IO (a relative output_path, and the
 * working directory was removed). Any thread, also inside a provider or report callback.
 */
BUGPACK_API bugpack_status bugpack_report_async(bugpack_session *session,
                                                const bugpack_report_request *request,
                                                bugpack_report_callback *on_done, void *context,
                                                bugpack_error *error);

/* A report that is complete and has no name yet. Valid during the call. */
typedef struct bugpack_unpublished {
    size_t struct_size; /* set by the library */
    uint64_t zip_bytes;
    int zip_fd;        /* the zip, from its byte 0; it stays the library's */
    uint32_t reserved; /* 0 */
} bugpack_unpublished;

/*
 * Called with each report when its zip is complete, before it gets a name. OK: the report is
 * published. Anything else: it fails with that status and with the sentence in `error`, and leaves
 * nothing behind. For a question to the user.
 *
 * The time limit of the report does not apply during the call; a cancel takes effect after it. The
 * next report waits for it. On the worker thread, or the thread that called bugpack_recover.
 */
typedef bugpack_status bugpack_before_publish_callback(const bugpack_unpublished *report,
                                                       void *context, bugpack_error *error);

BUGPACK_END_DECLS

#endif
