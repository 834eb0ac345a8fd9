#include "diagnose/evidence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"
#include "entries/frames.h"
#include "model/entry.h"

#define CUT_TO(field, text) bp_utf8_copy((field), sizeof(field), (text))

/* Bytes of the budget that the tree of a thread has to leave, more if it is not of interest; and an
 * element of a list. */
enum { room_busiest = 28 << 20, room_wanted = 30 << 20, room_any = 32 << 20 };
enum { room_deadlocks = 24 << 20, room_files = 20 << 20 };

/* --- findings ----------------------------------------------------------------------------- */

/* The others that wait, of which a sentence names some, differ from report to report. */
static void keep_threads(bp_finding *finding, const bp_argument *arguments) {
    size_t most = finding->diagnosis == BP_DIAGNOSIS_DEADLOCK ? BP_SIGNATURE_STACK_MAX : 1;
    const bp_sentence *sentence = &finding->sentence;
    for (size_t i = 0; i < sentence->thread_count && i < most; i++) {
        finding->tids[finding->tid_count++] = sentence->threads[i].id;
    }
    for (; arguments->kind != BP_ARGUMENT_END && finding->thread_name[0] == '\0'; arguments++) {
        CUT_TO(finding->thread_name,
               arguments->kind == BP_ARGUMENT_THREAD ? arguments->text : NULL);
    }
}

/* Keeps, of the threads that a sentence names, those of the first process that have a stack. */
static void keep_stacks(const bp_evidence *evidence, bp_sentence *sentence) {
    size_t count = evidence->folder[0] == '\0' ? sentence->thread_count : 0;
    sentence->thread_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < evidence->stack_count && evidence->stacks[at] != sentence->threads[i].id) {
            at++;
        }
        if (at < evidence->stack_count) {
            sentence->threads[sentence->thread_count++] = sentence->threads[i];
        }
    }
}

void bp_find_as(bp_evidence *evidence, bp_diagnosis diagnosis, const char *entry,
                const char *pattern, const bp_argument *arguments) {
    bp_finding finding = {.diagnosis = diagnosis};
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", evidence->folder, entry);
    CUT_TO(finding.entry, path);
    const char *next = bp_diagnoses[diagnosis].next;
    (void)snprintf(path, sizeof path, "%s%.*s", evidence->folder, (int)strcspn(next, " "), next);
    finding.lacks_next = bp_entry_find(path + strlen(evidence->folder)) != BP_ENTRY_COUNT &&
                         !bp_report_file_has(evidence->report, path, NULL);
    bp_sentence_print(&finding.sentence, pattern, arguments);
    keep_threads(&finding, arguments);
    keep_stacks(evidence, &finding.sentence);
    bp_findings_add(evidence->findings, &finding);
}

bp_argument bp_thread_argument(const bp_thread *thread) {
    return (bp_argument){.kind = BP_ARGUMENT_THREAD, .id = thread->tid, .text = thread->name};
}

bp_argument bp_process_argument(const bp_json_tree *process) {
    return (bp_argument){.kind = BP_ARGUMENT_PROCESS,
                         .id = bp_json_tree_uint_or(process, "pid", 0),
                         .text = bp_json_tree_text_or(process, "name", "?"),
                         .rest = bp_json_tree_text_or(process, "state", ""),
                         .max_bytes = 40};
}

bp_argument bp_wait_argument(const bp_wait_text *wait) {
    return (bp_argument){.kind = wait->pid != 0 ? BP_ARGUMENT_WAIT : BP_ARGUMENT_TEXT,
                         .text = wait->text,
                         .rest = wait->others,
                         .max_bytes = sizeof wait->text,
                         .id = wait->pid};
}

/* --- threads ------------------------------------------------------------------------------ */

bool bp_thread_has_ended(const bp_thread *thread) {
    return strcmp(thread->state, "zombie") == 0 || strcmp(thread->state, "dead") == 0;
}

/* Without its switches, as in a host that reports by itself, only where the clock of the CPU does
 * not count in ticks: then the kernel's part is not known. */
