#include "recorder/rings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/machine.h"

/* The interval at which the session's directory notes that the session runs. */
static const uint64_t alive_interval_ns = BP_NS_PER_SEC;

/* A ring that is in a file. */
typedef struct bp_ring_file {
    struct bp_ring_file *next;
    bp_ring *ring;
    char name[BP_RING_NAME_BYTES];
} ring_file;

static uint64_t note_alive(void *context, uint64_t now_ns) {
    bp_rings *rings = context;
    bp_instant now = bp_clock_now();
    now.monotonic_ns = now_ns == BP_RING_CLOSED_NS ? now_ns : now.monotonic_ns;
    bp_lock_acquire(&rings->lock);
    for (ring_file *file = rings->files; file != NULL; file = file->next) {
        bp_ring_note_alive(file->ring, now);
    }
    bp_lock_release(&rings->lock);
    return now_ns + alive_interval_ns;
}

/* Only the first reason: later ones mostly follow from it. */
static void note_memory_reason(bp_rings *rings, const char *reason) {
    bp_lock_acquire(&rings->lock);
    if (rings->memory_reason[0] == '\0') {
        (void)snprintf(rings->memory_reason, sizeof rings->memory_reason, "%.250s", reason);
    }
    bp_lock_release(&rings->lock);
}

/* Makes the session's directory below the first usable one of platform/machine.h. The error is that
 * of the first of them, where a user expects the rings. */
static bugpack_status choose_dir(bp_rings *rings, const bp_session_identity *identity,
                                 bugpack_error *error) {
    bp_ring_dir *choice = malloc(sizeof *choice);
    unsigned cursor = 0;
    bugpack_status status = BUGPACK_ERR_UNSUPPORTED;
    if (choice == NULL) {
        return bp_fail_memory(error, "choose a directory for the rings");
    }
    while (status != BUGPACK_OK && bp_ring_dirs_next(&cursor, choice)) {
        const bp_ring_base base = {choice->path, true, choice->is_common};
        bugpack_error failure = BUGPACK_ERROR_INIT;
        rings->is_common = choice->is_common;
        status = bp_session_dir_new(&base, identity, &rings->dir, &failure);
        if (error->status == BUGPACK_OK) {
            *error = failure;
        }
    }
    free(choice);
    return status == BUGPACK_OK || error->status != BUGPACK_OK
               ? status
               : bp_fail(error, status, "no directory is known to keep it in");
}

bugpack_status bp_rings_new(const bp_rings_options *options, bp_rings **ret_rings,
                            bugpack_error *error) {
    bp_rings *rings = calloc(1, sizeof *rings);
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (rings == NULL) {
        return bp_fail_memory(error, "make a recorder");
    }
    bp_lock_init(&rings->lock, BP_LOCK_RINGS);
    memcpy(rings->session_id, options->identity->session_id, sizeof rings->session_id);
    bugpack_status status = BUGPACK_OK;
    if (!options->is_in_memory && options->base_dir == NULL) {
        status = choose_dir(rings, options->identity, &detail);
    } else if (!options->is_in_memory) {
        const bp_ring_base base = {options->base_dir, false, false};
        status = bp_session_dir_new(&base, options->identity, &rings->dir, &detail);
    }
    if (status != BUGPACK_OK) {
        note_memory_reason(rings, detail.message);
    }
    if (rings->dir != NULL) {
        const char *path = rings->dir->path;
        rings->survives = bp_ring_dirs_survival(path, bp_ring_dirs_is_in_memory(path));
        rings->monitor = options->monitor;
        bp_monitor_add(rings->monitor, note_alive, rings);
    }
    *ret_rings = rings;
    return BUGPACK_OK;
}

const char *bp_rings_locate(bp_rings *rings, uint64_t *ret_survives) {
    bp_lock_acquire(&rings->lock);
    bool is_in_file = rings->files != NULL;
    bp_lock_release(&rings->lock);
    *ret_survives = is_in_file ? rings->survives : 0;
    return is_in_file ? rings->dir->path : NULL;
}

void bp_rings_end(bp_rings *rings) {
    if (rings->monitor != NULL) {
        bp_monitor_remove(rings->monitor, note_alive);
        if (!atomic_load(&rings->is_kept)) { /* after a change of the user it cannot be removed */
            (void)note_alive(rings, BP_RING_CLOSED_NS);
        }
        rings->monitor = NULL;
    }
}

void bp_rings_free(bp_rings *rings) {
    if (rings != NULL) {
        bp_rings_end(rings);
        if (atomic_load(&rings->is_kept)) {
            bp_session_dir_leave(rings->dir);
        } else {
            bp_session_dir_remove(rings->dir);
        }
        while (rings->files != NULL) {
            ring_file *file = rings->files;
            rings->files = file->next;
            free(file);
        }
        bp_lock_destroy(&rings->lock);
        free(rings);
    }
}

