/*
 * Finding what dead sessions left behind.
 */
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

static bool is_terminated(const char *text, size_t text_bytes) {
    return memchr(text, '\0', text_bytes) != NULL;
}

/* Reads whose it was. What is in the file is ours, and is looked at as if it were not. */
static bool read_identity(int dir_fd, bp_session_identity *ret_identity) {
    bp_session_dir_file file;
    int fd = -1;
    if (bp_file_open_regular(dir_fd, BP_SESSION_DIR_IDENTITY_NAME, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, &file, sizeof file, 0);
    (void)close(fd);
    const bp_session_identity *identity = &file.identity;
    bool is_good = count == (ssize_t)sizeof file &&
                   memcmp(file.magic, BP_SESSION_DIR_MAGIC, sizeof BP_SESSION_DIR_MAGIC) == 0 &&
                   file.version == BP_SESSION_DIR_VERSION && file.size == sizeof file &&
                   is_terminated(identity->session_id, sizeof identity->session_id) &&
                   is_terminated(identity->app_name, sizeof identity->app_name) &&
                   is_terminated(identity->app_version, sizeof identity->app_version) &&
                   is_terminated(identity->app_build_id, sizeof identity->app_build_id) &&
                   is_terminated(identity->report_dir, sizeof identity->report_dir) &&
                   is_terminated(identity->bugpack_version, sizeof identity->bugpack_version) &&
                   is_terminated(identity->target_name, sizeof identity->target_name) &&
                   identity->app_name[0] != '\0';
    if (is_good) {
        *ret_identity = *identity;
    }
    return is_good;
}

/*
 * Looks at one directory and takes its lock when it can. The name was claimed: opening the lock
 * file of a session of this very process, and closing it again, would give that session's lock
 * away.
 */
static void inspect(int base_fd, bp_found_session *found) {
    struct stat info;
    found->state = BP_SESSION_DIR_BROKEN;
    found->dir_fd = openat(base_fd, found->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (found->dir_fd < 0 || fstat(found->dir_fd, &info) != 0 || info.st_uid != geteuid()) {
        return;
    }
    found->lock_fd = openat(found->dir_fd, BP_SESSION_DIR_LOCK_NAME,
                            O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (found->lock_fd < 0) {
        return;
    }
    if (!bp_session_dir_lock(found->lock_fd)) {
        found->state = BP_SESSION_DIR_RUNNING;
        found->pid = bp_session_dir_lock_holder(found->lock_fd);
        (void)read_identity(found->dir_fd,
                            &found->identity); /* only the rings are not to be opened */
        return;
    }
    /* Another recoverer may have finished between our opening the file and locking it. */
    if (fstat(found->lock_fd, &info) == 0 && info.st_nlink > 0 &&
        read_identity(found->dir_fd, &found->identity)) {
        found->state = BP_SESSION_DIR_DEAD;
    }
}

static void visit_session_dir(int base_fd, const char *name, const char *app_name,
                              bp_session_dir_visit *visit, void *context) {
    bp_found_session found = {.dir_fd = -1, .lock_fd = -1};
    (void)snprintf(found.name, sizeof found.name, "%s", name);
    if (!bp_session_dir_claim_name(name)) {
        return; /* a session of this process, or another thread is recovering it */
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
    bp_session_dir_release_name(name);
}

/* More than this many sessions in one place are not ours to list: the next scan has the rest. */
enum { session_max_count = 1024 };

static int compare_names(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names that are ours, sorted. (scandirat, which would do this, is missing on macOS.) */
static size_t list_session_dirs(int base_fd, char **names) {
    size_t count = 0;
    int list_fd = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    struct dirent *entry;
    while (listing != NULL && count < session_max_count && (entry = readdir(listing)) != NULL) {
        if (is_session_dir_name(entry->d_name)) {
            names[count] = strdup(entry->d_name);
            count += names[count] != NULL;
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    } else if (list_fd >= 0) {
        (void)close(list_fd);
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
    bugpack_status status = bp_session_dir_open_base(base_dir, false, &base_fd, error);
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
