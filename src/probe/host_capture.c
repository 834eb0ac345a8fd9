#include "probe/host_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "probe/host_passes.h"

enum { reader_max = 8 };

static const size_t header_bytes_max = (size_t)256 << 20;
static const uint64_t temp_file_bytes_max = (uint64_t)8 << 30;

static bugpack_status list_processes(bp_host_passes *passes, int proc_fd, bugpack_error *error) {
    uint32_t *tgids = NULL;
    size_t count = 0;
    int result = bp_host_list_ids(proc_fd, &tgids, &count);
    bugpack_status status = BUGPACK_OK;
    if (result != 0) {
        status = bp_fail_errno(error, result, "cannot list the processes of the machine");
    }
    passes->processes = calloc(count + 1, sizeof *passes->processes);
    if (status == BUGPACK_OK && passes->processes == NULL) {
        status = bp_fail_memory(error, "list the processes of the machine");
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        passes->processes[i].tgid = tgids[i];
        passes->process_count++;
    }
    free(tgids);
    return status;
}

static bugpack_status place_threads(bp_host_passes *passes, bugpack_error *error) {
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
            passes->places[passes->place_count++] = (bp_host_place){(uint32_t)i, (uint32_t)j};
        }
    }
    passes->batch_count = (count + BP_HOST_BATCH_THREADS - 1) / BP_HOST_BATCH_THREADS;
    return BUGPACK_OK;
}

/* Copies the threads from the temporary file. */
static bugpack_status print_body(bp_host_passes *passes, bp_sink *sink, void *context,
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
static bugpack_status assemble(bp_host_passes *passes, int proc_fd, int cgroup_fd,
                               bp_host_summary *summary, bp_sink *sink, void *context,
                               bugpack_error *error) {
    bp_host_cgroup *cgroups = NULL;
    bp_host_header header = {.summary = summary,
                             .processes = passes->processes,
                             .process_count = passes->process_count,
                             .cgroup_count = passes->cgroups.count};
    bp_buffer text;
    bp_buffer_init(&text, header_bytes_max);
    bp_host_read_pressure(proc_fd, header.pressure, summary);
    if (!bp_host_cgroups_read(&passes->cgroups, cgroup_fd, &cgroups, summary)) {
        return bp_fail_memory(error, "list the cgroups of the machine");
    }
    header.cgroups = cgroups;
    bugpack_status status = bp_host_print_header(&header, &text, error);
    free(cgroups);
    if (status == BUGPACK_OK) {
        status = sink(context, text.data, text.size);
    }
    bp_buffer_release(&text);
    if (status == BUGPACK_OK) {
        status = print_body(passes, sink, context, error);
    }
    if (status == BUGPACK_OK) {
        const char *tail = passes->body.size > 0 ? bp_host_tail : bp_host_tail_empty;
        status = sink(context, tail, strlen(tail));
    }
    if (status != BUGPACK_OK && error != NULL && error->status == BUGPACK_OK) {
        (void)bp_fail(error, status, "cannot write the threads of the machine: %s",
                      bugpack_status_name(status));
    }
    return status;
}

/* Both passes. A write that failed shows when the body is flushed. */
static bugpack_status run_passes(bp_host_passes *passes, const bp_host_reader *model,
                                 bp_host_summary *summary, bugpack_error *error) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = passes->plan->reader_count;
    count = count == 0 && cpus > 0 ? (unsigned)cpus : count;
    count = count < 1 ? 1 : count > reader_max ? reader_max : count;
    bp_host_member *members = calloc(count, sizeof *members);
    bool has_memory = members != NULL;
    for (unsigned i = 0; members != NULL && i < count; i++) {
        members[i].passes = passes;
        members[i].reader = *model;
        has_memory = bp_host_reader_init(&members[i].reader) && has_memory;
    }
    bugpack_status status =
        has_memory ? BUGPACK_OK : bp_fail_memory(error, "read the threads of the machine");
    if (status == BUGPACK_OK) {
        bp_host_passes_run(members, count, false);
        status = place_threads(passes, error);
    }
    if (status == BUGPACK_OK) {
        bp_host_passes_run(members, count, true);
    }
    if (status == BUGPACK_OK && passes->status == BUGPACK_ERR_NO_MEMORY) {
        status = bp_fail_memory(error, "write down the threads of the machine");
    } else if (status == BUGPACK_OK && passes->status == BUGPACK_ERR_LIMIT) {
        status = bp_fail(error, BUGPACK_ERR_LIMIT,
                         "the threads of the machine take more than the limit of 8 GiB");
    }
    for (unsigned i = 0; members != NULL && i < count; i++) {
        bp_host_summary_add(summary, &members[i].reader.tally);
        bp_host_reader_release(&members[i].reader);
    }
    free(members);
    return status;
}

