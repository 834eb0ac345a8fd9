/*
 * The small files of a session, in memory where other processes find them through the anchor.
 */
#ifndef BP_RING_ANCHOR_FILES_H
#define BP_RING_ANCHOR_FILES_H

#include <stddef.h>

/* Starts zeroed. One thread at a time. */
typedef struct bp_anchor_files {
    struct bp_anchor_files_item *first;
} bp_anchor_files;

/* Lists a copy of the file, instead of what had this name; NULL only removes that. Where memory or
 * the list is short, it is not listed. */
void bp_anchor_files_put(bp_anchor_files *files, const char *session_id, const char *name,
                         const void *bytes, size_t byte_count);
void bp_anchor_files_release(bp_anchor_files *files);

#endif
