/*
 * A ring of records with a fixed size in bytes: the newest that fit, oldest overwritten first, some
 * at a time (chunk.h).
 *
 * It is anonymous memory, or a mapped file that outlives its writer: after `kill -9` at any instant
 * the file has every record whose append had returned, and no torn one. Each record carries its
 * length, number, time and a checksum; it is there once its chunk counts it.
 *
 * Any number of threads append. A reader copies records in pieces without a lock and never delays a
 * writer, so a snapshot (all records up to an instant) needs nothing to be stopped or marked.
 */
#ifndef BP_RING_RING_H
#define BP_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/clock.h"
#include "base/sink.h"
#include "ring/record.h"

typedef struct bp_ring bp_ring;

/* The bytes that a ring adds to a payload, which is padded to 8. */
#define BP_RING_FRAME_BYTES 32u

/*
 * A ring of `capacity_bytes`, from 4 KiB to 1 GiB, rounded up to pages. A page costs nothing until
 * an append reaches it. A forked child finds zeros in it.
 */
bugpack_status bp_ring_new(size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error);

/*
 * The same in a file, which others may read. `fd` is an empty regular file, open for reading and
 * writing; the ring allocates all of it and maps it, and the caller may close the descriptor at
 * once. A forked child does not have the mapping.
 *
 * Whoever truncates the file ends this process by SIGBUS. Choose a directory on tmpfs: elsewhere a
 * store waits for the file system after the kernel has written its page back.
 */
bugpack_status bp_ring_new_mapped(int fd, size_t capacity_bytes, bp_ring **ret_ring,
                                  bugpack_error *error);

/*
 * Before the first append: threads that append at once do not wait for each other, as they do
 * otherwise. Then the oldest records are not overwritten strictly in their order, nor what others
 * logged within a second (chunk.h). NO_MEMORY.
 */
bugpack_status bp_ring_share(bp_ring *ring, bugpack_error *error);

/* All of an empty regular file, allocated and mapped, shared; a forked child does not have it. For
 * what is in a file of the session and is no ring, too. IO, INVALID, NO_MEMORY. */
bugpack_status bp_ring_map_file(int fd, size_t byte_count, void **ret_mapping,
                                bugpack_error *error);

/* True if it is in a file: else what is appended dies with the process. Any thread. */
bool bp_ring_is_in_file(const bp_ring *ring);

/* Notes in the ring that the process is alive now, for bp_ring_read_alive, or with this as the
 * monotonic time that its session was closed. Any thread. */
#define BP_RING_CLOSED_NS UINT64_MAX
void bp_ring_note_alive(bp_ring *ring, bp_instant now);

/* The bytes of its records now; not of a closed ring. Any thread. */
uint64_t bp_ring_used_bytes(bp_ring *ring);

/* The kinds of rings, as their files name them. Never renumbered. */
typedef enum bp_ring_kind {
    BP_RING_KIND_LOG = 1,
    BP_RING_KIND_NOTIFICATIONS = 2,
    BP_RING_KIND_HISTORY = 3,
    BP_RING_KIND_TRAFFIC = 4,
    BP_RING_KIND_PINS = 5
} bp_ring_kind;

/* Whose ring it is. */
typedef struct bp_ring_label {
    bp_ring_kind kind;
    uint32_t number;   /* of a channel, else 0 */
    const void *about; /* what recovery needs beside the records, for bp_ring_read_about */
    size_t about_bytes;
} bp_ring_label;

/* Writes the label into the ring. Once a ring. */
void bp_ring_publish(bp_ring *ring, const char *session_id, const bp_ring_label *label);

/*
 * Refuses appends from now on, and gives the memory back that no record is in, where the system can
 * do that. What was appended can still be read. Returns what the ring takes now. Any thread.
 */
size_t bp_ring_seal(bp_ring *ring);

/* True if a record was overwritten. Any thread. */
bool bp_ring_has_evicted(bp_ring *ring);

/*
 * Refuses appends from now on and frees the memory and the descriptor. Writers may be inside or
 * come later, until bp_ring_free; no reader may be. Idempotent.
 */
void bp_ring_close(bp_ring *ring);

/* Frees it; a file stays as it is. No other thread may be inside. NULL is fine. */
void bp_ring_free(bp_ring *ring);

/*
 * Appends one record. A record over bp_ring_payload_max is refused and counted; so is everything
 * after bp_ring_close. Returns its stamp, or 0. Any thread.
 */
uint64_t bp_ring_append_entry(bp_ring *ring, const bp_ring_entry *entry);

/* The same for a tag and parts alone. */
uint64_t bp_ring_append(bp_ring *ring, uint32_t tag, const struct iovec *parts, size_t part_count);

/* The largest payload that is not refused: a quarter of the ring, or BP_RING_PAYLOAD_MAX. Any
 * thread. */
size_t bp_ring_payload_max(const bp_ring *ring);

/* While all frames have no more bytes than this in sum, nothing is overwritten in a ring that is
 * not shared. Any thread. */
uint64_t bp_ring_room(const bp_ring *ring);

/* The sums of the records that were appended with this tally. Also when the ring is closed. Any
 * thread. */
bp_ring_tally bp_ring_read_tally(const bp_ring *ring, uint32_t tally);

/*
 * Gives `sink` every record stamped up to `until_ns`, oldest first, each a bp_ring_record with
 * payload and padding, in pieces of whole records. Takes no lock. Memory: 64 KiB, or one record
 * when that is larger, and one chunk for each lane that was in use. `sink` must not close the ring;
 * its failure is returned. Any thread.
 */
bugpack_status bp_ring_copy(bp_ring *ring, uint64_t until_ns, bp_sink *sink, void *context,
                            bp_ring_view *ret_view, bugpack_error *error);

/* The position of somebody who follows a ring. All zero: nothing read yet. */
typedef struct bp_ring_follower {
    uint64_t sequence;     /* of the last record, or an older one */
    uint64_t *seen_counts; /* of each chunk */
} bp_ring_follower;

void bp_ring_follower_release(bp_ring_follower *follower);

/*
 * Gives `sink` the records that were appended since the last call, as bp_ring_copy does, until
 * there are `max_bytes` of them. `ret_lost_count`: of records that were overwritten before.
 * `ret_is_rest`: there are more. After a failure the same records come again. One thread for each
 * follower.
 */
bugpack_status bp_ring_follow(bp_ring *ring, bp_ring_follower *follower, size_t max_bytes,
                              bp_sink *sink, void *context, uint64_t *ret_lost_count,
                              bool *ret_is_rest, bugpack_error *error);

/*
 * As bp_ring_copy of all records, but from the file of a ring whose writer has ended, by pread:
 * truncation, damage or forgery costs the damaged records, never a signal and never more than 6 MiB
 * of memory beside one record. What the device cannot read (EIO, at the second try too) is damage,
 * up to the end of its chunk. CORRUPT when the file is not a ring; every other failure may pass:
 * NO_MEMORY, IO when the file cannot be read, and that of `sink`.
 */
bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error);

/* When the process was last noted to be alive, or closed, according to a ring's file. False where
 * the file is no ring, or has no note. */
bool bp_ring_read_alive(int fd, bp_instant *ret_alive);

/* Reads the label of a ring's file; zeros where the file is no ring. */
void bp_ring_read_about(int fd, void *about, size_t about_bytes);

#endif
