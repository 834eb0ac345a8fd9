/* A tracepoint that carries bytes, as lttng-ust wants it to be written. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bugpack_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./bench_ring_lttng.h"

#if !defined(TESTS_BENCH_BENCH_RING_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TESTS_BENCH_BENCH_RING_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bugpack_bench, message,
                           LTTNG_UST_TP_ARGS(const unsigned char *, bytes, size_t, byte_count),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_sequence(unsigned char, payload,
                                                                        bytes, size_t, byte_count)))

/* One that no session records. */
LTTNG_UST_TRACEPOINT_EVENT(bugpack_bench, off,
                           LTTNG_UST_TP_ARGS(const unsigned char *, bytes, size_t, byte_count),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_sequence(unsigned char, payload,
                                                                        bytes, size_t, byte_count)))

#endif

#include <lttng/tracepoint-event.h>
