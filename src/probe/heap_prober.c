#include "probe/heap_prober.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "platform/linux/mapped_files.h"
#include "probe/jemalloc_find.h"

enum { bucket_count = 256 };

struct bp_heap_prober {
    bp_heap_prober_options options; /* its string is ours */
    bp_lock lock;                   /* for the objects, also while one is examined */
    bp_known_object *buckets[bucket_count];
};

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error) {
    bp_heap_prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL || !bp_lock_init(&prober->lock, BP_LOCK_ELF_OBJECTS)) {
        free(prober);
        return bp_fail_memory(error, "prepare a probe");
    }
    prober->options = *options;
    if (options->calibrator_path != NULL) {
        prober->options.calibrator_path = strdup(options->calibrator_path);
        if (prober->options.calibrator_path == NULL) {
            bp_heap_prober_free(prober);
            return bp_fail_memory(error, "prepare a probe");
        }
    }
    *ret_prober = prober;
    return BUGPACK_OK;
}

void bp_heap_prober_free(bp_heap_prober *prober) {
    if (prober == NULL) {
        return;
    }
    for (size_t i = 0; i < bucket_count; i++) {
        for (bp_known_object *object = prober->buckets[i], *next; object != NULL; object = next) {
            next = object->next;
            free(object);
        }
    }
    free((char *)(uintptr_t)prober->options.calibrator_path);
    bp_lock_destroy(&prober->lock);
    free(prober);
}

const bp_heap_prober_options *bp_heap_prober_settings(const bp_heap_prober *prober) {
    return &prober->options;
}

/* One process and its search. */
struct search {
    bp_heap_prober *prober;
    int process_fd;
    uint64_t executable_inode;
    bool has_own_root;
    bp_jemalloc_found *found;
};

static bp_known_object *recall(const struct search *search, bp_mapped_file *mapped,
                               bool is_executable) {
    bp_known_object *object = search->prober->buckets[mapped->inode % bucket_count];
    while (object != NULL &&
           (object->inode != mapped->inode || object->device_major != mapped->device_major ||
            object->device_minor != mapped->device_minor ||
            object->is_executable != is_executable ||
            object->has_own_root != search->has_own_root)) {
        object = object->next;
    }
    return object;
}

/* 0, or the errno for which nothing can be said about the file. */
static int examine(struct search *search, bp_mapped_file *mapped, bp_known_object *object) {
    bool is_there;
    int fd = bp_mapped_file_open(search->process_fd, mapped, &is_there);
    int open_errno = errno;
    (void)bp_mapped_file_cut_deleted(mapped);
    if (fd < 0) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        (void)bp_fail_process_errno(&error, open_errno, "cannot open \"%s\"", mapped->path);
        object->kind = BP_OBJECT_UNREADABLE;
        memcpy(object->reason, error.message, sizeof object->reason);
        return bp_mapped_file_is_unknown(open_errno, is_there) ? open_errno : 0;
    }
    bp_jemalloc_examine(&search->prober->options, fd, mapped->path, object);
    (void)close(fd);
    return object->read_errno;
}

/* Examines a file that is not known yet. The lock is held. */
static bugpack_status learn(struct search *search, bp_mapped_file *mapped, bool is_executable,
                            bp_known_object **ret_object, bugpack_error *error) {
    bp_heap_prober *prober = search->prober;
    bp_known_object *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return bp_fail_memory(error, "look at the files of a process");
    }
    object->device_major = mapped->device_major;
    object->device_minor = mapped->device_minor;
    object->inode = mapped->inode;
    object->is_executable = is_executable;
    object->has_own_root = search->has_own_root;
    int result = examine(search, mapped, object);
    if (result != 0) {
        free(object);
        return bp_fail_errno(error, result, "cannot look for a jemalloc in \"%s\"", mapped->path);
    }
    object->next = prober->buckets[object->inode % bucket_count];
    prober->buckets[object->inode % bucket_count] = object;
    *ret_object = object;
    return BUGPACK_OK;
}

static bugpack_status fail_found(struct search *search, bp_heap_failure failure,
                                 const char *reason) {
    search->found->failure = failure;
    (void)snprintf(search->found->reason, sizeof search->found->reason, "%s", reason);
    return BUGPACK_OK;
}

