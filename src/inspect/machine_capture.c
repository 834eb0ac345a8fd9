/*
 * Reads host-threads.json token by token: tens of megabytes are too much for a tree.
 */
#include "inspect/machine_capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "model/machine_threads.h"
#include "json/parts.h"
#include "json/pick.h"

static const size_t names_bytes_max = (size_t)1 << 30;
static const size_t groups_bytes_max = (size_t)16 << 20;

/* Decimals of the uptime that count; ticks are hundredths of a second or longer. */
enum { uptime_decimals = 3 };

/* The depth of the root's members, of what is in `summary` or `threads`, of a thread's members, and
 * of those of its groups. */
enum { DEPTH_ROOT = 1, DEPTH_PART = 2, DEPTH_THREAD = 3, DEPTH_GROUP = 4 };

typedef enum part { PART_OTHER, PART_SUMMARY, PART_THREADS } part;

typedef struct capture_reader {
    bp_json_parts parts;
    bp_json_token_kind last_copied;
    bool is_copied; /* the member of the root that is read */
    bp_captured_host capture;
    const char *name_key, *member; /* what is looked for */
    bp_machine_group group;
    char measured_key[64];
    char key[64]; /* the last one read; "" for one that is longer */
    part part;
    bool is_in_group, has_threads;
    bool knows_threads;                /* the summary says of threads whether they are all there */
    uint64_t uptime_ms, ticks_per_sec; /* 0: unknown */
    /* Of the current thread. */
    bp_machine_reading thread;
    bool has_tgid, has_tid, has_name, has_value, is_denied, is_kernel_thread;
} capture_reader;