/* IO unless the directory may get a file of this size: where other programs need its file system as
 * well, half of that stays free. */
static bugpack_status check_room(const bp_rings *rings, size_t byte_count, bugpack_error *error) {
    struct statvfs info;
    const char *path = rings->dir->path;
    if (!rings->is_common) {
        return BUGPACK_OK;
    }
    if (statvfs(path, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
    }
    uint64_t spare_blocks =
        info.f_bavail > info.f_blocks / 2 ? info.f_bavail - info.f_blocks / 2 : 0;
    return spare_blocks * info.f_frsize > byte_count
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_IO, "half of the file system of \"%s\" stays free",
                         path);
}

/* A ring in a file; NULL, with memory_reason set, where that fails. */
static bp_ring *make_in_file(bp_rings *rings, const char *name, size_t capacity_bytes) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_ring *ring = NULL;
    int fd = -1;
    ring_file *file = calloc(1, sizeof *file);
    bugpack_status status = file == NULL ? bp_fail_memory(&detail, "make a ring")
                                         : check_room(rings, capacity_bytes, &detail);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_session_dir_make_file(rings->dir, name, &fd, &detail);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_ring_new_mapped(fd, capacity_bytes, &ring, &detail);
    if (status != BUGPACK_OK) {
        bp_session_dir_unlink(rings->dir, name);
    }
out:
    bp_file_close(fd);
    if (status != BUGPACK_OK) {
        free(file);
        note_memory_reason(rings, detail.message);
        return NULL;
    }
    file->ring = ring;
    (void)snprintf(file->name, sizeof file->name, "%s", name);
    bp_lock_acquire(&rings->lock);
    file->next = rings->files;
    rings->files = file;
    bp_lock_release(&rings->lock);
    return ring;
}

bugpack_status bp_rings_make(bp_rings *rings, const bp_ring_label *label, size_t capacity_bytes,
                             bp_ring **ret_ring, bugpack_error *error) {
    char name[BP_RING_NAME_BYTES];
    bp_session_ring_name(label->kind, label->number, name);
    bp_ring *ring = rings->dir != NULL ? make_in_file(rings, name, capacity_bytes) : NULL;
    bugpack_status status = ring == NULL ? bp_ring_new(capacity_bytes, &ring, error) : BUGPACK_OK;
    /* Any thread of the host appends to these, again and again. The others need their order. */
    bool is_shared = label->kind == BP_RING_KIND_LOG || label->kind == BP_RING_KIND_TRAFFIC;
    if (status == BUGPACK_OK && is_shared) {
        status = bp_ring_share(ring, error);
        if (status != BUGPACK_OK) {
            bp_rings_drop(rings, ring);
        }
    }
    if (status == BUGPACK_OK) {
        bp_ring_publish(ring, rings->session_id, label);
        *ret_ring = ring;
    }
    return status;
}

void bp_rings_drop(bp_rings *rings, bp_ring *ring) {
    ring_file *file = NULL;
    if (ring != NULL && rings->monitor != NULL) {
        bp_lock_acquire(&rings->lock);
        ring_file **link = &rings->files;
        while (*link != NULL && (*link)->ring != ring) {
            link = &(*link)->next;
        }
        file = *link;
        if (file != NULL) {
            *link = file->next;
        }
        bp_lock_release(&rings->lock);
    }
    if (file != NULL) {
        bp_session_dir_unlink(rings->dir, file->name);
        free(file);
    }
    bp_ring_free(ring);
}

bool bp_rings_write_file(bp_rings *rings, const char *name, const void *bytes, size_t byte_count) {
    if (rings->dir == NULL) {
        return true;
    }
    if (bytes == NULL) {
        bp_session_dir_unlink(rings->dir, name);
        return true;
    }
    return bp_session_dir_write_file(rings->dir, name, bytes, byte_count);
}

bugpack_status bp_rings_map_file(const bp_rings *rings, const char *name, size_t byte_count,
                                 void **ret_map, bugpack_error *error) {
    if (rings->dir == NULL) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the session has no directory");
    }
    bugpack_status status = check_room(rings, byte_count, error);
    return status == BUGPACK_OK
               ? bp_session_dir_map_file(rings->dir, name, byte_count, ret_map, error)
               : status;
}

void bp_rings_note_loss(bp_rings *rings, const bp_ring *ring, char *reason, size_t reason_bytes) {
    if (ring != NULL && reason[0] == '\0' && !bp_ring_is_in_file(ring)) {
        bp_lock_acquire(&rings->lock);
        (void)snprintf(reason, reason_bytes, "%s", rings->memory_reason);
        bp_lock_release(&rings->lock);
    }
}
