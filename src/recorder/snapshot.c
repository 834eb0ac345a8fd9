#include "recorder/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "ring/ring_file.h"
#include "ring/ring_reader.h"

/* Three parts, and two files per channel. */
enum { file_max_count = 3 + 2 * BUGPACK_CHANNEL_MAX };

/* The files of a snapshot. Returns how many. */
static size_t list_files(bp_snapshot *snapshot, bp_temp_file *files[file_max_count]) {
    bp_snapshot_part *const parts[] = {&snapshot->log, &snapshot->notifications,
                                       &snapshot->history};
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i]->is_on) {
            files[count++] = &parts[i]->records;
        }
    }
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        files[count++] = &snapshot->channels[i].messages;
        files[count++] = &snapshot->channels[i].pins;
    }
    return count;
}

void bp_snapshot_release(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    for (size_t i = 0; i < count; i++) {
        bp_temp_file_release(files[i]);
    }
    snapshot->channel_count = 0;
}

uint64_t bp_snapshot_bytes(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += files[i]->size;
    }
    return bytes;
}

unsigned bp_snapshot_fds(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    unsigned fd_count = 0;
    for (size_t i = 0; i < count; i++) {
        fd_count += bp_temp_file_is_open(files[i]);
    }
    return fd_count;
}

bool bp_snapshot_is_whole(const bp_snapshot *snapshot) {
    /* The status of a part that is off is OK. */
    return snapshot->log.error.status == BUGPACK_OK &&
           snapshot->notifications.error.status == BUGPACK_OK &&
           snapshot->history.error.status == BUGPACK_OK &&
           snapshot->traffic_error.status == BUGPACK_OK;
}

uint64_t bp_snapshot_newest_ns(const bp_snapshot *snapshot) {
    const uint64_t parts_ns[] = {snapshot->log.view.last_ns, snapshot->notifications.view.last_ns,
                                 snapshot->history.view.last_ns};
    uint64_t newest_ns = 0;
    for (size_t i = 0; i < sizeof parts_ns / sizeof parts_ns[0]; i++) {
        newest_ns = parts_ns[i] > newest_ns ? parts_ns[i] : newest_ns;
    }
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        uint64_t last_ns = snapshot->channels[i].messages_view.last_ns;
        newest_ns = last_ns > newest_ns ? last_ns : newest_ns;
    }
    return newest_ns;
}

/* What is recovered, and where its records go. */
typedef struct source {
    const bp_session_place *place;
    int dir_fd;
    const char *session_id;
    uint32_t ring_kinds; /* those that there should be */
} source;

/* Opens a ring file. False when it is missing; `*ret_fd` is -1 when it cannot be opened. */
static bool open_ring(const source *from, const char *name, int *ret_fd, bugpack_error *error) {
    struct stat info;
    *error = (bugpack_error)BUGPACK_ERROR_INIT;
    *ret_fd = bp_session_file_open(from->place, name);
    if (*ret_fd < 0 && errno == ENOENT) {
        return false;
    }
    if (*ret_fd < 0) {
        int system_errno = errno;
        (void)bp_fail_errno(error, system_errno, "cannot read \"%s\"", name);
        error->status =
            bp_session_errno_is_damage(system_errno) ? BUGPACK_ERR_CORRUPT : error->status;
    } else if (fstat(*ret_fd, &info) != 0) {
        (void)bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    } else if (!S_ISREG(info.st_mode)) {
        (void)bp_fail(error, BUGPACK_ERR_CORRUPT, "cannot read \"%s\": it is no file", name);
    }
    if (*ret_fd >= 0 && error->status != BUGPACK_OK) {
        bp_file_close(*ret_fd);
        *ret_fd = -1;
    }
    return true;
}

/* The names that a ring's file may have: while it is moved there are two, and the new one counts
 * once it has a header. */
typedef struct ring_names {
    char names[2][BP_RING_NAME_BYTES + sizeof BP_RING_NEW_SUFFIX];
} ring_names;

