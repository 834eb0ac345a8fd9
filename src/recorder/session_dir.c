#include "recorder/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/status.h"
#include "recorder/session_lock.h"

#define LOCK_NAME "lock"
#define IDENTITY_NAME "session"

/* The identity's file: read by the version that wrote it, or not at all. */
typedef struct identity_file {
    char magic[8]; /* "bugpack" and a NUL */
    uint32_t version;
    uint32_t size; /* of this struct */
    bp_session_identity identity;
} identity_file;

static const char identity_magic[8] = "bugpack";
static const uint32_t identity_version = 2;

struct bp_session_dir {
    char name[256];
    bp_buffer path;
    int dir_fd; /* only if it still has the mark */
    bp_fd_mark mark;
    void *lock;
};

/* The pid namespace of this process; 0 where it cannot be known. Needs no descriptor. */
static uint64_t own_pid_namespace(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

/*
 * Opens the directory once more; -1 with errno. By its descriptor, which works in a chroot too, or
 * by its path, if the host has closed that. The copy is checked, because nobody else knows it.
 */
static int open_dir(const bp_session_dir *dir) {
    int fd = fcntl(dir->dir_fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && !bp_fd_is_ours(fd, dir->mark)) {
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = open(bp_buffer_text(&dir->path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd >= 0 && !bp_fd_is_ours(fd, dir->mark)) {
        (void)close(fd);
        fd = -1;
        errno = ENOENT;
    }
    return fd;
}

/* Opens `base_dir`, and refuses one that others can use: they could plant a session there. */
static bugpack_status open_base(const char *base_dir, bool create, int *ret_fd,
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

/* `<app>-<pid>-<session id>`, in characters that any file system allows. */
static void compose_name(const bp_session_identity *identity, char *name, size_t name_bytes) {
    char app[65];
    (void)snprintf(app, sizeof app, "%s", identity->app_name);
    for (char *byte = app; *byte != '\0'; byte++) {
        bool is_plain = (*byte >= 'A' && *byte <= 'Z') || (*byte >= 'a' && *byte <= 'z') ||
                        (*byte >= '0' && *byte <= '9') || *byte == '_';
        *byte = is_plain ? *byte : '_';
    }
    (void)snprintf(name, name_bytes, "%s-%lld-%s", app, (long long)identity->pid,
                   identity->session_id);
}

void bp_session_dir_ring_name(bp_ring_kind kind, uint32_t number, char name[BP_RING_NAME_BYTES]) {
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

bugpack_status bp_session_dir_make_file(const bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error) {
    int dir_fd = open_dir(dir);
    int fd = dir_fd < 0
                 ? -1
                 : openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int make_errno = errno;
    bp_file_close(dir_fd);
    if (fd < 0) {
        return bp_fail_errno(error, make_errno, "cannot make \"%s/%s\"", bp_buffer_text(&dir->path),
                             name);
    }
    (void)fchmod(fd, 0600);
    *ret_fd = fd;
    return BUGPACK_OK;
}

void bp_session_dir_rename(const bp_session_dir *dir, const char *from, const char *to) {
    int dir_fd = open_dir(dir);
    if (dir_fd >= 0) {
        (void)renameat(dir_fd, from, dir_fd, to);
    }
    bp_file_close(dir_fd);
}

void bp_session_dir_unlink(const bp_session_dir *dir, const char *name) {
    int dir_fd = open_dir(dir);
    if (dir_fd >= 0) {
        (void)unlinkat(dir_fd, name, 0);
    }
    bp_file_close(dir_fd);
}

static bugpack_status write_identity(const bp_session_dir *dir, const bp_session_identity *identity,
                                     bugpack_error *error) {
    identity_file file = {.version = identity_version, .size = sizeof file, .identity = *identity};
    memcpy(file.magic, identity_magic, sizeof file.magic);
    file.identity.pid_namespace = own_pid_namespace();
    int fd = -1;
    bugpack_status status = bp_session_dir_make_file(dir, IDENTITY_NAME, &fd, error);
    if (status == BUGPACK_OK && write(fd, &file, sizeof file) != (ssize_t)sizeof file) {
        status = bp_fail_errno(error, errno, "cannot write \"%s/%s\"", bp_buffer_text(&dir->path),
                               IDENTITY_NAME);
    }
    bp_file_close(fd);
    return status;
}

/* The lock comes first: recovery leaves alone what has no lock yet. */
static bugpack_status fill_session_dir(bp_session_dir *dir, const bp_session_identity *identity,
                                       bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_session_dir_make_file(dir, LOCK_NAME, &fd, error);
    if (status == BUGPACK_OK) {
        dir->lock = bp_session_lock_hold(fd);
        if (dir->lock == NULL) {
            status = bp_fail_errno(error, errno, "cannot lock \"%s/%s\"",
                                   bp_buffer_text(&dir->path), LOCK_NAME);
        }
        bp_file_close(fd);
    }
    return status == BUGPACK_OK ? write_identity(dir, identity, error) : status;
}

static bugpack_status make_dir(bp_session_dir *dir, const char *base_dir, bugpack_error *error) {
    int base_fd = -1;
    bugpack_status status = open_base(base_dir, true, &base_fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (mkdirat(base_fd, dir->name, 0700) != 0) {
        status = bp_fail_errno(error, errno, "cannot make the directory \"%s\"",
                               bp_buffer_text(&dir->path));
    } else {
        (void)fchmodat(base_fd, dir->name, 0700, AT_SYMLINK_NOFOLLOW);
        dir->dir_fd = openat(base_fd, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        dir->mark = bp_fd_mark_of(dir->dir_fd);
        if (dir->dir_fd < 0) {
            status = bp_fail_errno(error, errno, "cannot use the directory \"%s\"",
                                   bp_buffer_text(&dir->path));
        }
    }
    (void)close(base_fd);
    return status;
}

bugpack_status bp_session_dir_new(const char *base_dir, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error) {
    bp_session_dir *dir = calloc(1, sizeof *dir);
    if (dir == NULL) {
        return bp_fail_memory(error, "make a session's directory");
    }
    dir->dir_fd = -1;
    compose_name(identity, dir->name, sizeof dir->name);
    bp_buffer_init(&dir->path, 8192);
    (void)bp_buffer_printf(&dir->path, "%s/%s", base_dir, dir->name);
    bugpack_status status = dir->path.status == BUGPACK_OK && bp_session_lock_claim(dir->name)
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "make a session's directory");
    if (status == BUGPACK_OK) {
        status = make_dir(dir, base_dir, error);
    }
    if (status == BUGPACK_OK) {
        status = fill_session_dir(dir, identity, error);
    }
    if (status != BUGPACK_OK) {
        bp_session_dir_remove(dir);
        return status;
    }
    *ret_dir = dir;
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
static void delete_dir(int base_fd, int dir_fd, const char *name) {
    DIR *listing = open_listing(dir_fd);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, LOCK_NAME) != 0) {
            (void)unlinkat(dir_fd, entry->d_name, 0);
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    /* The lock last, so that nobody finds an unlocked directory that is half removed. */
    (void)unlinkat(dir_fd, LOCK_NAME, 0);
    (void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

void bp_session_dir_remove(bp_session_dir *dir) {
    if (dir == NULL) {
        return;
    }
    int dir_fd = dir->mark.inode != 0 ? open_dir(dir) : -1;
    int base_fd = dir_fd < 0 ? -1 : openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd >= 0) {
        delete_dir(base_fd, dir_fd, dir->name);
    }
    bp_file_close(base_fd);
    bp_file_close(dir_fd);
    bp_fd_close_ours(dir->dir_fd, dir->mark);
    bp_session_lock_let_go(dir->lock);
    bp_session_lock_release(dir->name);
    bp_buffer_release(&dir->path);
    free(dir);
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
    identity_file file;
    int fd = -1;
    if (bp_file_open_regular(dir_fd, IDENTITY_NAME, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, &file, sizeof file, 0);
    (void)close(fd);
    const bp_session_identity *identity = &file.identity;
    bool is_good = count == (ssize_t)sizeof file &&
                   memcmp(file.magic, identity_magic, sizeof file.magic) == 0 &&
                   file.version == identity_version && file.size == sizeof file &&
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
    found->lock_fd = openat(found->dir_fd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (found->lock_fd < 0) {
        return;
    }
    if (!bp_session_lock_take(found->lock_fd)) {
        found->state = BP_SESSION_DIR_RUNNING;
        found->pid = bp_session_lock_holder(found->lock_fd);
        /* Only the rings of a running session must not be opened. */
        (void)read_identity(found->dir_fd, &found->identity);
        if (found->pid == BP_SESSION_LOCK_SESSION) {
            bool is_near = found->identity.pid_namespace == own_pid_namespace();
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
        delete_dir(base_fd, found.dir_fd, name);
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
    bugpack_status status = open_base(base_dir, false, &base_fd, error);
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
