#include "recorder/session_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "recorder/session_files.h"
#include "recorder/session_lock.h"

enum { session_max_count = 1024 };

/* A dead session that stays. */
typedef struct kept_session {
    char *name;
    char app_name[65];
    uint64_t last_alive_ns, bytes;
} kept_session;

typedef struct scanning {
    const bp_session_scan *scan;
    int base_fd;
    const char *app_name;
    kept_session *kept;
    size_t kept_count, kept_capacity;
} scanning;

/* True: it is to be visited, for its error. */
static bool fail_look(bp_found_session *found, int system_errno) {
    found->state = BP_FOUND_UNSEEN;
    (void)bp_fail_errno(&found->error, system_errno, "could not look at the session \"%s\"",
                        found->name);
    return true;
}

/*
 * Makes the lock of a directory that has none: its process was killed before it had one, or
 * something removed it. False when it is left alone, because it is being opened at this moment.
 */
static bool adopt(bp_found_session *found) {
    const bp_session_identity *identity = &found->identity;
    bool is_elsewhere =
        identity->pid_namespace != 0 && identity->pid_namespace != bp_session_pid_namespace();
    if (is_elsewhere ||
        (identity->pid > 0 && (kill((pid_t)identity->pid, 0) == 0 || errno == EPERM))) {
        (void)bp_fail(&found->error, BUGPACK_ERR_IO,
                      "could not look at the session \"%s\": it has no lock, and its process may "
                      "live",
                      found->name);
        found->state = BP_FOUND_UNSEEN;
        return found->has_rings;
    }
    found->lock_fd = openat(found->dir_fd, BP_SESSION_LOCK_NAME,
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int system_errno = found->lock_fd < 0 ? errno : bp_session_lock_take(found->lock_fd);
    if (system_errno == EEXIST || system_errno == EAGAIN || system_errno == EBUSY) {
        return false; /* somebody else was faster */
    }
    if (system_errno != 0) {
        (void)fail_look(found, system_errno);
    }
    return true;
}

/* Its rings, the size of all its files, and the time of the newest. False with errno. */
static bool examine_files(bp_found_session *found, uint64_t *ret_bytes, uint64_t *ret_newest_ns) {
    DIR *listing = bp_file_list_directory(found->dir_fd);
    struct dirent *entry;
    struct stat info;
    *ret_bytes = *ret_newest_ns = 0;
    if (listing == NULL) {
        return false;
    }
    while ((errno = 0, entry = readdir(listing)) != NULL) {
        found->has_rings = found->has_rings || strstr(entry->d_name, ".ring") != NULL;
        if (fstatat(found->dir_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode)) {
            uint64_t changed_ns = (uint64_t)info.st_mtime * BP_NS_PER_SEC;
            *ret_newest_ns = changed_ns > *ret_newest_ns ? changed_ns : *ret_newest_ns;
            *ret_bytes += (uint64_t)info.st_blocks * 512;
        }
    }
    int system_errno = errno;
    (void)closedir(listing);
    errno = system_errno;
    return system_errno == 0;
}

/* Opens the lock and takes it. False when there is nothing to visit. */
static bool take_lock(bp_found_session *found) {
    struct stat info;
    found->lock_fd =
        openat(found->dir_fd, BP_SESSION_LOCK_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (found->lock_fd < 0 && errno == ENOENT) {
        return adopt(found);
    }
    int system_errno = found->lock_fd < 0 ? errno : bp_session_lock_take(found->lock_fd);
    if (system_errno == EAGAIN) {
        bool is_near = found->identity.pid_namespace == bp_session_pid_namespace();
        found->state = BP_FOUND_RUNNING;
        found->pid = is_near ? found->identity.pid : 0;
        return true;
    }
    if (system_errno == EBUSY) {
        return false;
    }
    if (system_errno != 0) {
        return fail_look(found, system_errno);
    }
    if (fstat(found->lock_fd, &info) != 0) {
        return fail_look(found, errno);
    }
    return info.st_nlink > 0; /* another recovery may have finished between the open and the lock */
}

/* Examines one directory and takes its lock if possible. False when there is nothing to visit. */
static bool inspect(scanning *it, bp_found_session *found, uint64_t *ret_bytes) {
    struct stat info;
    uint64_t newest_ns = 0;
    found->dir_fd =
        openat(it->base_fd, found->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (found->dir_fd < 0) {
        int system_errno = errno;
        (void)fail_look(found, system_errno);
        return system_errno != ENOENT && system_errno != ELOOP && system_errno != ENOTDIR;
    }
    if (fstat(found->dir_fd, &info) != 0) {
        return fail_look(found, errno);
    }
    if (info.st_uid != geteuid()) {
        return fail_look(found, EPERM);
    }
    if (bp_session_identity_read(found->dir_fd, &found->identity, &found->identity_error) !=
        BUGPACK_OK) {
        (void)bp_session_name_read(found->name, &found->identity);
    }
    if (!examine_files(found, ret_bytes, &newest_ns)) {
        return fail_look(found, errno);
    }
    if (!take_lock(found)) {
        return false;
    }
    bool is_time_known = found->state == BP_FOUND_DEAD &&
                         bp_session_files_read_alive(found->dir_fd, &found->identity);
    if (found->identity.last_alive.monotonic_ns == BP_RING_CLOSED_NS) {
        return !bp_session_files_remove(it->base_fd, found->dir_fd, found->name) &&
               fail_look(found, errno);
    }
    if (found->state == BP_FOUND_DEAD && found->identity_error.status != BUGPACK_OK) {
        if (found->identity_error.status != BUGPACK_ERR_CORRUPT) {
            found->state = BP_FOUND_UNSEEN;
            found->error = found->identity_error;
        }
        if (!is_time_known) {
            bp_instant now = bp_clock_now();
            found->identity.wall_offset_ns = now.wall_ns - now.monotonic_ns;
            found->identity.last_alive.wall_ns = newest_ns;
            found->identity.last_alive.monotonic_ns = newest_ns - found->identity.wall_offset_ns;
        }
        found->identity.opened = found->identity.last_alive;
    }
    return true;
}

/* By the identity, or by what the name of the directory has of it. */
static bool is_wanted(const scanning *it, const bp_found_session *found) {
    if (it->app_name == NULL || strcmp(found->identity.app_name, it->app_name) == 0) {
        return true;
    }
    bp_session_identity wanted = {.pid = 0};
    char name[BP_SESSION_NAME_BYTES];
    (void)snprintf(wanted.app_name, sizeof wanted.app_name, "%s", it->app_name);
    bp_session_name(&wanted, name);
    size_t app_bytes = strcspn(name, "-");
    return found->identity_error.status != BUGPACK_OK &&
           strncmp(found->name, name, app_bytes + 1) == 0;
}

static void keep(scanning *it, const bp_found_session *found, uint64_t bytes) {
    char *name = strdup(found->name);
    if (name == NULL || !bp_array_reserve(&it->kept, it->kept_count, &it->kept_capacity)) {
        free(name); /* then it does not count */
        return;
    }
    kept_session *kept = &it->kept[it->kept_count++];
    *kept = (kept_session){
        .name = name, .last_alive_ns = found->identity.last_alive.wall_ns, .bytes = bytes};
    memcpy(kept->app_name, found->identity.app_name, sizeof kept->app_name);
}

static void release(bp_found_session *found) {
    bp_session_lock_drop(found->lock_fd);
    bp_file_close(found->dir_fd);
}

/* Finds one by its name. After true it is to be released. */
static bool look(scanning *it, const char *name, bp_found_session *found, uint64_t *ret_bytes) {
    *found = (bp_found_session){.dir_fd = -1, .lock_fd = -1};
    (void)snprintf(found->name, sizeof found->name, "%s", name);
    bool is_there = inspect(it, found, ret_bytes);
    if (!is_there) {
        release(found);
    }
    return is_there;
}

static void visit(scanning *it, const char *name) {
    const bp_session_scan *scan = it->scan;
    bp_found_session found;
    uint64_t bytes = 0;
    if (!look(it, name, &found, &bytes)) {
        return;
    }
    if (is_wanted(it, &found)) {
        bool is_done = scan->visit(&found, scan->context) && found.state == BP_FOUND_DEAD;
        if (is_done && !bp_session_files_remove(it->base_fd, found.dir_fd, name)) {
            /* The next scan removes what is left. */
            (void)fail_look(&found, errno);
            (void)scan->visit(&found, scan->context);
        } else if (!is_done && found.state == BP_FOUND_DEAD) {
            keep(it, &found, bytes);
        }
    }
    release(&found);
}

/* The newest first. */
static int compare_kept(const void *one, const void *other) {
    const kept_session *a = one;
    const kept_session *b = other;
    return (a->last_alive_ns < b->last_alive_ns) - (a->last_alive_ns > b->last_alive_ns);
}

static void drop_some(scanning *it) {
    struct statvfs info;
    uint64_t left_bytes = UINT64_MAX;
    if (fstatvfs(it->base_fd, &info) == 0 && info.f_blocks > 0) {
        left_bytes = (uint64_t)info.f_blocks * info.f_frsize / BP_SESSION_DEAD_PART;
    }
    if (it->kept_count > 0) {
        qsort(it->kept, it->kept_count, sizeof it->kept[0], compare_kept);
    }
    for (size_t i = 0; i < it->kept_count; i++) {
        const kept_session *kept = &it->kept[i];
        unsigned newer_count = 0;
        for (size_t j = 0; j < i; j++) {
            newer_count += strcmp(it->kept[j].app_name, kept->app_name) == 0;
        }
        bool is_over = kept->bytes > left_bytes || newer_count >= BP_SESSION_DEAD_MAX;
        bp_found_session found;
        uint64_t bytes = 0;
        if (i == 0 || !is_over) {
            left_bytes -= kept->bytes < left_bytes ? kept->bytes : left_bytes;
        } else if (look(it, kept->name, &found, &bytes)) {
            if (found.state == BP_FOUND_DEAD &&
                bp_session_files_remove(it->base_fd, found.dir_fd, kept->name)) {
                it->scan->dropped(kept->name, bytes, it->scan->context);
            }
            release(&found);
        }
    }
    for (size_t i = 0; i < it->kept_count; i++) {
        free(it->kept[i].name);
    }
    free(it->kept);
}

static bool cut_end(char *name, const char *end) {
    bool has_end = bp_text_ends(name, end);
    name[strlen(name) - (has_end ? strlen(end) : 0)] = '\0';
    return has_end;
}

/* True for the rest of a removal that did not finish, or of a session whose process was killed
 * while it made it: that takes no hour. Without its directory an opening fails, which loses no
 * record. */
static bool is_rest(const scanning *it, const char *name) {
    bp_session_identity identity;
    struct stat info;
    char whole[BP_SESSION_NAME_BYTES];
    (void)snprintf(whole, sizeof whole, "%s", name);
    bool is_done = cut_end(whole, BP_SESSION_DONE);
    bool is_new = cut_end(whole, BP_SESSION_NEW);
    bool is_old = is_new && fstatat(it->base_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                  info.st_mtime < (time_t)(bp_clock_wall_ns() / BP_NS_PER_SEC) - 3600;
    return (is_done || is_old) && bp_session_name_read(whole, &identity);
}

static int compare_names(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names of session directories, sorted; removes rests. (macOS lacks scandirat.) */
static bugpack_status list(scanning *it, char **names, size_t *ret_count, bugpack_error *error) {
    bp_session_identity identity;
    bugpack_status status = BUGPACK_OK;
    size_t count = 0;
    DIR *listing = bp_file_list_directory(it->base_fd);
    struct dirent *entry = NULL;
    while (listing != NULL && status == BUGPACK_OK &&
           (errno = 0, entry = readdir(listing)) != NULL) {
        if (is_rest(it, entry->d_name)) {
            struct stat info;
            int dir_fd =
                openat(it->base_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (dir_fd >= 0 && fstat(dir_fd, &info) == 0 && info.st_uid == geteuid()) {
                (void)bp_session_files_remove(it->base_fd, dir_fd, entry->d_name);
            }
            bp_file_close(dir_fd);
        } else if (bp_session_name_read(entry->d_name, &identity)) {
            names[count] = count == session_max_count - 1 ? NULL : strdup(entry->d_name);
            status = names[count] != NULL ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
            count += status == BUGPACK_OK;
        }
    }
    if (status != BUGPACK_OK) {
        status = count == session_max_count - 1
                     ? bp_fail(error, BUGPACK_ERR_LIMIT, "could not look at more than %zu sessions",
                               count)
                     : bp_fail_memory(error, "list the sessions");
    } else if (errno != 0) {
        status = bp_fail_errno(error, errno, "could not list the sessions");
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    qsort(names, count, sizeof names[0], compare_names);
    *ret_count = count;
    return status;
}

bugpack_status bp_session_scan_run(const bp_session_scan *scan, const bp_ring_base *base,
                                   const char *app_name, bugpack_error *error) {
    scanning it = {.scan = scan, .app_name = app_name, .base_fd = -1};
    bugpack_status status = bp_ring_base_open(base, false, &it.base_fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    size_t count = 0;
    char **names = calloc(session_max_count, sizeof names[0]);
    status = names == NULL ? bp_fail_memory(error, "list the sessions")
                           : list(&it, names, &count, error);
    for (size_t i = 0; i < count; i++) {
        visit(&it, names[i]);
        free(names[i]);
    }
    drop_some(&it);
    (void)close(it.base_fd);
    free(names);
    return status;
}
