/*
 * The metrics of a process without a session or a report.
 */
#ifndef BUGPACK_SAMPLE_H
#define BUGPACK_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/*
 * Samples process `pid` (0: this one) twice, `window_ms` apart, and returns the JSON text of
 * runtime-metrics.json (docs/REPORT_FORMAT.md). The text ends in a newline and a NUL and is freed
 * with bugpack_free. `ret_bytes` is optional and does not count the NUL. Blocks for the window, at
 * most BUGPACK_SAMPLE_WINDOW_MAX_MS (bugpack/session.h).
 *
 * On a system without a sampler the call succeeds, and the text says `"available": false`.
 *
 * Errors: NO_PROCESS (it does not exist, or ended inside the window), DENIED, INVALID, NO_MEMORY,
 * IO. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_sample(pid_t pid, uint32_t window_ms,
                                                            char **ret_json, size_t *ret_bytes,
                                                            bugpack_error *error);

BUGPACK_END_DECLS

#endif
