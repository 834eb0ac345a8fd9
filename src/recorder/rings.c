#include "recorder/rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/status.h"

/* How often the session's directory notes that the session runs. */
static const uint64_t alive_interval_ns = BP_NS_PER_SEC;

struct bp_rings {
    bp_session_dir *dir; /* NULL: memory only */
    bp_monitor *monitor; /* NULL: no file is guarded */
    char session_id[BP_ID_BYTES];
    bp_lock lock; /* of what follows; nothing is taken inside */
    char memory_reason[256];
};

static uint64_t note_alive(void *context, uint64_t now_ns) {
    bp_session_dir_tick(context);
    return now_ns + alive_interval_ns;
}

static bool detach(void *context) {
    return bp_ring_detach(context, NULL) == BUGPACK_OK;
}

/* Keeps the first reason: later ones are mostly its consequences. */
static void note_memory_reason(bp_rings *rings, const char *reason) {
    bp_lock_acquire(&rings->lock);
    if (rings->memory_reason[0] == '\0') {
        (void)snprintf(rings->memory_reason, sizeof rings->memory_reason, "%.250s", reason);
    }
    bp_lock_release(&rings->lock);
}

/*
 * Growing a file over RLIMIT_FSIZE raises SIGXFSZ, which ends the host (inode_newsize_ok in
 * fs/attr.c). What is written later is smaller than what is allocated now.
 */
static bool is_size_allowed(size_t byte_count, bugpack_error *error) {
    static const size_t beside_bytes = 64 * 1024; /* a ring's first page, or the other files */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < byte_count + beside_bytes) {
        (void)bp_fail(error, BUGPACK_ERR_IO, "files may have no more than %llu bytes here",
                      (unsigned long long)limit.rlim_cur);
        return false;
    }
    return true;
}

bugpack_status bp_rings_new(const char *base_dir, const char *memory_reason,
                            const bp_session_identity *identity, bp_monitor *monitor,
                            bp_rings **ret_rings, bugpack_error *error) {
    bp_rings *rings = calloc(1, sizeof *rings);
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (rings == NULL || !bp_lock_init(&rings->lock, BP_LOCK_RINGS)) {
        free(rings);
        return bp_fail_memory(error, "make a recorder");
    }
    memcpy(rings->session_id, identity->session_id, sizeof rings->session_id);
    if (base_dir == NULL) {
        note_memory_reason(rings, memory_reason != NULL ? memory_reason : "");
    } else if (!bp_file_guard_is_supported()) {
        note_memory_reason(rings,
                           "this system has no way to guard a mapped file against truncation");
    } else if (!is_size_allowed(0, &detail) ||
               bp_session_dir_new(base_dir, identity, &rings->dir, &detail) != BUGPACK_OK) {
        note_memory_reason(rings, detail.message);
    } else {
        rings->monitor = monitor;
        bp_monitor_add(monitor, note_alive, rings->dir);
    }
    *ret_rings = rings;
    return BUGPACK_OK;
}

void bp_rings_release_guard(bp_rings *rings) {
    if (rings->monitor != NULL) {
        bp_monitor_remove(rings->monitor, note_alive);
        bp_file_guard_clear(bp_monitor_file_guard(rings->monitor));
        rings->monitor = NULL;
    }
}

void bp_rings_free(bp_rings *rings) {
    if (rings != NULL) {
        bp_rings_release_guard(rings);
        bp_session_dir_remove(rings->dir);
        bp_lock_destroy(&rings->lock);
        free(rings);
    }
}

/* A ring in a guarded file; NULL, with memory_reason set, where that fails. */
static bp_ring *make_in_file(bp_rings *rings, const char *name, size_t capacity_bytes) {
    int fd = -1;
    bp_ring *ring = NULL;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (is_size_allowed(capacity_bytes, &detail) &&
        bp_session_dir_make_file(rings->dir, name, &fd, &detail) == BUGPACK_OK) {
        if (bp_ring_new_mapped(fd, capacity_bytes, &ring, &detail) != BUGPACK_OK) {
            (void)close(fd);
        } else if (bp_file_guard_add(bp_monitor_file_guard(rings->monitor), fd, detach, ring,
                                     &detail) != BUGPACK_OK) {
            bp_ring_free(ring);
            ring = NULL;
        }
    }
    if (ring == NULL) {
        (void)unlinkat(bp_session_dir_fd(rings->dir), name, 0);
        note_memory_reason(rings, detail.message);
    }
    return ring;
}

bugpack_status bp_rings_make(bp_rings *rings, bp_ring_kind kind, uint32_t number,
                             size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error) {
    char name[BP_RING_NAME_BYTES];
    bp_session_dir_ring_name(kind, number, name);
    bp_ring *ring = rings->dir != NULL ? make_in_file(rings, name, capacity_bytes) : NULL;
    bugpack_status status = ring == NULL ? bp_ring_new(capacity_bytes, &ring, error) : BUGPACK_OK;
    if (status == BUGPACK_OK) {
        bp_ring_publish(ring, rings->session_id, kind, number);
        *ret_ring = ring;
    }
    return status;
}

void bp_rings_drop(bp_rings *rings, bp_ring *ring) {
    if (ring != NULL && rings->monitor != NULL && bp_ring_fd(ring) >= 0) {
        bp_file_guard_remove(bp_monitor_file_guard(rings->monitor), bp_ring_fd(ring));
    }
    bp_ring_free(ring);
}

void bp_rings_write_file(bp_rings *rings, const char *name, const void *bytes, size_t byte_count) {
    int fd = -1;
    if (rings->dir == NULL || bp_session_dir_make_file(rings->dir, name, &fd, NULL) != BUGPACK_OK) {
        return;
    }
    if (write(fd, bytes, byte_count) != (ssize_t)byte_count) {
        (void)unlinkat(bp_session_dir_fd(rings->dir), name, 0);
    }
    (void)close(fd);
}

void bp_rings_note_loss(bp_rings *rings, const bp_ring *ring, char *reason, size_t reason_bytes) {
    if (ring == NULL || reason[0] != '\0') {
        return;
    }
    if (bp_ring_fd(ring) < 0) {
        bp_lock_acquire(&rings->lock);
        (void)snprintf(reason, reason_bytes, "%s", rings->memory_reason);
        bp_lock_release(&rings->lock);
    } else if (bp_ring_is_detached(ring)) {
        (void)snprintf(reason, reason_bytes,
                       "another program opened its file while it was written");
    }
}
