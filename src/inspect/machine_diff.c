#include "inspect/machine_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "model/machine_threads.h"
#include "json/parts.h"

/* --- one counter of every thread in a host-threads.json, of schema 1 or 2 ----------------- */

/* A thread is the same in two captures of one boot if these three are. */
typedef struct captured_id {
    uint64_t tgid, tid;
    bool has_start;
    uint64_t start_ticks;
} captured_id;

typedef struct reading {
    captured_id identity;
    size_t name_offset; /* of the group's name in `names`, with its NUL; "" if unknown */
    bool is_expected;   /* such a thread has this counter: a kernel thread has no memory */
    bool is_measured;
    uint64_t value;
} reading;

typedef struct captured_host {
    reading *threads; /* ascending by identity */
    size_t count, capacity;
    bp_buffer names;
    bp_buffer groups; /* a document of its members `cgroups` and `pressure` */
    size_t measured_count;
    bool is_complete;     /* no thread was missed */
    char captured_at[40]; /* "" if unknown; captures of one clock order like these texts */
    char boot_id[40];     /* "" if unknown */
    bool has_uptime;
    uint64_t uptime_ticks; /* when it began, in the unit of start_ticks */
} captured_host;

static const size_t names_bytes_max = (size_t)1 << 30;
static const size_t kept_bytes_max = (size_t)64 << 20;

/* Decimals of the uptime that count; ticks are hundredths of a second or longer. */
enum { uptime_decimals = 3 };

/* What is read of a capture: of the document, then of each thread. */
enum {
    COMPLETE,
    THREADS_COMPLETE,
    CAPTURED_AT,
    BOOT_ID,
    UPTIME,
    TICKS,
    THREADS,
    CGROUPS,
    PRESSURE,
    TGID,
    TID,
    START,
    KERNEL_THREAD,
    NAME,
    MEASURED,
    VALUE,
    PICK_COUNT
};

typedef struct capture_reader {
    captured_host capture;
    bp_json_pick picks[PICK_COUNT];
    bp_machine_group group;
} capture_reader;

/* As for qsort. One without a start comes before those of the same ids that have one. */
static int compare_ids(const captured_id *one, const captured_id *other) {
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
    return compare_ids(&((const reading *)one)->identity, &((const reading *)other)->identity);
}

static void release_capture(captured_host *capture) {
    free(capture->threads);
    bp_buffer_release(&capture->names);
    bp_buffer_release(&capture->groups);
    capture->threads = NULL;
    capture->count = capture->capacity = 0;
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

/* Kernel threads have neither memory nor heap; the memory is that of the process. */
static bool expects_counter(const capture_reader *reader, const captured_id *identity) {
    bool is_kernel_thread = bp_json_token_is(&reader->picks[KERNEL_THREAD].token, "true");
    switch (reader->group) {
    case BP_MACHINE_MEMORY:
        return !is_kernel_thread && identity->tid == identity->tgid;
    case BP_MACHINE_HEAP:
        return !is_kernel_thread;
    default:
        return true;
    }
}

static bugpack_status refuse_member(const bp_json_pick *pick, const char *expected,
                                    bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\" of a thread is missing, or not %s",
                   strrchr(pick->path, '.') + 1, expected);
}

/* An object or array where a text or number should be is passed over. */
static bool is_there(const bp_json_pick *pick) {
    return pick->token.byte_count > 0 && strchr("{[", pick->token.text[0]) == NULL;
}

