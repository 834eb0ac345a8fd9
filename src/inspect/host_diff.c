/*
 * Reads host-threads.json token by token: tens of megabytes are too much for a tree.
 */
#include "inspect/host_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "model/host_threads.h"
#include "json/pick.h"

static const size_t names_bytes_max = (size_t)1 << 30;

/* The depth of the root's members, of the list of threads, of a thread and of its groups. */
enum { DEPTH_ROOT = 1, DEPTH_THREADS = 2, DEPTH_THREAD = 3, DEPTH_GROUP = 4 };

/* One thread, or all threads of a name. */
typedef struct host_sum {
    size_t name_offset; /* in `names` */
    const char *name;   /* there, once all are read */
    uint64_t thread_count;
    uint64_t sum;
    bool is_measured;
} host_sum;

/* The sums of one counter in one capture, by name. */
typedef struct host_sums {
    host_sum *items;
    size_t count, capacity;
    bp_buffer names; /* each with its NUL */
} host_sums;

typedef struct sums_reader {
    bp_json_scanner scanner;
    host_sums *sums;
    const char *name_key, *group, *member; /* what is looked for */
    char measured_key[64];
    char key[64]; /* the last one read; "" for one that is longer */
    bool is_in_threads, is_in_group;
    bool has_threads; /* the document has such an array at all */
    size_t name;      /* of the current thread */
    bool has_name, is_measured, has_value;
    uint64_t value;
} sums_reader;

static void release_sums(host_sums *sums) {
    free(sums->items);
    bp_buffer_release(&sums->names);
    sums->items = NULL;
    sums->count = sums->capacity = 0;
}

