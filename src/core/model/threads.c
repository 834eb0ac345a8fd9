#include "model/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/fields.h"

enum { sentence_max_bytes = 4096 };

void bp_process_threads_release(bp_process_threads *process) {
    for (size_t i = 0; i < process->thread_count; i++) {
        bp_thread_reading_release(&process->threads[i].read);
        free(process->threads[i].process_wait);
        free(process->threads[i].path);
    }
    free(process->threads);
    bp_open_files_release(&process->files);
    *process = (bp_process_threads){0};
}

/* --- deadlocks ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *plural, *waits;
} lock_kinds[] = {[BP_FUTEX_KIND_MUTEX] = {"mutex", "mutexes", "waits for a mutex of "},
                  [BP_FUTEX_KIND_RWLOCK] = {"rwlock", "rwlocks", "waits for an rwlock of "},
                  [BP_FUTEX_KIND_THREAD] = {"thread", NULL, "waits for the end of "},
                  [BP_FUTEX_KIND_MONITOR] = {"monitor", "monitors", "waits for a monitor of "}};

/* A sentence names so many threads of a larger deadlock. */
enum { named_max = 8 };

/* Whom it waits for without an end; SIZE_MAX for nobody. */
static size_t next_of(const bp_process_threads *process, size_t index) {
    const bp_thread_state *thread = &process->threads[index];
    return thread->is_waiting && !thread->wait.is_timed ? thread->waits_for : SIZE_MAX;
}

/*
 * Each thread waits for one other at most. So a walk that comes back to its own beginning is a
 * circle, and each other walk ends at a thread that waits for nobody or that was seen: each thread
 * is walked over twice at most.
 */
size_t bp_deadlock_next(const bp_process_threads *process, unsigned char *is_seen) {
    enum { SEEN = 1, ON_WALK = 2 };
    for (size_t begin = 0; begin < process->thread_count; begin++) {
        size_t at = begin;
        while (at != SIZE_MAX && is_seen[at] == 0) {
            is_seen[at] = ON_WALK;
            at = next_of(process, at);
        }
        bool is_circle = at != SIZE_MAX && is_seen[at] == ON_WALK;
        for (size_t i = begin; i != SIZE_MAX && is_seen[i] == ON_WALK; i = next_of(process, i)) {
            is_seen[i] = SEEN;
        }
        if (is_circle) {
            size_t lowest = at;
            for (size_t i = next_of(process, at); i != at; i = next_of(process, i)) {
                lowest = i < lowest ? i : lowest;
            }
            return lowest;
        }
    }
    return SIZE_MAX;
}

size_t bp_deadlock_length(const bp_process_threads *process, size_t first) {
    size_t length = 1;
    for (size_t i = next_of(process, first); i != first; i = next_of(process, i)) {
        length++;
    }
    return length;
}

static void append_name(const bp_thread_state *thread, bp_buffer *out) {
    const char *name = thread->read.stat.name;
    (void)bp_buffer_append(out, name, strnlen(name, sizeof thread->read.stat.name));
    (void)bp_buffer_printf(out, "%s(%" PRIu64 ")", name[0] != '\0' ? " " : "", thread->read.tid);
}

static void append_pair(const bp_thread_state *one, const bp_thread_state *other, bp_buffer *out) {
    append_name(one, out);
    (void)bp_buffer_append_text(out, " and ");
    append_name(other, out);
    (void)bp_buffer_printf(out, " wait for each other's %s", lock_kinds[one->wait.kind].plural);
}

static void append_circle(const bp_process_threads *process, size_t first, size_t length,
                          bp_buffer *out) {
    append_name(&process->threads[first], out);
    for (size_t i = first, named = 0; named < length && named < named_max; named++) {
        (void)bp_buffer_printf(out, "%s%s", named > 0 ? ", which " : " ",
                               lock_kinds[process->threads[i].wait.kind].waits);
        i = process->threads[i].waits_for;
        append_name(&process->threads[i], out);
    }
    if (length > named_max) {
        (void)bp_buffer_printf(out, ", and so on: %zu threads wait in a circle", length);
    }
}

