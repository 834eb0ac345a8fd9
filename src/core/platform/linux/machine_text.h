/*
 * Parsers of the files that a capture of the whole machine reads. Pure; the bytes may be anything.
 *
 * False leaves the outputs alone, but for groups of counters: a group whose counters are not all
 * there and valid is 0, and its bit in `measured` is clear. Layouts: proc(5), kernel/sched/debug.c,
 * Documentation/accounting/psi.rst and Documentation/admin-guide/cgroup-v2.rst.
 */
#ifndef BP_PLATFORM_LINUX_MACHINE_TEXT_H
#define BP_PLATFORM_LINUX_MACHINE_TEXT_H

#include "platform/machine_threads.h"

/* task/<tid>/stat: the name, the start, the scheduling and the group STAT. */
bool bp_machine_parse_stat(const char *text, size_t text_bytes, uint64_t ticks_per_sec,
                           bp_machine_thread *thread);

/* The group SCHEDSTAT. */
bool bp_machine_parse_schedstat(const char *text, size_t text_bytes, bp_machine_thread *thread);

/* The group STATUS; and the affinity and the resident memory, each on its own. True when the group
 * is measured. */
bool bp_machine_parse_status(const char *text, size_t text_bytes, bp_machine_thread *thread);

/* The groups IO and MEMORY. */
bool bp_machine_parse_io(const char *text, size_t text_bytes, bp_machine_thread *thread);
bool bp_machine_parse_smaps_rollup(const char *text, size_t text_bytes, bp_machine_thread *thread);

/*
 * The groups SCHED, WAKEUPS, WAITS and BLOCKS. Returns a bit for each group of which a key was
 * found: found but not measured means broken, not found means not counted by this kernel. Times are
 * milliseconds with nanoseconds after the point.
 */
uint32_t bp_machine_parse_sched(const char *text, size_t text_bytes, bp_machine_thread *thread);

/* "0-3,8", sorted or not. False for nothing, for a range that runs backwards, and for a CPU from
 * BP_CPU_MAX on, however large. */
bool bp_machine_parse_cpu_list(const char *text, size_t text_bytes, bp_cpu_list *ret_list);

/* A pressure file. A line that is missing or broken is not known; false when both are. */
bool bp_machine_parse_pressure(const char *text, size_t text_bytes, bp_pressure *ret_pressure);

/* A file of a cgroup with one number, or "max". */
bool bp_machine_parse_figure(const char *text, size_t text_bytes, bp_machine_figure *ret_figure);

/* The number after `key` and a blank, at the start of a line: cpu.stat, memory.events. Multiplied
 * by `scale`; false when that overflows. */
bool bp_machine_find_figure(const char *text, size_t text_bytes, const char *key, uint64_t scale,
                            bp_machine_figure *ret_figure);

/* cpu.max: "max 100000" or "50000 100000", in microseconds. */
bool bp_machine_parse_cpu_max(const char *text, size_t text_bytes, bp_machine_figure *ret_quota_ns,
                              bp_machine_figure *ret_period_ns);

#endif
