/*
 * The files that a process runs code from.
 */
#ifndef BP_PLATFORM_LINUX_MAPPED_FILES_H
#define BP_PLATFORM_LINUX_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bp_mapped_file {
    char *path;                                 /* as the process sees it; owned by the list */
    uint64_t address, end;                      /* of its mappings in a row, with small gaps */
    uint64_t code_start, code_end;              /* of its first executable mapping */
    uint64_t device_major, device_minor, inode; /* all 0 of the vDSO */
} bp_mapped_file;

typedef struct bp_mapped_code {
    uint64_t start, end;
} bp_mapped_code;

typedef struct bp_mapped_files {
    bp_mapped_file *items; /* ascending by address */
    size_t count, capacity;
    bp_mapped_code *code; /* each executable mapping, also of no file; ascending */
    size_t code_count, code_capacity;
    bp_mapped_code *shared; /* each mapping that other processes may share, not only of code */
    size_t shared_count, shared_capacity;
    uint64_t map_count; /* of all mappings, as far as they were read */
    bool has_aio;       /* the kernel does asynchronous I/O for it (io_setup(2)) */
    bool is_known;      /* a kernel thread and a zombie have no maps */
    const char *cut;    /* why there are more than these; NULL when they are all */
} bp_mapped_files;

/*
 * Reads maps below `process_fd`, a descriptor of /proc/<pid>, with the vDSO or without it. 0 or an
 * errno, ENOMEM among them. Bounds: 16 MiB of maps, 4,096 files. The caller releases the list.
 */
int bp_mapped_files_read(int process_fd, bool with_vdso, bp_mapped_files *ret_files);

/* The same from the text of maps. False without memory; to be released in any case. */
bool bp_mapped_files_parse(const char *text, size_t text_bytes, bool with_vdso,
                           bp_mapped_files *files);
void bp_mapped_files_release(bp_mapped_files *files);

/*
 * Opens the mapped file for reading, close-on-exec: by its path below the root of the process, else
 * through map_files, which needs a privilege. -1 with errno. `ret_is_there` says whether the path
 * names the mapped file: if not, a " (deleted)" at its end is the kernel's.
 */
int bp_mapped_file_open(int process_fd, const bp_mapped_file *file, bool *ret_is_there);

/*
 * True if the errno of a failed bp_mapped_file_open leaves it unknown what the file is: every one
 * but a refusal when the path names the file, else what bp_errno_is_trouble says.
 */
bool bp_mapped_file_is_unknown(int open_errno, bool is_there);

/* Takes a " (deleted)" off the path; false when it has none. */
bool bp_mapped_file_cut_deleted(bp_mapped_file *file);

#endif
