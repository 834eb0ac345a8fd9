/*
 * A byte-bounded ring of records: the newest that fit, oldest out first.
 *
 * It lives in anonymous memory, or in a mapped file that outlives its writer: after `kill -9` at
 * any instant every record whose append had returned is in the file, and none is torn. Each record
 * carries its length, sequence, time, a checksum, and a commit mark that is written last.
 *
 * Any number of threads append. A reader copies records out in pieces, without a lock, and never
 * holds a writer up. A frozen view is all records up to an instant: nothing has to be
 * stopped or marked to take it.
 */
#ifndef BP_RING_RING_H
#define BP_RING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <bugpack/error.h>

#include "base/sink.h"

typedef struct bp_ring bp_ring;

/* A record as a reader sees it: this header, then `payload_bytes` bytes, then padding to 8. */
typedef struct bp_ring_record {
    uint64_t sequence;     /* from 1, without gaps, in the order of commits */
    uint64_t monotonic_ns; /* when it was appended */
    uint32_t payload_bytes;
    uint32_t tag; /* the writer's; this room does not look at it */
} bp_ring_record;

/*
 * A ring of `capacity_bytes`, rounded up to pages, for records with frames of 32 bytes (and, where
 * the newest turn ends, a gap that is smaller than the record that did not fit there), in memory
 * that is allocated and touched now: an append never allocates and never waits for a page. A forked
 * child finds zeros in it. Bounds: 4 KiB to 1 GiB.
 */
bugpack_status bp_ring_new(size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error);

/*
 * The same in a file: `fd` is an empty regular file, open for reading and writing, which the ring
 * allocates (posix_fallocate, so that a full disk is an error now and not SIGBUS later), maps, and
 * owns from then on. On failure the descriptor stays the caller's.
 *
 * Truncation by another process would be SIGBUS here: give bp_ring_fd to bp_file_guard_add
 * (platform/file_guard.h) with a callback that calls bp_ring_detach, and free the ring when it
 * cannot be guarded. Choose a directory on tmpfs: elsewhere the kernel writes pages back, and the
 * first store to a page after that waits for the file system.
 */
bugpack_status bp_ring_new_mapped(int fd, size_t capacity_bytes, bp_ring **ret_ring,
                                  bugpack_error *error);

/* The descriptor that the ring owns, to be guarded; -1 when it has none. */
int bp_ring_fd(const bp_ring *ring);

/*
 * Moves a ring out of its file into memory of its own, at the addresses that it has: appends and
 * copies go on, the file keeps what it has now, and may then be truncated without harm. Appends
 * wait for as long as copying what they wrote meanwhile takes. Does nothing without a file. To be
 * called by one thread at a time; others may be inside the ring. NO_MEMORY, UNSUPPORTED.
 */
bugpack_status bp_ring_detach(bp_ring *ring, bugpack_error *error);

/* Whether that has happened: what is appended from then on dies with the process. Any thread. */
bool bp_ring_is_detached(const bp_ring *ring);

/*
 * Closes it and gives its memory and its file back, without waiting for more than one append. What
 * is left, a few hundred bytes, refuses appends until bp_ring_free, so that writers may be inside,
 * or come at any time later. No reader may be. A second time it does nothing.
 */
void bp_ring_retire(bp_ring *ring);

/* Frees it; a file stays where it is, as it is. No other thread may be inside it. NULL is fine. */
void bp_ring_free(bp_ring *ring);

/*
 * Appends one record gathered from `parts`, stamped now. One that is larger than a quarter of the
 * ring is refused and counted; so is everything after bp_ring_close. The sequence number, or 0.
 * Any thread.
 */
uint64_t bp_ring_append(bp_ring *ring, uint32_t tag, const struct iovec *parts, size_t part_count);

/*
 * What a writer counts of its own records. It is written under the ring's lock and read without
 * one: a counter of its own would cost each append an atomic addition, some 6 ns. One tally belongs
 * to one ring.
 */
typedef struct bp_ring_tally {
    _Atomic uint64_t record_count;
    _Atomic uint64_t amount;  /* the sum of what the entries say */
    _Atomic uint64_t last_ns; /* the newest stamp; 0: none */
} bp_ring_tally;

/* An append with all that can be said. Zeros where nothing is. */
typedef struct bp_ring_entry {
    uint64_t monotonic_ns; /* the stamp, of a clock that the caller has just read; 0: now */
    uint32_t tag;
    const struct iovec *parts;
    size_t part_count;
    bp_ring_tally *tally; /* grows when the record is taken; NULL for none */
    uint64_t amount;
} bp_ring_entry;

/* bp_ring_append with these. */
uint64_t bp_ring_append_entry(bp_ring *ring, const bp_ring_entry *entry);

/* How many bytes of payload the largest record has that is not refused. Any thread. */
size_t bp_ring_payload_max(const bp_ring *ring);

/* Refuses all appends from now on; when it returns, none is under way. Any thread. */
void bp_ring_close(bp_ring *ring);

/* What a reader got. */
typedef struct bp_ring_view {
    uint64_t record_count;
    uint64_t first_sequence, last_sequence; /* 0 when the view is empty */
    uint64_t first_ns, last_ns;             /* monotonic times of the oldest and newest */
    uint64_t evicted_count; /* records that made room, or were overwritten during the copy */
    uint64_t refused_count; /* records that were too large */
    uint64_t damaged_bytes; /* of a file: what was neither free nor a whole record */
} bp_ring_view;

/*
 * Gives `sink` every record that is still there and was stamped up to `until_ns`, oldest first,
 * each a bp_ring_record with payload and padding, in pieces of whole records. Writers go on
 * meanwhile and never wait: a reader takes no lock. Its memory is 64 KiB, or one record when that
 * is larger. `sink` may do anything but free the ring; its failure is returned. Any thread.
 */
bugpack_status bp_ring_copy(bp_ring *ring, uint64_t until_ns, bp_sink *sink, void *context,
                            bp_ring_view *ret_view, bugpack_error *error);

/*
 * The same from the file of a ring whose writer is gone, with pread only: a file that is truncated,
 * damaged or hostile costs what is damaged, never a signal and never more than 1 MiB of memory.
 * CORRUPT when it is no ring at all.
 */
bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error);

#endif
