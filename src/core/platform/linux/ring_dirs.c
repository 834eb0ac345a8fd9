#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"
#include "platform/machine.h"

static const size_t maps_max_bytes = (size_t)16 << 20;

/* Users whose files in /dev/shm systemd removes: at the end of the last log-in (RemoveIPC in
 * logind.conf(5)), and with the service of a dynamic user (DynamicUser in systemd.exec(5)). */
enum { first_login_uid = 1000, first_dynamic_uid = 61184, last_dynamic_uid = 65519 };

enum { PLACE_USER, PLACE_RUN, PLACE_SHM, PLACE_END };

static bool compose(bp_ring_dir *dir, const char *above, bool is_common) {
    int length = snprintf(dir->path, sizeof dir->path, "%s/bugpack", above);
    dir->is_common = is_common;
    return length > 0 && (size_t)length < sizeof dir->path;
}

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    bool is_found = false;
    while (!is_found && *cursor < PLACE_END) {
        unsigned place = (*cursor)++;
        if (place == PLACE_USER) {
            /* The XDG specification: a relative value is invalid and to be ignored. */
            const char *runtime = bp_machine_environment("XDG_RUNTIME_DIR");
            is_found = runtime != NULL && runtime[0] == '/' && compose(ret_dir, runtime, false);
        } else if (place == PLACE_RUN) {
            is_found = geteuid() == 0 && compose(ret_dir, "/run", true);
        } else {
            (void)snprintf(ret_dir->path, sizeof ret_dir->path, "/dev/shm/bugpack-%u",
                           (unsigned)geteuid());
            is_found = ret_dir->is_common = true;
        }
    }
    return is_found;
}

/* The length of the path of the directory of a mapped file, or 0. */
static size_t cut_file(char path[PATH_MAX], const bp_proc_map *map) {
    if (map->inode == 0 || map->path_bytes == 0 || map->path_bytes >= PATH_MAX ||
        map->path[0] != '/') {
        return 0;
    }
    (void)bp_proc_unescape_path(map->path, map->path_bytes, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    return (size_t)(slash - path);
}

/* Another path may have led to somebody else's: false, and it is closed. */
static bool is_private(int fd, int process_fd) {
    char status[4096];
    uint64_t uid;
    struct stat info;
    ssize_t length = bp_proc_read_at(process_fd, status, sizeof status, "status");
    bool is_theirs = length > 0 && bp_proc_find_number(status, (size_t)length, "Uid", 1, &uid) &&
                     fstat(fd, &info) == 0 && info.st_uid == uid && (info.st_mode & 077) == 0;
    if (!is_theirs) {
        bp_file_close(fd);
    }
    return is_theirs;
}

static bugpack_status visit_maps(const bp_mapped_dirs *dirs, pid_t pid, int process_fd,
                                 const bp_buffer *maps, bugpack_error *error) {
    char path[PATH_MAX], last[PATH_MAX] = "";
    bp_proc_scan scan = {maps->data, maps->data + maps->size};
    bp_proc_map map;
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && bp_proc_take_map(&scan, &map)) {
        if (cut_file(path, &map) == 0 || strcmp(path, last) == 0 ||
            !dirs->is_wanted(strrchr(path, '/') + 1)) {
            continue;
        }
        memcpy(last, path, sizeof last);
        int fd = bp_open_in_root(process_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (fd >= 0 && is_private(fd, process_fd)) {
            status = dirs->visit(dirs->context, pid, fd, error);
        }
    }
    return status;
}

static bugpack_status visit_process(const bp_mapped_dirs *dirs, pid_t pid, bool is_ours,
                                    bp_buffer *maps, bugpack_error *error) {
    struct stat info;
    bugpack_status status = BUGPACK_OK;
    int process_fd = bp_proc_open_process(pid);
    bp_buffer_clear(maps);
    if (process_fd >= 0 && (!is_ours || geteuid() == 0 ||
                            (fstat(process_fd, &info) == 0 && info.st_uid == geteuid()))) {
        (void)bp_file_read_at(process_fd, "maps", maps, NULL); /* or the first 16 MiB */
        status = visit_maps(dirs, pid, process_fd, maps, error);
    }
    bp_file_close(process_fd);
    return status;
}

bugpack_status bp_mapped_dirs_visit(const bp_mapped_dirs *dirs, pid_t pid, bugpack_error *error) {
    bp_buffer maps;
    bp_proc_list processes = {0};
    bugpack_status status = BUGPACK_OK;
    bp_buffer_init(&maps, maps_max_bytes);
    if (pid != 0) {
        status = visit_process(dirs, pid, false, &maps, error);
    } else {
        (void)bp_proc_list_read(AT_FDCWD, "/proc", &processes);
    }
    for (size_t i = 0; status == BUGPACK_OK && i < processes.count; i++) {
        status = visit_process(dirs, (pid_t)processes.items[i].id, true, &maps, error);
    }
    bp_proc_list_release(&processes);
    bp_buffer_release(&maps);
    return status;
}

bool bp_process_has_thread(pid_t pid, const char *name) {
    char path[32], found[64];
    bp_proc_list threads = {0};
    bool is_there = false;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    (void)bp_proc_list_read(AT_FDCWD, path, &threads);
    for (size_t i = 0; !is_there && i < threads.count; i++) {
        ssize_t length = bp_proc_read_at(AT_FDCWD, found, sizeof found, "%s/%llu/comm", path,
                                         (unsigned long long)threads.items[i].id);
        is_there = length > 0 && (size_t)length == strlen(name) + 1 &&
                   strncmp(found, name, strlen(name)) == 0;
    }
    bp_proc_list_release(&threads);
    return is_there;
}

bool bp_ring_dirs_is_in_memory(const char *path) {
    struct statfs info;
    return statfs(path, &info) == 0 &&
           ((uint32_t)info.f_type == TMPFS_MAGIC || (uint32_t)info.f_type == RAMFS_MAGIC);
}

static bool is_below(const char *path, const char *above, size_t above_bytes) {
    while (above_bytes > 1 && above[above_bytes - 1] == '/') {
        above_bytes--;
    }
    return above_bytes > 0 && above[0] == '/' && strncmp(path, above, above_bytes) == 0 &&
           (path[above_bytes] == '/' || path[above_bytes] == '\0');
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    const char *runtime = bp_machine_environment("XDG_RUNTIME_DIR");
    const char *services = bp_machine_environment("RUNTIME_DIRECTORY");
    uid_t uid = geteuid();
    bool is_shm = is_below(path, "/dev/shm", strlen("/dev/shm"));
    bool is_of_user = is_below(path, "/run/user", strlen("/run/user")) ||
                      (runtime != NULL && is_below(path, runtime, strlen(runtime)));
    bool is_of_service = is_shm && uid >= first_dynamic_uid && uid <= last_dynamic_uid;
    /* systemd.exec(5): the directories that RuntimeDirectory= made, absolute, separated by ':'. */
    for (size_t at = 0; services != NULL && services[at] != '\0';) {
        size_t bytes = strcspn(services + at, ":");
        is_of_service = is_of_service || is_below(path, services + at, bytes);
        at += bytes + (services[at + bytes] == ':');
    }
    uint64_t survives = BUGPACK_SURVIVES_KILL;
    survives |= is_of_service ? 0 : BUGPACK_SURVIVES_SERVICE;
    survives |= is_of_user || (is_shm && uid >= first_login_uid) ? 0 : BUGPACK_SURVIVES_LOGOUT;
    survives |= is_in_memory ? 0 : BUGPACK_SURVIVES_REBOOT;
    return survives;
}
