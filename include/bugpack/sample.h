/*
 * The metrics alone, without a session or a report.
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
 * Samples a process twice, `window_ms` apart, and gives the JSON text of runtime-metrics.json (see
 * docs/REPORT_FORMAT.md), with a final newline and a NUL behind it. pid 0 means this process.
 * Blocks for the window, at most BUGPACK_SAMPLE_WINDOW_MAX_MS.
 *
 * On a system without a sampler the text has the `"available": false` shape, and that is a success.
 * The text is the caller's, to be freed with bugpack_free. `ret_bytes` is optional and does not
 * count the NUL.
 *
 * Errors: NO_PROCESS (none such, or it ended inside the window), DENIED, INVALID, NO_MEMORY, IO.
 * Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_sample(pid_t pid, uint32_t window_ms,
                                                            char **ret_json, size_t *ret_bytes,
                                                            bugpack_error *error);

/* Frees what bugpack handed out. NULL is fine. Since 0.1.0. */
BUGPACK_API void bugpack_free(void *pointer);

BUGPACK_END_DECLS

#endif
