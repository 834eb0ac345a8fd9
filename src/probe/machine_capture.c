#include "probe/machine_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/temp_file.h"
#include "platform/thread.h"
#include "probe/machine_private.h"

/*
 * Two passes by a few threads: over the processes, and over their threads in batches. Each reader
 * prints its batch; batches are written to a temporary file in their sequence. Linux only.
 */

#define BP_MACHINE_BATCH_THREADS 32u

/* The thread of a process that the second pass reads. */
typedef struct host_place {
    uint32_t process, thread; /* indices */
} host_place;

typedef struct host_passes {
    const bp_machine_plan *plan;
    bp_machine_process *processes;
    size_t process_count;
    host_place *places;
    size_t place_count, batch_count;
    bp_machine_cgroups cgroups;

    atomic_size_t next_process, next_batch, steps_done;
    bp_lock lock; /* for what follows */
    pthread_cond_t changed;
    size_t written_batches;
    bp_temp_file body;
    bugpack_status status; /* the first failure of memory or of the temp_file */
} host_passes;

/* One of our threads. */
typedef struct host_member {
    host_passes *passes;
    bp_machine_reader reader;
    void (*run)(struct host_member *member); /* the pass */
    bool is_caller;  /* the thread that runs the passes is one of ours too, and reports progress */
    bool is_started; /* a thread of its own; not looked at by that thread */
    pthread_t thread;
} host_member;

static const size_t batch_bytes_max = (size_t)8 << 20;
static const uint64_t look_again_ns = 50 * BP_NS_PER_MS;

static bool must_stop(const host_passes *passes) {
    return passes->plan->stop != NULL &&
           atomic_load_explicit(passes->plan->stop, memory_order_relaxed);
}

