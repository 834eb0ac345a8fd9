#include "recorder/snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
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

/* What is recovered, and where its records go. */
typedef struct source {
    int session_dir_fd, dir_fd;
} source;

/*
 * False when there is no such file. A ring that was being moved has two: the new one counts once it
 * has a header.
 */
static bool recover_ring(const source *from, bp_ring_kind kind, uint32_t number,
                         bp_temp_file *records, bp_ring_view *view, bugpack_error *error) {
    char name[BP_RING_NAME_BYTES], new_name[BP_RING_NAME_BYTES + sizeof BP_RING_NEW_SUFFIX];
    bp_session_dir_ring_name(kind, number, name);
    (void)snprintf(new_name, sizeof new_name, "%s" BP_RING_NEW_SUFFIX, name);
    const char *const names[] = {new_name, name};
    bool is_there = false;
    bugpack_status status = BUGPACK_ERR_CORRUPT;
    *records = (bp_temp_file)BP_TEMP_FILE_INIT;
    for (size_t i = 0; i < 2 && status == BUGPACK_ERR_CORRUPT; i++) {
        int fd = -1;
        if (faccessat(from->session_dir_fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        is_there = true;
        *error = (bugpack_error)BUGPACK_ERROR_INIT;
        bp_temp_file_release(records);
        status = bp_file_open_regular(from->session_dir_fd, names[i], &fd, error);
        if (status == BUGPACK_OK) {
            status = bp_ring_recover_to_file(fd, from->dir_fd, records, view, error);
            (void)close(fd);
        }
    }
    return is_there;
}

static void recover_part(const source *from, bp_ring_kind kind, bp_snapshot_part *part) {
    part->is_on = recover_ring(from, kind, 0, &part->records, &part->view, &part->error);
}

static bool read_channel(const source *from, unsigned number, bp_traffic_identity *ret_identity) {
    char name[BP_RING_NAME_BYTES];
    int fd = -1;
    (void)snprintf(name, sizeof name, BP_CHANNEL_FILE_FORMAT, number);
    if (bp_file_open_regular(from->session_dir_fd, name, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, ret_identity, sizeof *ret_identity, 0);
    (void)close(fd);
    return count == (ssize_t)sizeof *ret_identity &&
           memchr(ret_identity->name, '\0', sizeof ret_identity->name) != NULL;
}

static void recover_channel(const source *from, unsigned number, bp_snapshot *snapshot) {
    bp_traffic_snapshot *channel = &snapshot->channels[snapshot->channel_count];
    *channel = (bp_traffic_snapshot){.messages = BP_TEMP_FILE_INIT,
                                     .pins = BP_TEMP_FILE_INIT,
                                     .wall_offset_ns = snapshot->wall_offset_ns};
    if (!read_channel(from, number, &channel->identity)) {
        return;
    }
    snapshot->has_traffic = true;
    snapshot->channel_count++;
    if (!recover_ring(from, BP_RING_KIND_TRAFFIC, number, &channel->messages,
                      &channel->messages_view, &snapshot->traffic_error)) {
        (void)bp_fail(&snapshot->traffic_error, BUGPACK_ERR_IO, "the ring of channel %u is missing",
                      number);
    } else if (bp_temp_file_is_open(&channel->messages)) {
        (void)recover_ring(from, BP_RING_KIND_PINS, number, &channel->pins, &channel->pins_view,
                           &snapshot->traffic_error);
    }
}

void bp_recover_rings(int session_dir_fd, const bp_session_identity *identity, int dir_fd,
                      bp_snapshot *ret_snapshot) {
    const source from = {.session_dir_fd = session_dir_fd, .dir_fd = dir_fd};
    memset(ret_snapshot, 0, sizeof *ret_snapshot);
    ret_snapshot->wall_offset_ns = identity->wall_offset_ns;
    recover_part(&from, BP_RING_KIND_LOG, &ret_snapshot->log);
    recover_part(&from, BP_RING_KIND_NOTIFICATIONS, &ret_snapshot->notifications);
    recover_part(&from, BP_RING_KIND_HISTORY, &ret_snapshot->history);
    for (unsigned number = 0; number < BUGPACK_CHANNEL_MAX; number++) {
        recover_channel(&from, number, ret_snapshot);
    }
}
