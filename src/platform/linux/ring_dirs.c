#include "platform/ring_dirs.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "platform/host.h"

/* Users whose files in /dev/shm systemd removes: at the end of the last log-in (RemoveIPC in
 * logind.conf(5)), and with the service of a dynamic user (DynamicUser in systemd.exec(5)). */
enum { first_login_uid = 1000, first_dynamic_uid = 61184, last_dynamic_uid = 65519 };

/* `*cursor` counts the fixed places, then the bytes of $RUNTIME_DIRECTORY. */
enum { PLACE_USER, PLACE_RUN, PLACE_SHM, PLACE_SERVICE };

/* The part of a list of paths that begins at `from`, up to the next ':'. */
static size_t part_bytes(const char *list, size_t from) {
    return strcspn(list + from, ":");
}

static bool compose(bp_ring_dir *dir, const char *above, size_t above_bytes, bool is_common) {
    int length = snprintf(dir->path, sizeof dir->path, "%.*s/bugpack", (int)above_bytes, above);
    dir->is_common = is_common;
    return above_bytes < sizeof dir->path && length > 0 && (size_t)length < sizeof dir->path;
}

/* systemd.exec(5): the directories that RuntimeDirectory= made, absolute, separated by ':'. */
static bool next_of_service(unsigned *cursor, bp_ring_dir *ret_dir) {
    const char *list = bp_host_environment("RUNTIME_DIRECTORY");
    size_t end = list == NULL ? 0 : strlen(list);
    for (size_t at = *cursor - PLACE_SERVICE; at < end;) {
        size_t bytes = part_bytes(list, at);
        const char *part = list + at;
        at += bytes + 1;
        *cursor = PLACE_SERVICE + (unsigned)at;
        if (part[0] == '/' && compose(ret_dir, part, bytes, true)) {
            return true;
        }
    }
    return false;
}

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    if (*cursor == PLACE_USER) {
        /* The XDG specification: a relative value is invalid and to be ignored. */
        const char *runtime = bp_host_environment("XDG_RUNTIME_DIR");
        *cursor = PLACE_RUN;
        if (runtime != NULL && runtime[0] == '/' &&
            compose(ret_dir, runtime, strlen(runtime), false)) {
            return true;
        }
    }
    if (*cursor == PLACE_RUN) {
        *cursor = PLACE_SHM;
        if (geteuid() == 0) {
            return compose(ret_dir, "/run", strlen("/run"), true);
        }
    }
    if (*cursor == PLACE_SHM) {
        *cursor = PLACE_SERVICE;
        (void)snprintf(ret_dir->path, sizeof ret_dir->path, "/dev/shm/bugpack-%u",
                       (unsigned)geteuid());
        ret_dir->is_common = true;
        return true;
    }
    return next_of_service(cursor, ret_dir);
}

bool bp_ring_dirs_is_in_memory(const char *path) {
    struct statfs info;
    return statfs(path, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

static bool is_below(const char *path, const char *above, size_t above_bytes) {
    while (above_bytes > 1 && above[above_bytes - 1] == '/') {
        above_bytes--;
    }
    return above_bytes > 0 && above[0] == '/' && strncmp(path, above, above_bytes) == 0 &&
           (path[above_bytes] == '/' || path[above_bytes] == '\0');
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    const char *runtime = bp_host_environment("XDG_RUNTIME_DIR");
    const char *services = bp_host_environment("RUNTIME_DIRECTORY");
    uid_t uid = geteuid();
    bool is_shm = is_below(path, "/dev/shm", strlen("/dev/shm"));
    bool is_of_user = is_below(path, "/run/user", strlen("/run/user")) ||
                      (runtime != NULL && is_below(path, runtime, strlen(runtime)));
    bool is_of_service = is_shm && uid >= first_dynamic_uid && uid <= last_dynamic_uid;
    for (size_t at = 0; services != NULL && services[at] != '\0';) {
        size_t bytes = part_bytes(services, at);
        is_of_service = is_of_service || is_below(path, services + at, bytes);
        at += bytes + (services[at + bytes] == ':');
    }
    uint64_t survives = BUGPACK_SURVIVES_KILL;
    survives |= is_of_service ? 0 : BUGPACK_SURVIVES_SERVICE;
    survives |= is_of_user || (is_shm && uid >= first_login_uid) ? 0 : BUGPACK_SURVIVES_LOGOUT;
    survives |= is_in_memory ? 0 : BUGPACK_SURVIVES_REBOOT;
    return survives;
}
