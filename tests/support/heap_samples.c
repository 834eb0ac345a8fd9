#include "support/heap_samples.h"

static bp_thread_heap threads[] = {
    {.tid = 4711,
     .name = "net)\n\xff",
     .is_measured = true,
     .allocated_bytes = 9007199254740993,
     .deallocated_bytes = 40960},
    {.tid = 4712, .failure = BP_HEAP_FAILURE_WAITPID},
};

static bp_thread_heap_snapshot snapshots[] = {{.taken_wall_ns = 1795221411123456789,
                                               .taken_ns = 1,
                                               .threads = threads,
                                               .thread_count = 2,
                                               .measured_count = 1,
                                               .stopped_count = 1,
                                               .vanished_count = 2},
                                              {.taken_wall_ns = 1795221412123456789,
                                               .taken_ns = UINT64_MAX,
                                               .threads = threads,
                                               .thread_count = 2,
                                               .measured_count = 1}};

static char object[] = "/usr/lib/libjemalloc.so.2";

const bp_thread_heap_reading sample_heap_full = {.pid = 4711,
                                                 .process_name = "viewer\xff",
                                                 .object = object,
                                                 .build_id = "1d5163c246dc9cd2",
                                                 .is_shared = true,
                                                 .is_calibrated = true,
                                                 .snapshots = snapshots,
                                                 .snapshot_count = 2};

const bp_thread_heap_reading sample_heap_bare = {
    .pid = 4711,
    .failure = BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND,
    .reason = "the process has no jemalloc that could be found",
    .is_interrupted = true};
