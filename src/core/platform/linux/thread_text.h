/*
 * Parsers of the files of a thread below /proc/<pid>/task. Pure; the bytes may be anything.
 *
 * Each sets the bit of its group in `measured` and returns true, or leaves the thread alone, but
 * for groups of keyed counters: a group whose counters are not all there and valid is 0, and its
 * bit is clear. Layouts: proc(5), kernel/sched/debug.c, Documentation/scheduler/sched-stats.
 */
#ifndef BP_PLATFORM_LINUX_THREAD_TEXT_H
#define BP_PLATFORM_LINUX_THREAD_TEXT_H

#include <stddef.h>

#include "platform/thread_reading.h"

bool bp_thread_parse_stat(const char *text, size_t text_bytes, uint64_t ticks_per_sec,
                          bp_thread_reading *thread);
bool bp_thread_parse_schedstat(const char *text, size_t text_bytes, bp_thread_reading *thread);

/* Also the affinity, if the thread has a list for it, and what else is of `status`, each on its
 * own. True when the group STATUS is measured. */
bool bp_thread_parse_status(const char *text, size_t text_bytes, bp_thread_reading *thread);

bool bp_thread_parse_io(const char *text, size_t text_bytes, bp_thread_reading *thread);
bool bp_thread_parse_smaps_rollup(const char *text, size_t text_bytes, bp_thread_reading *thread);

/*
 * Four groups. Where no key of one was found, which this kernel does not count then, its errno is
 * ENODATA. True when all were found. Times are milliseconds with nanoseconds after the point.
 */
#define BP_GROUPS_OF_SCHED                                                                         \
    (1u << BP_GROUP_SCHED | 1u << BP_GROUP_WAKEUPS | 1u << BP_GROUP_WAITS | 1u << BP_GROUP_BLOCKS)
bool bp_thread_parse_sched(const char *text, size_t text_bytes, bp_thread_reading *thread);

/* "0-3,8", sorted or not. False for nothing, for a range that runs backwards, and for a CPU from
 * BP_CPU_MAX on, however large. */
bool bp_cpu_list_parse(const char *text, size_t text_bytes, bp_cpu_list *ret_list);

#endif