/* Examines one file of the process and records the result in `found`. */
static bugpack_status look_at(struct search *search, bp_mapped_file *mapped, bugpack_error *error) {
    bp_jemalloc_found *found = search->found;
    bool is_executable = mapped->inode == search->executable_inode;
    bp_lock_acquire(&search->prober->lock);
    bp_known_object *object = recall(search, mapped, is_executable);
    bugpack_status status =
        object != NULL ? BUGPACK_OK : learn(search, mapped, is_executable, &object, error);
    bp_known_object known = {0};
    if (object != NULL) {
        known = *object;
    }
    bp_lock_release(&search->prober->lock);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (known.kind == BP_OBJECT_LIBC && !found->has_libc) {
        found->has_libc = true;
        found->libc = known.libc;
        found->libc_base = mapped->code_start - known.code_address;
    } else if (known.kind == BP_OBJECT_JEMALLOC && found->path == NULL) {
        (void)bp_mapped_file_cut_deleted(mapped); /* where the file was known already */
        found->path = strdup(mapped->path);
        if (found->path == NULL) {
            return bp_fail_memory(error, "look at the files of a process");
        }
        found->jemalloc = known;
        found->jemalloc_base = mapped->code_start - known.code_address;
        return known.failure == BP_HEAP_FAILURE_NONE
                   ? BUGPACK_OK
                   : fail_found(search, known.failure, known.reason);
    } else if (known.failure == BP_HEAP_FAILURE_ARCH_MISMATCH) {
        return fail_found(search, known.failure, known.reason);
    } else if (known.reason[0] != '\0' && found->reason[0] == '\0') {
        /* The reason to give if no jemalloc is found: this file was not examined. */
        (void)snprintf(found->reason, sizeof found->reason, "%s", known.reason);
    }
    return BUGPACK_OK;
}

/* Whether the last component of its path holds this word. */
static bool is_called(const bp_mapped_file *mapped, const char *word) {
    const char *slash = strrchr(mapped->path, '/');
    return strstr(slash != NULL ? slash + 1 : mapped->path, word) != NULL;
}

/* Examines the likeliest files first. Goes on until libc is known, which is never the last. */
static bugpack_status look_at_all(struct search *search, const bp_mapped_files *files,
                                  bugpack_error *error) {
    bp_jemalloc_found *found = search->found;
    bugpack_status status = BUGPACK_OK;
    uint64_t deadline_ns =
        bp_clock_monotonic_ns() + search->prober->options.search_timeout_ms * BP_NS_PER_MS;
    for (unsigned pass = 0; pass < 3 && status == BUGPACK_OK; pass++) {
        for (size_t i = 0; i < files->count && status == BUGPACK_OK; i++) {
            bp_mapped_file *file = &files->items[i];
            bool is_executable = file->inode == search->executable_inode;
            bool is_named =
                !is_executable && (is_called(file, "jemalloc") || is_called(file, "libc.so"));
            bool is_its_turn = pass == 0   ? is_named
                               : pass == 1 ? is_executable
                                           : !is_named && !is_executable && found->path == NULL;
            if (!is_its_turn || found->failure != BP_HEAP_FAILURE_NONE) {
                continue;
            }
            if (bp_clock_monotonic_ns() >= deadline_ns) {
                (void)snprintf(found->reason, sizeof found->reason,
                               "looking through its %zu files took too long", files->count);
                return BUGPACK_OK;
            }
            status = look_at(search, file, error);
        }
    }
    return status;
}

/* 0, or the errno for which the root of the process is unknown. */
static int compare_roots(int process_fd, bool *ret_has_own_root) {
    struct stat theirs, ours;
    if (fstatat(process_fd, "root", &theirs, 0) != 0 || stat("/", &ours) != 0) {
        *ret_has_own_root = false;
        return bp_errno_is_trouble(errno) ? errno : 0;
    }
    *ret_has_own_root = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    return 0;
}

bugpack_status bp_jemalloc_find(bp_heap_prober *prober, int process_fd,
                                bp_jemalloc_found *ret_found, bugpack_error *error) {
    bp_jemalloc_found found = {0};
    struct search search = {.prober = prober, .process_fd = process_fd, .found = &found};
    bp_mapped_files files = {0};
    char link[1];
    struct stat executable;
    bugpack_status status = BUGPACK_OK;
    int result;
    if (readlinkat(process_fd, "exe", link, sizeof link) < 0 ||
        fstatat(process_fd, "exe", &executable, 0) != 0) {
        found.failure = BP_HEAP_FAILURE_READLINK;
        found.system_errno = errno;
        goto out;
    }
    search.executable_inode = executable.st_ino;
    result = compare_roots(process_fd, &search.has_own_root);
    if (result != 0) {
        status = bp_fail_errno(error, result, "cannot find the root directory of a process");
        goto out;
    }
    found.system_errno = bp_mapped_files_read(process_fd, &files);
    if (found.system_errno == ENOMEM) {
        status = bp_fail_memory(error, "look at the files of a process");
        goto out;
    }
    if (found.system_errno != 0) {
        found.failure = BP_HEAP_FAILURE_MAPS_READ;
        goto out;
    }
    status = look_at_all(&search, &files, error);
    if (status == BUGPACK_OK && found.path == NULL && found.failure == BP_HEAP_FAILURE_NONE) {
        found.failure = BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND;
    }
out:
    bp_mapped_files_release(&files);
    if (status != BUGPACK_OK) {
        free(found.path);
        return status;
    }
    *ret_found = found;
    return BUGPACK_OK;
}
