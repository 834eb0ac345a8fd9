/*
 * The files that a process runs code from, and a descriptor of each that is known to be of the very
 * file that is mapped. Linux only.
 */
#ifndef BP_PROBE_MAPPED_OBJECT_H
#define BP_PROBE_MAPPED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bp_mapped_object {
    char *path;          /* as the process sees it, without " (deleted)"; owned by the list */
    uint64_t start, end; /* of its first executable mapping */
    uint64_t device_major, device_minor, inode; /* as maps has them */
} bp_mapped_object;

typedef struct bp_mapped_objects {
    bp_mapped_object *items;
    size_t count;
} bp_mapped_objects;

/*
 * Reads maps below `process_fd`, a descriptor of /proc/<pid>; each file once. Returns 0 or an
 * errno. A process without memory (a zombie, a kernel thread) has none.
 */
int bp_mapped_objects_read(int process_fd, bp_mapped_objects *ret_objects);
void bp_mapped_objects_release(bp_mapped_objects *objects);

/* Whether the last component of its path holds this word. */
bool bp_mapped_object_is_called(const bp_mapped_object *object, const char *word);

/*
 * Opens the mapped file for reading, close-on-exec: through the kernel's own link (map_files),
 * which needs a privilege, else by its path below the root of the process, and then only when the
 * inode numbers agree. -1 with errno; ESTALE when another file has the name by now.
 */
int bp_mapped_object_open(int process_fd, const bp_mapped_object *object);

#endif