/* Takes a thread. */
static bugpack_status take_thread(void *context, bugpack_error *error) {
    capture_reader *reader = context;
    captured_host *capture = &reader->capture;
    const bp_json_pick *picks = reader->picks;
    reading thread = {.name_offset = capture->names.size};
    captured_id *identity = &thread.identity;
    const struct {
        int pick;
        uint64_t *value;
        bool *is_known; /* NULL: it must be there */
    } numbers[] = {{TGID, &identity->tgid, NULL},
                   {TID, &identity->tid, NULL},
                   {START, &identity->start_ticks, &identity->has_start},
                   {VALUE, &thread.value, &thread.is_measured}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const bp_json_pick *pick = &picks[numbers[i].pick];
        bool is_known = is_there(pick), is_optional = numbers[i].is_known != NULL;
        if ((is_known || !is_optional) && !bp_json_token_uint(&pick->token, numbers[i].value)) {
            return refuse_member(pick, "a whole number", error);
        }
        if (is_optional) {
            *numbers[i].is_known = is_known;
        }
    }
    /* A thread without a known cgroup has no name. */
    if (is_there(&picks[NAME])) {
        if (!bp_json_token_text(&picks[NAME].token, &capture->names)) {
            return refuse_member(&picks[NAME], "a text", error);
        }
        cut_worker(&capture->names, thread.name_offset);
    }
    if (bp_buffer_append(&capture->names, "", 1) != BUGPACK_OK ||
        !bp_array_reserve(&capture->threads, capture->count, &capture->capacity)) {
        return bp_fail_memory(error, "compare two captures");
    }
    /* Schema 1 has zeros for what was not measured, later ones have nothing. */
    if (is_there(&picks[MEASURED]) && !bp_json_token_is(&picks[MEASURED].token, "true")) {
        thread.is_measured = false;
    }
    thread.is_expected = expects_counter(reader, identity);
    capture->measured_count += thread.is_measured;
    capture->threads[capture->count++] = thread;
    return BUGPACK_OK;
}

/* Copies a short text; one that is none, or longer, is unknown. */
static void copy_text(const bp_json_pick *pick, char *out, size_t out_bytes) {
    const bp_json_token *token = &pick->token;
    bool is_text =
        token->byte_count > 1 && token->text[0] == '"' && token->byte_count - 2 < out_bytes;
    (void)snprintf(out, out_bytes, "%.*s", is_text ? (int)token->byte_count - 2 : 0,
                   is_text ? token->text + 1 : "");
}

/* A tick is at most 10 ms; an uptime that would overflow is unknown. */
static void take_uptime(const capture_reader *reader, captured_host *capture) {
    uint64_t uptime_ms = 0, ticks_per_sec = 0;
    (void)bp_json_token_fixed(&reader->picks[UPTIME].token, uptime_decimals, &uptime_ms);
    (void)bp_json_token_uint(&reader->picks[TICKS].token, &ticks_per_sec);
    capture->has_uptime =
        uptime_ms > 0 && ticks_per_sec > 0 && uptime_ms <= UINT64_MAX / ticks_per_sec;
    capture->uptime_ticks = capture->has_uptime ? uptime_ms * ticks_per_sec / 1000 : 0;
}

/* What is wrong here is unknown: it only helps to say what has become of a thread. */
static bugpack_status take_document(capture_reader *reader, bugpack_error *error) {
    captured_host *capture = &reader->capture;
    const bp_json_pick *picks = reader->picks;
    const char *before = "{";
    if (!bp_json_token_is(&picks[THREADS].token, "[")) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "there is no array \"threads\" in it");
    }
    /* In schema 1 `complete` was about threads alone. */
    const bp_json_pick *complete =
        &picks[is_there(&picks[THREADS_COMPLETE]) ? THREADS_COMPLETE : COMPLETE];
    capture->is_complete = !bp_json_token_is(&complete->token, "false");
    copy_text(&picks[CAPTURED_AT], capture->captured_at, sizeof capture->captured_at);
    copy_text(&picks[BOOT_ID], capture->boot_id, sizeof capture->boot_id);
    take_uptime(reader, capture);
    for (int i = CGROUPS; i <= PRESSURE; i++) {
        if (picks[i].token.byte_count > 0) {
            (void)bp_buffer_printf(&capture->groups, "%s\"%s\":", before, picks[i].path);
            (void)bp_buffer_append(&capture->groups, picks[i].token.text,
                                   picks[i].token.byte_count);
            before = ",";
        }
    }
    if (bp_buffer_append_text(&capture->groups, before[0] == '{' ? "{}" : "}") != BUGPACK_OK) {
        return bp_fail_memory(error, "compare two captures");
    }
    if (capture->count > 0) {
        qsort(capture->threads, capture->count, sizeof *capture->threads, compare_threads);
    }
    return BUGPACK_OK;
}

