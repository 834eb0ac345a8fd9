#include "send/queue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/status.h"
#include "json/json.h"
#include "json/tree_reader.h"
#include "platform/staged_file.h"

enum { state_max_bytes = 16 * 1024, us_per_sec = 1000000 };

/* Others change something meanwhile, at most for as long as it takes to copy a report. */
static const uint64_t change_wait_ns = 60 * BP_NS_PER_SEC, change_pause_ns = 10 * BP_NS_PER_MS;

static const char state_name[] = "state.json", extension[] = ".zip", state_extension[] = ".json";

static bugpack_status fail(const bp_send_queue *queue, const char *destination, const char *what,
                           bugpack_error *error) {
    return bp_fail_errno(error, errno, "cannot %s in the queue \"%s/%s\"", what, queue->path,
                         destination);
}

/* Syncs all directories above one that was made, so that a power cut does not lose its name. */
static void sync_parents(int fd, const char *path) {
    int parent_fd = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (; parent_fd >= 0 && path != NULL; path = strchr(path + 1, '/')) {
        int below_fd = parent_fd;
        (void)fsync(below_fd);
        parent_fd = openat(below_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bp_file_close(below_fd);
    }
    bp_file_close(parent_fd);
}

bugpack_status bp_send_queue_open(const char *path, bp_send_queue *queue, bugpack_error *error) {
    *queue = (bp_send_queue){.fd = -1, .lock_fd = -1, .path = path};
    bool is_new = access(path, F_OK) != 0;
    bugpack_status status = bp_file_make_path(path, error);
    if (status == BUGPACK_OK) {
        status = bp_file_open_directory(path, false, &queue->fd, error);
    }
    if (status == BUGPACK_OK && is_new) {
        sync_parents(queue->fd, path);
    }
    return status == BUGPACK_OK ? bp_file_check_private(queue->fd, path, error) : status;
}

void bp_send_queue_close(bp_send_queue *queue) {
    bp_file_close(queue->fd);
    bp_file_close(queue->lock_fd);
    queue->fd = queue->lock_fd = -1;
}

static int open_lock(const bp_send_queue *queue, const char *name) {
    return openat(queue->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bugpack_status bp_send_queue_lock(bp_send_queue *queue, bool *ret_is_locked, bugpack_error *error) {
    if (queue->lock_fd < 0) {
        queue->lock_fd = open_lock(queue, ".lock");
    }
    *ret_is_locked = queue->lock_fd >= 0 && flock(queue->lock_fd, LOCK_EX | LOCK_NB) == 0;
    return *ret_is_locked || (queue->lock_fd >= 0 && errno == EWOULDBLOCK)
               ? BUGPACK_OK
               : fail(queue, "", "lock", error);
}

/* Becomes the one that changes what is in the queue, until `ret_fd` is closed. The sender's lock is
 * another, which it holds for as long as a server takes. */
static bugpack_status lock_changes(const bp_send_queue *queue, int *ret_fd, bugpack_error *error) {
    uint64_t end_ns = bp_clock_monotonic_ns() + change_wait_ns;
    int fd = open_lock(queue, ".changes");
    while (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (fd < 0 || errno != EWOULDBLOCK || now_ns >= end_ns) {
            bugpack_status status = fail(queue, "", "lock what changes", error);
            bp_file_close(fd);
            return status;
        }
        bp_clock_sleep_until(now_ns + change_pause_ns);
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

/* A destination's directory; -1 with errno. */
static int open_destination(const bp_send_queue *queue, const char *destination) {
    return openat(queue->fd, destination, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* --- what is known -------------------------------------------------------------------------- */

/* NULL for a file that is missing or malformed: then nothing is known. */
static bp_json_tree *read_state(int dir_fd, const char *name) {
    bp_json_tree *tree = NULL;
    bp_buffer text;
    int fd = -1;
    bp_buffer_init(&text, state_max_bytes);
    if (bp_file_open_regular(dir_fd, name, &fd, NULL) == BUGPACK_OK &&
        bp_file_read_fd(fd, name, &text, NULL) == BUGPACK_OK) {
        (void)bp_json_tree_read(bp_buffer_text(&text), text.size, &tree, NULL);
    }
    bp_file_close(fd);
    bp_buffer_release(&text);
    return tree;
}

/* Writes the text to a file that then gets the name. */
static bugpack_status replace(const bp_send_queue *queue, const char *destination, const char *name,
                              const bp_buffer *text, bugpack_error *error) {
    char temporary[BP_PRIVATE_FILE_NAME_BYTES];
    int dir_fd = open_destination(queue, destination);
    int fd = dir_fd >= 0 ? bp_private_file_open_named(dir_fd, temporary) : -1;
    bool is_written = false;
    if (fd >= 0) {
        int failure = bp_file_write_all(fd, text->data, text->size);
        errno = failure;
        is_written =
            failure == 0 && fsync(fd) == 0 && renameat(dir_fd, temporary, dir_fd, name) == 0;
        if (!is_written) {
            int saved_errno = errno;
            (void)unlinkat(dir_fd, temporary, 0);
            errno = saved_errno;
        }
    }
    bugpack_status status = is_written ? BUGPACK_OK : fail(queue, destination, "write", error);
    bp_file_close(fd);
    bp_file_close(dir_fd);
    return status;
}

static void begin_state(bp_json *json, bp_buffer *text) {
    bp_buffer_init(text, state_max_bytes);
    bp_json_begin(json, text);
}

/* Finishes a document of begin_state, which becomes the state of that name, and releases it. */
static bugpack_status save_state(const bp_send_queue *queue, const char *destination,
                                 const char *name, bp_json *json, bugpack_error *error) {
    bugpack_status status = bp_json_finish(json, error);
    if (status == BUGPACK_OK) {
        status = replace(queue, destination, name, json->out, error);
    }
    bp_buffer_release(json->out);
    return status;
}

static void name_state(const char *item, char out[300]) {
    (void)snprintf(out, 300, "%s%s", item, state_extension);
}

static bugpack_status save_item(const bp_send_queue *queue, const char *destination,
                                const bp_send_item *item, bugpack_error *error) {
    char name[300];
    bp_json json;
    bp_buffer text;
    begin_state(&json, &text);
    bp_json_add_uint(&json, "queued_us", item->queued_us);
    bp_json_add_uint(&json, "attempts", item->attempt_count);
    bp_json_add_uint(&json, "next_time", item->next_secs);
    bp_json_add_text(&json, "last_answer", item->answer);
    bp_json_add_bool(&json, "consent", item->has_consent);
    bp_json_add_bool(&json, "stopped", item->is_stopped);
    name_state(item->name, name);
    return save_state(queue, destination, name, &json, error);
}

bugpack_status bp_send_queue_save(const bp_send_queue *queue, const char *destination,
                                  const bp_send_state *state, bugpack_error *error) {
    bp_json json;
    bp_buffer text;
    begin_state(&json, &text);
    bp_json_add_uint(&json, "next_time", state->next_secs);
    bp_json_add_uint(&json, "day", state->day);
    bp_json_add_uint(&json, "day_bytes", state->day_bytes);
    return save_state(queue, destination, state_name, &json, error);
}

void bp_send_queue_load(const bp_send_queue *queue, const char *destination,
                        bp_send_state *ret_state) {
    *ret_state = (bp_send_state){.next_secs = 0};
    int dir_fd = open_destination(queue, destination);
    bp_json_tree *tree = dir_fd >= 0 ? read_state(dir_fd, state_name) : NULL;
    if (tree != NULL) {
        ret_state->next_secs = bp_json_tree_uint_or(tree, "next_time", 0);
        ret_state->day = bp_json_tree_uint_or(tree, "day", 0);
        ret_state->day_bytes = bp_json_tree_uint_or(tree, "day_bytes", 0);
    }
    bp_json_tree_free(tree);
    bp_file_close(dir_fd);
}

/* --- reports -------------------------------------------------------------------------------- */

static bool is_item(const char *name) {
    size_t length = strlen(name), end = sizeof extension - 1;
    return length > BP_ID_BYTES + end && name[BP_ID_BYTES - 1] == '-' &&
           strcmp(name + length - end, extension) == 0;
}

/* Reads the state of the report of that name. False if it has gone. */
static bool read_item(int dir_fd, const char *name, bp_send_item *item) {
    char state[300];
    struct stat info;
    *item = (bp_send_item){.name = ""};
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    (void)snprintf(item->name, sizeof item->name, "%s", name);
    item->bytes = (uint64_t)info.st_size;
    /* Without a state. link(2) updates this time, so the report was queued no later. */
    item->queued_us = (uint64_t)info.st_ctime * us_per_sec;
    name_state(name, state);
    bp_json_tree *tree = read_state(dir_fd, state);
    if (tree != NULL) {
        item->queued_us = bp_json_tree_uint_or(tree, "queued_us", item->queued_us);
        item->attempt_count = bp_json_tree_uint_or(tree, "attempts", 0);
        item->next_secs = bp_json_tree_uint_or(tree, "next_time", 0);
        item->has_consent = bp_json_tree_is_true(tree, "consent");
        item->is_stopped = bp_json_tree_is_true(tree, "stopped");
        (void)snprintf(item->answer, sizeof item->answer, "%s",
                       bp_json_tree_text_or(tree, "last_answer", ""));
        bp_json_tree_free(tree);
    }
    return true;
}

bugpack_status bp_send_queue_save_item(const bp_send_queue *queue, const char *destination,
                                       bp_send_item *item, bugpack_error *error) {
    bp_send_item known;
    int lock_fd;
    bugpack_status status = lock_changes(queue, &lock_fd, error);
    if (status == BUGPACK_OK) {
        int dir_fd = open_destination(queue, destination);
        bool is_there = dir_fd >= 0 && read_item(dir_fd, item->name, &known);
        item->has_consent = item->has_consent || (is_there && known.has_consent);
        status = save_item(queue, destination, item, error);
        bp_file_close(dir_fd);
        bp_file_close(lock_fd);
    }
    return status;
}

static int compare_items(const void *one, const void *other) {
    const bp_send_item *a = one, *b = other;
    if (a->queued_us != b->queued_us) {
        return a->queued_us < b->queued_us ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

bugpack_status bp_send_queue_list(const bp_send_queue *queue, const char *destination,
                                  bp_send_item **ret_items, size_t *ret_count,
                                  bugpack_error *error) {
    bp_send_item *items = NULL;
    size_t count = 0, capacity = 0;
    bugpack_status status = BUGPACK_OK;
    int fd = open_destination(queue, destination);
    if (fd >= 0) {
        (void)bp_staged_file_sweep(fd);
    }
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && errno != ENOENT) {
        status = fail(queue, destination, "list", error);
    }
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (!is_item(entry->d_name)) {
            continue;
        }
        if (!bp_array_reserve(&items, count, &capacity)) {
            status = bp_fail_memory(error, "list the queue");
            break;
        }
        count += read_item(fd, entry->d_name, &items[count]);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    } else {
        bp_file_close(fd);
    }
    if (status != BUGPACK_OK) {
        free(items);
        return status;
    }
    if (count > 0) {
        qsort(items, count, sizeof *items, compare_items);
    }
    *ret_items = items;
    *ret_count = count;
    return BUGPACK_OK;
}

bugpack_status bp_send_queue_remove(const bp_send_queue *queue, const char *destination,
                                    const bp_send_item *item, bugpack_error *error) {
    char state[300];
    int lock_fd = -1;
    bugpack_status status = BUGPACK_OK;
    (void)lock_changes(queue, &lock_fd, NULL); /* better removed beside a change than sent twice */
    name_state(item->name, state);
    int dir_fd = open_destination(queue, destination);
    /* An interruption in between leaves the state, which is no report. */
    bool is_removed = dir_fd >= 0 && unlinkat(dir_fd, item->name, 0) == 0;
    if (!is_removed) {
        status = fail(queue, destination, "remove", error);
    }
    if (is_removed) {
        (void)unlinkat(dir_fd, state, 0);
        (void)fsync(dir_fd);
    }
    bp_file_close(dir_fd);
    bp_file_close(lock_fd);
    return status;
}

/* True if the name is now one of the report's file itself. */
static bool link_file(const char *path, const bp_send_report *report, int dir_fd,
                      const char *name) {
    struct stat linked, opened;
    if (linkat(AT_FDCWD, path, dir_fd, name, 0) != 0) {
        return false;
    }
    bool is_it = fstatat(dir_fd, name, &linked, AT_SYMLINK_NOFOLLOW) == 0 &&
                 fstat(report->fd, &opened) == 0 && linked.st_dev == opened.st_dev &&
                 linked.st_ino == opened.st_ino;
    if (!is_it) {
        (void)unlinkat(dir_fd, name, 0);
    }
    return is_it;
}

static bugpack_status check_room(const bp_send_settings *settings, const bp_send_item *items,
                                 size_t count, const bp_send_report *report, bugpack_error *error) {
    uint64_t bytes = report->bytes;
    for (size_t i = 0; i < count; i++) {
        bytes += items[i].bytes;
    }
    return count < settings->max_count && bytes <= settings->max_bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT,
                         "the queue is full: it has %zu reports; the report stays where it is",
                         count);
}

static bool has_same_bytes(int fd, const bp_send_report *report) {
    char ours[4096], theirs[4096];
    uint64_t at = 0;
    for (int64_t count = 1; count > 0; at += (uint64_t)count) {
        count = bp_file_read_range(report->fd, ours, sizeof ours, at);
        if (count < 0 || bp_file_read_range(fd, theirs, sizeof theirs, at) != count ||
            memcmp(ours, theirs, (size_t)count) != 0) {
            return false;
        }
    }
    return true;
}

/* Adds what is new to a report that is there: consent, which is to these bytes. `bugpack redact`
 * keeps the id. */
static bugpack_status add_consent(const bp_send_queue *queue, const char *destination,
                                  bp_send_item *item, const bp_send_report *report,
                                  bool has_consent, bugpack_error *error) {
    int dir_fd = open_destination(queue, destination);
    int fd = openat(dir_fd, item->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bugpack_status status = BUGPACK_OK;
    if (fd < 0) {
        /* It may have arrived since it was listed. */
        status = errno == ENOENT ? BUGPACK_OK : fail(queue, destination, "read", error);
    } else if (!has_same_bytes(fd, report)) {
        status = bp_fail(error, BUGPACK_ERR_INVALID,
                         "another version of the report waits in the queue: \"%s/%s/%s\"",
                         queue->path, destination, item->name);
    } else if (has_consent && !item->has_consent) {
        item->has_consent = true;
        status = save_item(queue, destination, item, error);
    }
    bp_file_close(fd);
    bp_file_close(dir_fd);
    return status;
}

/* Makes the file of the queue. */
static bugpack_status make_item(const bp_send_queue *queue, const char *destination,
                                const char *path, const bp_send_report *report, const char *name,
                                bugpack_error *error) {
    char dir_path[512], ret_name[300];
    int dir_fd = open_destination(queue, destination);
    if (dir_fd < 0) {
        return fail(queue, destination, "write", error);
    }
    bugpack_status status = BUGPACK_OK;
    (void)snprintf(dir_path, sizeof dir_path, "%s/%s", queue->path, destination);
    if (link_file(path, report, dir_fd, name)) {
        if (fsync(report->fd) != 0 || fsync(dir_fd) != 0) {
            status = fail(queue, destination, "write", error);
        }
    } else {
        status = bp_send_report_copy(report, dir_fd, dir_path, name, NULL, NULL, ret_name,
                                     sizeof ret_name, error);
    }
    if (status == BUGPACK_OK && !bp_staged_sync_directory(queue->fd)) {
        status = fail(queue, destination, "write", error);
    }
    bp_file_close(dir_fd);
    return status;
}

bugpack_status bp_send_queue_add(const bp_send_queue *queue, const bp_send_settings *settings,
                                 const char *destination, const char *path,
                                 const bp_send_report *report, bool has_consent,
                                 bugpack_error *error) {
    bp_send_item *items = NULL, *found = NULL;
    bp_send_item item = {.queued_us = bp_clock_wall_ns() / 1000, .has_consent = has_consent};
    size_t count = 0;
    int lock_fd;
    bugpack_status status = lock_changes(queue, &lock_fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_send_queue_list(queue, destination, &items, &count, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    for (size_t i = 0; i < count && found == NULL; i++) {
        found = strncmp(items[i].name, report->id, BP_ID_BYTES - 1) == 0 ? &items[i] : NULL;
    }
    if (found != NULL) {
        status = add_consent(queue, destination, found, report, has_consent, error);
        goto out;
    }
    status = check_room(settings, items, count, report, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    (void)snprintf(item.name, sizeof item.name, "%s-%s", report->id, report->name);
    /* Before the report is there to be looked at, and instead of what an earlier one has left. */
    (void)mkdirat(queue->fd, destination, 0700);
    status = save_item(queue, destination, &item, error);
    if (status == BUGPACK_OK) {
        status = make_item(queue, destination, path, report, item.name, error);
    }
out:
    free(items);
    bp_file_close(lock_fd);
    return status;
}
