/*
 * Writes reports for the validator, each a directory of artefacts below the one that is named:
 * "full" with all that can be known, "bare" with what must be there, "unavailable" without metrics.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/crash_samples.h"
#include "support/heap_samples.h"
#include "support/json_line.h"
#include "support/machine_samples.h"
#include "support/made_snapshot.h"
#include "support/model_samples.h"
#include "support/open_file_samples.h"
#include "support/system_samples.h"
#include "support/temp_dir.h"
#include "support/thread_samples.h"

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "model/crash.h"
#include "recorder/history.h"
#include "recorder/notifications.h"
#include "recorder/traffic.h"

static const char sample_summary_name[] = "viewer-pedantic-summary-2026-11-21T00-36-51Z-2.json";

static const char *directory;
static char report[1024]; /* the one that is written, below the directory */
static bp_buffer text;
static bugpack_error error;

/* Writes what was printed last into the report. */
static bool put(const char *name, bugpack_status status) {
    char path[1200];
    (void)snprintf(path, sizeof path, "%s/%s", report, name);
    if (status != BUGPACK_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, error.message);
        return false;
    }
    FILE *file = fopen(path, "wbe");
    bool written = file != NULL && fwrite(text.data, 1, text.size, file) == text.size;
    written = (file == NULL || fclose(file) == 0) && written;
    if (!written) {
        perror(path);
    }
    bp_buffer_clear(&text);
    return written;
}

/* The records of a log as the recorder writes them: one with everything, one with the least. */
static bugpack_status print_log(void) {
    bugpack_status status = BUGPACK_OK;
    for (unsigned seq = 1; seq <= 2 && status == BUGPACK_OK; seq++) {
        bool full = seq == 1;
        size_t start = text.size;
        bp_json json;
        bp_json_begin(&json, &text);
        bp_json_add_uint(&json, "seq", seq);
        bp_json_add_text(&json, "time", "2026-11-21T00:36:51.123456Z");
        bp_json_add_uint(&json, "monotonic_ns", UINT64_MAX);
        bp_json_add_text(&json, "level", full ? "warn" : "trace");
        bp_json_add_text(&json, "channel", full ? "display" : NULL);
        bp_json_add_uint(&json, "tid", 4711);
        bp_json_add_text(&json, "thread", full ? "net)\n\xff" : "");
        bp_json_add_text(&json, "message", full ? "cache miss\r\n\x1b[31m\xff" : "");
        if (full) {
            bp_json_add_bool(&json, "truncated", true);
        }
        status = bp_json_finish(&json, &error);
        json_line_fold(&text, start);
        (void)bp_buffer_append_char(&text, '\n');
    }
    return status;
}

/* Records of two intervals, one with everything and one with the least, through a real ring. */
static bugpack_status add_history(bp_history *history) {
    bp_thread_counters threads[] = {{.tid = 4711, .name = "net)\n\xff"}, {.tid = 4712}};
    bugpack_status status = BUGPACK_OK;
    for (unsigned secs = 1; secs <= 3 && status == BUGPACK_OK; secs++) {
        bp_task_snapshot snapshot = made_snapshot(secs * BP_NS_PER_SEC, secs, threads, 2);
        snapshot.has_memory = secs == 2;
        threads[0].cpu = 123456789;
        threads[1].cpu = 3 * BP_NS_PER_SEC;
        if (secs == 2) {
            bp_history_note_files(history, 17);
        }
        status = bp_history_add(history, &snapshot, &error);
    }
    return status;
}

static bugpack_status print_heaps(void) {
    const bp_thread_heap_reading readings[] = {sample_heap_full, sample_heap_bare};
    return bp_thread_heap_print(readings, 2, &text, &error);
}

static bugpack_status read_spool(bp_temp_file *out) {
    bugpack_status status = bp_temp_file_flush(out, &error);
    char *to = status == BUGPACK_OK ? bp_buffer_reserve(&text, out->size) : NULL;
    if (to != NULL && bp_temp_file_read(out, 0, to, out->size) == (int64_t)out->size) {
        bp_buffer_commit(&text, out->size);
    }
    return status;
}

static bugpack_status print_spooled(bp_ring *ring, bp_temp_file *records, bp_temp_file *out) {
    bp_ring_view view;
    bugpack_status status =
        bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, records, &view, &error);
    status = status == BUGPACK_OK ? bp_temp_file_flush(records, &error) : status;
    status = status == BUGPACK_OK ? bp_history_print(records, 1795221411 * BP_NS_PER_SEC,
                                                     bp_temp_file_sink, out, &error)
                                  : status;
    return status == BUGPACK_OK ? read_spool(out) : status;
}