/* Our own id as this /proc has it, and whether ids in it are those that system calls take. */
static uint64_t find_self(const bp_host_root *root, int proc_fd, bool *ret_has_our_ids) {
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
static bool hides_processes(const bp_host_passes *passes) {
    bool has_first = passes->process_count > 0 && passes->processes[0].tgid == 1;
    return !has_first && (kill(1, 0) == 0 || errno == EPERM);
}

/* -1 where there are no cgroups, or with the error in the summary. */
static int open_cgroups(const bp_host_root *root, bp_host_summary *summary) {
    int fd = open(root->cgroup_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        bp_host_summary_error(summary, errno)->file_count++;
    }
    return fd;
}

/* The window, before all else is read. */
static bugpack_status read_window(const bp_host_plan *plan, int proc_fd, uint64_t ticks_per_sec,
                                  bp_host_usage *before, bp_host_usage *after,
                                  bugpack_error *error) {
    static const uint64_t look_ns = 50 * BP_NS_PER_MS;
    bugpack_status status = bp_host_usage_read(proc_fd, ticks_per_sec, plan->stop, before, error);
    uint64_t end_ns = before->taken_ns + plan->window_ms * BP_NS_PER_MS;
    uint64_t now_ns = bp_clock_monotonic_ns();
    while (status == BUGPACK_OK && now_ns < end_ns &&
           !(plan->stop != NULL && atomic_load(plan->stop))) {
        bp_clock_sleep_until(now_ns + look_ns < end_ns ? now_ns + look_ns : end_ns);
        now_ns = bp_clock_monotonic_ns();
    }
    return status == BUGPACK_OK
               ? bp_host_usage_read(proc_fd, ticks_per_sec, plan->stop, after, error)
               : status;
}

static uint64_t ticks_of(const bp_host_root *root) {
    long ticks = sysconf(_SC_CLK_TCK);
    uint64_t of_system = ticks > 0 ? (uint64_t)ticks : 100;
    return root->ticks_per_sec != 0 ? root->ticks_per_sec : of_system;
}

/* Captures of one boot have the same id, which a thread's ids and start do not show. */
static void read_boot_id(int proc_fd, bp_host_summary *summary) {
    char text[sizeof summary->boot_id];
    int fd = openat(proc_fd, "sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    int64_t count = fd >= 0 ? bp_file_read_range(fd, text, sizeof text - 1, 0) : -1;
    bp_file_close(fd);
    if (count == sizeof text - 1) {
        memcpy(summary->boot_id, text, sizeof text - 1);
    }
}

static bugpack_status capture(const bp_host_root *root, const bp_host_plan *plan, int proc_fd,
                              bp_host_passes *passes, bp_sink *sink, void *context,
                              bp_host_summary *summary, bugpack_error *error) {
    bool has_our_ids;
    bp_host_usage before = {.process_count = 0}, after = {.process_count = 0};
    bugpack_status status = BUGPACK_OK;
    if (plan->window_ms > 0) {
        status = read_window(plan, proc_fd, ticks_of(root), &before, &after, error);
    }
    bp_instant began = bp_clock_now();
    uint64_t self = find_self(root, proc_fd, &has_our_ids);
    *summary =
        (bp_host_summary){.captured_wall_ns = began.wall_ns,
                          .boottime_ns = root->is_recording ? 0 : bp_clock_read_ns(CLOCK_BOOTTIME),
                          .self_tgid = self,
                          .ticks_per_sec = ticks_of(root),
                          .window_ns = after.taken_ns - before.taken_ns,
                          .is_root = geteuid() == 0};
    read_boot_id(proc_fd, summary);
    const bp_host_reader model = {.proc_fd = proc_fd,
                                  .has_our_ids = has_our_ids,
                                  .ticks_per_sec = summary->ticks_per_sec,
                                  .cgroups = &passes->cgroups,
                                  .prober = has_our_ids ? plan->prober : NULL,
                                  .before = plan->window_ms > 0 ? &before : NULL,
                                  .after = &after,
                                  .self_tgid = self,
                                  .process_fd = -1};
    summary->is_heap_probed = model.prober != NULL;
    if (status == BUGPACK_OK) {
        status = list_processes(passes, proc_fd, error);
    }
    summary->is_hidden = has_our_ids && hides_processes(passes);
    if (status == BUGPACK_OK) {
        status = run_passes(passes, &model, summary, error);
    }
    summary->is_cut = passes->written_batches < passes->batch_count ||
                      atomic_load(&passes->next_process) < passes->process_count;
    summary->duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
    if (status == BUGPACK_OK) {
        int cgroup_fd = open_cgroups(root, summary);
        status = assemble(passes, proc_fd, cgroup_fd, summary, sink, context, error);
        bp_file_close(cgroup_fd);
    }
    bp_host_usage_release(&before);
    bp_host_usage_release(&after);
    return status;
}

bugpack_status bp_host_capture(const bp_host_root *root, const bp_host_plan *plan, int dir_fd,
                               bp_sink *sink, void *context, bp_host_summary *ret_summary,
                               bugpack_error *error) {
    bp_host_summary summary;
    bp_host_passes passes = {.plan = plan, .body = BP_TEMP_FILE_INIT};
    int proc_fd = open(root->proc_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd < 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no \"%s\"", root->proc_path)
                   : bp_fail_errno(error, errno, "cannot open \"%s\"", root->proc_path);
    }
    bugpack_status status = bp_temp_file_open(&passes.body, dir_fd, temp_file_bytes_max, error);
    if (status == BUGPACK_OK) {
        status = bp_host_passes_init(&passes, error);
        if (status == BUGPACK_OK) {
            status = capture(root, plan, proc_fd, &passes, sink, context, &summary, error);
            bp_host_passes_release(&passes);
        }
    }
    if (status == BUGPACK_OK) {
        *ret_summary = summary;
    }
    bp_temp_file_release(&passes.body);
    (void)close(proc_fd);
    return status;
}