/*
 * Reads a capture as it is given. Errors: CORRUPT (says where or what), NO_MEMORY, those of what
 * gives it. The caller releases `ret_capture`, which is untouched on failure.
 */
static bugpack_status read_capture(const bp_giver *text, bp_machine_key key,
                                   bp_machine_counter counter, captured_host *ret_capture,
                                   bugpack_error *error) {
    static const char *const names[] = {"threads[].process", "threads[].cgroup", "threads[].name"};
    char measured[96], value[96];
    capture_reader reader = {.group = bp_machine_counter_group(counter),
                             .picks = {[COMPLETE] = {.path = "summary.complete"},
                                       [THREADS_COMPLETE] = {.path = "summary.threads_complete"},
                                       [CAPTURED_AT] = {.path = "summary.captured_at"},
                                       [BOOT_ID] = {.path = "summary.boot_id"},
                                       [UPTIME] = {.path = "summary.machine_uptime_secs"},
                                       [TICKS] = {.path = "summary.ticks_per_sec"},
                                       [THREADS] = {.path = "threads"},
                                       [CGROUPS] = {.path = "cgroups", .is_whole = true},
                                       [PRESSURE] = {.path = "pressure", .is_whole = true},
                                       [TGID] = {.path = "threads[].tgid"},
                                       [TID] = {.path = "threads[].tid"},
                                       [START] = {.path = "threads[].start_ticks"},
                                       [KERNEL_THREAD] = {.path = "threads[].kernel_thread"},
                                       [NAME] = {.path = names[key]},
                                       [MEASURED] = {.path = measured},
                                       [VALUE] = {.path = value}}};
    const bp_json_rows rows = {"threads[]", reader.picks, PICK_COUNT, take_thread, &reader};
    const char *group = bp_machine_group_name(reader.group);
    bp_buffer kept;
    (void)snprintf(measured, sizeof measured, "threads[].%s_measured", group);
    (void)snprintf(value, sizeof value, "threads[].%s.%s", group, bp_machine_counter_key(counter));
    bp_buffer_init(&kept, kept_bytes_max);
    bp_buffer_init(&reader.capture.names, names_bytes_max);
    bp_buffer_init(&reader.capture.groups, kept_bytes_max);
    bugpack_status status = bp_json_pick_rows(text, &rows, &kept, error);
    if (status == BUGPACK_OK) {
        status = take_document(&reader, error);
    }
    bp_buffer_release(&kept);
    if (status == BUGPACK_OK) {
        *ret_capture = reader.capture;
    } else {
        release_capture(&reader.capture);
    }
    return status;
}

/* --- the comparison ----------------------------------------------------------------------- */

/* What has become of a thread. */
typedef enum thread_fate { FATE_IN_BOTH, FATE_ENDED, FATE_BORN, FATE_UNCLEAR } thread_fate;

typedef struct pairing {
    const char *name;
    thread_fate fate;
    const reading *before, *after; /* NULL where it is not */
} pairing;

/* How the values of a group's threads make one, and what counts as a change of it. */
typedef enum counter_kind {
    KIND_TOTAL,  /* counts from the start of a thread; added up */
    KIND_LEVEL,  /* holds now, such as memory; added up */
    KIND_MAXIMUM /* the largest so far; never added up */
} counter_kind;