static bugpack_status print_history(void) {
    bp_ring *ring = NULL;
    bp_history *history = NULL;
    bp_temp_file records = BP_TEMP_FILE_INIT;
    bp_temp_file out = BP_TEMP_FILE_INIT;
    temp_dir dir;
    bugpack_status status = BUGPACK_ERR_IO;
    if (temp_dir_make(&dir) && bp_temp_file_open(&records, dir.fd, 1 << 20, &error) == BUGPACK_OK &&
        bp_temp_file_open(&out, dir.fd, 1 << 20, &error) == BUGPACK_OK &&
        bp_ring_new(bp_history_ring_bytes(10), &ring, &error) == BUGPACK_OK &&
        bp_history_new(ring, 1000, &history, &error) == BUGPACK_OK) {
        status = add_history(history);
        status = status == BUGPACK_OK ? print_spooled(ring, &records, &out) : status;
    }
    bp_history_free(history);
    bp_temp_file_release(&records);
    bp_temp_file_release(&out);
    temp_dir_remove(&dir);
    return status;
}

/* A pinned message that everything has shortened, and those that have taken its place. */
static bugpack_status print_traffic_index(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *traffic = NULL;
    bp_traffic_snapshot frozen;
    bp_temp_file records = BP_TEMP_FILE_INIT, index = BP_TEMP_FILE_INIT;
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    options.pin_bytes = 2;
    options.snap_bytes = 3;
    bp_traffic_identity_init(&identity, "net\n\xff", 0, &options);
    if (bp_ring_new(4096, &ring, &error) != BUGPACK_OK ||
        bp_ring_new(bp_traffic_pins_ring_bytes(2), &pins, &error) != BUGPACK_OK ||
        bp_traffic_new(&identity, &options, NULL, ring, pins, &traffic, &error) != BUGPACK_OK) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_traffic_append(traffic, BUGPACK_SENT, UINT32_MAX, "hello \"\xfe", "hello", 5);
    for (int i = 0; i < 100; i++) {
        bp_traffic_append(traffic, BUGPACK_RECEIVED, 0, NULL, NULL, (size_t)i % 2);
    }
    bugpack_status status = bp_temp_file_open(&records, dir_fd, 1 << 20, &error);
    status = status == BUGPACK_OK
                 ? bp_traffic_take_snapshot(traffic, UINT64_MAX, 0, &records, &frozen, &error)
                 : status;
    status = status == BUGPACK_OK ? bp_temp_file_open(&index, dir_fd, 1 << 20, &error) : status;
    status = status == BUGPACK_OK
                 ? bp_traffic_print_index(&records, &frozen, 1, bp_temp_file_sink, &index, &error)
                 : status;
    status = status == BUGPACK_OK ? read_spool(&index) : status;
    bp_temp_file_release(&records);
    bp_temp_file_release(&index);
    (void)close(dir_fd);
    bp_traffic_free(traffic);
    return status;
}

/* Notifications as the recorder writes them: with everything and the least, or (bare) none. */
static bugpack_status print_notifications(bool full) {
    bp_ring *ring = NULL;
    bp_notifications *notifications = NULL;
    bugpack_status status = bp_ring_new(bp_notifications_ring_bytes(), &ring, &error);
    if (status != BUGPACK_OK || bp_notifications_new(ring, &notifications, &error) != BUGPACK_OK) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    char hostile[BUGPACK_NOTIFICATION_MAX_BYTES + 1] = "\"\r\n\x1b[31m\xff";
    if (full) {
        bp_notifications_add(notifications, 1, BUGPACK_LEVEL_WARN, "server\xfe", hostile,
                             sizeof hostile);
        bp_notifications_add(notifications, 2, BUGPACK_LEVEL_WARN, "server\xfe", hostile,
                             sizeof hostile);
        bp_notifications_add(notifications, 3, BUGPACK_LEVEL_TRACE, NULL, "", 0);
    }
    bp_temp_file records = BP_TEMP_FILE_INIT;
    bp_ring_view view;
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    status = bp_temp_file_open(&records, dir_fd, UINT64_MAX, &error);
    if (status == BUGPACK_OK) {
        status = bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &records, &view, &error);
    }
    if (status == BUGPACK_OK) {
        status = bp_temp_file_flush(&records, &error);
    }
    if (status == BUGPACK_OK) {
        status = bp_notifications_print(&records, 1795000000000000000u, &text, &error);
    }
    bp_temp_file_release(&records);
    (void)close(dir_fd);
    bp_notifications_free(notifications);
    return status;
}

