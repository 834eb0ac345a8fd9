#include "report/hosted.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "probe/session_copies.h"
#include "report/before_write.h"

void bp_hosted_free(bp_hosted *hosted) {
    if (hosted != NULL) {
        bp_redaction_free(hosted->redaction);
        free(hosted);
    }
}

void bp_hosted_describe(const bp_hosted *hosted, bp_metadata *metadata) {
    const bp_session_identity *identity = &hosted->identity;
    memcpy(metadata->target.session_id, identity->session_id, sizeof identity->session_id);
    if (strcmp(metadata->app_name, metadata->target.name) == 0) {
        metadata->app_name = identity->app_name;
        metadata->app_version = identity->app_version;
        metadata->app_build_id = identity->app_build_id;
    }
}

/* The names that the files have in a session's directory. */
static void name_copies(const bp_session_copies *copies, bp_session_copy *named) {
    for (size_t i = 0; i < copies->count; i++) {
        const bp_copied_file *copied = &copies->items[i];
        named[i].fd = copied->kind == BP_ANCHOR_FILE ? copied->file.fd : copies->rings.fd;
        named[i].base = copied->base;
        if (copied->kind == BP_ANCHOR_FILE) {
            memcpy(named[i].name, copied->name, sizeof copied->name);
        } else {
            bp_session_ring_name((bp_ring_kind)copied->kind, copied->number, named[i].name);
        }
    }
}

/* An instant on both clocks as the process has them: when it was last noted to be alive, or, with
 * rings in memory alone, when its session was opened. */
static bp_instant last_instant(const bp_session_copies *copies, bp_instant opened) {
    bp_instant last = opened, alive;
    for (size_t i = 0; i < copies->count; i++) {
        const bp_ring_place ring = {copies->rings.fd, copies->items[i].base};
        if (copies->items[i].kind != BP_ANCHOR_FILE && bp_ring_read_alive(ring, &alive) &&
            alive.monotonic_ns != BP_RING_CLOSED_NS && alive.monotonic_ns > last.monotonic_ns) {
            last = alive;
        }
    }
    return last;
}

static bugpack_status recover(const bp_session_place *place, const bp_session_copies *copies,
                              const bp_redaction *ours, int dir_fd, bp_snapshot *snapshot,
                              bp_hosted *hosted, bugpack_error *error) {
    bugpack_status status = bp_session_identity_read(place, &hosted->identity, error);
    if (status == BUGPACK_OK) {
        bp_instant at =
            copies->is_clock_ours ? bp_clock_now() : last_instant(copies, hosted->identity.opened);
        hosted->identity.wall_offset_ns = at.wall_ns - at.monotonic_ns;
        hosted->had_before_write = bp_before_write_was_set(place);
        status = bp_redaction_load(place, ours, &hosted->redaction, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_recover_rings(place, &hosted->identity, dir_fd, snapshot, error);
        snapshot->is_recovered = false; /* it lives, and nothing waits for a next try */
    }
    return status;
}

bugpack_status bp_hosted_take(pid_t pid, const bp_redaction *ours, int dir_fd,
                              const bp_cancel_token *token, bp_snapshot *snapshot,
                              bp_hosted **ret_hosted, bugpack_error *error) {
    bp_session_copies copies = {.count = 0};
    bugpack_status status = bp_session_copies_take(pid, dir_fd, token, &copies, error);
    if (status != BUGPACK_OK || copies.ring_count + copies.unread_count == 0) {
        bp_session_copies_release(&copies);
        return status;
    }
    bp_hosted *hosted = calloc(1, sizeof *hosted);
    bp_session_copy *named = calloc(copies.count, sizeof *named);
    if (hosted == NULL || named == NULL) {
        status = bp_fail_memory(error, "copy the rings of a process");
    } else {
        const bp_session_place place = {.dir_fd = -1, .copies = named, .copy_count = copies.count};
        name_copies(&copies, named);
        status = recover(&place, &copies, ours, dir_fd, snapshot, hosted, error);
        snapshot->token = token;
        /* A child has the table of the host that it was forked from, and no rings. */
        if (status == BUGPACK_OK && copies.ring_count == 0 && hosted->identity.pid != pid) {
            status = BUGPACK_ERR_CORRUPT;
        }
    }
    free(named);
    bp_session_copies_release(&copies);
    if (status == BUGPACK_OK) {
        *ret_hosted = hosted;
        return BUGPACK_OK;
    }
    bp_hosted_free(hosted);
    /* What the process made up is no failure of the report. */
    return status == BUGPACK_ERR_CORRUPT ? BUGPACK_OK : status;
}