bugpack_status bp_deadlock_describe(const bp_process_threads *process, size_t first,
                                    bp_buffer *out) {
    const bp_thread_state *one = &process->threads[first];
    const bp_thread_state *other = &process->threads[one->waits_for];
    size_t length = bp_deadlock_length(process, first);
    if (length == 1) {
        append_name(one, out);
        (void)bp_buffer_printf(out, " waits for %s that it holds itself",
                               one->wait.kind == BP_FUTEX_KIND_MUTEX ? "a mutex" : "an rwlock");
    } else if (length == 2 && one->wait.kind == other->wait.kind &&
               one->wait.kind != BP_FUTEX_KIND_THREAD) {
        append_pair(one, other, out);
    } else {
        append_circle(process, first, length, out);
    }
    return out->status;
}

/* --- the document ---------------------------------------------------------------------------- */

static void add_state(char letter, bp_json *json) {
    const char *word = bp_model_state_word(letter);
    bp_json_add_bytes(json, "state", word != NULL ? word : &letter,
                      word != NULL ? strlen(word) : 1);
}

static void add_totals(const bp_thread_reading *read, bp_json *json) {
    bp_json_object_begin(json, "since_start");
    if (read->stat.state != 0) {
        bp_model_add_ms(json, "user_ms", read->counters[BP_COUNTER_USER_CPU]);
        bp_model_add_ms(json, "system_ms", read->counters[BP_COUNTER_SYSTEM_CPU]);
    }
    bp_model_add_switches(json, bp_thread_has(read, BP_GROUP_STATUS),
                          read->counters[BP_COUNTER_VOLUNTARY_SWITCHES],
                          read->counters[BP_COUNTER_INVOLUNTARY_SWITCHES]);
    bp_json_object_end(json);
}

static void add_syscall(const bp_thread_state *thread, bp_syscall_arch arch, bp_json *json) {
    const bp_thread_syscall *syscall = &thread->read.syscall;
    bp_json_object_begin(json, "syscall");
    bp_json_add_text(json, "name", bp_syscall_name(arch, syscall->number));
    bp_json_add_uint(json, "number", syscall->number);
    bp_json_array_begin(json, "arguments");
    for (size_t i = 0; i < BP_SYSCALL_ARGUMENT_COUNT; i++) {
        bp_model_add_hex(json, NULL, syscall->arguments[i]);
    }
    bp_json_array_end(json);
    bp_model_add_flag(json, "own_futex", thread->is_futex_own);
    bp_model_add_known_uint(json, "rwlock_readers", thread->reader_count > 0, thread->reader_count);
    bp_model_add_flag(json, "shared_futex", thread->is_futex_shared);
    bp_model_add_known_text(json, "semaphore", thread->semaphore_name);
    if (thread->path != NULL) {
        bp_model_add_name(json, "path", thread->path, strlen(thread->path));
    }
    bp_json_object_end(json);
}

/* "[<0>] futex_wait_queue+0x62/0x90" on each line. */
static void add_kernel_stack(const char *stack, bp_json *json) {
    bp_json_array_begin(json, "kernel_stack");
    while (*stack != '\0') {
        size_t length = strcspn(stack, "\n");
        const char *blank = memchr(stack, ' ', length);
        const char *frame = stack[0] == '[' && blank != NULL ? blank + 1 : stack;
        bp_json_add_bytes(json, NULL, frame, length - (size_t)(frame - stack));
        stack += length + (stack[length] == '\n');
    }
    bp_json_array_end(json);
}

/* `tid` is the owner's, which may have ended. */
static void add_lock_wait(const bp_thread_state *thread, uint64_t tid, bp_json *json) {
    bp_json_object_begin(json, "waits_for");
    bp_json_add_uint(json, "tid", tid);
    bp_json_add_text(json, "kind", lock_kinds[thread->wait.kind].name);
    bp_model_add_hex(json, "address", thread->wait.address);
    bp_json_add_bool(json, "timed", thread->wait.is_timed);
    bp_model_add_flag(json, "owner_ended", !thread->is_waiting);
    bp_json_object_end(json);
}

/* A peer is one of several kinds of files, which a link of a chain does not tell. The second is who
 * it waits for. */
