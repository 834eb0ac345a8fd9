#include "support/made_snapshot.h"

#include <stdlib.h>
#include <string.h>

bp_task_snapshot made_snapshot(uint64_t taken_ns, uint64_t process_cpu,
                               const bp_thread_counters *threads, size_t thread_count) {
    bp_task_snapshot snapshot = {.taken_ns = taken_ns,
                                 .cpu_unit_ns = 1,
                                 .process_cpu = process_cpu,
                                 .has_memory = true,
                                 .rss_bytes = 48211u * 1024,
                                 .vm_size_bytes = 912345u * 1024,
                                 .thread_count = thread_count};
    if (thread_count > 0) {
        snapshot.threads = malloc(thread_count * sizeof *threads);
        if (snapshot.threads == NULL) {
            abort();
        }
        memcpy(snapshot.threads, threads, thread_count * sizeof *threads);
    }
    return snapshot;
}
