#include "recorder/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "ring/ring_file.h"

enum { part_count = sizeof(((bp_snapshot *)NULL)->parts) / sizeof(bp_snapshot_part) };

/* Channels of one session that a recovery looks for: file names may claim any number. */
enum { recovered_max_count = 65536 };

/* Bounds the records of all rings of a living session: one file may have any number of names. */
static const uint64_t living_max_bytes = (uint64_t)4 << 30;

void bp_snapshot_init(bp_snapshot *snapshot, const bp_cancel_token *token,
                      uint64_t wall_offset_ns) {
    *snapshot = (bp_snapshot){.token = token, .wall_offset_ns = wall_offset_ns};
    for (size_t i = 0; i < part_count; i++) {
        snapshot->parts[i].records = (bp_temp_file)BP_TEMP_FILE_INIT;
    }
}

bp_traffic_snapshot *bp_snapshot_next_channel(bp_snapshot *snapshot, int dir_fd) {
    bp_snapshot_part *traffic = &snapshot->parts[BP_RING_KIND_TRAFFIC];
    bool is_first = snapshot->channels == NULL;
    if (!bp_array_reserve(&snapshot->channels, snapshot->channel_count,
                          &snapshot->channel_capacity)) {
        (void)bp_fail_memory(&traffic->error, "copy the traffic");
        return NULL;
    }
    if (is_first) {
        (void)bp_temp_file_open(&traffic->records, dir_fd, UINT64_MAX, &traffic->error);
        traffic->records.token = snapshot->token;
    }
    return &snapshot->channels[snapshot->channel_count];
}

void bp_snapshot_release(bp_snapshot *snapshot) {
    for (size_t i = 0; i < part_count; i++) {
        bp_temp_file_release(&snapshot->parts[i].records);
    }
    free(snapshot->channels);
    snapshot->channels = NULL;
    snapshot->channel_count = snapshot->channel_capacity = 0;
}

uint64_t bp_snapshot_bytes(const bp_snapshot *snapshot) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < part_count; i++) {
        bytes += snapshot->parts[i].records.size;
    }
    return bytes;
}

unsigned bp_snapshot_fds(const bp_snapshot *snapshot) {
    unsigned fd_count = 0;
    for (size_t i = 0; i < part_count; i++) {
        fd_count += bp_temp_file_is_open(&snapshot->parts[i].records);
    }
    return fd_count;
}

bool bp_snapshot_is_lost(const bp_snapshot *snapshot) {
    bool is_lost = false;
    for (size_t i = 0; i < part_count; i++) {
        is_lost = is_lost || bp_temp_file_is_lost(&snapshot->parts[i].records);
    }
    return is_lost;
}

bool bp_snapshot_is_whole(const bp_snapshot *snapshot) {
    bool is_whole = true; /* the status of a part that is off is OK */
    for (size_t i = 0; i < part_count; i++) {
        is_whole = is_whole && snapshot->parts[i].error.status == BUGPACK_OK;
    }
    return is_whole;
}

uint64_t bp_snapshot_newest_ns(const bp_snapshot *snapshot) {
    uint64_t newest_ns = 0;
    for (size_t i = 0; i < part_count; i++) {
        uint64_t last_ns = snapshot->parts[i].view.last_ns;
        newest_ns = last_ns > newest_ns ? last_ns : newest_ns;
    }
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        uint64_t last_ns = snapshot->channels[i].messages_view.last_ns;
        newest_ns = last_ns > newest_ns ? last_ns : newest_ns;
    }
    return newest_ns;
}

/* The rings that are recovered, and where their records go. */
typedef struct source {
    int session_fd;
    int dir_fd;
    const char *session_id;
    uint32_t ring_kinds;  /* those that there should be */
    bool is_alive;        /* its rings are being written */
    uint64_t *left_bytes; /* what may still be copied of one that is */
    const bp_cancel_token *token;
} source;

