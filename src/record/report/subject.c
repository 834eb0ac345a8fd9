#include "report/subject.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "heap/thread_heap.h"
#include "model/entry.h"
#include "model/process.h"
#include "platform/process_facts.h"
#include "platform/thread.h"

static const size_t facts_limit_bytes = (size_t)16 << 20;

/* The facts of another process are read again after this time, then after twice as long, and so
 * on: a program loads what it needs at its start. */
static const uint64_t first_refresh_ns = BP_NS_PER_SEC;
static const uint64_t longest_refresh_ns = 60 * BP_NS_PER_SEC;

static const uint64_t first_follow_ns = 2 * BP_NS_PER_MS;

/* A reading takes a few milliseconds where every file answers. */
static const uint64_t longest_end_ns = 200 * BP_NS_PER_MS;

/* One without a sampler. NULL without memory. */
static bp_subject *new_subject(void) {
    bp_subject *subject = calloc(1, sizeof *subject);
    if (subject == NULL) {
        return NULL;
    }
    bp_lock_init(&subject->reading, BP_LOCK_FACTS);
    bp_lock_init(&subject->lock, BP_LOCK_SUBJECT);
    atomic_init(&subject->reference_count, 1);
    atomic_init(&subject->next, NULL);
    atomic_init(&subject->is_refreshing, false);
    bp_buffer_init(&subject->facts.text, facts_limit_bytes);
    subject->follow_interval_ns = first_follow_ns;
    subject->interval_ns = first_refresh_ns;
    subject->due_ns = bp_clock_monotonic_ns() + first_refresh_ns;
    return subject;
}

/* `pid`: as it was asked for, 0 for our own process. */
static void name_target(bp_subject *subject, pid_t pid) {
    const bp_task *task = bp_sampler_task(subject->sampler);
    subject->target.pid = pid;
    bp_task_name(task, subject->target.name, sizeof subject->target.name);
}

bugpack_status bp_subject_open(const bp_config *config, bp_subject **ret_subject,
                               bugpack_error *error) {
    bp_subject *subject = new_subject();
    if (subject == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    subject->has_descendants = config->with_descendants;
    bugpack_status status;
    if (config->without_process) {
        status = bp_fail(&subject->sampler_error, BUGPACK_ERR_UNSUPPORTED,
                         "the session is not about a process");
    } else {
        status = bp_sampler_open(config->target_pid, config->with_descendants, &subject->sampler,
                                 &subject->sampler_error);
    }
    if (status != BUGPACK_OK && config->target_pid != 0) {
        if (error != NULL) {
            *error = subject->sampler_error;
        }
        bp_subject_drop(subject);
        return status;
    }
    if (subject->sampler != NULL) {
        name_target(subject, config->target_pid);
    }
    *ret_subject = subject;
    return BUGPACK_OK;
}

/* Under the lock of the first. */
static bugpack_status append(bp_subject *first, bp_subject *added, bugpack_error *error) {
    bp_subject *last = first;
    size_t count = 1;
    for (bp_subject *one = first; one != NULL; one = bp_subject_next(one)) {
        if (one->target.pid == added->target.pid) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "process %d is in the report already",
                           (int)added->target.pid);
        }
        last = one;
        count++;
    }
    if (count > BP_SUBJECT_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "a report is about at most %d processes",
                       BP_SUBJECT_MAX);
    }
    atomic_store_explicit(&last->next, added, memory_order_release);
    return BUGPACK_OK;
}

bugpack_status bp_subject_add(bp_subject *first, pid_t pid, bp_subject **ret_subject,
                              bugpack_error *error) {
    if (pid <= 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "%d is no process id", (int)pid);
    }
    bp_subject *added = new_subject();
    if (added == NULL) {
        return bp_fail_memory(error, "add a process");
    }
    added->is_further = true;
    bugpack_status status = bp_sampler_open(pid, false, &added->sampler, error);
    if (status == BUGPACK_OK) {
        name_target(added, bp_task_pid(bp_sampler_task(added->sampler)));
        bp_lock_acquire(&first->lock);
        status = append(first, added, error);
        bp_lock_release(&first->lock);
    }
    if (status != BUGPACK_OK) {
        bp_subject_drop(added);
        return status;
    }
    *ret_subject = added;
    return BUGPACK_OK;
}

