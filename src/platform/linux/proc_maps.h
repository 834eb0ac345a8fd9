/*
 * Lines of /proc/<pid>/maps. Pure, for bytes that may be anything.
 */
#ifndef BP_PLATFORM_LINUX_PROC_MAPS_H
#define BP_PLATFORM_LINUX_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bp_proc_map {
    uint64_t start, end;
    bool is_executable;
    uint64_t device_major, device_minor, inode;
    const char *path; /* a slice of the text, as the kernel wrote it; "" when it has none */
    size_t path_bytes;
} bp_proc_map;

/* Parses one line, without its newline. */
bool bp_proc_parse_map(const char *line, size_t line_bytes, bp_proc_map *ret_map);

/*
 * Writes the unescaped path with a NUL: the kernel writes a newline as \012 and escapes nothing
 * else (show_map_vma in fs/proc/task_mmu.c), so those four characters in a name are
 * indistinguishable from a newline. `out` holds path_bytes + 1 bytes. Returns the length.
 */
size_t bp_proc_unescape_path(const char *path, size_t path_bytes, char *out);

/*
 * The length of the path without the " (deleted)" that the kernel appends to the name of a removed
 * file, or 0 when it does not end so. A file may really have that name.
 */
size_t bp_proc_deleted_path_length(const char *path, size_t path_bytes);

#endif