static counter_kind kind_of(bp_machine_counter counter) {
    static const char suffix[] = "_max_ns";
    const char *key = bp_machine_counter_key(counter);
    size_t length = strlen(key);
    if (bp_machine_counter_group(counter) == BP_MACHINE_MEMORY) {
        return KIND_LEVEL;
    }
    return length >= sizeof suffix && strcmp(key + length - (sizeof suffix - 1), suffix) == 0
               ? KIND_MAXIMUM
               : KIND_TOTAL;
}

/* Finds a counter by its name in the JSON. */
static bool find_counter(const char *counter, bp_machine_counter *ret_counter) {
    for (size_t i = 0; i < BP_MACHINE_COUNTER_COUNT; i++) {
        const char *group = bp_machine_group_name(bp_machine_counter_group((bp_machine_counter)i));
        size_t group_bytes = strlen(group);
        if (strncmp(counter, group, group_bytes) == 0 && counter[group_bytes] == '.' &&
            strcmp(counter + group_bytes + 1, bp_machine_counter_key((bp_machine_counter)i)) == 0) {
            *ret_counter = (bp_machine_counter)i;
            return true;
        }
    }
    return false;
}

bool bp_machine_diff_has_counter(const char *counter) {
    bp_machine_counter found;
    return find_counter(counter, &found);
}

bool bp_machine_diff_name_counter(size_t index, char *out, size_t out_bytes) {
    if (index >= BP_MACHINE_COUNTER_COUNT) {
        return false;
    }
    bp_machine_counter counter = (bp_machine_counter)index;
    (void)snprintf(out, out_bytes, "%s.%s",
                   bp_machine_group_name(bp_machine_counter_group(counter)),
                   bp_machine_counter_key(counter));
    return true;
}

bool bp_machine_row_is_changed(const bp_machine_row *row) {
    return (row->change.has_delta && row->change.delta != 0) || row->ended.measured_count > 0 ||
           row->born.measured_count > 0;
}

bool bp_machine_row_is_unknown(const bp_machine_row *row) {
    return !row->change.has_delta && row->not_compared_count > 0 &&
           row->ended.measured_count == 0 && row->born.measured_count == 0;
}

void bp_machine_diff_release(bp_machine_diff *diff) {
    free(diff->rows);
    bp_buffer_release(&diff->names_before);
    bp_buffer_release(&diff->names_after);
    bp_buffer_release(&diff->groups_before);
    bp_buffer_release(&diff->groups_after);
    *diff = (bp_machine_diff){.rows = NULL};
}

static uint64_t merge(uint64_t one, uint64_t other, bool is_maximum) {
    if (is_maximum) {
        return one > other ? one : other;
    }
    return other > UINT64_MAX - one ? UINT64_MAX : one + other;
}

static const char *name_of(const captured_host *capture, const reading *thread) {
    return bp_buffer_text(&capture->names) + thread->name_offset;
}

/* Captures without a boot id are of different boots if the machine's age fell while time passed. */
static bool are_same_boot(const captured_host *before, const captured_host *after) {
    if (before->boot_id[0] != '\0' && after->boot_id[0] != '\0') {
        return strcmp(before->boot_id, after->boot_id) == 0;
    }
    return !before->has_uptime || !after->has_uptime ||
           after->uptime_ticks >= before->uptime_ticks ||
           strcmp(before->captured_at, after->captured_at) >= 0;
}

static bool are_swapped(const captured_host *before, const captured_host *after) {
    return before->has_uptime && after->has_uptime && after->uptime_ticks < before->uptime_ticks;
}

/* A thread that is only in the first capture. Without its start it may be in the other as well. */
static thread_fate fate_of_missing(const reading *thread, const captured_host *before,
                                   const captured_host *after, bool is_same_boot) {
    if (!is_same_boot) {
        return FATE_ENDED;
    }
    return thread->identity.has_start && after->is_complete && !are_swapped(before, after)
               ? FATE_ENDED
               : FATE_UNCLEAR;
}

/*
 * A thread that is only in the second. If it is older than the first capture, that one missed it;
 * one tick is the difference that rounding can make.
 */