static void take_key(sums_reader *reading, const bp_json_token *token) {
    size_t byte_count = token->byte_count - 2; /* without the quotes */
    if (byte_count >= sizeof reading->key) {
        byte_count = 0;
    }
    memcpy(reading->key, token->text + 1, byte_count);
    reading->key[byte_count] = '\0';
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
static bool take_name(sums_reader *reading, const bp_json_token *token) {
    bp_buffer *names = &reading->sums->names;
    reading->name = names->size;
    reading->has_name = true;
    (void)bp_json_token_text(token, names);
    if (names->size > reading->name) {
        cut_worker(names, reading->name);
    }
    return bp_buffer_append(names, "", 1) == BUGPACK_OK;
}

static bool push_thread(sums_reader *reading) {
    host_sums *sums = reading->sums;
    if (!reading->has_name) {
        reading->name = sums->names.size; /* a thread without a known cgroup */
        if (bp_buffer_append(&sums->names, "", 1) != BUGPACK_OK) {
            return false;
        }
    }
    if (!bp_array_reserve(&sums->items, sums->count, &sums->capacity)) {
        return false;
    }
    bool is_measured = reading->is_measured && reading->has_value;
    sums->items[sums->count++] = (host_sum){.name_offset = reading->name,
                                            .thread_count = 1,
                                            .sum = is_measured ? reading->value : 0,
                                            .is_measured = is_measured};
    return true;
}

/* CORRUPT or NO_MEMORY. */
static bugpack_status take_scalar(sums_reader *reading, const bp_json_token *token) {
    size_t depth = reading->scanner.depth;
    if (!reading->is_in_threads) {
        return BUGPACK_OK;
    }
    if (depth == DEPTH_THREAD && strcmp(reading->key, reading->name_key) == 0) {
        if (token->text[0] != '"') {
            return BUGPACK_ERR_CORRUPT;
        }
        return take_name(reading, token) ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
    }
    if (depth == DEPTH_THREAD && strcmp(reading->key, reading->measured_key) == 0) {
        reading->is_measured = bp_json_token_is(token, "true");
    }
    if (depth == DEPTH_GROUP && reading->is_in_group &&
        strcmp(reading->key, reading->member) == 0) {
        reading->has_value = bp_json_token_uint(token, &reading->value);
        return reading->has_value ? BUGPACK_OK : BUGPACK_ERR_CORRUPT;
    }
    return BUGPACK_OK;
}

static bugpack_status take_token(sums_reader *reading, const bp_json_token *token) {
    size_t depth = reading->scanner.depth; /* after the token */
    switch (token->kind) {
    case BP_JSON_KEY:
        take_key(reading, token);
        return BUGPACK_OK;
    case BP_JSON_BEGIN:
        if (depth == DEPTH_THREADS && strcmp(reading->key, "threads") == 0 &&
            token->text[0] == '[') {
            reading->is_in_threads = reading->has_threads = true;
        } else if (depth == DEPTH_THREAD && reading->is_in_threads) {
            reading->has_name = reading->is_measured = reading->has_value = false;
        } else if (depth == DEPTH_GROUP && reading->is_in_threads) {
            reading->is_in_group = strcmp(reading->key, reading->group) == 0;
        }
        return BUGPACK_OK;
    case BP_JSON_END:
        if (depth == DEPTH_ROOT) {
            reading->is_in_threads = false;
        } else if (depth == DEPTH_THREADS && reading->is_in_threads) {
            return push_thread(reading) ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
        } else if (depth == DEPTH_THREAD) {
            reading->is_in_group = false;
        }
        return BUGPACK_OK;
    case BP_JSON_SCALAR:
        return take_scalar(reading, token);
    case BP_JSON_FINISH:
        break;
    }
    return BUGPACK_OK;
}

static int compare_names(const void *one, const void *other) {
    return strcmp(((const host_sum *)one)->name, ((const host_sum *)other)->name);
}

/* Adds up equal names. */
static void fold(host_sums *sums) {
    size_t count = 0;
    for (size_t i = 0; i < sums->count; i++) {
        sums->items[i].name = bp_buffer_text(&sums->names) + sums->items[i].name_offset;
    }
    if (sums->count > 0) {
        qsort(sums->items, sums->count, sizeof *sums->items, compare_names);
    }
    for (size_t i = 0; i < sums->count; i++) {
        host_sum *last = count > 0 ? &sums->items[count - 1] : NULL;
        const host_sum *item = &sums->items[i];
        if (last == NULL || strcmp(last->name, item->name) != 0) {
            sums->items[count++] = *item;
            continue;
        }
        last->thread_count += item->thread_count;
        last->sum = item->sum > UINT64_MAX - last->sum ? UINT64_MAX : last->sum + item->sum;
        last->is_measured = last->is_measured || item->is_measured;
    }
    sums->count = count;
}

/* Finds a counter by its name in the JSON. */
static bool find_counter(const char *counter, bp_host_counter *ret_counter) {
    for (size_t i = 0; i < BP_HOST_COUNTER_COUNT; i++) {
        const char *group = bp_host_group_name(bp_host_counter_group((bp_host_counter)i));
        size_t group_bytes = strlen(group);
        if (strncmp(counter, group, group_bytes) == 0 && counter[group_bytes] == '.' &&
            strcmp(counter + group_bytes + 1, bp_host_counter_key((bp_host_counter)i)) == 0) {
            *ret_counter = (bp_host_counter)i;
            return true;
        }
    }
    return false;
}

bool bp_host_diff_has_counter(const char *counter) {
    bp_host_counter found;
    return find_counter(counter, &found);
}

static bugpack_status read_threads(sums_reader *reading, const void *text, size_t text_bytes,
                                   bugpack_error *error) {
    bp_json_token token = {.kind = BP_JSON_KEY};
    bugpack_status status = BUGPACK_OK;
    bp_json_scanner_init(&reading->scanner, text, text_bytes);
    while (status == BUGPACK_OK && token.kind != BP_JSON_FINISH) {
        status = bp_json_scanner_next(&reading->scanner, &token, error);
        if (status == BUGPACK_OK) {
            status = take_token(reading, &token);
            if (status != BUGPACK_OK) {
                (void)(status == BUGPACK_ERR_NO_MEMORY
                           ? bp_fail_memory(error, "compare two captures")
                           : bp_fail(error, status, "\"%s\" of a thread is not what it should be",
                                     reading->key));
            }
        }
    }
    bp_json_scanner_release(&reading->scanner);
    if (status == BUGPACK_OK && !reading->has_threads) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "there is no array \"threads\" in it");
    }
    return status;
}