static void report_progress(const host_passes *passes) {
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
static void end_step(host_member *member) {
    atomic_fetch_add_explicit(&member->passes->steps_done, 1, memory_order_relaxed);
    if (member->is_caller) {
        report_progress(member->passes);
    }
}

static void read_processes(host_member *member) {
    host_passes *passes = member->passes;
    while (!must_stop(passes)) {
        size_t i = atomic_fetch_add_explicit(&passes->next_process, 1, memory_order_relaxed);
        if (i >= passes->process_count) {
            return;
        }
        bp_machine_summary *tally = &member->reader.tally;
        int result = bp_machine_read_process(&member->reader, &passes->processes[i]);
        if (result == 0) {
            tally->process_count++;
        } else if (bp_machine_is_gone(result)) {
            tally->vanished_process_count++;
        } else if (result == EACCES || result == EPERM) {
            tally->denied_process_count++;
        } else {
            bp_machine_summary_error(tally, result)->process_count++;
        }
        end_step(member);
    }
}

static void read_batch(host_member *member, size_t batch, bp_buffer *text) {
    host_passes *passes = member->passes;
    bp_machine_summary *tally = &member->reader.tally;
    size_t end = (batch + 1) * BP_MACHINE_BATCH_THREADS;
    for (size_t i = batch * BP_MACHINE_BATCH_THREADS; i < end && i < passes->place_count; i++) {
        const bp_machine_process *process = &passes->processes[passes->places[i].process];
        bp_machine_thread thread;
        int result = bp_machine_read_thread(&member->reader, process,
                                            process->tids[passes->places[i].thread], &thread);
        if (bp_machine_is_gone(result)) {
            tally->vanished_thread_count++;
        } else if (result != 0) {
            bp_machine_summary_error(tally, result)->thread_count++;
        }
        if (result != 0) {
            continue;
        }
        tally->thread_count++;
        tally->kernel_thread_count += thread.is_kernel_thread ? 1 : 0;
        bp_machine_print_thread(&thread, text);
    }
}

/* Writes a batch when all before it are written: a reader that is stuck in the kernel holds the
 * others back, and no text piles up in memory. */
static void write_batch(host_passes *passes, size_t batch, const bp_buffer *text) {
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

static void read_threads(host_member *member) {
    host_passes *passes = member->passes;
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
    host_member *member = argument;
    bp_thread_set_name("bugpack-host");
    member->run(member);
    return NULL;
}

/* Runs one pass on all members. The calling thread is the first; members that cannot be started are
 * left out. Between the passes `places` are filled. */
static void host_passes_run(host_member *members, unsigned member_count,
                            void (*run)(host_member *member)) {
    for (unsigned i = 0; i < member_count; i++) {
        members[i].run = run;
        members[i].is_caller = i == 0;
        members[i].is_started = i > 0 && bp_thread_start(run_member, &members[i],
                                                         &members[i].thread, NULL) == BUGPACK_OK;
    }
    run(&members[0]);
    for (unsigned i = 1; i < member_count; i++) {
        if (members[i].is_started) {
            (void)pthread_join(members[i].thread, NULL);
        }
    }
    report_progress(members[0].passes);
}

/* All zero but for the plan and an open body. */
static bugpack_status host_passes_init(host_passes *passes, bugpack_error *error) {
    if (!bp_machine_cgroups_init(&passes->cgroups)) {
        return bp_fail_memory(error, "read the threads of the machine");
    }
    if (!bp_lock_init(&passes->lock, BP_LOCK_HOST_READERS)) {
        bp_machine_cgroups_release(&passes->cgroups);
        return bp_fail_memory(error, "read the threads of the machine");
    }
    bugpack_status status = bp_condition_init(&passes->changed, error);
    if (status != BUGPACK_OK) {
        bp_lock_destroy(&passes->lock);
        bp_machine_cgroups_release(&passes->cgroups);
    }
    return status;
}

static void host_passes_release(host_passes *passes) {
    for (size_t i = 0; i < passes->process_count; i++) {
        bp_machine_process_release(&passes->processes[i]);
    }
    free(passes->places);
    free(passes->processes);
    bp_machine_cgroups_release(&passes->cgroups);
    bp_lock_destroy(&passes->lock);
    (void)pthread_cond_destroy(&passes->changed);
}

enum { reader_max = 8 };

static const size_t header_bytes_max = (size_t)256 << 20;
static const uint64_t temp_file_bytes_max = (uint64_t)8 << 30;

static bugpack_status list_processes(host_passes *passes, int proc_fd, bugpack_error *error) {
    uint32_t *tgids = NULL;
    size_t count = 0;
    int result = bp_machine_list_ids(proc_fd, &tgids, &count);
    if (result != 0) {
        free(tgids);
        return bp_fail_errno(error, result, "cannot list the processes of the machine");
    }
    passes->processes = calloc(count + 1, sizeof *passes->processes);
    for (; passes->processes != NULL && passes->process_count < count; passes->process_count++) {
        passes->processes[passes->process_count].tgid = tgids[passes->process_count];
    }
    free(tgids);
    return passes->processes != NULL ? BUGPACK_OK
                                     : bp_fail_memory(error, "list the processes of the machine");
}

static bugpack_status place_threads(host_passes *passes, bugpack_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < passes->process_count; i++) {
        count += passes->processes[i].tid_count;
    }
    passes->places = malloc((count + 1) * sizeof *passes->places);
    if (passes->places == NULL) {
        return bp_fail_memory(error, "list the threads of the machine");
    }
    for (size_t i = 0; i < passes->process_count; i++) {
        for (size_t j = 0; j < passes->processes[i].tid_count; j++) {
            passes->places[passes->place_count++] = (host_place){(uint32_t)i, (uint32_t)j};
        }
    }
    passes->batch_count = (count + BP_MACHINE_BATCH_THREADS - 1) / BP_MACHINE_BATCH_THREADS;
    return BUGPACK_OK;
}

/* Copies the threads from the temporary file. */
static bugpack_status print_body(host_passes *passes, bp_sink *sink, void *context,
                                 bugpack_error *error) {
    char piece[16384];
    bugpack_status status = bp_temp_file_flush(&passes->body, error);
    for (uint64_t at = 0; status == BUGPACK_OK && at < passes->body.size;) {
        int64_t count = bp_temp_file_read(&passes->body, at, piece, sizeof piece);
        if (count <= 0) {
            return bp_fail_errno(error, count < 0 ? errno : EIO,
                                 "cannot read a temporary file of a report");
        }
        status = sink(context, piece, (size_t)count);
        at += (uint64_t)count;
    }
    return status;
}

/* The header, now that everything is known, and the threads after it. */
static bugpack_status assemble(host_passes *passes, int proc_fd, int cgroup_fd,
                               bp_machine_summary *summary, bp_sink *sink, void *context,
                               bugpack_error *error) {
    bp_machine_cgroup *cgroups = NULL;
    bp_machine_header header = {.summary = summary,
                                .processes = passes->processes,
                                .process_count = passes->process_count,
                                .cgroup_count = passes->cgroups.count};
    bp_buffer text;
    bp_buffer_init(&text, header_bytes_max);
    bp_machine_read_pressure(proc_fd, header.pressure, summary);
    if (!bp_machine_cgroups_read(&passes->cgroups, cgroup_fd, &cgroups, summary)) {
        return bp_fail_memory(error, "list the cgroups of the machine");
    }
    header.cgroups = cgroups;
    bugpack_status status = bp_machine_print_header(&header, &text, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = sink(context, text.data, text.size);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = print_body(passes, sink, context, error);
    if (status == BUGPACK_OK) {
        const char *tail = passes->body.size > 0 ? bp_machine_tail : bp_machine_tail_empty;
        status = sink(context, tail, strlen(tail));
    }
out:
    free(cgroups);
    bp_buffer_release(&text);
    if (status != BUGPACK_OK && error != NULL && error->status == BUGPACK_OK) {
        (void)bp_fail(error, status, "cannot write the threads of the machine: %s",
                      bugpack_status_name(status));
    }
    return status;
}

/* Both passes. A write that failed shows when the body is flushed. */
static bugpack_status run_passes(host_passes *passes, const bp_machine_reader *model,
                                 bp_machine_summary *summary, bugpack_error *error) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = passes->plan->reader_count;
    count = count == 0 && cpus > 0 ? (unsigned)cpus : count;
    count = count < 1 ? 1 : count;
    count = count > reader_max ? reader_max : count;
    host_member *members = calloc(count, sizeof *members);
    bool has_memory = members != NULL;
    for (unsigned i = 0; members != NULL && i < count; i++) {
        members[i].passes = passes;
        members[i].reader = *model;
        has_memory = bp_machine_reader_init(&members[i].reader) && has_memory;
    }
    bugpack_status status =
        has_memory ? BUGPACK_OK : bp_fail_memory(error, "read the threads of the machine");
    if (status == BUGPACK_OK) {
        host_passes_run(members, count, read_processes);
        status = place_threads(passes, error);
    }
    if (status == BUGPACK_OK) {
        host_passes_run(members, count, read_threads);
    }
    if (status == BUGPACK_OK && passes->status == BUGPACK_ERR_NO_MEMORY) {
        status = bp_fail_memory(error, "write down the threads of the machine");
    } else if (status == BUGPACK_OK && passes->status == BUGPACK_ERR_LIMIT) {
        status = bp_fail(error, BUGPACK_ERR_LIMIT,
                         "the threads of the machine take more than the limit of 8 GiB");
    }
    for (unsigned i = 0; members != NULL && i < count; i++) {
        bp_machine_summary_add(summary, &members[i].reader.tally);
        bp_machine_reader_release(&members[i].reader);
    }
    free(members);
    return status;
}

/* Our own id as this /proc has it, and whether ids in it are those that system calls take. */
static uint64_t find_self(const bp_machine_root *root, int proc_fd, bool *ret_has_our_ids) {
    char target[24];
    *ret_has_our_ids = false;
    ssize_t length =
        root->is_recording ? -1 : readlinkat(proc_fd, "self", target, sizeof target - 1);
    if (length <= 0) {
        return 0;
    }
    target[length] = '\0';
    uint64_t self = strtoull(target, NULL, 10);
    *ret_has_our_ids = self == (uint64_t)getpid();
    return self;
}

/* Mounted with hidepid=2 or 4 it lists our own processes alone (proc(5)); then the first process of
 * the namespace exists and is not there. */
static bool hides_processes(const host_passes *passes) {
    bool has_first = passes->process_count > 0 && passes->processes[0].tgid == 1;
    return !has_first && (kill(1, 0) == 0 || errno == EPERM);
}

/* -1 where there are no cgroups, or with the error in the summary. */
static int open_cgroups(const bp_machine_root *root, bp_machine_summary *summary) {
    int fd = open(root->cgroup_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        bp_machine_summary_error(summary, errno)->file_count++;
    }
    return fd;
}

/* The window, before all else is read. */
static bugpack_status read_window(const bp_machine_plan *plan, int proc_fd, uint64_t ticks_per_sec,
                                  bp_machine_usage *before, bp_machine_usage *after,
                                  bp_machine_summary *tally, bugpack_error *error) {
    static const uint64_t look_ns = 50 * BP_NS_PER_MS;
    bugpack_status status =
        bp_machine_usage_read(proc_fd, ticks_per_sec, plan->stop, before, tally, error);
    uint64_t end_ns = before->taken_ns + plan->window_ms * BP_NS_PER_MS;
    uint64_t now_ns = bp_clock_monotonic_ns();
    while (status == BUGPACK_OK && now_ns < end_ns &&
           !(plan->stop != NULL && atomic_load(plan->stop))) {
        bp_clock_sleep_until(now_ns + look_ns < end_ns ? now_ns + look_ns : end_ns);
        now_ns = bp_clock_monotonic_ns();
    }
    return status == BUGPACK_OK
               ? bp_machine_usage_read(proc_fd, ticks_per_sec, plan->stop, after, tally, error)
               : status;
}

static uint64_t ticks_of(const bp_machine_root *root) {
    long ticks = sysconf(_SC_CLK_TCK);
    uint64_t of_system = ticks > 0 ? (uint64_t)ticks : 100;
    return root->ticks_per_sec != 0 ? root->ticks_per_sec : of_system;
}

/* Captures of one boot have the same id, which a thread's ids and start do not show. */
static void read_boot_id(int proc_fd, bp_machine_summary *summary) {
    char text[sizeof summary->boot_id];
    int fd = openat(proc_fd, "sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    int64_t count = fd >= 0 ? bp_file_read_range(fd, text, sizeof text - 1, 0) : -1;
    bp_file_close(fd);
    if (count == sizeof text - 1) {
        memcpy(summary->boot_id, text, sizeof text - 1);
    }
}

static bugpack_status capture(const bp_machine_root *root, const bp_machine_plan *plan, int proc_fd,
                              host_passes *passes, bp_sink *sink, void *context,
                              bp_machine_summary *summary, bugpack_error *error) {
    bool has_our_ids;
    bp_machine_usage before = {.process_count = 0}, after = {.process_count = 0};
    bp_machine_summary window_tally = {.process_count = 0};
    bugpack_status status = BUGPACK_OK;
    if (plan->window_ms > 0) {
        status = read_window(plan, proc_fd, ticks_of(root), &before, &after, &window_tally, error);
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    bp_instant began = bp_clock_now();
    uint64_t self = find_self(root, proc_fd, &has_our_ids);
    *summary = (bp_machine_summary){.captured_wall_ns = began.wall_ns,
                                    .boottime_ns =
                                        root->is_recording ? 0 : bp_clock_read_ns(CLOCK_BOOTTIME),
                                    .self_tgid = self,
                                    .ticks_per_sec = ticks_of(root),
                                    .window_ns = after.taken_ns - before.taken_ns,
                                    .is_root = geteuid() == 0};
    bp_machine_summary_add(summary, &window_tally);
    read_boot_id(proc_fd, summary);
    const bp_machine_reader model = {.proc_fd = proc_fd,
                                     .has_our_ids = has_our_ids,
                                     .ticks_per_sec = summary->ticks_per_sec,
                                     .cgroups = &passes->cgroups,
                                     .prober = has_our_ids ? plan->prober : NULL,
                                     .before = plan->window_ms > 0 ? &before : NULL,
                                     .after = &after,
                                     .self_tgid = self,
                                     .process_fd = -1};
    summary->is_heap_probed = model.prober != NULL;
    status = list_processes(passes, proc_fd, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    summary->is_hidden = has_our_ids && hides_processes(passes);
    status = run_passes(passes, &model, summary, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    summary->is_cut = passes->written_batches < passes->batch_count ||
                      atomic_load(&passes->next_process) < passes->process_count;
    summary->duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
    int cgroup_fd = open_cgroups(root, summary);
    status = assemble(passes, proc_fd, cgroup_fd, summary, sink, context, error);
    bp_file_close(cgroup_fd);
out:
    bp_machine_usage_release(&before);
    bp_machine_usage_release(&after);
    return status;
}

bugpack_status bp_machine_capture(const bp_machine_root *root, const bp_machine_plan *plan,
                                  int dir_fd, bp_sink *sink, void *context,
                                  bp_machine_summary *ret_summary, bugpack_error *error) {
    bp_machine_summary summary;
    host_passes passes = {.plan = plan, .body = BP_TEMP_FILE_INIT};
    int proc_fd = open(root->proc_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd < 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no \"%s\"", root->proc_path)
                   : bp_fail_errno(error, errno, "cannot open \"%s\"", root->proc_path);
    }
    bugpack_status status = bp_temp_file_open(&passes.body, dir_fd, temp_file_bytes_max, error);
    if (status == BUGPACK_OK) {
        status = host_passes_init(&passes, error);
        if (status == BUGPACK_OK) {
            status = capture(root, plan, proc_fd, &passes, sink, context, &summary, error);
            host_passes_release(&passes);
        }
    }
    if (status == BUGPACK_OK) {
        *ret_summary = summary;
    }
    bp_temp_file_release(&passes.body);
    (void)close(proc_fd);
    return status;
}