static thread_fate fate_of_new(const reading *thread, const captured_host *before,
                               const captured_host *after, bool is_same_boot) {
    if (!is_same_boot) {
        return FATE_BORN;
    }
    bool is_newer = !before->has_uptime || thread->identity.start_ticks >= before->uptime_ticks ||
                    before->uptime_ticks - thread->identity.start_ticks == 1;
    return thread->identity.has_start && is_newer && !are_swapped(before, after) ? FATE_BORN
                                                                                 : FATE_UNCLEAR;
}

/* Pairs the threads of both captures, ascending by identity. Returns how many there are. */
static size_t pair_threads(const captured_host *before, const captured_host *after,
                           bool is_same_boot, pairing *pairs) {
    size_t count = 0;
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        const reading *old_thread = i < before->count ? &before->threads[i] : NULL;
        const reading *new_thread = j < after->count ? &after->threads[j] : NULL;
        int order = old_thread == NULL ? 1 : -1;
        if (old_thread != NULL && new_thread != NULL) {
            order = compare_ids(&old_thread->identity, &new_thread->identity);
        }
        pairing *pair = &pairs[count++];
        if (order == 0 && is_same_boot && old_thread->identity.has_start) {
            *pair = (pairing){name_of(after, new_thread), FATE_IN_BOTH, old_thread, new_thread};
            i++;
            j++;
        } else if (order <= 0) {
            *pair = (pairing){name_of(before, old_thread),
                              fate_of_missing(old_thread, before, after, is_same_boot), old_thread,
                              NULL};
            i++;
        } else {
            *pair =
                (pairing){name_of(after, new_thread),
                          fate_of_new(new_thread, before, after, is_same_boot), NULL, new_thread};
            j++;
        }
    }
    return count;
}

static void add_rest(bp_machine_row *row, bp_machine_rest *rest, const reading *thread,
                     bool is_maximum) {
    rest->count++;
    if (thread->is_measured) {
        rest->value = merge(rest->value, thread->value, is_maximum);
        rest->measured_count++;
    } else {
        row->not_compared_count += thread->is_expected;
    }
}

static void add_pair(bp_machine_row *row, const pairing *pair, bool is_maximum) {
    const reading *before = pair->before, *after = pair->after;
    bp_change *change = &row->change;
    row->threads_before += before != NULL;
    row->threads_after += after != NULL;
    switch (pair->fate) {
    case FATE_IN_BOTH:
        row->threads_in_both++;
        if (before->is_measured && after->is_measured) {
            change->before = merge(change->before, before->value, is_maximum);
            change->after = merge(change->after, after->value, is_maximum);
            change->is_known_before = change->is_known_after = true;
        } else {
            row->not_compared_count += after->is_expected;
        }
        break;
    case FATE_ENDED:
        add_rest(row, &row->ended, before, is_maximum);
        break;
    case FATE_BORN:
        add_rest(row, &row->born, after, is_maximum);
        break;
    case FATE_UNCLEAR:
        row->not_compared_count += (before != NULL ? before : after)->is_expected;
        break;
    }
}

static int compare_pairs(const void *one, const void *other) {
    return strcmp(((const pairing *)one)->name, ((const pairing *)other)->name);
}

/* Makes a row for each name. */
static void fold(pairing *pairs, size_t pair_count, bp_machine_diff *diff) {
    if (pair_count > 0) {
        qsort(pairs, pair_count, sizeof *pairs, compare_pairs);
    }
    for (size_t i = 0; i < pair_count; i++) {
        if (i == 0 || strcmp(pairs[i].name, pairs[i - 1].name) != 0) {
            diff->rows[diff->row_count++] = (bp_machine_row){.name = pairs[i].name};
        }
        add_pair(&diff->rows[diff->row_count - 1], &pairs[i], diff->is_maximum);
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        bp_change_complete(&diff->rows[i].change);
    }
}

static uint64_t distance(uint64_t one, uint64_t other) {
    return one > other ? one - other : other - one;
}