static const struct {
    const char *name, *other;
} wait_kinds[] = {[BP_WAIT_FOR_PEER] = {NULL, NULL},
                  [BP_WAIT_FOR_FILE_LOCK] = {"file_lock", "holder"},
                  [BP_WAIT_FOR_MUTEX] = {"mutex", "process"},
                  [BP_WAIT_FOR_CHILD] = {"child", "child"},
                  [BP_WAIT_FOR_FILESYSTEM] = {"filesystem", "holder"},
                  [BP_WAIT_FOR_SEMAPHORE] = {"semaphore", "holder"},
                  [BP_WAIT_FOR_DATABASE_LOCK] = {"database_lock", NULL}};

/* `key` NULL: as an element of a list. */
static void add_link(const char *key, const bp_wait_link *link, bool with_wait, bp_json *json) {
    bp_json_object_begin(json, key);
    bp_json_add_uint(json, "pid", link->pid);
    bp_model_add_name(json, "name", link->name, sizeof link->name);
    if (link->state != 0) {
        add_state(link->state, json);
    }
    if (with_wait && link->waits_for[0] != '\0') {
        bp_json_add_text(json, "kind", wait_kinds[link->kind].name);
        bp_model_add_name(json, "waits_for", link->waits_for, sizeof link->waits_for);
    }
    bp_json_object_end(json);
}

static void add_chain(const bp_process_wait *wait, bp_json *json) {
    bp_json_array_begin(json, "chain");
    for (size_t i = 0; i < wait->link_count; i++) {
        add_link(NULL, &wait->links[i], true, json);
    }
    bp_json_array_end(json);
}

static void add_process_wait(const bp_thread_state *thread, bp_json *json) {
    const bp_process_wait *wait = thread->process_wait;
    bp_json_object_begin(json, "waits_for");
    bp_json_add_text(json, "kind", wait_kinds[wait->kind].name);
    if (wait->kind == BP_WAIT_FOR_FILE_LOCK) {
        if (wait->lock != BP_FILE_LOCK_LEASE) {
            bp_json_add_uint(json, "fd", wait->fd);
            bp_model_add_name(json, "path", wait->path, sizeof wait->path);
        }
        bp_json_add_text(json, "lock", bp_file_lock_kind_name(wait->lock));
    } else if (wait->kind == BP_WAIT_FOR_MUTEX) {
        bp_json_add_uint(json, "tid", thread->wait.tid);
        bp_model_add_hex(json, "address", thread->wait.address);
        bp_json_add_bool(json, "timed", thread->wait.is_timed);
    } else if (wait->kind == BP_WAIT_FOR_FILESYSTEM) {
        bp_model_add_name(json, "path", wait->path, sizeof wait->path);
        bp_model_add_name(json, "type", wait->type, sizeof wait->type);
        bp_model_add_name(json, "source", wait->source, sizeof wait->source);
    } else if (wait->kind == BP_WAIT_FOR_SEMAPHORE) {
        bp_json_add_uint(json, "set", wait->set);
        bp_json_add_uint(json, "number", wait->fd);
        bp_model_add_flag(json, "holder_ended", wait->has_holder_ended);
    }
    if (wait->link_count > 0) {
        add_link(wait_kinds[wait->kind].other, &wait->links[0], false, json);
        add_chain(wait, json);
    }
    bp_json_object_end(json);
}

static void add_file_wait(const bp_thread_state *thread, bp_json *json) {
    bp_json_object_begin(json, "waits_for");
    bp_json_add_text(json, "kind", bp_open_file_kind_name(thread->file->kind));
    bp_json_add_uint(json, "fd", thread->file->number);
    if (thread->fd_wait.has_limit) {
        bp_json_add_bool(json, "timed", thread->fd_wait.is_timed);
    }
    bp_open_file_add_ends(thread->file, json);
    if (thread->process_wait != NULL) {
        add_chain(thread->process_wait, json);
    }
    bp_json_object_end(json);
}