/* Opens a ring file. False when it is missing; its descriptor is -1 when it cannot be opened. */
static bool open_ring(const source *from, const char *name, int *ret_fd, bugpack_error *error) {
    struct stat info;
    *error = (bugpack_error)BUGPACK_ERROR_INIT;
    int fd = bp_session_file_open(from->session_fd, name);
    *ret_fd = fd;
    if (fd < 0 && errno == ENOENT) {
        return false;
    }
    if (fd < 0) {
        int system_errno = errno;
        (void)bp_fail_errno(error, system_errno, "cannot read \"%s\"", name);
        error->status =
            bp_session_errno_is_damage(system_errno) ? BUGPACK_ERR_CORRUPT : error->status;
    } else if (fstat(fd, &info) != 0) {
        (void)bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    } else if (!S_ISREG(info.st_mode)) {
        (void)bp_fail(error, BUGPACK_ERR_CORRUPT, "cannot read \"%s\": it is no file", name);
    }
    if (fd >= 0 && error->status != BUGPACK_OK) {
        bp_file_close(fd);
        *ret_fd = -1;
    }
    return true;
}

/* Copies one ring's file, and reads what it says about itself. A ring that is being written is
 * first copied as a whole, which takes little time. */
static void copy_ring(const source *from, const bp_ring_label *label, int fd, bp_temp_file *records,
                      bp_ring_view *view, void *about, bugpack_error *failure) {
    bp_temp_file copy = BP_TEMP_FILE_INIT;
    bool is_owned = fd >= 0 && bp_ring_file_check_owner(fd, from->session_id, label->kind,
                                                        label->number, failure) == BUGPACK_OK;
    if (is_owned && from->is_alive && bp_ring_file_used_bytes(fd) >= *from->left_bytes) {
        (void)bp_fail(failure, BUGPACK_ERR_CORRUPT, "the rings of the process have over 4 GiB");
    } else if (is_owned && from->is_alive &&
               bp_temp_file_open(&copy, from->dir_fd, UINT64_MAX, failure) == BUGPACK_OK) {
        (void)bp_ring_file_copy(fd, copy.fd, from->token, failure);
        fd = copy.fd;
        uint64_t copied_bytes = bp_ring_file_used_bytes(fd); /* it may have changed */
        *from->left_bytes -= copied_bytes < *from->left_bytes ? copied_bytes : *from->left_bytes;
    }
    if (fd >= 0 && failure->status == BUGPACK_OK) {
        (void)bp_ring_recover(fd, bp_temp_file_sink, records, view, failure);
        if (about != NULL) {
            bp_ring_read_about(fd, about, label->about_bytes);
        }
    }
    bp_temp_file_release(&copy);
}

/*
 * Appends what a ring has to `records`. False when there is no such file. An error that is CORRUPT
 * is damage, and there are no records; any other may pass. `about`, of the label's size, is what
 * the ring says about itself; NULL: nobody asks.
 */
static bool recover_ring(const source *from, const bp_ring_label *label, bp_temp_file *records,
                         bp_traffic_part *ret_part, bp_ring_view *view, void *about,
                         bugpack_error *error) {
    char name[BP_RING_NAME_BYTES];
    int fd = -1;
    bp_session_ring_name(label->kind, label->number, name);
    if (!open_ring(from, name, &fd, error)) {
        return false;
    }
    ret_part->from = records->size;
    copy_ring(from, label, fd, records, view, about, error);
    ret_part->to = error->status == BUGPACK_OK ? records->size : ret_part->from;
    bp_file_close(fd);
    return true;
}

static void recover_part(const source *from, bp_ring_kind kind, bp_snapshot_part *part) {
    const bp_ring_label label = {.kind = kind};
    bp_traffic_part all;
    if (bp_temp_file_open(&part->records, from->dir_fd, UINT64_MAX, &part->error) != BUGPACK_OK) {
        part->is_on = true;
        return;
    }
    part->is_on = recover_ring(from, &label, &part->records, &all, &part->view, NULL, &part->error);
    if (!part->is_on) {
        bp_temp_file_release(&part->records);
    } else if (part->error.status == BUGPACK_OK) {
        (void)bp_temp_file_flush(&part->records, &part->error);
    }
    if (!part->is_on && (from->ring_kinds >> kind & 1) != 0) {
        part->is_on = true;
        (void)bp_fail(&part->error, from->is_alive ? BUGPACK_ERR_UNSUPPORTED : BUGPACK_ERR_CORRUPT,
                      "the ring %s in memory, or its file was removed",
                      from->is_alive ? "is" : "was");
    }
}