bool bp_thread_is_idle(const bp_thread *thread) {
    bool has_switches = thread->voluntary_switches >= 0;
    bool has_not_run = has_switches
                           ? thread->voluntary_switches == 0 && thread->involuntary_switches == 0
                           : thread->is_measured && thread->system_ms < 0;
    return thread->cpu_ms == 0 && has_not_run && !thread->is_born;
}

bool bp_thread_waited(const bp_evidence *evidence, const bp_thread *thread) {
    return evidence->window_ms >= BP_EVIDENCE_WAIT_WINDOW_MS && bp_thread_is_idle(thread);
}

const char *bp_thread_call_argument(const bp_thread *thread, unsigned place) {
    const bp_json_tree *argument =
        bp_json_tree_rows(bp_json_tree_object(thread->row, "syscall"), "arguments");
    for (unsigned i = 0; argument != NULL && i < place; i++) {
        argument = bp_json_tree_next(argument);
    }
    return argument != NULL ? bp_json_tree_value(argument) : "";
}

static bool has_no(const bp_thread *thread, unsigned place) {
    return strcmp(bp_thread_call_argument(thread, place), "0x0") == 0;
}

bool bp_thread_only_sleeps(const bp_thread *thread) {
    const char *call = thread->syscall;
    return strcmp(call, "clock_nanosleep") == 0 || strcmp(call, "nanosleep") == 0 ||
           (strstr(call, "select") != NULL && has_no(thread, 0)) ||
           (strstr(call, "poll") != NULL && call[0] != 'e' && has_no(thread, 1));
}

/* The innermost function of the executable, and not of a language's library within it; of a program
 * that is a library, as of a plugin host, the innermost one of that. */
struct own_function {
    const char *executable;
    char *name;
    bool is_seen; /* a frame of the executable */
};

static void take_function(void *context, const bp_frame_text *frame) {
    static const char *const of_languages[] = {
        "std::",       "core::",     "alloc::", "<std::",     "<core::", "<alloc::",
        "__gnu_cxx::", "void std::", "_start",  "bool std::", "__rust_", NULL};
    static const char *const folders[] = {"/rustc/",        "library/std/",      "library/core/",
                                          "library/alloc/", "/usr/include/c++/", NULL};
    struct own_function *function = context;
    const char *name = frame->demangled != NULL ? frame->demangled : frame->symbol;
    bool is_own = name != NULL && frame->module != NULL && !frame->is_signal &&
                  strcmp(frame->module, function->executable) == 0;
    bool is_of_language =
        is_own && (bp_array_has_start(of_languages, name) ||
                   (frame->source != NULL && bp_array_has_start(folders, frame->source)));
    function->is_seen = function->is_seen || is_own;
    if (function->name[0] == '\0' && is_own && !is_of_language) {
        bp_frame_short_name(frame, function->name);
    }
}

void bp_thread_print_function(const bp_evidence *evidence, const bp_thread *thread,
                              char out[BP_FRAME_NAME_BYTES]) {
    struct own_function function = {
        .executable = bp_json_tree_text_or(evidence->process, "executable", ""), .name = out};
    bool is_of_python = bp_json_tree_rows(thread->stack, "python_frames") != NULL;
    out[0] = '\0';
    if (!is_of_python) {
        bp_frames_each(bp_json_tree_array(thread->stack, "frames"), evidence->finder, take_function,
                       &function);
    }
    if (!function.is_seen) {
        bp_frames_print_own(thread->stack, evidence->finder, out);
    }
}

/* A name or an address takes so many bytes at most. */
enum { name_bytes_max = 47 };

static int cut_length(const char *text) {
    size_t length = strlen(text);
    return (int)(length <= name_bytes_max ? length : bp_utf8_cut(text, length, name_bytes_max));
}

/* "pipe 3 of cat (4711) and 2 more", "socket 4 of 10.0.0.9:5900", "socket 5": who is at the other
 * end, as far as it is known. */
