/*
 * Finding the sessions of other processes.
 */
#include "recorder/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "recorder/session_dir_private.h"
#include "recorder/session_lock.h"

uint64_t bp_session_pid_namespace(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

bugpack_status bp_session_base_open(const char *base_dir, bool create, int *ret_fd,
                                    bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_file_open_directory(base_dir, create, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_file_check_private(fd, base_dir, error);
    if (status != BUGPACK_OK) {
        (void)close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

/* On a new descriptor, because fdopendir takes ownership. NULL on failure. */
static DIR *open_listing(int dir_fd) {
    int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    if (listing == NULL && list_fd >= 0) {
        (void)close(list_fd);
    }
    return listing;
}

/* Removes the regular files in a directory, then the directory. */
void bp_session_dir_delete(int base_fd, int dir_fd, const char *name) {
    DIR *listing = open_listing(dir_fd);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, BP_SESSION_LOCK_NAME) != 0) {
            (void)unlinkat(dir_fd, entry->d_name, 0);
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    /* The lock last, so that nobody finds an unlocked directory that is half removed. */
    (void)unlinkat(dir_fd, BP_SESSION_LOCK_NAME, 0);
    (void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

/* Whether a name is one of ours: `<app>-<pid>-<32 hexadecimal digits>`. */
static bool is_session_dir_name(const char *name) {
    const char *id = strrchr(name, '-');
    if (id == NULL || strlen(id + 1) != BP_ID_BYTES - 1 ||
        strspn(id + 1, "0123456789abcdef") != BP_ID_BYTES - 1) {
        return false;
    }
    const char *digits = id;
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    return digits < id && digits > name + 1 && digits[-1] == '-';
}

/* Validates the file as if somebody else had written it. */
static bool read_identity(int dir_fd, bp_session_identity *ret_identity) {
    bp_session_identity_file file;
    int fd = -1;
    if (bp_file_open_regular(dir_fd, BP_SESSION_IDENTITY_NAME, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, &file, sizeof file, 0);
    (void)close(fd);
    const bp_session_identity *identity = &file.identity;
    bool is_good = count == (ssize_t)sizeof file &&
                   memcmp(file.magic, BP_SESSION_IDENTITY_MAGIC, sizeof file.magic) == 0 &&
                   file.version == BP_SESSION_IDENTITY_VERSION && file.size == sizeof file &&
                   identity->app_name[0] != '\0';
    const struct {
        const char *text;
        size_t bytes;
    } texts[] = {{identity->session_id, sizeof identity->session_id},
                 {identity->app_name, sizeof identity->app_name},
                 {identity->app_version, sizeof identity->app_version},
                 {identity->app_build_id, sizeof identity->app_build_id},
                 {identity->report_dir, sizeof identity->report_dir},
                 {identity->bugpack_version, sizeof identity->bugpack_version},
                 {identity->target_name, sizeof identity->target_name}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        is_good = is_good && memchr(texts[i].text, '\0', texts[i].bytes) != NULL;
    }
    if (is_good) {
        *ret_identity = *identity;
    }
    return is_good;
}

/* When the session was last alive: the newest note in its rings. Without one it is the opening. */
static void read_alive(int dir_fd, bp_session_identity *identity) {
    DIR *listing = open_listing(dir_fd);
    struct dirent *entry;
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
        }
        (void)close(fd);
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
}

/*
 * Examines one directory and takes its lock if possible. The name was claimed, because opening and
 * closing the lock file of a session of this process would drop that session's lock.
 */
static void inspect(int base_fd, bp_found_session *found) {
    struct stat info;
    found->state = BP_SESSION_DIR_BROKEN;
    found->dir_fd = openat(base_fd, found->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (found->dir_fd < 0 || fstat(found->dir_fd, &info) != 0 || info.st_uid != geteuid()) {
        return;
    }
    found->lock_fd =
        openat(found->dir_fd, BP_SESSION_LOCK_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (found->lock_fd < 0) {
        return;
    }
    if (!bp_session_lock_take(found->lock_fd)) {
        found->state = BP_SESSION_DIR_RUNNING;
        found->pid = bp_session_lock_holder(found->lock_fd);
        /* Only the rings of a running session must not be opened. */
        (void)read_identity(found->dir_fd, &found->identity);
        if (found->pid == BP_SESSION_LOCK_SESSION) {
            bool is_near = found->identity.pid_namespace == bp_session_pid_namespace();
            found->pid = is_near ? found->identity.pid : BP_SESSION_LOCK_ELSEWHERE;
        }
        return;
    }
    /* Another recovery may have finished between the open and the lock. */
    if (fstat(found->lock_fd, &info) == 0 && info.st_nlink > 0 &&
        read_identity(found->dir_fd, &found->identity)) {
        read_alive(found->dir_fd, &found->identity);
        found->state = BP_SESSION_DIR_DEAD;
    }
}

static void visit_session_dir(int base_fd, const char *name, const char *app_name,
                              bp_session_dir_visit *visit, void *context) {
    bp_found_session found = {.dir_fd = -1, .lock_fd = -1};
    (void)snprintf(found.name, sizeof found.name, "%s", name);
    if (!bp_session_lock_claim(name)) {
        return; /* of this process: open, or being recovered by another thread */
    }
    inspect(base_fd, &found);
    bool is_wanted = app_name == NULL || (found.state != BP_SESSION_DIR_BROKEN &&
                                          strcmp(found.identity.app_name, app_name) == 0);
    if (is_wanted && visit(&found, context) && found.state == BP_SESSION_DIR_DEAD) {
        bp_session_dir_delete(base_fd, found.dir_fd, name);
    }
    if (found.lock_fd >= 0) {
        (void)close(found.lock_fd);
    }
    if (found.dir_fd >= 0) {
        (void)close(found.dir_fd);
    }
    bp_session_lock_release(name);
}

/* The next scan finds the rest. */
enum { session_max_count = 1024 };

static int compare_names(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names of session directories, sorted. (macOS lacks scandirat.) */
static size_t list_session_dirs(int base_fd, char **names) {
    size_t count = 0;
    DIR *listing = open_listing(base_fd);
    struct dirent *entry;
    while (listing != NULL && count < session_max_count && (entry = readdir(listing)) != NULL) {
        if (is_session_dir_name(entry->d_name)) {
            names[count] = strdup(entry->d_name);
            count += names[count] != NULL;
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    qsort(names, count, sizeof names[0], compare_names);
    return count;
}

bugpack_status bp_session_dir_scan(const char *base_dir, const char *app_name,
                                   bp_session_dir_visit *visit, void *context,
                                   bugpack_error *error) {
    int base_fd = -1;
    struct stat info;
    if (lstat(base_dir, &info) != 0 && errno == ENOENT) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_session_base_open(base_dir, false, &base_fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    char **names = calloc(session_max_count, sizeof names[0]);
    size_t count = names == NULL ? 0 : list_session_dirs(base_fd, names);
    for (size_t i = 0; i < count; i++) {
        visit_session_dir(base_fd, names[i], app_name, visit, context);
        free(names[i]);
    }
    (void)close(base_fd);
    if (names == NULL) {
        return bp_fail_memory(error, "list the sessions");
    }
    free(names);
    return BUGPACK_OK;
}
