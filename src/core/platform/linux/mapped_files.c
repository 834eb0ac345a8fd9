#include "platform/linux/mapped_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"

static const size_t maps_max_bytes = (size_t)16 << 20;
static const size_t file_max = 4096;

/* The mappings of files; slices of the text of maps. */
typedef struct map_list {
    bp_proc_map *maps;
    size_t count, capacity;
} map_list;

/* Collects the mappings of files; one of no file ("[heap]", "[vdso]") has no inode. */
static bool parse_maps(const bp_buffer *text, map_list *list) {
    bp_proc_scan scan = {text->data, text->data + text->size};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        if (map.inode == 0 || map.path_bytes == 0 || map.path[0] != '/') {
            continue;
        }
        if (!bp_array_reserve(&list->maps, list->count, &list->capacity)) {
            return false;
        }
        list->maps[list->count++] = map;
    }
    return true;
}

static int compare_values(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_files(const bp_proc_map *a, const bp_proc_map *b) {
    int result = compare_values(a->inode, b->inode);
    result = result != 0 ? result : compare_values(a->device_major, b->device_major);
    return result != 0 ? result : compare_values(a->device_minor, b->device_minor);
}

/* By file, and then by address: the first mapping of each file is its lowest. */
static int compare_maps(const void *a_map, const void *b_map) {
    const bp_proc_map *a = a_map;
    const bp_proc_map *b = b_map;
    int result = compare_files(a, b);
    return result != 0 ? result : compare_values(a->start, b->start);
}

static int compare_addresses(const void *a_file, const void *b_file) {
    const bp_mapped_file *a = a_file;
    const bp_mapped_file *b = b_file;
    return compare_values(a->address, b->address);
}

static bool push_file(bp_mapped_files *files, const bp_proc_map *lowest, const bp_proc_map *code) {
    bp_mapped_file *file = &files->items[files->count];
    *file = (bp_mapped_file){.path = malloc(lowest->path_bytes + 1),
                             .address = lowest->start,
                             .code_start = code->start,
                             .code_end = code->end,
                             .device_major = lowest->device_major,
                             .device_minor = lowest->device_minor,
                             .inode = lowest->inode};
    if (file->path == NULL) {
        return false;
    }
    (void)bp_proc_unescape_path(lowest->path, lowest->path_bytes, file->path);
    files->count++;
    return true;
}

/* Takes each file that has an executable mapping. False without memory. */
static bool take_files(map_list *list, bp_mapped_files *files) {
    files->items = calloc(list->count + 1, sizeof *files->items);
    if (files->items == NULL) {
        return false;
    }
    if (list->count > 0) {
        qsort(list->maps, list->count, sizeof *list->maps, compare_maps);
    }
    for (size_t first = 0, end; first < list->count; first = end) {
        const bp_proc_map *code = NULL;
        for (end = first;
             end < list->count && compare_files(&list->maps[first], &list->maps[end]) == 0; end++) {
            code = code == NULL && list->maps[end].is_executable ? &list->maps[end] : code;
        }
        if (code != NULL && !push_file(files, &list->maps[first], code)) {
            return false;
        }
    }
    qsort(files->items, files->count, sizeof *files->items, compare_addresses);
    while (files->count > file_max) {
        files->cut = "over the limit of 4,096";
        free(files->items[--files->count].path);
    }
    return true;
}

int bp_mapped_files_read(int process_fd, bp_mapped_files *ret_files) {
    bp_buffer text;
    bp_mapped_files files = {0};
    map_list list = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    int result = 0;
    bp_buffer_init(&text, maps_max_bytes);
    bugpack_status status = bp_file_read_at(process_fd, "maps", &text, &error);
    if (text.status != BUGPACK_OK && text.status != BUGPACK_ERR_LIMIT) {
        result = ENOMEM;
    } else if (status != BUGPACK_OK && status != BUGPACK_ERR_LIMIT) {
        result = error.system_errno != 0 ? error.system_errno : EIO;
    } else if (text.size > 0) {
        files.is_known = true;
        files.cut = status != BUGPACK_OK ? "over 16 MiB of mappings" : NULL;
        result = parse_maps(&text, &list) && take_files(&list, &files) ? 0 : ENOMEM;
    }
    free(list.maps);
    bp_buffer_release(&text);
    if (result != 0) {
        bp_mapped_files_release(&files);
        return result;
    }
    *ret_files = files;
    return 0;
}

void bp_mapped_files_release(bp_mapped_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
    }
    free(files->items);
    *files = (bp_mapped_files){0};
}

bool bp_mapped_file_is_unknown(int open_errno, bool is_there) {
    bool is_refusal = open_errno == EACCES || open_errno == EPERM;
    return is_there ? !is_refusal : bp_errno_is_trouble(open_errno);
}

bool bp_mapped_file_cut_deleted(bp_mapped_file *file) {
    size_t length = bp_proc_deleted_path_length(file->path, strlen(file->path));
    if (length > 0) {
        file->path[length] = '\0';
    }
    return length > 0;
}

/*
 * Whether a descriptor is of the file that is mapped: 0, or an errno, ESTALE when it is not. maps
 * shows the device of the inode, while stat on btrfs and overlayfs shows that of the subvolume or
 * the overlay: there the inode number alone decides.
 */
static int compare_mapped(int fd, const bp_mapped_file *file) {
    static const unsigned long overlay_magic = 0x794c7630;
    struct stat info;
    struct statfs system;
    if (fstat(fd, &info) != 0) {
        return errno;
    }
    if (!S_ISREG(info.st_mode) || info.st_ino != file->inode) {
        return ESTALE;
    }
    if (major(info.st_dev) == file->device_major && minor(info.st_dev) == file->device_minor) {
        return 0;
    }
    if (fstatfs(fd, &system) != 0) {
        return errno;
    }
    return (unsigned long)system.f_type == (unsigned long)BTRFS_SUPER_MAGIC ||
                   (unsigned long)system.f_type == overlay_magic
               ? 0
               : ESTALE;
}

/* -1 with errno, and closed, unless it is the mapped file. */
static int check_mapped(int fd, const bp_mapped_file *file) {
    int result = fd >= 0 ? compare_mapped(fd, file) : 0;
    if (result != 0) {
        (void)close(fd);
        errno = result;
        return -1;
    }
    return fd;
}

int bp_mapped_file_open(int process_fd, const bp_mapped_file *file, bool *ret_is_there) {
    int path_fd = check_mapped(bp_open_in_root(process_fd, file->path, O_PATH | O_NOFOLLOW), file);
    int path_errno = errno;
    *ret_is_there = path_fd >= 0;
    if (path_fd < 0) {
        /* Removed or replaced; the kernel still has it, for those who may checkpoint a process. */
        char name[64];
        (void)snprintf(name, sizeof name, "map_files/%llx-%llx",
                       (unsigned long long)file->code_start, (unsigned long long)file->code_end);
        path_fd = check_mapped(openat(process_fd, name, O_PATH | O_CLOEXEC), file);
    }
    if (path_fd < 0) {
        errno = bp_errno_is_trouble(errno) ? errno : path_errno;
        return -1;
    }
    return bp_reopen_regular(path_fd);
}