static void name_ring(bp_ring_kind kind, uint32_t number, ring_names *ret_names) {
    char name[BP_RING_NAME_BYTES];
    bp_session_ring_name(kind, number, name);
    (void)snprintf(ret_names->names[0], sizeof ret_names->names[0], "%s" BP_RING_NEW_SUFFIX, name);
    (void)snprintf(ret_names->names[1], sizeof ret_names->names[1], "%s", name);
}

/*
 * False when there is no such file. An error that is CORRUPT is damage, and the records are empty;
 * any other may pass.
 */
static bool recover_ring(const source *from, bp_ring_kind kind, uint32_t number,
                         bp_temp_file *records, bp_ring_view *view, bugpack_error *error) {
    ring_names names;
    bool is_there = false;
    bugpack_status status = BUGPACK_ERR_CORRUPT;
    name_ring(kind, number, &names);
    *records = (bp_temp_file)BP_TEMP_FILE_INIT;
    for (size_t i = 0; i < 2 && status == BUGPACK_ERR_CORRUPT; i++) {
        int fd = -1;
        bugpack_error failure;
        if (!open_ring(from, names.names[i], &fd, &failure)) {
            continue;
        }
        is_there = true;
        bp_temp_file_release(records);
        if (fd >= 0 &&
            bp_ring_file_check_owner(fd, from->session_id, kind, number, &failure) == BUGPACK_OK) {
            (void)bp_ring_recover_to_file(fd, from->dir_fd, records, view, &failure);
        }
        bp_file_close(fd);
        status = failure.status;
        *error = failure;
    }
    return is_there;
}

static void recover_part(const source *from, bp_ring_kind kind, bp_snapshot_part *part) {
    part->is_on = recover_ring(from, kind, 0, &part->records, &part->view, &part->error);
    if (!part->is_on && (from->ring_kinds >> kind & 1) != 0) {
        part->is_on = true;
        (void)bp_fail(&part->error, BUGPACK_ERR_CORRUPT,
                      "the ring was in memory, or its file was removed");
    }
}

/* A ring of a channel: one that is damaged costs itself, and the others are recovered. */
static bool recover_channel_ring(const source *from, bp_ring_kind kind, uint32_t number,
                                 bp_temp_file *records, bp_ring_view *view, bp_snapshot *snapshot) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool is_there = recover_ring(from, kind, number, records, view, &error);
    if (error.status == BUGPACK_ERR_CORRUPT) {
        view->is_damaged = true;
        error = (bugpack_error)BUGPACK_ERROR_INIT;
        if (!bp_temp_file_is_open(records)) {
            (void)bp_temp_file_open(records, from->dir_fd, 0, &error);
        }
    }
    if (error.status != BUGPACK_OK && snapshot->traffic_error.status == BUGPACK_OK) {
        snapshot->traffic_error = error;
    }
    return is_there;
}

/* Of a channel whose file is damaged only the number is known. A failure that may pass is noted. */
static bool read_channel(const source *from, unsigned number, bp_traffic_identity *ret_identity,
                         bugpack_error *error) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    char name[BP_RING_NAME_BYTES];
    (void)snprintf(name, sizeof name, BP_CHANNEL_FILE_FORMAT, number);
    int fd = bp_session_file_open(from->place, name);
    bool is_read = fd >= 0 && bp_file_read_range(fd, ret_identity, sizeof *ret_identity, 0) ==
                                  (int64_t)sizeof *ret_identity;
    int system_errno = fd < 0 ? errno : 0;
    bp_file_close(fd);
    if (system_errno != 0 && !bp_session_errno_is_damage(system_errno) &&
        error->status == BUGPACK_OK) {
        (void)bp_fail_errno(error, system_errno, "cannot read \"%s\"", name);
    }
    if (is_read && bp_traffic_identity_is_whole(ret_identity, number)) {
        return true;
    }
    bp_traffic_identity_init(ret_identity, name, number, &options);
    return false;
}

