/*
 * A report opened for reading: which report it is, what its manifest says, and its entries by name.
 * Everything in it may be hostile. Nothing changes in it after the open, so threads may share it.
 */
#ifndef BP_ENTRIES_REPORT_FILE_H
#define BP_ENTRIES_REPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "archive/reader.h"
#include "base/buffer.h"
#include "base/sink.h"
#include "json/tree_reader.h"

typedef struct bp_report_file bp_report_file;

/*
 * Opens the file that a reader was given: a regular one, or, for "-", a copy of standard input up
 * to its end. The copy has no name, is in $TMPDIR or /tmp, and is deleted when it is closed. The
 * caller closes `ret_fd`, whose offset is 0. IO for a terminal, a directory or a failed copy;
 * CORRUPT for an empty input; LIMIT over BP_REPORT_INPUT_MAX_BYTES.
 */
bugpack_status bp_report_input_open(const char *path, int *ret_fd, bugpack_error *error);
#define BP_REPORT_INPUT_MAX_BYTES ((uint64_t)4 << 30)

/* The copy, of what any descriptor can still read. */
bugpack_status bp_report_input_copy(int from_fd, uint64_t max_bytes, int *ret_fd,
                                    bugpack_error *error);

/*
 * Opens a report in a regular file that is open. The report owns `fd` on success only.
 *
 * CORRUPT: it is no zip that a report can be, or metadata.json or manifest.json is missing or
 * malformed, or they belong to two reports. UNSUPPORTED: another bugpack wrote it. IO with the
 * errno. NO_MEMORY.
 */
bugpack_status bp_report_file_take(int fd, const char *path, bp_report_file **ret_report,
                                   bugpack_error *error);

/* The same of what bp_report_input_open opens. */
bugpack_status bp_report_file_open(const char *path, bp_report_file **ret_report,
                                   bugpack_error *error);

/*
 * Opens what a reader was given: what begins as a zip is a report; of another file, which is not
 * read yet, `ret_report` is NULL, and the caller closes `ret_fd`.
 */
bugpack_status bp_report_file_open_or_plain(const char *path, bp_report_file **ret_report,
                                            int *ret_fd, bugpack_error *error);

/*
 * Opens the report at `path`, or in standard input for "-", to show what is in it: as above, but
 * another program may have written it, without a manifest or keys of ours in its metadata.
 */
bugpack_status bp_report_file_open_any(const char *path, bp_report_file **ret_report,
                                       bugpack_error *error);

/* NULL is fine. */
void bp_report_file_close(bp_report_file *report);

/* Bounds the tree of a manifest, which stays in memory: twice 4,096 entries and gap keys. */
#define BP_REPORT_MANIFEST_TREE_BYTES ((size_t)10 << 20)

/* The two documents; NULL for one that is not there. Owned by the report. */
const bp_json_tree *bp_report_file_metadata(const bp_report_file *report);
const bp_json_tree *bp_report_file_manifest(const bp_report_file *report);

/* True if there is an entry of this name, with its size where `ret_bytes` is not NULL; and the
 * names of all, in the order of the archive. */
bool bp_report_file_has(const bp_report_file *report, const char *name, uint64_t *ret_bytes);
size_t bp_report_file_count(const bp_report_file *report);
const char *bp_report_file_name(const bp_report_file *report, size_t index);

/* A name for the process of a process.json that is the same in all reports: boot, pid and start; ""
 * where that is not known. NULL is fine. */
enum { BP_REPORT_KEY_BYTES = 96 };
void bp_report_process_key(const bp_json_tree *process, char out[BP_REPORT_KEY_BYTES]);

/* The manifest line of an entry; NULL if there is none. Owned by the report. */
const bp_json_tree *bp_report_file_line(const bp_report_file *report, const char *name);

/*
 * Appends an entry, up to the maximum of the buffer. Errors: those of bp_archive_reader_read;
 * INVALID for an entry that does not exist. After a failure what was appended is not to be used.
 */
bugpack_status bp_report_file_read(const bp_report_file *report, const char *name, bp_buffer *out,
                                   bugpack_error *error);

/* The same into a sink, in pieces, and at most `max_bytes`. */
bugpack_status bp_report_file_stream(const bp_report_file *report, const char *name,
                                     uint64_t max_bytes, bp_sink *sink, void *context,
                                     bugpack_error *error);

/* A giver of an entry; the context is such an entry. */
typedef struct bp_report_entry {
    const bp_report_file *report;
    const char *name;
    uint64_t max_bytes;
} bp_report_entry;
bugpack_status bp_report_entry_give(const void *entry, bp_sink *sink, void *sink_context,
                                    bugpack_error *error);

/* Reads a document, however long it is; as bp_json_tree_each. */
bugpack_status bp_report_file_each(const bp_report_file *report, const char *name,
                                   const bp_json_tree_list *lists, void *context,
                                   bp_json_tree **ret_rest, bugpack_error *error);

/* Starts to read the entry at `index` in steps; see archive/reader.h. */
bugpack_status bp_report_file_begin(const bp_report_file *report, size_t index,
                                    bp_archive_stream **ret_stream, bugpack_error *error);

#endif
