#include "recorder/session_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "platform/machine.h"

/* The identity's file. Only this version of it is read. */
typedef struct identity_file {
    char magic[8]; /* "bugpack" and a NUL */
    uint32_t version;
    uint32_t size; /* of this struct */
    bp_session_identity identity;
    uint64_t check; /* hash of the identity */
} identity_file;

static const char identity_magic[8] = "bugpack";
static const uint32_t identity_version = 3;

void *bp_session_identity_seal(const bp_session_identity *identity, size_t *ret_bytes) {
    identity_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->version = identity_version;
        file->size = sizeof *file;
        file->identity = *identity;
        memcpy(file->magic, identity_magic, sizeof file->magic);
        file->identity.pid_namespace = bp_session_pid_namespace();
        file->check = XXH3_64bits(&file->identity, sizeof file->identity);
        *ret_bytes = sizeof *file;
    }
    return file;
}

int bp_session_file_open(int dir_fd, const char *name) {
    struct stat dir, info;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int system_errno = fstat(dir_fd, &dir) != 0 || fstat(fd, &info) != 0 ? errno : 0;
    if (system_errno == 0 && info.st_uid != dir.st_uid) {
        system_errno = ELOOP; /* a link to somebody else's file: bp_session_errno_is_damage */
    }
    if (system_errno != 0) {
        (void)close(fd);
        errno = system_errno;
        return -1;
    }
    return fd;
}

bool bp_session_errno_is_damage(int system_errno) {
    static const int damage[] = {ENOENT, EIO, ELOOP, EISDIR, ENXIO, ENODEV};
    bool is_damage = false;
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        is_damage = is_damage || damage[i] == system_errno;
    }
    return is_damage;
}

static bool is_text(const char *text, size_t bytes) {
    return memchr(text, '\0', bytes) != NULL;
}

bugpack_status bp_session_identity_read(int dir_fd, bp_session_identity *ret_identity,
                                        bugpack_error *error) {
    identity_file file = {.version = 0};
    int fd = bp_session_file_open(dir_fd, BP_SESSION_IDENTITY_NAME);
    int64_t count = fd < 0 ? -1 : bp_file_read_range(fd, &file, sizeof file, 0);
    int system_errno = count < 0 ? errno : 0;
    bp_file_close(fd);
    if (system_errno != 0 && !bp_session_errno_is_damage(system_errno)) {
        return bp_fail_errno(error, system_errno, "cannot read \"%s\"", BP_SESSION_IDENTITY_NAME);
    }
    const bp_session_identity *identity = &file.identity;
    bool is_whole = count == (int64_t)sizeof file && file.size == sizeof file &&
                    file.version == identity_version &&
                    memcmp(file.magic, identity_magic, sizeof file.magic) == 0 &&
                    file.check == XXH3_64bits(identity, sizeof *identity);
    if (!is_whole || identity->app_name[0] == '\0' ||
        !is_text(identity->session_id, sizeof identity->session_id) ||
        !is_text(identity->app_name, sizeof identity->app_name) ||
        !is_text(identity->app_version, sizeof identity->app_version) ||
        !is_text(identity->app_build_id, sizeof identity->app_build_id) ||
        !is_text(identity->report_dir, sizeof identity->report_dir) ||
        !is_text(identity->bugpack_version, sizeof identity->bugpack_version) ||
        !is_text(identity->target_name, sizeof identity->target_name) ||
        !is_text(identity->boot_id, sizeof identity->boot_id) ||
        !is_text(identity->machine, sizeof identity->machine)) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "its file \"%s\" is missing, damaged, or of another version",
                       BP_SESSION_IDENTITY_NAME);
    }
    *ret_identity = *identity;
    return BUGPACK_OK;
}