static void find_file(const bp_json_tree *wait, const char *kind, bp_wait_text *ret_wait) {
    const bp_json_tree *holder = bp_json_tree_rows(wait, "other_end");
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const char *end =
        bp_json_tree_text_or(socket, "remote", bp_json_tree_text_or(socket, "local", ""));
    uint64_t fd = bp_json_tree_uint_or(wait, "fd", 0);
    size_t more = 0;
    BP_JSON_EACH (next, holder) {
        more += next != holder ? 1 : 0;
    }
    if (bp_json_tree_uint(holder, "pid", &ret_wait->pid)) {
        end = bp_json_tree_text_or(holder, "name", "?");
    }
    (void)snprintf(ret_wait->text, sizeof ret_wait->text, "%.16s %" PRIu64 "%s%.*s", kind, fd,
                   end[0] != '\0' ? " of " : "", cut_length(end), end);
    if (more > 0 && ret_wait->pid != 0) {
        (void)snprintf(ret_wait->others, sizeof ret_wait->others, " and %zu more", more);
    }
}

void bp_thread_find_wait(const bp_thread *thread, bp_wait_text *ret_wait) {
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const char *kind = bp_json_tree_text_or(wait, "kind", thread->waits_for_kind);
    const bp_json_tree *other = bp_json_tree_object(wait, "holder");
    other = other != NULL ? other : bp_json_tree_object(wait, "child");
    uint64_t fd;
    *ret_wait = (bp_wait_text){.pid = 0};
    if (thread->waits_for_tid != 0) {
        (void)snprintf(ret_wait->text, sizeof ret_wait->text, "%" PRIu64 " (%.32s)",
                       thread->waits_for_tid, kind[0] != '\0' ? kind : "?");
    } else if (bp_json_tree_uint(other, "pid", &ret_wait->pid)) {
        const char *name = bp_json_tree_text_or(other, "name", "?");
        const char *words = strcmp(kind, "file_lock") == 0 ? "file lock" : kind;
        (void)snprintf(ret_wait->text, sizeof ret_wait->text, "%.24s%s %.*s", words,
                       kind[0] == 'c' ? "" : " of", cut_length(name), name);
    } else if (bp_json_tree_uint(wait, "fd", &fd) && kind[0] != '\0') {
        find_file(wait, kind, ret_wait);
    } else if (kind[0] != '\0') {
        (void)snprintf(ret_wait->text, sizeof ret_wait->text, "a %s", kind);
    }
}

void bp_thread_print_wait(const bp_thread *thread, char *out, size_t out_bytes) {
    bp_wait_text wait;
    bp_thread_find_wait(thread, &wait);
    if (wait.pid != 0) {
        (void)snprintf(out, out_bytes, "%s (%" PRIu64 ")%s", wait.text, wait.pid, wait.others);
    } else {
        bp_utf8_copy(out, out_bytes, wait.text);
    }
}

bool bp_evidence_is_recent(const bp_evidence *evidence, uint64_t wall_ns) {
    uint64_t trigger_ns = evidence->triggered_wall_ns;
    return trigger_ns != 0 && wall_ns <= evidence->ended_wall_ns &&
           (wall_ns > trigger_ns || trigger_ns - wall_ns <= BP_EVIDENCE_RECENT_NS);
}

bp_argument bp_evidence_rest(const bp_evidence *evidence) {
    uint64_t rest_ns = evidence->ended_wall_ns - evidence->triggered_wall_ns;
    return BP_SECS((double)rest_ns / BP_NS_PER_MS);
}

bool bp_evidence_is_of_python(const bp_evidence *evidence) {
    const char *path = bp_json_tree_text_or(evidence->process, "executable", "");
    return strncmp(bp_file_base_name(path), "python", strlen("python")) == 0;
}

bool bp_evidence_has_object(const bp_evidence *evidence, const char *text) {
    BP_JSON_EACH (object, bp_json_tree_rows(evidence->process, "loaded_objects")) {
        if (strstr(bp_json_tree_text_or(object, "path", ""), text) != NULL) {
            return true;
        }
    }
    return false;
}

