/*
 * The list of this process's rings, for readers outside the process.
 *
 * Another process finds the list without symbols, also in a stripped or static host:
 *
 *  1. In each ELF image that /proc/PID/maps names, a PT_NOTE segment may hold a note with the name
 *     "bugpack" and type BP_ANCHOR_NOTE_TYPE. Its descriptor is a signed 64-bit number: the
 *     distance in bytes from the descriptor's own address to the bp_anchor.
 *  2. Read the bp_anchor with process_vm_readv and check magic, version and the sizes in it. More
 *     than one image can have an anchor: each lists its own rings. What did not fit is in another
 *     bp_anchor, at `next`.
 *  3. An entry whose sequence is even and whose address is not 0 describes a mapped ring, or, of
 *     the kind BP_ANCHOR_FILE, a bp_anchor_file: a small file of the session, as its directory has
 *     it. Read the ring (ring/frame.h says how it is laid out), then the entry's sequence again;
 *     when it changed, the ring was closed meanwhile and the copy is worthless.
 *
 * A forked child has its parent's list. Rings in memory read as zeros there: check the ring's
 * magic. Reading a mapping in this way breaks no lease, in contrast to opening the ring's file. The
 * path of a file is that of its mapping in /proc/PID/maps.
 */
#ifndef BP_RING_ANCHOR_H
#define BP_RING_ANCHOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/id.h"
#include "ring/ring.h"

#define BP_ANCHOR_MAGIC 0x31726e6170677562u /* "bugpanr1", little endian */
#define BP_ANCHOR_VERSION 2u
#define BP_ANCHOR_NOTE_TYPE 1u
#define BP_ANCHOR_FILE 64u /* beyond any bp_ring_kind */
/* Of one table. A session takes three for its rings, up to two for each channel, and its files. */
#define BP_ANCHOR_ENTRY_COUNT 512u

typedef struct bp_anchor_entry {
    _Atomic uint32_t sequence; /* odd while the rest is written */
    uint32_t kind;             /* a bp_ring_kind, or BP_ANCHOR_FILE */
    _Atomic uint64_t address;  /* of the ring's header page; 0: unused */
    uint64_t mapped_bytes;
    uint32_t number; /* of the channel */
    char session_id[BP_ID_BYTES];
    char unused[3];
} bp_anchor_entry;

typedef struct bp_anchor {
    uint64_t magic;
    uint32_t version;
    uint32_t entry_bytes, entry_count;
    uint32_t unused;
    _Atomic uint64_t
        next; /* address of the next table, which is never freed; 0: this is the last */
    bp_anchor_entry entries[BP_ANCHOR_ENTRY_COUNT];
} bp_anchor;

/* What is at the address of a file; `mapped_bytes` of its entry counts all of it. */
#define BP_ANCHOR_FILE_NAME_BYTES 32
typedef struct bp_anchor_file {
    char name[BP_ANCHOR_FILE_NAME_BYTES];
    unsigned char bytes[];
} bp_anchor_file;

/* Lists a ring or a file. Lock-free. Returns NULL where there is no memory for another table. Any
 * thread. */
bp_anchor_entry *bp_anchor_add(const void *address, uint64_t mapped_bytes, const char *session_id,
                               uint32_t kind, uint32_t number);

/* To be called before the ring is unmapped. NULL is fine. */
void bp_anchor_remove(bp_anchor_entry *entry);

/*
 * The small files of a session, in memory where other processes find them through the anchor.
 * Starts zeroed. One thread at a time.
 */
typedef struct bp_anchor_files {
    struct bp_anchor_files_item *first;
} bp_anchor_files;

/* Lists a copy of the file, instead of what had this name; NULL only removes that. Where memory or
 * the list is short, it is not listed. */
void bp_anchor_files_put(bp_anchor_files *files, const char *session_id, const char *name,
                         const void *bytes, size_t byte_count);
void bp_anchor_files_release(bp_anchor_files *files);

#endif