/*
 * By how much a group changed. What was born counted from 0. What ended had counted before: a level
 * falls by it, a total or a maximum does not.
 */
static uint64_t weight_of(const bp_machine_row *row, counter_kind kind) {
    const bp_change *change = &row->change;
    if (kind == KIND_LEVEL) {
        return distance(merge(change->before, row->ended.value, false),
                        merge(change->after, row->born.value, false));
    }
    return merge(distance(change->before, change->after), row->born.value, kind == KIND_MAXIMUM);
}

/* Largest change first, then what changed at all, then what is known, then by name. */
static int compare_rows(const void *one, const void *other) {
    const bp_machine_row *left = one, *right = other;
    bool is_left_changed = bp_machine_row_is_changed(left);
    bool is_left_unknown = bp_machine_row_is_unknown(left);
    if (left->weight != right->weight) {
        return left->weight > right->weight ? -1 : 1;
    }
    if (is_left_changed != bp_machine_row_is_changed(right)) {
        return is_left_changed ? -1 : 1;
    }
    if (is_left_unknown != bp_machine_row_is_unknown(right)) {
        return is_left_unknown ? 1 : -1;
    }
    return strcmp(left->name, right->name);
}

/* Fills in the rows, and takes the names over. */
static bugpack_status join(captured_host *before, captured_host *after, bp_machine_counter counter,
                           bp_machine_diff *ret_diff, bugpack_error *error) {
    counter_kind kind = kind_of(counter);
    bp_machine_diff diff = {.is_maximum = kind == KIND_MAXIMUM,
                            .is_same_boot = are_same_boot(before, after),
                            .is_complete_before = before->is_complete,
                            .is_complete_after = after->is_complete,
                            .measured_before = before->measured_count,
                            .measured_after = after->measured_count};
    size_t pair_max = before->count + after->count;
    pairing *pairs = calloc(pair_max + 1, sizeof *pairs);
    diff.rows = calloc(pair_max + 1, sizeof *diff.rows);
    if (pairs == NULL || diff.rows == NULL) {
        free(pairs);
        free(diff.rows);
        return bp_fail_memory(error, "compare two captures");
    }
    fold(pairs, pair_threads(before, after, diff.is_same_boot, pairs), &diff);
    free(pairs);
    for (size_t i = 0; i < diff.row_count; i++) {
        diff.rows[i].weight = weight_of(&diff.rows[i], kind);
    }
    qsort(diff.rows, diff.row_count, sizeof *diff.rows, compare_rows);
    bp_buffer_move(&diff.names_before, &before->names);
    bp_buffer_move(&diff.names_after, &after->names);
    bp_buffer_move(&diff.groups_before, &before->groups);
    bp_buffer_move(&diff.groups_after, &after->groups);
    *ret_diff = diff;
    return BUGPACK_OK;
}

static bugpack_status read_side(const char *side, const bp_giver *text, bp_machine_key key,
                                bp_machine_counter counter, captured_host *capture,
                                bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = read_capture(text, key, counter, capture, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "the capture of %s: %s", side, detail.message);
    }
    if (status != BUGPACK_OK && error != NULL) {
        *error = detail;
    }
    return status;
}

bugpack_status bp_machine_diff_compute(const bp_giver *before, const bp_giver *after,
                                       bp_machine_key key, const char *counter,
                                       bp_machine_diff *ret_diff, bugpack_error *error) {
    captured_host old_capture = {.threads = NULL}, new_capture = {.threads = NULL};
    bp_machine_counter found;
    if (!find_counter(counter, &found)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%s\"", counter);
    }
    bugpack_status status = read_side("before", before, key, found, &old_capture, error);
    if (status == BUGPACK_OK) {
        status = read_side("after", after, key, found, &new_capture, error);
    }
    if (status == BUGPACK_OK) {
        status = join(&old_capture, &new_capture, found, ret_diff, error);
    }
    release_capture(&old_capture);
    release_capture(&new_capture);
    return status;
}