bool bp_evidence_is_own_end(const bp_evidence *evidence, const bp_json_tree *file) {
    const bp_json_tree *end = bp_json_tree_rows(file, "other_end");
    uint64_t pid = bp_json_tree_uint_or(evidence->waits, "pid", 0);
    bool is_own = end != NULL && !bp_json_tree_is_true(file, "other_end_has_more");
    for (; is_own && end != NULL; end = bp_json_tree_next(end)) {
        is_own = bp_json_tree_uint_or(end, "pid", pid + 1) == pid;
    }
    return is_own;
}

const bp_json_tree *bp_evidence_file(const bp_evidence *evidence, uint64_t fd) {
    const bp_rows *files = &evidence->files;
    size_t low = 0, high = files->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t number = bp_json_tree_uint_or(files->rows[middle], "number", 0);
        if (number == fd) {
            return files->rows[middle];
        }
        low = number < fd ? middle + 1 : low;
        high = number < fd ? high : middle;
    }
    return NULL;
}

const bp_json_tree *bp_evidence_polled(const bp_evidence *evidence, const bp_json_tree *polled) {
    uint64_t fd = 0, wanted = 0, inode = 0;
    const bp_json_tree *file =
        bp_json_tree_uint(polled, "fd", &fd) ? bp_evidence_file(evidence, fd) : NULL;
    bool is_same = !bp_json_tree_uint(polled, "inode", &wanted) ||
                   !bp_json_tree_uint(file, "inode", &inode) || inode == wanted;
    return is_same ? file : NULL;
}

bool bp_evidence_has_open(const bp_evidence *evidence, const char *kind) {
    for (size_t i = 0; i < evidence->files.count; i++) {
        if (strcmp(bp_json_tree_text_or(evidence->files.rows[i], "kind", ""), kind) == 0) {
            return true;
        }
    }
    return false;
}

uint64_t bp_limit(const bp_json_tree *process, const char *name, const char *kind) {
    uint64_t count = 0;
    BP_JSON_EACH (limit, bp_json_tree_rows(process, "limits")) {
        if (strcmp(bp_json_tree_text_or(limit, "name", ""), name) == 0) {
            count = bp_json_tree_uint_or(limit, kind, count);
        }
    }
    return count;
}

bool bp_exit_signal(const bp_json_tree *metadata, char out[BP_SIGNAL_BYTES]) {
    const bp_json_tree *end = bp_json_tree_object(metadata, "exit");
    const char *name = bp_json_tree_text(end, "name");
    uint64_t number;
    bp_utf8_copy(out, BP_SIGNAL_BYTES, name);
    if (name == NULL && bp_json_tree_uint(end, "signal", &number)) {
        (void)snprintf(out, BP_SIGNAL_BYTES, "signal %" PRIu64, number);
    }
    return out[0] != '\0';
}

