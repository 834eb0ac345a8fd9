#include "probe/host_passes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"

static const size_t batch_bytes_max = (size_t)8 << 20;
static const uint64_t look_again_ns = 50 * BP_NS_PER_MS;

static bool must_stop(const bp_host_passes *passes) {
    return passes->plan->stop != NULL &&
           atomic_load_explicit(passes->plan->stop, memory_order_relaxed);
}

static void report_progress(const bp_host_passes *passes) {
    if (passes->plan->on_progress != NULL) {
        /* In the first pass the batches are not known yet: one for each process is a fair guess. */
        size_t total = passes->process_count +
                       (passes->batch_count > 0 ? passes->batch_count : passes->process_count);
        size_t done = atomic_load_explicit(&passes->steps_done, memory_order_relaxed);
        passes->plan->on_progress(done, total, passes->plan->context);
    }
}

/* A process counts as much as a batch: both cost some hundred microseconds. The thread that runs
 * the passes reports for all, so that the callback runs under no lock. */
static void end_step(bp_host_member *member) {
    atomic_fetch_add_explicit(&member->passes->steps_done, 1, memory_order_relaxed);
    if (member->is_caller) {
        report_progress(member->passes);
    }
}

static void read_processes(bp_host_member *member) {
    bp_host_passes *passes = member->passes;
    while (!must_stop(passes)) {
        size_t i = atomic_fetch_add_explicit(&passes->next_process, 1, memory_order_relaxed);
        if (i >= passes->process_count) {
            return;
        }
        bp_host_summary *tally = &member->reader.tally;
        int result = bp_host_read_process(&member->reader, &passes->processes[i]);
        if (result == 0) {
            tally->process_count++;
        } else if (bp_host_is_gone(result)) {
            tally->vanished_process_count++;
        } else if (result == EACCES || result == EPERM) {
            tally->denied_process_count++;
        } else {
            bp_host_summary_error(tally, result)->process_count++;
        }
        end_step(member);
    }
}

static void read_batch(bp_host_member *member, size_t batch, bp_buffer *text) {
    bp_host_passes *passes = member->passes;
    bp_host_summary *tally = &member->reader.tally;
    size_t end = (batch + 1) * BP_HOST_BATCH_THREADS;
    for (size_t i = batch * BP_HOST_BATCH_THREADS; i < end && i < passes->place_count; i++) {
        const bp_host_process *process = &passes->processes[passes->places[i].process];
        bp_host_thread thread;
        int result = bp_host_read_thread(&member->reader, process,
                                         process->tids[passes->places[i].thread], &thread);
        if (bp_host_is_gone(result)) {
            tally->vanished_thread_count++;
        } else if (result != 0) {
            bp_host_summary_error(tally, result)->thread_count++;
        }
        if (result != 0) {
            continue;
        }
        tally->thread_count++;
        tally->kernel_thread_count += thread.is_kernel_thread ? 1 : 0;
        bp_host_print_thread(&thread, text);
    }
}

/* Writes a batch when all before it are written: a reader that is stuck in the kernel holds the
 * others back, and no text piles up in memory. */
static void write_batch(bp_host_passes *passes, size_t batch, const bp_buffer *text) {
    static const size_t separator_bytes = 1; /* no comma before the first thread */
    bp_lock_acquire(&passes->lock);
    while (passes->written_batches < batch && !must_stop(passes)) {
        (void)bp_lock_wait_until(&passes->lock, &passes->changed,
                                 bp_clock_monotonic_ns() + look_again_ns);
    }
    if (passes->written_batches == batch) {
        size_t skipped = passes->body.size == 0 && text->size > 0 ? separator_bytes : 0;
        if (passes->status == BUGPACK_OK) {
            passes->status = text->status;
        }
        if (passes->status == BUGPACK_OK && text->size > skipped) {
            passes->status =
                bp_temp_file_write(&passes->body, text->data + skipped, text->size - skipped);
        }
        passes->written_batches++;
        (void)pthread_cond_broadcast(&passes->changed);
    }
    bp_lock_release(&passes->lock);
}

static void read_threads(bp_host_member *member) {
    bp_host_passes *passes = member->passes;
    bp_buffer text;
    bp_buffer_init(&text, batch_bytes_max);
    while (!must_stop(passes)) {
        size_t batch = atomic_fetch_add_explicit(&passes->next_batch, 1, memory_order_relaxed);
        if (batch >= passes->batch_count) {
            break;
        }
        read_batch(member, batch, &text);
        write_batch(passes, batch, &text);
        bp_buffer_clear(&text);
        end_step(member);
    }
    bp_buffer_release(&text);
}

static void *run_member(void *argument) {
    bp_host_member *member = argument;
    bp_thread_set_name("bugpack-host");
    if (member->is_second_pass) {
        read_threads(member);
    } else {
        read_processes(member);
    }
    return NULL;
}

void bp_host_passes_run(bp_host_member *members, unsigned member_count, bool is_second_pass) {
    for (unsigned i = 0; i < member_count; i++) {
        members[i].is_second_pass = is_second_pass;
        members[i].is_caller = i == 0;
        members[i].is_started = i > 0 && bp_thread_start(run_member, &members[i],
                                                         &members[i].thread, NULL) == BUGPACK_OK;
    }
    if (is_second_pass) {
        read_threads(&members[0]);
    } else {
        read_processes(&members[0]);
    }
    for (unsigned i = 1; i < member_count; i++) {
        if (members[i].is_started) {
            (void)pthread_join(members[i].thread, NULL);
        }
    }
    report_progress(members[0].passes);
}

bugpack_status bp_host_passes_init(bp_host_passes *passes, bugpack_error *error) {
    bugpack_status status = bp_condition_init(&passes->changed, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (bp_host_cgroups_init(&passes->cgroups)) {
        if (bp_lock_init(&passes->lock, BP_LOCK_HOST_READERS)) {
            return BUGPACK_OK;
        }
        bp_host_cgroups_release(&passes->cgroups);
    }
    (void)pthread_cond_destroy(&passes->changed);
    return bp_fail_memory(error, "read the threads of the machine");
}

void bp_host_passes_release(bp_host_passes *passes) {
    for (size_t i = 0; i < passes->process_count; i++) {
        bp_host_process_release(&passes->processes[i]);
    }
    free(passes->places);
    free(passes->processes);
    bp_host_cgroups_release(&passes->cgroups);
    bp_lock_destroy(&passes->lock);
    (void)pthread_cond_destroy(&passes->changed);
}