/* A ring of a channel: one that is damaged costs itself, and the others are recovered. */
static bool recover_channel_ring(const source *from, bp_ring_kind kind,
                                 bp_traffic_identity *identity, bp_traffic_part *ret_part,
                                 bp_ring_view *view, bp_snapshot *snapshot) {
    const bp_ring_label label = {
        .kind = kind, .number = identity->number, .about_bytes = sizeof *identity};
    bp_snapshot_part *traffic = &snapshot->parts[BP_RING_KIND_TRAFFIC];
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_traffic_identity about = *identity;
    bool is_there = recover_ring(from, &label, &traffic->records, ret_part, view, &about, &error);
    if (bp_traffic_identity_is_whole(&about, identity->number)) {
        *identity = about;
    }
    view->is_damaged = view->is_damaged || error.status == BUGPACK_ERR_CORRUPT;
    if (error.status != BUGPACK_OK && error.status != BUGPACK_ERR_CORRUPT &&
        traffic->error.status == BUGPACK_OK) {
        traffic->error = error;
    }
    return is_there;
}

static void recover_channel(const source *from, uint32_t number, bp_snapshot *snapshot) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    char name[BP_RING_NAME_BYTES];
    bp_traffic_snapshot *channel = bp_snapshot_next_channel(snapshot, from->dir_fd);
    snapshot->parts[BP_RING_KIND_TRAFFIC].is_on = true;
    if (channel == NULL) {
        return;
    }
    *channel = (bp_traffic_snapshot){.wall_offset_ns = snapshot->wall_offset_ns};
    (void)snprintf(name, sizeof name, BP_CHANNEL_FILE_FORMAT, (unsigned)number);
    bp_traffic_identity_init(&channel->identity, name, number, &options);
    /* Only the number of a damaged channel is known. */
    channel->identity.check = 0;
    /* It has a file of its own where its ring is in memory. A failure that may pass is noted. */
    bugpack_error *error = &snapshot->parts[BP_RING_KIND_TRAFFIC].error;
    bp_traffic_identity found;
    int fd = bp_session_file_open(from->session_fd, name);
    int system_errno = fd < 0 ? errno : 0;
    if (fd >= 0 && bp_file_read_range(fd, &found, sizeof found, 0) == (int64_t)sizeof found &&
        bp_traffic_identity_is_whole(&found, number)) {
        channel->identity = found;
    }
    bp_file_close(fd);
    if (system_errno != 0 && !bp_session_errno_is_damage(system_errno) &&
        error->status == BUGPACK_OK) {
        (void)bp_fail_errno(error, system_errno, "cannot read \"%s\"", name);
    }
    bool has_ring = recover_channel_ring(from, BP_RING_KIND_TRAFFIC, &channel->identity,
                                         &channel->messages, &channel->messages_view, snapshot);
    bool has_pins = recover_channel_ring(from, BP_RING_KIND_PINS, &channel->identity,
                                         &channel->pins, &channel->pins_view, snapshot);
    bool is_known = channel->identity.check != 0;
    snapshot->channel_count++;
    channel->messages_view.is_damaged = channel->messages_view.is_damaged || !has_ring || !is_known;
    /* The pins of a closed channel may be gone, if its ring has all messages. */
    channel->pins_view.is_damaged =
        channel->pins_view.is_damaged ||
        (!has_pins && channel->identity.has_pins != 0 && channel->messages_view.evicted_count > 0);
}

typedef struct numbers {
    uint32_t *items;
    size_t count, capacity;
} numbers;

/* Adds the number of a channel that has a file of this name. False without memory. */
static bool add_number(numbers *found, const char *name) {
    char expected[BP_RING_NAME_BYTES];
    uint32_t number = (uint32_t)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
    (void)snprintf(expected, sizeof expected, BP_CHANNEL_FILE_FORMAT, (unsigned)number);
    bool is_channel = strcmp(name, expected) == 0;
    for (bp_ring_kind kind = BP_RING_KIND_TRAFFIC; kind <= BP_RING_KIND_PINS; kind++) {
        bp_session_ring_name(kind, number, expected);
        is_channel = is_channel || strncmp(name, expected, strlen(expected)) == 0;
    }
    if (!is_channel || found->count == recovered_max_count) {
        return true;
    }
    if (!bp_array_reserve(&found->items, found->count, &found->capacity)) {
        return false;
    }
    found->items[found->count++] = number;
    return true;
}