uint64_t bp_session_pid_namespace(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

void bp_session_name(const bp_session_identity *identity, char name[BP_SESSION_NAME_BYTES]) {
    char app[65];
    (void)snprintf(app, sizeof app, "%s", identity->app_name);
    for (char *byte = app; *byte != '\0'; byte++) {
        bool is_plain = (*byte >= 'A' && *byte <= 'Z') || (*byte >= 'a' && *byte <= 'z') ||
                        (*byte >= '0' && *byte <= '9') || *byte == '_';
        *byte = is_plain ? *byte : '_';
    }
    (void)snprintf(name, BP_SESSION_NAME_BYTES, "%s-%lld-%s", app, (long long)identity->pid,
                   identity->session_id);
}

/* `<app>-<pid>-<32 hexadecimal digits>`; an app has no '-'. */
bool bp_session_name_read(const char *name, bp_session_identity *ret_identity) {
    size_t app_bytes = strcspn(name, "-");
    size_t pid_bytes = name[app_bytes] == '-' ? strspn(name + app_bytes + 1, "0123456789") : 0;
    const char *id = name + app_bytes + 1 + pid_bytes;
    if (app_bytes == 0 || app_bytes >= sizeof ret_identity->app_name || pid_bytes == 0 ||
        pid_bytes > 18 || *id++ != '-' || strlen(id) != BP_ID_BYTES - 1 ||
        strspn(id, "0123456789abcdef") != BP_ID_BYTES - 1) {
        return false;
    }
    *ret_identity = (bp_session_identity){.pid = strtoll(name + app_bytes + 1, NULL, 10)};
    memcpy(ret_identity->app_name, name, app_bytes);
    memcpy(ret_identity->session_id, id, BP_ID_BYTES);
    return true;
}

bool bp_session_is_name(const char *name) {
    bp_session_identity identity;
    return bp_session_name_read(name, &identity);
}

bool bp_session_is_of(int dir_fd, pid_t pid, bp_session_identity *ret_identity) {
    return bp_session_identity_read(dir_fd, ret_identity, NULL) == BUGPACK_OK &&
           (ret_identity->pid == pid || ret_identity->pid_namespace != bp_session_pid_namespace());
}

void bp_session_ring_name(bp_ring_kind kind, uint32_t number, char name[BP_RING_NAME_BYTES]) {
    static const char *const names[] = {[BP_RING_KIND_LOG] = "log.ring",
                                        [BP_RING_KIND_NOTIFICATIONS] = "notifications.ring",
                                        [BP_RING_KIND_HISTORY] = "history.ring"};
    if (kind == BP_RING_KIND_TRAFFIC || kind == BP_RING_KIND_PINS) {
        (void)snprintf(name, BP_RING_NAME_BYTES, "%s-%u.ring",
                       kind == BP_RING_KIND_PINS ? "pins" : "traffic", (unsigned)number);
    } else {
        (void)snprintf(name, BP_RING_NAME_BYTES, "%s", names[kind]);
    }
}

bool bp_session_files_read_alive(int dir_fd, bp_session_identity *identity) {
    DIR *listing = bp_file_list_directory(dir_fd);
    struct dirent *entry;
    bool is_known = false;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        bp_instant alive;
        int fd = -1;
        if (strstr(entry->d_name, ".ring") == NULL ||
            bp_file_open_regular(dir_fd, entry->d_name, &fd, NULL) != BUGPACK_OK) {
            continue;
        }
        if (bp_ring_read_alive(fd, &alive) &&
            alive.monotonic_ns > identity->last_alive.monotonic_ns) {
            identity->last_alive = alive;
            identity->wall_offset_ns = alive.wall_ns - alive.monotonic_ns;
            is_known = true;
        }
        bp_file_close(fd);
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    return is_known;
}

bool bp_session_files_remove(int base_fd, int dir_fd, const char *name) {
    char done_name[BP_SESSION_NAME_BYTES + sizeof BP_SESSION_DONE];
    bool is_done = bp_text_ends(name, BP_SESSION_DONE);
    (void)snprintf(done_name, sizeof done_name, "%s%s", name, is_done ? "" : BP_SESSION_DONE);
    if (!is_done && renameat(base_fd, name, base_fd, done_name) != 0) {
        return false;
    }
    DIR *listing = bp_file_list_directory(dir_fd);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dir_fd, entry->d_name, 0);
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    return unlinkat(base_fd, done_name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* DENIED, with EPERM for the caller, which is no part of the sentence. */
static bugpack_status deny(bugpack_error *error, const char *path, const char *reason) {
    bugpack_status status =
        bp_fail(error, BUGPACK_ERR_DENIED, "cannot use the directory \"%s\": %s", path, reason);
    if (error != NULL) {
        error->system_errno = EPERM;
    }
    return status;
}

/* Another user who can replace the directory could plant sessions, or have them written over. */
static bugpack_status check_above(const bp_ring_base *base, bugpack_error *error) {
    const char *path = base->path;
    char above[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    (void)snprintf(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (stat(above, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return deny(error, path, "what is above it is another user's");
    }
    if ((info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0) {
        return deny(error, path, "others can write to what is above it");
    }
    /* On a disk a store to a mapped file may wait. */
    if (base->is_common && !bp_ring_dirs_is_in_memory(above)) {
        return deny(error, path, "it is not in memory");
    }
    if (lstat(path, &info) == 0 && info.st_uid != geteuid()) {
        return deny(error, path, "it is another user's");
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        return deny(error, path, "it is a symbolic link");
    }
    return BUGPACK_OK;
}

/* Another user could plant a session there. */
static bugpack_status check(const char *path, int fd, bugpack_error *error) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid != geteuid()
               ? deny(error, path, "it is not this user's alone")
               : bp_file_check_private(fd, path, error);
}

bugpack_status bp_ring_base_open(const bp_ring_base *base, bool create, int *ret_fd,
                                 bugpack_error *error) {
    int fd = -1;
    bugpack_status status = base->is_chosen ? check_above(base, error) : BUGPACK_OK;
    if (status == BUGPACK_OK) {
        status = bp_file_open_directory(base->path, create, &fd, error);
    }
    if (status == BUGPACK_OK) {
        status = check(base->path, fd, error);
    }
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}