#define NUMBER(name)                                                                               \
    { #name, offsetof(bp_thread, name) }
static const struct {
    const char *key;
    size_t offset;
} thread_numbers[] = {NUMBER(cpu_percent),        NUMBER(cpu_ms),
                      NUMBER(system_ms),          NUMBER(age_ms),
                      NUMBER(voluntary_switches), NUMBER(involuntary_switches),
                      NUMBER(run_delay_ms),       NUMBER(page_faults),
                      NUMBER(read_chars),         NUMBER(written_chars),
                      NUMBER(write_calls)};
#undef NUMBER

/* -1 for what the row, or NULL, does not have. */
static void set_numbers(bp_thread *thread, const bp_json_tree *row) {
    for (size_t i = 0; i < sizeof thread_numbers / sizeof thread_numbers[0]; i++) {
        double value = -1;
        (void)bp_json_tree_number(row, thread_numbers[i].key, &value);
        memcpy((char *)thread + thread_numbers[i].offset, &value, sizeof value);
    }
}

/* NULL where there are too many, or no memory. */
static bp_thread *add_thread(bp_evidence *evidence, uint64_t tid) {
    if (evidence->thread_count == BP_EVIDENCE_THREAD_MAX) {
        return NULL;
    }
    if (!bp_array_reserve(&evidence->threads, evidence->thread_count, &evidence->thread_capacity)) {
        evidence->lacks_memory = true;
        return NULL;
    }
    bp_thread *thread = &evidence->threads[evidence->thread_count++];
    *thread = (bp_thread){.tid = tid};
    set_numbers(thread, NULL);
    return thread;
}

bugpack_status bp_evidence_take_measured(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_evidence *evidence = context;
    uint64_t tid;
    (void)error;
    evidence->measured_count++;
    bp_thread *thread = bp_json_tree_uint(row, "tid", &tid) ? add_thread(evidence, tid) : NULL;
    if (thread != NULL) {
        thread->is_measured = true;
        thread->place = (uint32_t)evidence->thread_count;
        thread->is_born = bp_json_tree_is_true(row, "born_in_window");
        thread->is_own = bp_json_tree_is_true(row, "own");
        set_numbers(thread, row);
        CUT_TO(thread->name, bp_json_tree_text(row, "name"));
    }
    return BUGPACK_OK;
}

static int compare_tids(const void *one, const void *other) {
    const bp_thread *left = one, *right = other;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

bp_thread *bp_evidence_thread(const bp_evidence *evidence, uint64_t tid) {
    const bp_thread key = {.tid = tid};
    return evidence->sorted_count == 0
               ? NULL
               : bsearch(&key, evidence->threads, evidence->sorted_count, sizeof key, compare_tids);
}

static void sort_threads(bp_evidence *evidence) {
    size_t i = 1;
    while (i < evidence->thread_count && evidence->threads[i - 1].tid <= evidence->threads[i].tid) {
        i++;
    }
    if (i < evidence->thread_count) {
        qsort(evidence->threads, evidence->thread_count, sizeof *evidence->threads, compare_tids);
    }
    evidence->sorted_count = evidence->thread_count;
}

/* The percent of a thread that was born in the window is 0 in the entry. Of equal ones the first.
 */
static bool is_busier(const bp_thread *one, const bp_thread *other) {
    bool has_both = one->cpu_ms >= 0 && other->cpu_ms >= 0;
    double value = has_both ? one->cpu_ms : one->cpu_percent;
    double other_value = has_both ? other->cpu_ms : other->cpu_percent;
    return value != other_value ? value > other_value : one->place < other->place;
}

static void rank(bp_evidence *evidence, bp_thread *thread) {
    size_t at = evidence->busiest_count;
    while (at > 0 && is_busier(thread, evidence->busiest[at - 1])) {
        at--;
    }
    if (at < BP_EVIDENCE_BUSIEST_MAX) {
        evidence->busiest_count += evidence->busiest_count < BP_EVIDENCE_BUSIEST_MAX;
        memmove(&evidence->busiest[at + 1], &evidence->busiest[at],
                (evidence->busiest_count - at - 1) * sizeof *evidence->busiest);
        evidence->busiest[at] = thread;
    }
}

void bp_evidence_end_measured(bp_evidence *evidence) {
    (void)bp_json_tree_number(evidence->metrics, "sample_window_ms", &evidence->window_ms);
    sort_threads(evidence);
    for (size_t i = 0; i < evidence->thread_count; i++) {
        bp_thread *thread = &evidence->threads[i];
        if (thread->cpu_percent >= 0 && !thread->is_own) {
            rank(evidence, thread);
        }
    }
    for (size_t i = 0; i < evidence->busiest_count; i++) {
        evidence->busiest[i]->rank = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms > 0; i++) {
        bp_thread *thread = &evidence->threads[i];
        if (thread->is_born && thread->cpu_ms > 0) {
            thread->cpu_percent = thread->cpu_ms / evidence->window_ms * 100;
        }
    }
    if (evidence->metrics == NULL) { /* what a part of it says is of no use */
        evidence->measured_count = evidence->busiest_count = 0;
    }
}

/* Takes a tree over if that leaves so much of the budget; else NULL. */
static bp_json_tree *take_tree(bp_evidence *evidence, bp_json_tree *tree, size_t room) {
    size_t memory_bytes = bp_json_tree_memory(tree);
    if (evidence->left_bytes < room || memory_bytes > evidence->left_bytes - room) {
        return NULL;
    }
    bp_json_tree *taken = bp_json_tree_take(tree);
    evidence->lacks_memory = evidence->lacks_memory || taken == NULL;
    evidence->left_bytes -= memory_bytes;
    return taken;
}

bugpack_status bp_evidence_take_listed(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_evidence *evidence = context;
    const bp_json_tree *wait = bp_json_tree_object(row, "waits_for");
    bp_thread *thread = NULL;
    uint64_t tid;
    (void)error;
    if (bp_json_tree_uint(row, "tid", &tid)) {
        thread = bp_evidence_thread(evidence, tid);
        thread = thread != NULL ? thread : add_thread(evidence, tid);
    }
    if (thread == NULL) {
        return BUGPACK_OK;
    }
    thread->is_listed = true;
    if (thread->name[0] == '\0') {
        CUT_TO(thread->name, bp_json_tree_text(row, "name"));
    }
    CUT_TO(thread->state, bp_json_tree_text(row, "state"));
    CUT_TO(thread->syscall, bp_json_tree_text(bp_json_tree_object(row, "syscall"), "name"));
    CUT_TO(thread->waits_for_kind, bp_json_tree_text(wait, "kind"));
    thread->waits_for_tid = bp_json_tree_uint_or(wait, "tid", thread->waits_for_tid);
    bool is_wanted =
        strcmp(thread->state, "uninterruptible sleep") == 0 ||
        bp_json_tree_array(wait, "chain") != NULL || bp_json_tree_is_true(wait, "owner_ended") ||
        strcmp(thread->syscall, "connect") == 0 || bp_json_tree_array(wait, "other_end") != NULL;
    size_t room = is_wanted ? room_wanted : room_any;
    if (thread->row == NULL) {
        thread->row = take_tree(evidence, row, thread->rank > 0 ? room_busiest : room);
    }
    return BUGPACK_OK;
}

void bp_evidence_end_listed(bp_evidence *evidence) {
    sort_threads(evidence);
    for (size_t i = 0; i < evidence->thread_count; i++) {
        bp_thread *thread = &evidence->threads[i];
        bp_thread *holder =
            thread->waits_for_tid != 0 ? bp_evidence_thread(evidence, thread->waits_for_tid) : NULL;
        if (thread->rank > 0) { /* it may have moved */
            evidence->busiest[thread->rank - 1] = thread;
        }
        if (holder != NULL) {
            holder->is_waited_for = true;
        }
    }
}

bugpack_status bp_evidence_take_stack(void *context, bp_json_tree *stack, bugpack_error *error) {
    bp_evidence *evidence = context;
    uint64_t tid;
    (void)error;
    if (!bp_json_tree_uint(stack, "tid", &tid)) {
        return BUGPACK_OK;
    }
    if (evidence->stack_count < BP_EVIDENCE_STACK_MAX) {
        evidence->stacks[evidence->stack_count++] = tid;
    }
    bp_thread *thread = bp_evidence_thread(evidence, tid);
    if (thread != NULL && thread->stack == NULL) {
        size_t room = thread->is_waited_for ? room_wanted : room_any;
        thread->stack = take_tree(evidence, stack, thread->rank > 0 ? room_busiest : room);
    }
    return BUGPACK_OK;
}

/* --- lists and documents ------------------------------------------------------------------ */

static bugpack_status add_row(bp_evidence *evidence, bp_rows *rows, bp_json_tree *row,
                              size_t room) {
    bp_json_tree *taken = take_tree(evidence, row, room);
    rows->total_count++;
    if (taken != NULL && bp_array_reserve(&rows->rows, rows->count, &rows->capacity)) {
        rows->rows[rows->count++] = taken;
    } else if (taken != NULL) {
        bp_json_tree_free(taken);
        evidence->lacks_memory = true;
    }
    return BUGPACK_OK;
}

bugpack_status bp_evidence_take_deadlock(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_evidence *evidence = context;
    (void)error;
    return add_row(evidence, &evidence->deadlocks, row, room_deadlocks);
}

bugpack_status bp_evidence_take_file(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_evidence *evidence = context;
    (void)error;
    return add_row(evidence, &evidence->files, row, room_files);
}

static void release_rows(bp_rows *rows) {
    for (size_t i = 0; i < rows->count; i++) {
        bp_json_tree_free(rows->rows[i]);
    }
    free(rows->rows);
    *rows = (bp_rows){.count = 0};
}

/* --- the end of a process ----------------------------------------------------------------- */

/* The text behind an escape sequence of a terminal (ECMA-48), as of colours. */
static const char *pass_escape(const char *at) {
    bool has_parameters = *at == '[';
    at += *at != '\0';
    while (has_parameters && *at >= 0x20 && *at < 0x40) {
        at++;
    }
    return has_parameters && *at != '\0' ? at + 1 : at;
}

/* U+2500 to U+257F, of which boxes are drawn. */
static bool is_edge(const char *at) {
    return at[0] == '\xe2' && (at[1] == '\x94' || at[1] == '\x95') && at[2] != '\0';
}

/* As it is read on a terminal: what a progress bar wrote over is gone, and a box has no edges. */
static const char *as_on_terminal(char *line) {
    char *to = line;
    for (const char *from = line; *from != '\0';) {
        if (*from == '\x1b') {
            from = pass_escape(from + 1);
        } else if (*from == '\r') {
            to = from[strspn(from, " \t\r")] != '\0' ? line : to;
            from++;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    const char *text = line + strspn(line, " ");
    const char *edge = text;
    while (is_edge(edge)) {
        edge += 3;
    }
    while (to - edge >= 3 && (to[-1] == ' ' || is_edge(to - 3))) {
        to -= to[-1] == ' ' ? 1 : 3;
        *to = '\0';
    }
    return edge > text ? edge + (*edge == ' ') : line;
}

/* Standard output alone says little of a failure: it is the output while there is nothing else, and
 * then kept beside it. */
void bp_evidence_output(bp_evidence *evidence, const char *channel, char *text) {
    bool is_stdout = strcmp(channel, "stdout") == 0;
    bool is_error = strcmp(channel, "stderr") == 0 || strcmp(channel, "terminal") == 0 ||
                    strcmp(channel, "output") == 0;
    const char *line = as_on_terminal(text);
    if ((!is_error && !is_stdout) || line[strspn(line, " \t\r")] == '\0') {
        return;
    }
    if (evidence->is_output_stdout && !is_stdout) {
        free(evidence->results);
        evidence->results = evidence->output;
        evidence->result_count = evidence->output_count;
        evidence->output = NULL;
        evidence->output_count = 0;
    }
    evidence->is_output_stdout =
        is_stdout && (evidence->is_output_stdout || evidence->output_count == 0);
    bool is_result = is_stdout && !evidence->is_output_stdout;
    char(**ring)[BP_EVIDENCE_LINE_BYTES] = is_result ? &evidence->results : &evidence->output;
    uint64_t *count = is_result ? &evidence->result_count : &evidence->output_count;
    if (*ring == NULL) {
        *ring = calloc(BP_EVIDENCE_LINE_MAX, sizeof **ring);
    }
    if (*ring == NULL) {
        evidence->lacks_memory = true;
        return;
    }
    bp_utf8_copy((*ring)[(*count)++ % BP_EVIDENCE_LINE_MAX], sizeof **ring, line);
}

void bp_evidence_release(bp_evidence *evidence) {
    bp_json_tree *const documents[] = {
        evidence->metrics, evidence->process,     evidence->waits,      evidence->files_rest,
        evidence->heap,    evidence->thread_heap, evidence->disconnect, evidence->hang,
        evidence->crash,   evidence->system};
    for (size_t i = 0; i < evidence->thread_count; i++) {
        bp_json_tree_free(evidence->threads[i].row);
        bp_json_tree_free(evidence->threads[i].stack);
    }
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        bp_json_tree_free(documents[i]);
    }
    release_rows(&evidence->deadlocks);
    release_rows(&evidence->files);
    free(evidence->threads);
    free(evidence->output);
    free(evidence->results);
    *evidence = (bp_evidence){.thread_count = 0};
}
