#include "ring/anchor_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/anchor.h"

struct bp_anchor_files_item {
    struct bp_anchor_files_item *next;
    bp_anchor_entry *entry;
    unsigned char file[]; /* a bp_anchor_file, which consists of bytes */
};

static char *name_of(struct bp_anchor_files_item *item) {
    return (char *)item->file;
}

static void drop(struct bp_anchor_files_item *item) {
    bp_anchor_remove(item->entry);
    free(item);
}

static void remove_file(bp_anchor_files *files, const char *name) {
    struct bp_anchor_files_item **link = &files->first;
    while (*link != NULL && strcmp(name_of(*link), name) != 0) {
        link = &(*link)->next;
    }
    struct bp_anchor_files_item *found = *link;
    if (found != NULL) {
        *link = found->next;
        drop(found);
    }
}

void bp_anchor_files_put(bp_anchor_files *files, const char *session_id, const char *name,
                         const void *bytes, size_t byte_count) {
    remove_file(files, name);
    size_t file_bytes = sizeof(bp_anchor_file) + byte_count;
    struct bp_anchor_files_item *item = bytes == NULL ? NULL : calloc(1, sizeof *item + file_bytes);
    if (item == NULL) {
        return;
    }
    item->next = files->first;
    (void)snprintf(name_of(item), BP_ANCHOR_FILE_NAME_BYTES, "%s", name);
    memcpy(item->file + sizeof(bp_anchor_file), bytes, byte_count);
    item->entry = bp_anchor_add(item->file, file_bytes, session_id, BP_ANCHOR_FILE, 0);
    if (item->entry == NULL) {
        free(item);
    } else {
        files->first = item;
    }
}

void bp_anchor_files_release(bp_anchor_files *files) {
    while (files->first != NULL) {
        remove_file(files, name_of(files->first));
    }
}
