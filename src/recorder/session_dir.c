#include "recorder/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "recorder/session_dir_private.h"

struct bp_session_dir {
    char name[256];
    bp_buffer path;
    int base_fd;
    int dir_fd;
    int lock_fd;
    int identity_fd;
    bp_session_identity identity;
};

/* The homes that this process holds: few, and asked for at open, close and recovery only. */
static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct held_name {
    struct held_name *next;
    char name[256];
} * held_names;

bool bp_session_dir_claim_name(const char *name) {
    struct held_name *claimed = calloc(1, sizeof *claimed);
    if (claimed == NULL) {
        return false;
    }
    (void)snprintf(claimed->name, sizeof claimed->name, "%s", name);
    bool is_free = true;
    (void)pthread_mutex_lock(&held_mutex);
    for (const struct held_name *held = held_names; held != NULL; held = held->next) {
        is_free = is_free && strcmp(held->name, name) != 0;
    }
    if (is_free) {
        claimed->next = held_names;
        held_names = claimed;
    }
    (void)pthread_mutex_unlock(&held_mutex);
    if (!is_free) {
        free(claimed);
    }
    return is_free;
}

void bp_session_dir_release_name(const char *name) {
    (void)pthread_mutex_lock(&held_mutex);
    struct held_name **link = &held_names;
    while (*link != NULL && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    struct held_name *released = *link;
    if (released != NULL) {
        *link = released->next;
    }
    (void)pthread_mutex_unlock(&held_mutex);
    free(released);
}

bool bp_session_dir_lock(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &whole) == 0;
}

int64_t bp_session_dir_lock_holder(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool is_held = fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    return !is_held ? -1 : whole.l_pid > 0 ? whole.l_pid : 0;
}

bugpack_status bp_session_dir_open_base(const char *base_dir, bool create, int *ret_fd,
                                        bugpack_error *error) {
    int fd = -1;
    struct stat info;
    bugpack_status status = bp_file_open_directory(base_dir, create, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (fstat(fd, &info) != 0) {
        status = bp_fail_errno(error, errno, "cannot use the directory \"%s\"", base_dir);
    } else if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        /* Somebody else could put a session there that we would believe. */
        status = bp_fail(error, BUGPACK_ERR_DENIED,
                         "cannot use the directory \"%s\": it is not this user's alone", base_dir);
    }
    if (status != BUGPACK_OK) {
        (void)close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

/* `<app>-<pid>-<session id>`, in characters that any file system takes. */
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

bugpack_status bp_session_dir_make_file(bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error) {
    int fd = openat(dir->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot make \"%s/%s\"", bp_session_dir_path(dir), name);
    }
    (void)fchmod(fd, 0600);
    *ret_fd = fd;
    return BUGPACK_OK;
}

static bugpack_status write_identity(bp_session_dir *dir, bugpack_error *error) {
    bp_session_dir_file file = {.magic = BP_SESSION_DIR_MAGIC,
                                .version = BP_SESSION_DIR_VERSION,
                                .size = sizeof file,
                                .identity = dir->identity};
    if (pwrite(dir->identity_fd, &file, sizeof file, 0) != (ssize_t)sizeof file) {
        return bp_fail_errno(error, errno, "cannot write \"%s/%s\"", bp_session_dir_path(dir),
                             BP_SESSION_DIR_IDENTITY_NAME);
    }
    return BUGPACK_OK;
}

/* The lock comes first: what has no lock yet looks half-made to a recoverer, and is left alone. */
static bugpack_status fill_session_dir(bp_session_dir *dir, bugpack_error *error) {
    bugpack_status status =
        bp_session_dir_make_file(dir, BP_SESSION_DIR_LOCK_NAME, &dir->lock_fd, error);
    if (status == BUGPACK_OK && !bp_session_dir_lock(dir->lock_fd)) {
        status = bp_fail_errno(error, errno, "cannot lock \"%s/%s\"", bp_session_dir_path(dir),
                               BP_SESSION_DIR_LOCK_NAME);
    }
    if (status == BUGPACK_OK) {
        status =
            bp_session_dir_make_file(dir, BP_SESSION_DIR_IDENTITY_NAME, &dir->identity_fd, error);
    }
    return status == BUGPACK_OK ? write_identity(dir, error) : status;
}

static void free_session_dir(bp_session_dir *dir) {
    const int fds[] = {dir->identity_fd, dir->lock_fd, dir->dir_fd, dir->base_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    bp_session_dir_release_name(dir->name);
    bp_buffer_release(&dir->path);
    free(dir);
}

bugpack_status bp_session_dir_new(const char *base_dir, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error) {
    bp_session_dir *dir = calloc(1, sizeof *dir);
    if (dir == NULL) {
        return bp_fail_memory(error, "make a session's directory");
    }
    dir->base_fd = dir->dir_fd = dir->lock_fd = dir->identity_fd = -1;
    dir->identity = *identity;
    compose_name(identity, dir->name, sizeof dir->name);
    bp_buffer_init(&dir->path, 8192);
    (void)bp_buffer_printf(&dir->path, "%s/%s", base_dir, dir->name);
    bugpack_status status = dir->path.status == BUGPACK_OK && bp_session_dir_claim_name(dir->name)
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "make a session's directory");
    if (status == BUGPACK_OK) {
        status = bp_session_dir_open_base(base_dir, true, &dir->base_fd, error);
    }
    if (status == BUGPACK_OK && mkdirat(dir->base_fd, dir->name, 0700) != 0) {
        status = bp_fail_errno(error, errno, "cannot make the directory \"%s\"",
                               bp_session_dir_path(dir));
    }
    if (status != BUGPACK_OK) {
        free_session_dir(dir);
        return status;
    }
    (void)fchmodat(dir->base_fd, dir->name, 0700, AT_SYMLINK_NOFOLLOW);
    dir->dir_fd = openat(dir->base_fd, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    status = dir->dir_fd >= 0 ? fill_session_dir(dir, error)
                              : bp_fail_errno(error, errno, "cannot use the directory \"%s\"",
                                              bp_session_dir_path(dir));
    if (status != BUGPACK_OK) {
        bp_session_dir_remove(dir);
        return status;
    }
    *ret_dir = dir;
    return BUGPACK_OK;
}

int bp_session_dir_fd(const bp_session_dir *dir) {
    return dir->dir_fd;
}

const char *bp_session_dir_path(const bp_session_dir *dir) {
    return bp_buffer_text(&dir->path);
}

void bp_session_dir_tick(bp_session_dir *dir) {
    bp_instant now = bp_clock_now();
    dir->identity.last_alive = now;
    dir->identity.wall_offset_ns = now.wall_ns - now.monotonic_ns;
    (void)write_identity(dir, NULL);
}

void bp_session_dir_delete(int base_fd, int dir_fd, const char *name) {
    /* A descriptor of its own: fdopendir takes over the one that it gets. */
    int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, BP_SESSION_DIR_LOCK_NAME) != 0) {
            (void)unlinkat(dir_fd, entry->d_name, 0);
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    } else if (list_fd >= 0) {
        (void)close(list_fd);
    }
    /* The lock goes last, so that nobody finds an unlocked home that is half removed. */
    (void)unlinkat(dir_fd, BP_SESSION_DIR_LOCK_NAME, 0);
    (void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

void bp_session_dir_remove(bp_session_dir *dir) {
    if (dir == NULL) {
        return;
    }
    if (dir->dir_fd >= 0) {
        bp_session_dir_delete(dir->base_fd, dir->dir_fd, dir->name);
    }
    free_session_dir(dir);
}