static int compare_numbers(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The channels that have files, each once and in the order of their opening. The caller frees the
 * items. IO, NO_MEMORY. */
static bugpack_status list_channels(int session_fd, numbers *found, bugpack_error *error) {
    *found = (numbers){.count = 0};
    bool has_memory = true;
    DIR *listing = bp_file_list_directory(session_fd);
    int system_errno = listing == NULL ? errno : 0;
    struct dirent *entry;
    while (listing != NULL && (errno = 0, entry = readdir(listing)) != NULL) {
        has_memory = has_memory && add_number(found, entry->d_name);
    }
    if (listing != NULL) {
        system_errno = errno;
        (void)closedir(listing);
    }
    if (!has_memory) {
        return bp_fail_memory(error, "list the channels of a session");
    }
    size_t count = 0;
    if (found->count > 1) { /* no array at all is not for qsort(3) */
        qsort(found->items, found->count, sizeof found->items[0], compare_numbers);
    }
    for (size_t i = 0; i < found->count; i++) {
        if (count == 0 || found->items[count - 1] != found->items[i]) {
            found->items[count++] = found->items[i];
        }
    }
    found->count = count;
    return system_errno == 0
               ? BUGPACK_OK
               : bp_fail_errno(error, system_errno, "cannot list the channels of a session");
}

static uint64_t ring_used_bytes(const source *from, bp_ring_kind kind, uint32_t number) {
    char name[BP_RING_NAME_BYTES];
    bugpack_error error;
    int fd = -1;
    bp_session_ring_name(kind, number, name);
    bool is_open = open_ring(from, name, &fd, &error) && fd >= 0;
    uint64_t used_bytes = is_open ? bp_ring_file_used_bytes(fd) : 0;
    bp_file_close(fd);
    return used_bytes;
}

uint64_t bp_recover_used_bytes(int session_fd) {
    const source from = {.session_fd = session_fd, .dir_fd = -1};
    uint64_t used_bytes = 0;
    for (bp_ring_kind kind = BP_RING_KIND_LOG; kind < BP_RING_KIND_TRAFFIC; kind++) {
        used_bytes += ring_used_bytes(&from, kind, 0);
    }
    numbers channels;
    (void)list_channels(session_fd, &channels, NULL);
    for (size_t i = 0; i < channels.count; i++) {
        used_bytes += ring_used_bytes(&from, BP_RING_KIND_TRAFFIC, channels.items[i]) +
                      ring_used_bytes(&from, BP_RING_KIND_PINS, channels.items[i]);
    }
    free(channels.items);
    return used_bytes;
}

bugpack_status bp_recover_rings(int session_fd, const bp_session_identity *identity, bool is_alive,
                                int dir_fd, const bp_cancel_token *token, bp_snapshot *ret_snapshot,
                                bugpack_error *error) {
    uint64_t left_bytes = living_max_bytes;
    const source from = {.session_fd = session_fd,
                         .dir_fd = dir_fd,
                         .session_id = identity->session_id,
                         .ring_kinds = identity->ring_kinds,
                         .is_alive = is_alive,
                         .left_bytes = &left_bytes,
                         .token = token};
    bp_snapshot_part *parts = ret_snapshot->parts;
    bp_snapshot_init(ret_snapshot, token, identity->wall_offset_ns);
    ret_snapshot->is_recovered = !is_alive;
    for (bp_ring_kind kind = BP_RING_KIND_LOG; kind < BP_RING_KIND_TRAFFIC; kind++) {
        recover_part(&from, kind, &parts[kind]);
    }
    numbers channels;
    if (list_channels(session_fd, &channels, &parts[BP_RING_KIND_TRAFFIC].error) != BUGPACK_OK) {
        parts[BP_RING_KIND_TRAFFIC].is_on = true; /* there may have been some */
    }
    for (size_t i = 0; i < channels.count; i++) {
        recover_channel(&from, channels.items[i], ret_snapshot);
    }
    free(channels.items);
    for (size_t i = 0; i < part_count; i++) {
        bugpack_status status = parts[i].error.status;
        /* Damage and rings in memory cost themselves; of anything else another try may have more.
         */
        if (status != BUGPACK_OK && status != BUGPACK_ERR_CORRUPT &&
            status != BUGPACK_ERR_UNSUPPORTED) {
            if (error != NULL) {
                *error = parts[i].error;
            }
            return status;
        }
    }
    return BUGPACK_OK;
}