bp_subject *bp_subject_next(const bp_subject *subject) {
    return atomic_load_explicit(&subject->next, memory_order_acquire);
}

const char *bp_subject_entry(const bp_subject *subject, const char *entry,
                             char out[BP_SUBJECT_NAME_BYTES]) {
    if (!subject->is_further) {
        return entry;
    }
    int length = snprintf(out, BP_SUBJECT_NAME_BYTES, BP_ENTRY_PROCESSES "%d-%.64s",
                          (int)subject->target.pid, subject->target.name);
    for (char *at = out + strlen(BP_ENTRY_PROCESSES); *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    (void)snprintf(out + length, BP_SUBJECT_NAME_BYTES - (size_t)length, "/%s", entry);
    return out;
}

bp_subject *bp_subject_retain(bp_subject *subject) {
    atomic_fetch_add_explicit(&subject->reference_count, 1, memory_order_relaxed);
    return subject;
}

void bp_subject_drop(bp_subject *subject) {
    if (subject == NULL ||
        atomic_fetch_sub_explicit(&subject->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bp_subject_drop(bp_subject_next(subject));
    bp_sampler_close(subject->sampler);
    bp_buffer_release(&subject->facts.text);
    free(subject->noted);
    bp_lock_destroy(&subject->lock);
    bp_lock_destroy(&subject->reading);
    free(subject);
}

uint64_t bp_subject_uptime(const bp_subject *subject) {
    uint64_t uptime_ns = 0;
    return subject->sampler != NULL && bp_task_uptime(bp_sampler_task(subject->sampler), &uptime_ns)
               ? uptime_ns
               : 0;
}

/* The processes that the threads of a snapshot belong to: the first thread has the id of its
 * process. NULL without memory. */
static bp_subject_process *list_processes(const bp_task_snapshot *snapshot, size_t *ret_count) {
    bp_subject_process *processes = calloc(snapshot->thread_count + 1, sizeof *processes);
    *ret_count = 0;
    for (size_t i = 0; processes != NULL && i < snapshot->thread_count; i++) {
        const bp_thread_counters *thread = &snapshot->threads[i];
        if (thread->pid > 0 && thread->tid == (uint64_t)thread->pid) {
            processes[(*ret_count)++] = (bp_subject_process){thread->pid, thread->birth};
        }
    }
    return processes;
}

void bp_subject_note(bp_subject *subject, const bp_task_snapshot *snapshot) {
    size_t count;
    if (!subject->has_descendants || !bp_lock_try_acquire(&subject->lock)) {
        return;
    }
    bp_subject_process *processes = list_processes(snapshot, &count);
    if (processes != NULL) {
        free(subject->noted);
        subject->noted = processes;
        subject->noted_count = count;
    }
    bp_lock_release(&subject->lock);
}

/* Adds those that were noted and are not listed, after the target and those that are. */
static bp_subject_process *add_noted(const bp_subject *subject, const bp_subject_process *now,
                                     size_t now_count, size_t *ret_count) {
    bp_subject_process *all = calloc(now_count + subject->noted_count + 1, sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    const struct {
        const bp_subject_process *processes;
        size_t count;
    } lists[] = {{now, now_count}, {subject->noted, subject->noted_count}};
    size_t count = 0;
    all[count++].pid = subject->target.pid;
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++) {
        for (size_t i = 0; i < lists[list].count; i++) {
            size_t at = 0;
            while (at < count && all[at].pid != lists[list].processes[i].pid) {
                at++;
            }
            if (at == count) {
                all[count++] = lists[list].processes[i];
            }
        }
    }
    *ret_count = count;
    return all;
}

bugpack_status bp_subject_list(bp_subject *subject, bp_subject_process **ret_processes,
                               size_t *ret_count, bugpack_error *error) {
    bp_task *tree = NULL;
    bp_task_snapshot snapshot = {0};
    if (subject->has_descendants && subject->target.pid != 0 &&
        bp_task_open(subject->target.pid, true, &tree, NULL) == BUGPACK_OK) {
        (void)bp_task_snapshot_take(tree, false, &snapshot, NULL); /* it may have ended */
    }
    bp_task_close(tree);
    size_t count = 0;
    bp_subject_process *all = NULL;
    bp_subject_process *now = list_processes(&snapshot, &count);
    if (now != NULL) {
        bp_lock_acquire(&subject->lock);
        all = add_noted(subject, now, count, ret_count);
        bp_lock_release(&subject->lock);
    }
    free(now);
    bp_task_snapshot_release(&snapshot);
    if (all == NULL) {
        return bp_fail_memory(error, "list the processes of a report");
    }
    *ret_processes = all;
    return BUGPACK_OK;
}

bp_sampler *bp_subject_sampler(const bp_subject *subject, bugpack_error *error) {
    if (subject->sampler == NULL && error != NULL) {
        *error = subject->sampler_error;
    }
    return subject->sampler;
}

void bp_subject_forget_samples(bp_subject *subject) {
    for (; subject != NULL; subject = bp_subject_next(subject)) {
        if (subject->sampler != NULL) {
            bp_sampler_forget(subject->sampler);
        }
    }
}

/* 0: not known, as of our own process, or of a zombie. */
static uint64_t image_now(const bp_subject *subject) {
    bp_task_program program = {.image = 0};
    if (subject->target.pid != 0 && subject->sampler != NULL) {
        (void)bp_task_program_now(bp_sampler_task(subject->sampler), &program);
    }
    return program.image;
}

void bp_subject_begin(bp_subject *subject) {
    atomic_store(&subject->image, image_now(subject));
}

bugpack_status bp_subject_check_program(const bp_subject *subject, bugpack_error *error) {
    uint64_t was = atomic_load(&subject->image), is = image_now(subject);
    return was != 0 && is != 0 && is != was
               ? bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d began another program",
                         (int)subject->target.pid)
               : BUGPACK_OK;
}

bugpack_status bp_subject_check(const bp_subject *subject, bugpack_error *error) {
    bp_task *again = NULL;
    bugpack_status status = subject->sampler == NULL
                                ? BUGPACK_OK
                                : bp_task_clone(bp_sampler_task(subject->sampler), &again, error);
    bp_task_close(again);
    return status == BUGPACK_OK ? bp_subject_check_program(subject, error) : status;
}

/* Reads the facts again; those of before stay on a failure. It may take for ever: files that the
 * process runs are opened, and their server may be gone. */
static bugpack_status refresh(bp_subject *subject, bugpack_error *error) {
    bp_known_facts fresh = {.wall_ns = 0};
    bp_process_facts facts;
    bp_task *task = bp_sampler_task(subject->sampler);
    bp_buffer_init(&fresh.text, facts_limit_bytes);
    bp_lock_acquire(&subject->reading);
    (void)bp_task_program_now(task, &fresh.program);
    fresh.wall_ns = bp_clock_wall_ns();
    bugpack_status status = bp_process_facts_read(task, &facts, error);
    if (status == BUGPACK_OK) {
        (void)snprintf(fresh.denied, sizeof fresh.denied, "%s%s", facts.denied,
                       facts.is_refused ? "; " BP_ADVICE_DENIED : "");
        status = bp_process_print(&facts, &fresh.text, error);
        bp_process_facts_release(&facts);
    }
    if (status == BUGPACK_OK) {
        bp_lock_acquire(&subject->lock);
        bp_known_facts old = subject->facts;
        subject->facts = fresh;
        fresh = old;
        subject->followed = subject->facts.program;
        subject->follow_interval_ns = first_follow_ns;
        subject->follow_due_ns = bp_clock_monotonic_ns() + first_follow_ns;
        bp_lock_release(&subject->lock);
    }
    bp_lock_release(&subject->reading);
    bp_buffer_release(&fresh.text);
    return status;
}

static void *refresh_alone(void *argument) {
    bp_subject *subject = argument;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_thread_set_name("bugpack-facts");
    (void)refresh(subject, &error); /* a failure leaves what is known */
    atomic_store(&subject->is_refreshing, false);
    bp_subject_drop(subject);
    return NULL;
}

/* On a thread of its own, unless the last one is still at it. */
static void begin_refresh(bp_subject *subject) {
    pthread_t thread;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (atomic_exchange(&subject->is_refreshing, true)) {
        return;
    }
    if (bp_thread_start(refresh_alone, bp_subject_retain(subject), &thread, &error) == BUGPACK_OK) {
        (void)pthread_detach(thread);
    } else {
        atomic_store(&subject->is_refreshing, false);
        bp_subject_drop(subject);
    }
}

bool bp_subject_end_refresh(const bp_subject *subject) {
    uint64_t until_ns = bp_clock_monotonic_ns() + longest_end_ns;
    while (subject != NULL && atomic_load(&subject->is_refreshing)) {
        if (bp_clock_monotonic_ns() >= until_ns) {
            return false;
        }
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    return true;
}

/* `ended` is NULL where the facts were read just now. */
static bugpack_status write_facts(const bp_subject *subject, const bugpack_error *ended,
                                  bugpack_writer *writer) {
    const char *denied = subject->facts.denied;
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(subject->facts.wall_ns, time);
    if (ended != NULL) {
        const bp_task_program *was = &subject->facts.program;
        bp_task_program is;
        char before[128] = "";
        /* A zombie has no image any more. */
        if (was->name[0] != '\0' && bp_task_program_now(bp_sampler_task(subject->sampler), &is) &&
            strcmp(is.name, was->name) != 0) {
            (void)snprintf(before, sizeof before, ", before it became \"%.63s\"", is.name);
        }
        bp_writer_truncate(writer, true, "%s; this is how it was at %s%s%s%s", ended->message, time,
                           before, denied[0] != '\0' ? ", without " : "", denied);
    } else if (denied[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", denied);
    }
    return bp_buffer_append(&writer->content, subject->facts.text.data, subject->facts.text.size);
}

bugpack_status bp_subject_write_facts(bp_subject *subject, bugpack_writer *writer,
                                      bugpack_error *error) {
    bugpack_status status = refresh(subject, error);
    bugpack_status same = bp_subject_check_program(subject, error);
    bp_lock_acquire(&subject->lock);
    if (same != BUGPACK_OK) {
        status = same; /* the facts may be of the other one */
    } else if (status == BUGPACK_OK) {
        status = write_facts(subject, NULL, writer);
    } else if (status == BUGPACK_ERR_NO_PROCESS && subject->facts.text.size > 0) {
        status = write_facts(subject, error, writer);
    }
    if (subject->target.pid == 0) {
        /* Our own process is there whenever it is asked: nothing has to be kept. */
        bp_buffer_release(&subject->facts.text);
        bp_buffer_init(&subject->facts.text, facts_limit_bytes);
    }
    bp_lock_release(&subject->lock);
    return status;
}

bugpack_status bp_subject_refresh(bp_subject *subject, bugpack_error *error) {
    if (subject->target.pid == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the session is about no other process");
    }
    return refresh(subject, error);
}

static bool is_same_program(const bp_task_program *one, const bp_task_program *other) {
    return one->image == other->image && strcmp(one->name, other->name) == 0;
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

uint64_t bp_subject_follow(bp_subject *subject, uint64_t now_ns) {
    bp_task_program program;
    if (subject->target.pid == 0 || !bp_lock_try_acquire(&subject->lock)) {
        return UINT64_MAX;
    }
    uint64_t *pause_ns = &subject->follow_interval_ns;
    if (now_ns >= subject->follow_due_ns) {
        *pause_ns = least(*pause_ns + *pause_ns / 2, BP_NS_PER_SEC);
        if (bp_task_program_now(bp_sampler_task(subject->sampler), &program)) {
            bool is_old = now_ns >= subject->due_ns;
            if (!is_same_program(&program, &subject->followed)) {
                *pause_ns = first_follow_ns;
            }
            if (is_old) {
                subject->interval_ns = least(subject->interval_ns * 2, longest_refresh_ns);
                subject->due_ns = now_ns + subject->interval_ns;
            }
            if (is_old || !is_same_program(&program, &subject->facts.program)) {
                begin_refresh(subject);
            }
            subject->followed = program;
        }
        subject->follow_due_ns = now_ns + *pause_ns;
    }
    /* After a second the ticks are enough. */
    uint64_t due_ns = *pause_ns < BP_NS_PER_SEC ? subject->follow_due_ns : UINT64_MAX;
    bp_lock_release(&subject->lock);
    return due_ns;
}
