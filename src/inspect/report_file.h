/*
 * A report opened for reading: which report it is, what its ledger says, and its entries by name.
 * Everything in it may be hostile. One thread at a time.
 */
#ifndef BP_INSPECT_REPORT_FILE_H
#define BP_INSPECT_REPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "archive/reader.h"
#include "base/buffer.h"
#include "base/temp_file.h"

typedef struct bp_report_file bp_report_file;

/* Which report it is, of metadata.json; "" for what is not there. Any text, in valid UTF-8. */
typedef struct bp_report_facts {
    const char *report_id, *app_name, *report_type, *timestamp; /* owned by the report */
} bp_report_facts;

/*
 * Opens a report. `path` may be a symbolic link to a regular file; anything but a regular file is
 * refused, without waiting for it.
 *
 * CORRUPT: it is no zip that a report can be, or metadata.json or manifest.json is not there or not
 * what it should be, or they belong to two reports. UNSUPPORTED: a later bugpack wrote it. IO with
 * the errno. NO_MEMORY.
 */
bugpack_status bp_report_file_open(const char *path, bp_report_file **ret_report,
                                   bugpack_error *error);

/* The same of a regular file that is open, which becomes the report's on success only. */
bugpack_status bp_report_file_take(int fd, const char *path, bp_report_file **ret_report,
                                   bugpack_error *error);

/* NULL is fine. */
void bp_report_file_close(bp_report_file *report);

/* All valid until it is closed. */
const char *bp_report_file_path(const bp_report_file *report);
bp_report_facts bp_report_file_facts(const bp_report_file *report);
const bp_buffer *bp_report_file_metadata(const bp_report_file *report); /* checked JSON */
const bp_buffer *bp_report_file_manifest(const bp_report_file *report);
const bp_archive_reader *bp_report_file_archive(const bp_report_file *report);

bool bp_report_file_has(const bp_report_file *report, const char *name);

/*
 * Appends an entry that is there. What the buffer (its maximum) or the spool may still take is the
 * limit. Errors as those of bp_archive_reader_read; INVALID for an entry that is not there. After a
 * failure what was appended is not to be used. The spool is not flushed.
 */
bugpack_status bp_report_file_read(bp_report_file *report, const char *name, bp_buffer *out,
                                   bugpack_error *error);
bugpack_status bp_report_temp_file(bp_report_file *report, const char *name,
                                   bp_temp_file *temp_file, bugpack_error *error);

/* What the ledger says of one artefact, cut to fit. */
typedef struct bp_report_line {
    bool is_there; /* the ledger knows it */
    char status[24];
    char reason[300];
} bp_report_line;

bugpack_status bp_report_file_line(const bp_report_file *report, const char *name,
                                   bp_report_line *ret_line, bugpack_error *error);

#endif
