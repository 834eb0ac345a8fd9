/*
 * Records whose payload follows from a number, so that a test can tell each from a torn one.
 */
#ifndef TESTS_SUPPORT_RING_RECORDS_H
#define TESTS_SUPPORT_RING_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "ring/ring.h"

/* Appends `byte_count` bytes that follow from `number`, in three parts. What the ring returned. */
uint64_t append_number(bp_ring *ring, uint32_t tag, uint64_t number, size_t byte_count);

/* Whether these are the bytes that append_number makes of `number`. */
bool is_number(const void *payload, size_t byte_count, uint64_t number);

/* A sink whose context is a bp_buffer. */
bugpack_status keep_in_buffer(void *buffer, const void *bytes, size_t byte_count);

/* The record at `*offset` of such a buffer, and moves behind it; NULL at the end. */
const bp_ring_record *next_record(const bp_buffer *records, size_t *offset,
                                  const void **ret_payload);

#endif
