/*
 * Reads the files of one thread of any process: the one place that knows what a missing, refused or
 * malformed one means.
 */
#ifndef BP_PLATFORM_LINUX_THREAD_READER_H
#define BP_PLATFORM_LINUX_THREAD_READER_H

#include <stddef.h>

#include "platform/thread_reading.h"

/* status lists up to 65,536 supplementary groups; 64 KiB hold any usual number. */
#define BP_THREAD_TEXT_BYTES ((size_t)64 * 1024)

typedef struct bp_thread_reader {
    int dir_fd;             /* borrowed */
    const char *task;       /* the directory of the threads below it: "", "task/", "7/task/" */
    uint64_t ticks_per_sec; /* for the group STAT */
    char *text;             /* one file; the caller's */
    size_t text_bytes;      /* 512 are enough for SCHEDSTAT, IO and SYSCALL */
} bp_thread_reader;

/*
 * Reads these groups, a bit each. Each that cannot be read has its errno: ESRCH when the thread has
 * ended; ENOENT when this kernel has no such file, and ENODATA when it does not count the group;
 * EBADMSG when the file is malformed. When the thread has ended before STAT, no other file is read.
 * Memory and waits of a zombie are passed over, which has none, and the memory of a kernel thread.
 * The caller releases `ret_thread`.
 */
void bp_thread_read(const bp_thread_reader *reader, uint64_t tid, uint32_t groups,
                    bp_thread_reading *ret_thread);

/* True if a thread is in the same call still, and has not run since `before` was read: by the
 * scheduler's counters, or by its switches where those were read. */
bool bp_thread_reader_has_stayed(const bp_thread_reader *reader, const bp_thread_reading *before);

#endif
