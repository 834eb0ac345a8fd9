#include "probe/mapped_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "platform/linux/proc_maps.h"
#include "platform/linux/proc_scan.h"
#include "probe/regular_file.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

static const size_t maps_max_bytes = (size_t)64 << 20;
static const size_t object_max = 4096;

static bool is_listed(const bp_mapped_objects *objects, const bp_proc_map *map) {
    for (size_t i = objects->count; i > 0; i--) {
        const bp_mapped_object *object = &objects->items[i - 1];
        if (object->inode == map->inode && object->device_major == map->device_major &&
            object->device_minor == map->device_minor) {
            return true;
        }
    }
    return false;
}

static bool push(bp_mapped_objects *objects, size_t *capacity, const bp_proc_map *map) {
    if (objects->count == *capacity) {
        size_t wanted = *capacity == 0 ? 32 : *capacity * 2;
        bp_mapped_object *items = realloc(objects->items, wanted * sizeof *items);
        if (items == NULL) {
            return false;
        }
        objects->items = items;
        *capacity = wanted;
    }
    char *path = malloc(map->path_bytes + 1);
    if (path == NULL) {
        return false;
    }
    size_t length = bp_proc_unescape_path(map->path, map->path_bytes, path);
    size_t plain_length = bp_proc_deleted_path_length(path, length);
    if (plain_length > 0) {
        path[plain_length] = '\0';
    }
    objects->items[objects->count++] = (bp_mapped_object){.path = path,
                                                          .start = map->start,
                                                          .end = map->end,
                                                          .device_major = map->device_major,
                                                          .device_minor = map->device_minor,
                                                          .inode = map->inode};
    return true;
}

int bp_mapped_objects_read(int process_fd, bp_mapped_objects *ret_objects) {
    bp_buffer text;
    bp_mapped_objects objects = {0};
    size_t capacity = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int result = 0;
    bp_buffer_init(&text, maps_max_bytes);
    if (bp_file_read_at(process_fd, "maps", &text, &error) != BUGPACK_OK) {
        result = error.system_errno != 0 ? error.system_errno : ENOMEM;
    }
    bp_proc_scan scan = {bp_buffer_text(&text), bp_buffer_text(&text) + text.size};
    bp_proc_scan line;
    while (result == 0 && objects.count < object_max && bp_proc_take_line(&scan, &line)) {
        bp_proc_map map;
        if (bp_proc_parse_map(line.next, (size_t)(line.end - line.next), &map) &&
            map.is_executable && map.inode != 0 && map.path_bytes > 0 && map.path[0] == '/' &&
            !is_listed(&objects, &map) && !push(&objects, &capacity, &map)) {
            result = ENOMEM;
        }
    }
    bp_buffer_release(&text);
    if (result != 0) {
        bp_mapped_objects_release(&objects);
        return result;
    }
    *ret_objects = objects;
    return 0;
}

void bp_mapped_objects_release(bp_mapped_objects *objects) {
    for (size_t i = 0; i < objects->count; i++) {
        free(objects->items[i].path);
    }
    free(objects->items);
    *objects = (bp_mapped_objects){0};
}

bool bp_mapped_object_is_called(const bp_mapped_object *object, const char *word) {
    const char *slash = strrchr(object->path, '/');
    return strstr(slash != NULL ? slash + 1 : object->path, word) != NULL;
}

/* By its path, with links that cannot lead out of the root of the process. */
static int open_in_root(int process_fd, const char *path) {
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return -1;
    }
    int fd = -1;
    int open_errno = ENOSYS;
#ifdef SYS_openat2
    struct open_how how = {.flags = (uint64_t)flags,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    open_errno = errno;
#endif
    if (fd < 0 && open_errno == ENOSYS) {
        /* Before Linux 5.6 a link may lead elsewhere, and the inode then tells. */
        fd = openat(root_fd, path + strspn(path, "/"), flags);
        open_errno = errno;
    }
    (void)close(root_fd);
    errno = open_errno;
    return fd;
}

int bp_mapped_object_open(int process_fd, const bp_mapped_object *object) {
    char name[64];
    (void)snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)object->start,
                   (unsigned long long)object->end);
    int path_fd = openat(process_fd, name, O_PATH | O_CLOEXEC);
    if (path_fd < 0) {
        path_fd = open_in_root(process_fd, object->path);
    }
    if (path_fd < 0) {
        return -1;
    }
    /* On btrfs and overlayfs stat shows another device than maps does, so the inode number has to
     * do.
     */
    int fd = bp_regular_file_reopen(path_fd, object->inode);
    int open_errno = errno;
    (void)close(path_fd);
    errno = open_errno;
    return fd;
}