/* Begins a report, into which the artefacts are written from now on. */
static void begin(const char *name) {
    (void)snprintf(report, sizeof report, "%s/%s", directory, name);
    (void)mkdir(report, 0700);
}

static bugpack_status print_crash(void) {
    bp_crash_page *page = sample_crash_page();
    (void)snprintf(page->exception_type, sizeof page->exception_type, "std::runtime_error");
    (void)snprintf(page->exception_message, sizeof page->exception_message, "in two");
    page->is_exception_told = 1;
    return bp_crash_print(page, &sample_crash_backtrace, &text, &error);
}

static bool write_full(void) {
    return put("metadata.json", bp_metadata_print(&sample_metadata_full, &text, &error)) &&
           put("runtime-metrics.json",
               bp_metrics_print(&sample_metrics_full, "linux", &text, &error)) &&
           put("process.json", bp_process_print(&sample_process_full, &text, &error)) &&
           put("stacks.json", bp_stacks_print_json(&sample_stacks_full, &text, &error)) &&
           put("heap-state.json", bp_heap_state_print(&sample_heap_state_full, &text, &error)) &&
           put("logs.jsonl", print_log()) && put("metrics-history.jsonl", print_history()) &&
           put("notifications.json", print_notifications(true)) &&
           put("traffic-index.jsonl", print_traffic_index()) &&
           put("disconnect-cause.json",
               bp_disconnect_print(&sample_disconnect_full, &text, &error)) &&
           put("hang.json", bp_hang_print(&sample_hang, &text, &error)) &&
           put(sample_summary_name,
               bp_pedantic_summary_print(&sample_summary_full, &text, &error)) &&
           put("host-threads.json", sample_host_print(true, &text, &error)) &&
           put("threads.json", sample_threads_print(true, &text, &error)) &&
           put("files.json", sample_open_files_print(true, &text, &error)) &&
           put("system.json", sample_system_print(true, &text, &error)) &&
           put("thread-heap.json", print_heaps()) && put("crash.json", print_crash()) &&
           put("manifest.json", bp_manifest_print(&sample_manifest_full, &text, &error));
}

static bool write_bare(const bp_metadata *metadata, bugpack_status metrics_status) {
    return put("runtime-metrics.json", metrics_status) &&
           put("metadata.json", bp_metadata_print(metadata, &text, &error)) &&
           put("process.json", bp_process_print(&sample_process_bare, &text, &error)) &&
           put("stacks.json", bp_stacks_print_json(&sample_stacks_bare, &text, &error)) &&
           put("heap-state.json", bp_heap_state_print(&sample_heap_state_bare, &text, &error)) &&
           put("notifications.json", print_notifications(false)) &&
           put("disconnect-cause.json",
               bp_disconnect_print(&sample_disconnect_bare, &text, &error)) &&
           put(sample_summary_name,
               bp_pedantic_summary_print(&sample_summary_bare, &text, &error)) &&
           put("host-threads.json", sample_host_print(false, &text, &error)) &&
           put("threads.json", sample_threads_print(false, &text, &error)) &&
           put("files.json", sample_open_files_print(false, &text, &error)) &&
           put("system.json", sample_system_print(false, &text, &error)) &&
           put("thread-heap.json", bp_thread_heap_print(&sample_heap_bare, 1, &text, &error)) &&
           put("manifest.json", bp_manifest_print(&sample_manifest_bare, &text, &error));
}

int main(int argument_count, char **arguments) {
    struct stat info;
    if (argument_count != 2 || stat(arguments[1], &info) != 0 || !S_ISDIR(info.st_mode)) {
        (void)fprintf(stderr, "usage: %s DIR\n", arguments[0]);
        return 2;
    }
    bp_buffer_init(&text, 1 << 20);
    directory = arguments[1];
    begin("full");
    bool written = write_full();
    begin("bare");
    written &= write_bare(&sample_metadata_bare,
                          bp_metrics_print(&sample_metrics_bare, "linux", &text, &error));
    begin("unavailable");
    written &= write_bare(&sample_metadata_without_process,
                          bp_metrics_print_unavailable("other", "no sampler", &text, &error));
    bp_buffer_release(&text);
    return written ? 0 : 1;
}