int bp_captured_id_compare(const bp_captured_id *one, const bp_captured_id *other) {
    const uint64_t left[] = {one->tgid, one->tid, one->has_start, one->start_ticks};
    const uint64_t right[] = {other->tgid, other->tid, other->has_start, other->start_ticks};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_threads(const void *one, const void *other) {
    return bp_captured_id_compare(&((const bp_machine_reading *)one)->identity,
                                  &((const bp_machine_reading *)other)->identity);
}

void bp_captured_host_release(bp_captured_host *capture) {
    free(capture->threads);
    bp_buffer_release(&capture->names);
    bp_buffer_release(&capture->groups);
    capture->threads = NULL;
    capture->count = capture->capacity = 0;
}

static void take_key(capture_reader *reader, const bp_json_token *token) {
    size_t byte_count = token->byte_count - 2; /* without the quotes */
    if (byte_count >= sizeof reader->key) {
        byte_count = 0;
    }
    memcpy(reader->key, token->text + 1, byte_count);
    reader->key[byte_count] = '\0';
}

/*
 * A kernel worker appends its current task to its name, after '-' or '+' (wq_worker_comm,
 * kernel/workqueue.c), which would make it another worker in the next capture. Rescuers
 * ("kworker/R-…") differ in nothing else, so theirs stays.
 */
static void cut_worker(bp_buffer *names, size_t begin) {
    static const char prefix[] = "kworker/";
    size_t prefix_bytes = sizeof prefix - 1;
    const char *name = bp_buffer_text(names) + begin;
    if (names->size - begin < prefix_bytes || memcmp(name, prefix, prefix_bytes) != 0) {
        return;
    }
    size_t length = prefix_bytes + strspn(name + prefix_bytes, "u0123456789:H");
    if (length > prefix_bytes && (name[length] == '-' || name[length] == '+')) {
        names->size = begin + length;
    }
}

/* Appends a name with its escapes decoded. */
static bugpack_status take_name(capture_reader *reader, const bp_json_token *token) {
    bp_buffer *names = &reader->capture.names;
    reader->thread.name_offset = names->size;
    reader->has_name = true;
    if (!bp_json_token_text(token, names)) {
        return BUGPACK_ERR_CORRUPT;
    }
    if (names->size > reader->thread.name_offset) {
        cut_worker(names, reader->thread.name_offset);
    }
    return bp_buffer_append(names, "", 1) == BUGPACK_OK ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

/* Kernel threads have neither memory nor heap; the memory is that of the process. */
static bool expects_counter(const capture_reader *reader) {
    switch (reader->group) {
    case BP_MACHINE_MEMORY:
        return !reader->is_kernel_thread &&
               reader->thread.identity.tid == reader->thread.identity.tgid;
    case BP_MACHINE_HEAP:
        return !reader->is_kernel_thread;
    default:
        return true;
    }
}

static void begin_thread(capture_reader *reader) {
    reader->thread = (bp_machine_reading){.value = 0};
    reader->has_tgid = reader->has_tid = reader->has_name = reader->has_value = false;
    reader->is_denied = reader->is_kernel_thread = false;
}

static bugpack_status end_thread(capture_reader *reader) {
    bp_captured_host *capture = &reader->capture;
    if (!reader->has_tgid || !reader->has_tid) {
        (void)snprintf(reader->key, sizeof reader->key, "%s", reader->has_tgid ? "tid" : "tgid");
        return BUGPACK_ERR_CORRUPT;
    }
    if (!reader->has_name) { /* a thread without a known cgroup */
        reader->thread.name_offset = capture->names.size;
        if (bp_buffer_append(&capture->names, "", 1) != BUGPACK_OK) {
            return BUGPACK_ERR_NO_MEMORY;
        }
    }
    if (!bp_array_reserve(&capture->threads, capture->count, &capture->capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    /* Schema 1 has zeros for what was not measured, later ones have nothing. */
    reader->thread.is_measured = reader->has_value && !reader->is_denied;
    reader->thread.is_expected = expects_counter(reader);
    capture->measured_count += reader->thread.is_measured;
    capture->threads[capture->count++] = reader->thread;
    return BUGPACK_OK;
}

static bool take_number(const bp_json_token *token, bool *has_value, uint64_t *value) {
    *has_value = bp_json_token_uint(token, value);
    return *has_value;
}

static bugpack_status take_thread_member(capture_reader *reader, const bp_json_token *token) {
    const char *key = reader->key;
    bp_captured_id *identity = &reader->thread.identity;
    bool is_good = true;
    if (strcmp(key, reader->name_key) == 0) {
        return take_name(reader, token);
    }
    if (strcmp(key, "tgid") == 0) {
        is_good = take_number(token, &reader->has_tgid, &identity->tgid);
    } else if (strcmp(key, "tid") == 0) {
        is_good = take_number(token, &reader->has_tid, &identity->tid);
    } else if (strcmp(key, "start_ticks") == 0) {
        is_good = take_number(token, &identity->has_start, &identity->start_ticks);
    } else if (strcmp(key, "kernel_thread") == 0) {
        reader->is_kernel_thread = bp_json_token_is(token, "true");
    } else if (strcmp(key, reader->measured_key) == 0) {
        reader->is_denied = !bp_json_token_is(token, "true");
    }
    return is_good ? BUGPACK_OK : BUGPACK_ERR_CORRUPT;
}

/* Copies a short text; one that is none, or longer, is unknown. */
static void copy_text(const bp_json_token *token, char *out, size_t out_bytes) {
    bool is_text = token->text[0] == '"' && token->byte_count - 2 < out_bytes;
    size_t byte_count = is_text ? token->byte_count - 2 : 0;
    memcpy(out, token->text + 1, byte_count);
    out[byte_count] = '\0';
}

/* What is wrong here is unknown: it only helps to say what has become of a thread. */
static void take_summary_member(capture_reader *reader, const bp_json_token *token) {
    bp_captured_host *capture = &reader->capture;
    if (strcmp(reader->key, "threads_complete") == 0) {
        capture->is_complete = !bp_json_token_is(token, "false");
        reader->knows_threads = true;
    } else if (strcmp(reader->key, "complete") == 0 && !reader->knows_threads) {
        capture->is_complete =
            !bp_json_token_is(token, "false"); /* of schema 1: of threads alone */
    } else if (strcmp(reader->key, "captured_at") == 0) {
        copy_text(token, capture->captured_at, sizeof capture->captured_at);
    } else if (strcmp(reader->key, "boot_id") == 0) {
        copy_text(token, capture->boot_id, sizeof capture->boot_id);
    } else if (strcmp(reader->key, "machine_uptime_secs") == 0) {
        (void)bp_json_token_fixed(token, uptime_decimals, &reader->uptime_ms);
    } else if (strcmp(reader->key, "ticks_per_sec") == 0) {
        (void)bp_json_token_uint(token, &reader->ticks_per_sec);
    }
}

static bugpack_status take_scalar(capture_reader *reader, const bp_json_token *token) {
    size_t depth = reader->parts.scanner.depth;
    if (reader->part == PART_SUMMARY && depth == DEPTH_PART) {
        take_summary_member(reader, token);
    } else if (reader->part == PART_THREADS && depth == DEPTH_THREAD) {
        return take_thread_member(reader, token);
    } else if (reader->part == PART_THREADS && depth == DEPTH_GROUP && reader->is_in_group &&
               strcmp(reader->key, reader->member) == 0) {
        return take_number(token, &reader->has_value, &reader->thread.value) ? BUGPACK_OK
                                                                             : BUGPACK_ERR_CORRUPT;
    }
    return BUGPACK_OK;
}

static void begin_container(capture_reader *reader, const bp_json_token *token, size_t depth) {
    if (depth == DEPTH_PART && strcmp(reader->key, "threads") == 0 && token->text[0] == '[') {
        reader->part = PART_THREADS;
        reader->has_threads = true;
    } else if (depth == DEPTH_PART && strcmp(reader->key, "summary") == 0) {
        reader->part = PART_SUMMARY;
    } else if (depth == DEPTH_THREAD && reader->part == PART_THREADS) {
        begin_thread(reader);
    } else if (depth == DEPTH_GROUP && reader->part == PART_THREADS) {
        reader->is_in_group = strcmp(reader->key, bp_machine_group_name(reader->group)) == 0;
    }
}

/* CORRUPT, with the key, or NO_MEMORY. */
static bugpack_status take_place(capture_reader *reader, const bp_json_token *token) {
    size_t depth = reader->parts.scanner.depth; /* after the token */
    switch (token->kind) {
    case BP_JSON_KEY:
        take_key(reader, token);
        return BUGPACK_OK;
    case BP_JSON_BEGIN:
        begin_container(reader, token, depth);
        return BUGPACK_OK;
    case BP_JSON_END:
        if (depth == DEPTH_ROOT) {
            reader->part = PART_OTHER;
        } else if (depth == DEPTH_PART && reader->part == PART_THREADS) {
            return end_thread(reader);
        } else if (depth == DEPTH_THREAD) {
            reader->is_in_group = false;
        }
        return BUGPACK_OK;
    case BP_JSON_SCALAR:
        return take_scalar(reader, token);
    case BP_JSON_FINISH:
    case BP_JSON_MORE:
        break;
    }
    return BUGPACK_OK;
}

/* Copies the members of the root that are compared as documents. */
static bool copy_groups(capture_reader *reader, const bp_json_token *token) {
    size_t depth = reader->parts.scanner.depth; /* after the token */
    bool is_root = depth == (token->kind == BP_JSON_BEGIN ? 1 : 0);
    if (token->kind == BP_JSON_KEY && depth == DEPTH_ROOT) {
        reader->is_copied =
            strcmp(reader->key, "cgroups") == 0 || strcmp(reader->key, "pressure") == 0;
    }
    if (!is_root && !reader->is_copied) {
        return true;
    }
    bp_json_token_append(token, &reader->last_copied, &reader->capture.groups);
    return reader->capture.groups.status == BUGPACK_OK;
}

static bugpack_status take_token(void *context, const bp_json_token *token, bugpack_error *error) {
    capture_reader *reader = context;
    bugpack_status status = take_place(reader, token);
    if (status == BUGPACK_OK && !copy_groups(reader, token)) {
        status = BUGPACK_ERR_NO_MEMORY;
    }
    if (status == BUGPACK_ERR_NO_MEMORY) {
        return bp_fail_memory(error, "compare two captures");
    }
    return status == BUGPACK_OK
               ? status
               : bp_fail(error, status, "\"%s\" of a thread is missing, or not %s", reader->key,
                         strcmp(reader->key, "name") == 0 ? "a text" : "a whole number");
}

static bugpack_status read_text(capture_reader *reader, const bp_giver *text,
                                bugpack_error *error) {
    bugpack_status status = bp_json_parts_read(&reader->parts, text, error);
    return status != BUGPACK_OK || reader->has_threads
               ? status
               : bp_fail(error, BUGPACK_ERR_CORRUPT, "there is no array \"threads\" in it");
}

/* A tick is at most 10 ms; an uptime that would overflow is unknown. */
static void compute_uptime(const capture_reader *reader, bp_captured_host *capture) {
    capture->has_uptime = reader->uptime_ms > 0 && reader->ticks_per_sec > 0 &&
                          reader->uptime_ms <= UINT64_MAX / reader->ticks_per_sec;
    if (capture->has_uptime) {
        capture->uptime_ticks = reader->uptime_ms * reader->ticks_per_sec / 1000;
    }
}

bugpack_status bp_captured_host_read(const bp_giver *text, bp_machine_key key,
                                     bp_machine_counter counter, bp_captured_host *ret_capture,
                                     bugpack_error *error) {
    static const char *const name_keys[] = {"process", "cgroup", "name"};
    bp_machine_group group = bp_machine_counter_group(counter);
    capture_reader reader = {.capture = {.is_complete = true},
                             .last_copied = BP_JSON_BEGIN,
                             .name_key = name_keys[key],
                             .group = group,
                             .member = bp_machine_counter_key(counter)};
    (void)snprintf(reader.measured_key, sizeof reader.measured_key, "%s_measured",
                   bp_machine_group_name(group));
    bp_buffer_init(&reader.capture.names, names_bytes_max);
    bp_buffer_init(&reader.capture.groups, groups_bytes_max);
    bp_json_parts_init(&reader.parts, take_token, &reader);
    bugpack_status status = read_text(&reader, text, error);
    bp_json_parts_release(&reader.parts);
    if (status != BUGPACK_OK) {
        bp_captured_host_release(&reader.capture);
        return status;
    }
    compute_uptime(&reader, &reader.capture);
    if (reader.capture.count > 0) {
        qsort(reader.capture.threads, reader.capture.count, sizeof *reader.capture.threads,
              compare_threads);
    }
    *ret_capture = reader.capture;
    return BUGPACK_OK;
}
