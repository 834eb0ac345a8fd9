/*
 * Parsers of the files of control groups and of pressure. Pure; the bytes may be anything. False
 * leaves the outputs alone. Layouts: Documentation/accounting/psi.rst and
 * Documentation/admin-guide/cgroup-v2.rst.
 */
#ifndef BP_PLATFORM_LINUX_MACHINE_TEXT_H
#define BP_PLATFORM_LINUX_MACHINE_TEXT_H

#include <stddef.h>

#include "platform/machine_threads.h"

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
