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

/* A file's path begins with '/', and only the kernel can name other memory like the vDSO. */
static bool is_listed(const bp_proc_map *map, bool with_vdso) {
    static const char vdso_name[] = "[vdso]";
    if (map->inode != 0) {
        return map->path_bytes > 0 && map->path[0] == '/';
    }
    return with_vdso && map->path_bytes == sizeof vdso_name - 1 &&
           memcmp(map->path, vdso_name, map->path_bytes) == 0;
}

/* Adjacent lines of one file are one file, also with small gaps, as large pages leave them. Where
 * it is far away it was mapped once more. */
static bool is_more_of(const bp_mapped_file *last, const bp_proc_map *map) {
    static const uint64_t gap_max_bytes = (uint64_t)4 << 20;
    return last != NULL && last->inode == map->inode && last->device_major == map->device_major &&
           last->device_minor == map->device_minor && map->start - last->end <= gap_max_bytes;
}

static void drop_last_without_code(bp_mapped_files *files) {
    if (files->count > 0 && files->items[files->count - 1].code_start == 0) {
        free(files->items[--files->count].path);
    }
}

/* False without memory. */
static bool add_map(bp_mapped_files *files, const bp_proc_map *map) {
    bp_mapped_file *last = files->count > 0 ? &files->items[files->count - 1] : NULL;
    if (!is_more_of(last, map)) {
        drop_last_without_code(files);
        if (files->count == file_max) {
            files->cut = "over the limit of 4,096";
            return true;
        }
        if (!bp_array_reserve(&files->items, files->count, &files->capacity)) {
            return false;
        }
        last = &files->items[files->count];
        *last = (bp_mapped_file){.path = malloc(map->path_bytes + 1),
                                 .address = map->start,
                                 .device_major = map->device_major,
                                 .device_minor = map->device_minor,
                                 .inode = map->inode};
        if (last->path == NULL) {
            return false;
        }
        (void)bp_proc_unescape_path(map->path, map->path_bytes, last->path);
        files->count++;
    }
    last->end = map->end;
    if (map->is_executable && last->code_start == 0) {
        last->code_start = map->start;
        last->code_end = map->end;
    }
    return true;
}

bool bp_mapped_files_parse(const char *text, size_t text_bytes, bool with_vdso,
                           bp_mapped_files *files) {
    static const char aio[] = "/[aio]"; /* aio_setup_ring in fs/aio.c */
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_map map;
    while (files->cut == NULL && bp_proc_take_map(&scan, &map)) {
        if (map.is_executable) {
            if (!bp_array_reserve(&files->code, files->code_count, &files->code_capacity)) {
                return false;
            }
            files->code[files->code_count++] = (bp_mapped_code){map.start, map.end};
        }
        if (map.is_shared) {
            if (!bp_array_reserve(&files->shared, files->shared_count, &files->shared_capacity)) {
                return false;
            }
            files->shared[files->shared_count++] = (bp_mapped_code){map.start, map.end};
            files->has_aio = files->has_aio || (map.path_bytes >= sizeof aio - 1 &&
                                                memcmp(map.path, aio, sizeof aio - 1) == 0);
        }
        if (is_listed(&map, with_vdso) && !add_map(files, &map)) {
            return false;
        }
    }
    drop_last_without_code(files);
    return true;
}

int bp_mapped_files_read(int process_fd, bool with_vdso, bp_mapped_files *ret_files) {
    bp_buffer text;
    bp_mapped_files files = {0};
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
        for (const char *at = text.data, *end = at + text.size;
             (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
            files.map_count++;
        }
        result = bp_mapped_files_parse(text.data, text.size, with_vdso, &files) ? 0 : ENOMEM;
        if (files.cut == NULL && status != BUGPACK_OK) {
            files.cut = "over 16 MiB of mappings";
        }
    }
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
    free(files->code);
    free(files->shared);
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