static void recover_channel(const source *from, unsigned number, bp_snapshot *snapshot) {
    bp_traffic_snapshot *channel = &snapshot->channels[snapshot->channel_count];
    *channel = (bp_traffic_snapshot){.messages = BP_TEMP_FILE_INIT,
                                     .pins = BP_TEMP_FILE_INIT,
                                     .wall_offset_ns = snapshot->wall_offset_ns};
    bool is_known = read_channel(from, number, &channel->identity, &snapshot->traffic_error);
    bool has_ring = recover_channel_ring(from, BP_RING_KIND_TRAFFIC, number, &channel->messages,
                                         &channel->messages_view, snapshot);
    if (!has_ring && !is_known) {
        return;
    }
    snapshot->has_traffic = true;
    snapshot->channel_count++;
    /* Without its own file the ring is in memory, or gone, and its channel has no pins either. */
    channel->messages_view.is_damaged = channel->messages_view.is_damaged || !has_ring || !is_known;
    if (!has_ring) {
        bugpack_error *error = &snapshot->traffic_error;
        (void)bp_temp_file_open(&channel->messages, from->dir_fd, 0,
                                error->status == BUGPACK_OK ? error : NULL);
    }
    if (bp_temp_file_is_open(&channel->messages) &&
        !recover_channel_ring(from, BP_RING_KIND_PINS, number, &channel->pins, &channel->pins_view,
                              snapshot)) {
        channel->pins_view.is_damaged = channel->identity.has_pins != 0;
    }
}

static uint64_t ring_used_bytes(const source *from, bp_ring_kind kind, uint32_t number) {
    ring_names names;
    uint64_t used_bytes = 0;
    name_ring(kind, number, &names);
    for (size_t i = 0; i < 2; i++) {
        int fd = -1;
        bugpack_error error;
        if (open_ring(from, names.names[i], &fd, &error) && fd >= 0) {
            uint64_t file_bytes = bp_ring_file_used_bytes(fd);
            used_bytes = file_bytes > used_bytes ? file_bytes : used_bytes;
        }
        bp_file_close(fd);
    }
    return used_bytes;
}

uint64_t bp_recover_used_bytes(const bp_session_place *place) {
    const source from = {.place = place, .dir_fd = -1};
    uint64_t used_bytes = 0;
    for (bp_ring_kind kind = BP_RING_KIND_LOG; kind < BP_RING_KIND_TRAFFIC; kind++) {
        used_bytes += ring_used_bytes(&from, kind, 0);
    }
    for (uint32_t number = 0; number < BUGPACK_CHANNEL_MAX; number++) {
        used_bytes += ring_used_bytes(&from, BP_RING_KIND_TRAFFIC, number) +
                      ring_used_bytes(&from, BP_RING_KIND_PINS, number);
    }
    return used_bytes;
}

bugpack_status bp_recover_rings(const bp_session_place *place, const bp_session_identity *identity,
                                int dir_fd, bp_snapshot *ret_snapshot, bugpack_error *error) {
    const source from = {.place = place,
                         .dir_fd = dir_fd,
                         .session_id = identity->session_id,
                         .ring_kinds = identity->ring_kinds};
    memset(ret_snapshot, 0, sizeof *ret_snapshot);
    ret_snapshot->is_recovered = true;
    ret_snapshot->wall_offset_ns = identity->wall_offset_ns;
    recover_part(&from, BP_RING_KIND_LOG, &ret_snapshot->log);
    recover_part(&from, BP_RING_KIND_NOTIFICATIONS, &ret_snapshot->notifications);
    recover_part(&from, BP_RING_KIND_HISTORY, &ret_snapshot->history);
    for (unsigned number = 0; number < BUGPACK_CHANNEL_MAX; number++) {
        recover_channel(&from, number, ret_snapshot);
    }
    const bugpack_error *errors[] = {&ret_snapshot->log.error, &ret_snapshot->notifications.error,
                                     &ret_snapshot->history.error, &ret_snapshot->traffic_error};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i]->status != BUGPACK_OK && errors[i]->status != BUGPACK_ERR_CORRUPT) {
            *error = *errors[i];
            return error->status;
        }
    }
    return BUGPACK_OK;
}
