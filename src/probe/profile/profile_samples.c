#include "profile/profile_samples.h"

#include <stdlib.h>

#include "base/status.h"
#include "platform/linux/perf_events.h"
#include "profile/profile_fold.h"

/* A command and its children; those beyond are counted as lost. */
enum { process_max = 16 };

struct process {
    pid_t pid;
    uint64_t since_ns; /* it runs this program; earlier samples are of another one */
};

/* Goes through the records of all rings, the newest of each first. */
struct walk {
    const bp_profile_samples *samples;
    unsigned char *bytes;
    size_t ring;
    bool has_begun;
    bp_perf_cursor cursor;
    uint64_t last_ns;   /* the time of the last sample */
    uint64_t oldest_ns; /* of those that no ring has overwritten */
};

static bool next_record(struct walk *walk, bp_perf_record *ret_record) {
    for (; walk->ring < walk->samples->ring_count; walk->ring++, walk->has_begun = false) {
        const bp_copied_ring *ring = &walk->samples->rings[walk->ring];
        if (ring->data == NULL) {
            continue;
        }
        if (!walk->has_begun) {
            walk->has_begun = true;
            walk->last_ns = 0;
            walk->cursor = bp_perf_backward(ring->data, ring->data_bytes, ring->head);
        }
        size_t byte_count = bp_perf_next(&walk->cursor, walk->bytes);
        if (byte_count > 0 &&
            bp_perf_parse(walk->bytes, byte_count, bp_perf_registers_here(), ret_record)) {
            walk->last_ns =
                ret_record->kind == BP_PERF_SAMPLE ? ret_record->time_ns : walk->last_ns;
            return true;
        }
        bool was_overwritten = walk->cursor.end - walk->cursor.at < BP_PERF_SAMPLE_BYTES;
        if (was_overwritten && walk->last_ns > walk->oldest_ns) {
            walk->oldest_ns = walk->last_ns;
        }
    }
    return false;
}

static struct process *find_process(struct process *processes, size_t *count, pid_t pid) {
    for (size_t i = 0; i < *count; i++) {
        if (processes[i].pid == pid) {
            return &processes[i];
        }
    }
    if (*count == process_max) {
        return NULL;
    }
    processes[*count] = (struct process){.pid = pid};
    return &processes[(*count)++];
}

/* Lists the processes, the ring's own first, and since when each ring has all. */
static uint64_t list_processes(const bp_profile_samples *samples, unsigned char *bytes,
                               struct process *processes, size_t *ret_count) {
    struct walk walk = {.samples = samples, .bytes = bytes, .oldest_ns = samples->from_ns};
    bp_perf_record record;
    processes[0] = (struct process){.pid = samples->pid};
    *ret_count = 1;
    while (next_record(&walk, &record)) {
        struct process *process = record.kind == BP_PERF_SAMPLE || record.kind == BP_PERF_EXEC
                                      ? find_process(processes, ret_count, record.pid)
                                      : NULL;
        if (process != NULL && record.kind == BP_PERF_EXEC && record.time_ns > process->since_ns) {
            process->since_ns = record.time_ns;
        }
    }
    return walk.oldest_ns;
}

/* Folds the samples of one process. Where they cannot be, they are lost. */
static bugpack_status fold_process(const bp_profile_samples *samples, const struct process *process,
                                   uint64_t from_ns, bp_profile_fold *fold, unsigned char *bytes,
                                   uint64_t symbols_until_ns, bugpack_error *error) {
    struct walk walk = {.samples = samples, .bytes = bytes};
    bp_perf_record record;
    uint64_t taken = 0;
    uint64_t since_ns = process->since_ns > from_ns ? process->since_ns : from_ns;
    while (next_record(&walk, &record)) {
        if (record.kind == BP_PERF_SAMPLE && record.pid == process->pid &&
            record.time_ns > since_ns && record.time_ns <= samples->until_ns) {
            bp_profile_fold_take(fold, &record);
            taken++;
        }
    }
    bugpack_status status = bp_profile_fold_end(fold, symbols_until_ns, error);
    fold->out->facts.lost_count += status != BUGPACK_OK ? taken : 0;
    return status;
}

bugpack_status bp_profile_samples_fold(const bp_profile_samples *samples, uint64_t symbols_until_ns,
                                       const atomic_bool *stop, bp_profile *out,
                                       bugpack_error *error) {
    struct process processes[process_max];
    size_t count;
    unsigned char *bytes = malloc(BP_PERF_RECORD_BYTES);
    if (bytes == NULL) {
        return bp_fail_memory(error, "fold the samples of a profile");
    }
    bugpack_status status = BUGPACK_OK;
    uint64_t from_ns = list_processes(samples, bytes, processes, &count);
    out->facts = (bp_profile_facts){
        .is_known = true,
        .excludes_kernel = samples->excludes_kernel,
        .rate_hz = samples->rate_hz,
        .window_ns = samples->until_ns > from_ns ? samples->until_ns - from_ns : 0};
    for (size_t i = 0; i < count; i++) {
        bugpack_error of_child = BUGPACK_ERROR_INIT;
        bp_profile_fold fold = {
            .pid = processes[i].pid, .stop = stop, .out = out, .deadline_ns = symbols_until_ns};
        bugpack_status one = fold_process(samples, &processes[i], from_ns, &fold, bytes,
                                          symbols_until_ns, i == 0 ? error : &of_child);
        status = i == 0 ? one : status;
    }
    free(bytes);
    return out->facts.sample_count > 0 ? BUGPACK_OK : status;
}