static void add_polled(const bp_fd_wait *wait, bp_json *json) {
    bp_json_array_begin(json, "polled");
    for (size_t i = 0; i < wait->count; i++) {
        bp_json_object_begin(json, NULL);
        bp_json_add_uint(json, "fd", wait->fds[i]);
        bp_model_add_known_uint(json, "inode", wait->inodes[i] != 0, wait->inodes[i]);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_thread(const bp_process_threads *process, const bp_thread_state *thread,
                       bp_json *json) {
    const bp_thread_reading *read = &thread->read;
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "tid", read->tid);
    bp_model_add_name(json, "name", read->stat.name, sizeof read->stat.name);
    if (read->stat.state != 0) {
        add_state(read->stat.state, json);
    }
    if (read->stat.has_scheduling) {
        bp_json_object_begin(json, "scheduling");
        bp_model_add_scheduling(json, &read->stat);
        bp_json_object_end(json);
    }
    if (read->stat.state != 0 || bp_thread_has(read, BP_GROUP_STATUS)) {
        add_totals(read, json);
    }
    bp_model_add_known_text(json, "wait_channel", read->wait_channel);
    if (bp_thread_has(read, BP_GROUP_SYSCALL) && read->syscall.place == BP_THREAD_IN_CALL) {
        add_syscall(thread, process->arch, json);
    }
    if (read->kernel_stack != NULL) {
        add_kernel_stack(read->kernel_stack, json);
    }
    if (thread->does_poll) {
        add_polled(&thread->fd_wait, json);
    }
    bp_model_add_flag(json, "descriptor_closed", thread->is_fd_closed);
    if (thread->is_waiting) {
        add_lock_wait(thread, process->threads[thread->waits_for].read.tid, json);
    } else if (thread->file != NULL) {
        add_file_wait(thread, json);
    } else if (thread->process_wait != NULL) {
        add_process_wait(thread, json);
    } else if (thread->other_owner == BP_FUTEX_OWNER_ENDED) {
        add_lock_wait(thread, thread->wait.tid, json);
    }
    bp_json_object_end(json);
}

static void add_deadlock(const bp_process_threads *process, size_t first, bp_json *json) {
    bp_buffer sentence;
    bp_buffer_init(&sentence, sentence_max_bytes);
    if (bp_deadlock_describe(process, first, &sentence) != BUGPACK_OK) {
        bp_json_fail_memory(json);
    }
    bp_json_object_begin(json, NULL);
    bp_json_add_bytes(json, "description", sentence.data, sentence.size);
    bp_json_array_begin(json, "tids");
    size_t length = bp_deadlock_length(process, first);
    for (size_t i = first; length > 0; length--, i = process->threads[i].waits_for) {
        bp_json_add_uint(json, NULL, process->threads[i].read.tid);
    }
    bp_json_array_end(json);
    bp_json_object_end(json);
    bp_buffer_release(&sentence);
}

/* Signals that run a handler of the process: a name, or the number of one without. */
static void add_handlers(const bp_process_threads *process, bp_json *json) {
    bp_json_array_begin(json, "signal_handlers");
    for (unsigned i = 0; i < 64; i++) {
        char number[8];
        const char *name = bp_model_signal_name((int)i + 1);
        (void)snprintf(number, sizeof number, "%u", i + 1);
        if ((process->caught_signals & ~process->blocked_signals) >> i & 1) {
            bp_json_add_text(json, NULL, name != NULL ? name : number);
        }
    }
    bp_json_array_end(json);
}

static void add_process(const void *item, bp_json *json) {
    const bp_process_threads *process = item;
    unsigned char *is_seen = calloc(process->thread_count + 1, sizeof *is_seen);
    bp_json_add_uint(json, "pid", process->pid);
    bp_model_add_name(json, "name", process->name, sizeof process->name);
    bp_json_add_uint(json, "vanished_threads", process->vanished_count);
    if (process->tracer.pid != 0) {
        add_link("traced_by", &process->tracer, false, json);
    }
    if (process->has_signals) {
        add_handlers(process, json);
    }
    bp_json_array_begin(json, "deadlocks");
    size_t first = is_seen == NULL ? SIZE_MAX : bp_deadlock_next(process, is_seen);
    for (; first != SIZE_MAX; first = bp_deadlock_next(process, is_seen)) {
        add_deadlock(process, first, json);
    }
    bp_json_array_end(json);
    bp_json_array_begin(json, "threads");
    for (size_t i = 0; i < process->thread_count; i++) {
        add_thread(process, &process->threads[i], json);
    }
    bp_json_array_end(json);
    if (is_seen == NULL) {
        bp_json_fail_memory(json);
    }
    free(is_seen);
}

bugpack_status bp_threads_print(const bp_process_threads *processes, size_t count,
                                const bp_fd_search *search, bp_buffer *out, bugpack_error *error) {
    return bp_model_print_tree(processes, sizeof *processes, count, add_process, bp_fd_search_add,
                               search, out, error);
}