/* Reads a capture. The items are ascending by name, each name once. */
static bugpack_status read_sums(const void *text, size_t text_bytes, bp_host_key key,
                                const char *counter, host_sums *ret_sums, bugpack_error *error) {
    static const char *const name_keys[] = {"process", "cgroup", "name"};
    bp_host_counter found;
    if (!find_counter(counter, &found)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%s\"", counter);
    }
    host_sums sums = {NULL, 0, 0, {0}};
    sums_reader reading = {.sums = &sums,
                           .name_key = name_keys[key],
                           .group = bp_host_group_name(bp_host_counter_group(found)),
                           .member = bp_host_counter_key(found)};
    (void)snprintf(reading.measured_key, sizeof reading.measured_key, "%s_measured", reading.group);
    bp_buffer_init(&sums.names, names_bytes_max);
    bugpack_status status = read_threads(&reading, text, text_bytes, error);
    if (status != BUGPACK_OK) {
        release_sums(&sums);
        return status;
    }
    fold(&sums);
    *ret_sums = sums;
    return BUGPACK_OK;
}

void bp_host_diff_release(bp_host_diff *diff) {
    free(diff->rows);
    bp_buffer_release(&diff->names_before);
    bp_buffer_release(&diff->names_after);
    *diff = (bp_host_diff){.rows = NULL};
}

/* Largest change first, then by name. */
static int compare_rows(const void *one, const void *other) {
    const bp_host_row *left = one;
    const bp_host_row *right = other;
    int order = bp_change_compare(&left->change, &right->change);
    return order != 0 ? order : strcmp(left->name, right->name);
}

/* `before` or `after` is NULL where the capture has no such name: its sum is known to be 0. */
static void fill_row(bp_host_row *row, const host_sum *before, const host_sum *after) {
    row->threads_before = before != NULL ? before->thread_count : 0;
    row->threads_after = after != NULL ? after->thread_count : 0;
    row->change.before = before != NULL ? before->sum : 0;
    row->change.after = after != NULL ? after->sum : 0;
    row->change.is_known_before = before == NULL || before->is_measured;
    row->change.is_known_after = after == NULL || after->is_measured;
    bp_change_complete(&row->change);
}

/* Merges both lists of ascending names, and takes the names over. */
static bugpack_status join(host_sums *before, host_sums *after, bp_host_diff *ret_diff,
                           bugpack_error *error) {
    bp_host_diff diff = {.rows = calloc(before->count + after->count + 1, sizeof *diff.rows)};
    if (diff.rows == NULL) {
        return bp_fail_memory(error, "compare two captures");
    }
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(before->items[i].name, after->items[j].name);
        bp_host_row *row = &diff.rows[diff.row_count++];
        row->name = order <= 0 ? before->items[i].name : after->items[j].name;
        fill_row(row, order <= 0 ? &before->items[i] : NULL, order >= 0 ? &after->items[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    qsort(diff.rows, diff.row_count, sizeof *diff.rows, compare_rows);
    bp_buffer_move(&diff.names_before, &before->names);
    bp_buffer_move(&diff.names_after, &after->names);
    *ret_diff = diff;
    return BUGPACK_OK;
}

static bugpack_status read_side(const char *side, const void *text, size_t text_bytes,
                                bp_host_key key, const char *counter, host_sums *sums,
                                bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = read_sums(text, text_bytes, key, counter, sums, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "the capture of %s: %s", side, detail.message);
    }
    if (status != BUGPACK_OK && error != NULL) {
        *error = detail;
    }
    return status;
}

bugpack_status bp_host_diff_compute(const void *before, size_t before_bytes, const void *after,
                                    size_t after_bytes, bp_host_key key, const char *counter,
                                    bp_host_diff *ret_diff, bugpack_error *error) {
    host_sums sums_before = {NULL, 0, 0, {0}};
    host_sums sums_after = {NULL, 0, 0, {0}};
    bugpack_status status =
        read_side("before", before, before_bytes, key, counter, &sums_before, error);
    if (status == BUGPACK_OK) {
        status = read_side("after", after, after_bytes, key, counter, &sums_after, error);
    }
    if (status == BUGPACK_OK) {
        status = join(&sums_before, &sums_after, ret_diff, error);
    }
    release_sums(&sums_before);
    release_sums(&sums_after);
    return status;
}
