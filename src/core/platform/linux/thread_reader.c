#include "platform/linux/thread_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_text.h"

static bool parse_syscall(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    bool is_good = bp_thread_syscall_parse(text, text_bytes, &thread->syscall);
    thread->measured |= is_good ? 1u << BP_GROUP_SYSCALL : 0;
    return is_good;
}

/* "0" where it waits nowhere, and where we may not know. */
static bool parse_wait_channel(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    if (text_bytes > 0 && text_bytes < sizeof thread->wait_channel && text[0] != '0') {
        memcpy(thread->wait_channel, text, text_bytes);
    }
    thread->measured |= 1u << BP_GROUP_WAIT_CHANNEL;
    return true;
}

static bool parse_kernel_stack(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    thread->kernel_stack = text_bytes > 0 ? strndup(text, text_bytes) : NULL;
    if (text_bytes > 0 && thread->kernel_stack == NULL) {
        thread->errnos[BP_GROUP_KERNEL_STACK] = ENOMEM;
        return false;
    }
    thread->measured |= 1u << BP_GROUP_KERNEL_STACK;
    return true;
}

/* STAT is the first: it says what others there are. */
static const struct thread_file {
    const char *name;
    uint32_t groups;
    bool (*parse)(const char *text, size_t text_bytes, bp_thread_reading *thread); /* but stat */
} files[] = {{"stat", 1u << BP_GROUP_STAT, NULL},
             {"schedstat", 1u << BP_GROUP_SCHEDSTAT, bp_thread_parse_schedstat},
             {"status", 1u << BP_GROUP_STATUS | 1u << BP_GROUP_AFFINITY, bp_thread_parse_status},
             {"io", 1u << BP_GROUP_IO, bp_thread_parse_io},
             {"sched", BP_GROUPS_OF_SCHED, bp_thread_parse_sched},
             {"smaps_rollup", 1u << BP_GROUP_MEMORY, bp_thread_parse_smaps_rollup},
             {"syscall", 1u << BP_GROUP_SYSCALL, parse_syscall},
             {"wchan", 1u << BP_GROUP_WAIT_CHANNEL, parse_wait_channel},
             {"stack", 1u << BP_GROUP_KERNEL_STACK, parse_kernel_stack}};

/* A file that is missing while the thread still runs is one that this kernel does not have. */
static int errno_of_missing(const bp_thread_reader *reader, uint64_t tid) {
    int fd = bp_proc_open_at(reader->dir_fd, O_PATH, "%s%" PRIu64 "/stat", reader->task, tid);
    bp_file_close(fd);
    return fd < 0 ? ESRCH : ENOENT;
}

/* Sets the errno of each of the groups that is not measured. */
static void read_file(const bp_thread_reader *reader, const struct thread_file *file,
                      uint32_t groups, bp_thread_reading *thread) {
    int result = EBADMSG;
    ssize_t length = bp_proc_read_at(reader->dir_fd, reader->text, reader->text_bytes,
                                     "%s%" PRIu64 "/%s", reader->task, thread->tid, file->name);
    if (length < 0) {
        result = bp_proc_is_gone(errno) ? errno_of_missing(reader, thread->tid) : errno;
    } else if (file->parse != NULL) {
        (void)file->parse(reader->text, (size_t)length, thread);
    } else {
        (void)bp_thread_parse_stat(reader->text, (size_t)length, reader->ticks_per_sec, thread);
    }
    for (unsigned group = 0; group < BP_GROUP_COUNT; group++) {
        if ((groups >> group & 1u) != 0 && !bp_thread_has(thread, group) &&
            thread->errnos[group] == 0) {
            thread->errnos[group] = result;
        }
    }
}

void bp_thread_read(const bp_thread_reader *reader, uint64_t tid, uint32_t groups,
                    bp_thread_reading *ret_thread) {
    static const uint32_t memory = 1u << BP_GROUP_MEMORY;
    static const uint32_t waits =
        1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_WAIT_CHANNEL | 1u << BP_GROUP_KERNEL_STACK;
    *ret_thread = (bp_thread_reading){.tid = tid};
    if ((groups >> BP_GROUP_AFFINITY & 1u) != 0) {
        ret_thread->affinity = calloc(1, sizeof *ret_thread->affinity);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        uint32_t wanted = groups & files[i].groups;
        if (wanted != 0) {
            read_file(reader, &files[i], wanted, ret_thread);
        }
        if (ret_thread->errnos[BP_GROUP_STAT] == ESRCH) {
            return;
        }
        if (bp_proc_has_thread_ended(&ret_thread->stat)) {
            groups &= ~(memory | waits);
        } else if (ret_thread->stat.is_kernel_thread) {
            groups &= ~memory;
        }
    }
}

bool bp_thread_reader_has_stayed(const bp_thread_reader *reader, const bp_thread_reading *before) {
    static const bp_thread_counter compared[] = {
        BP_COUNTER_RUN, BP_COUNTER_RUN_DELAY, BP_COUNTER_TIMESLICES, BP_COUNTER_VOLUNTARY_SWITCHES};
    static const uint32_t groups =
        1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_SCHEDSTAT | 1u << BP_GROUP_STATUS;
    bp_thread_reading now;
    bp_thread_read(reader, before->tid, before->measured & groups, &now);
    bool is_same = now.measured == (before->measured & groups) &&
                   bp_thread_has(&now, BP_GROUP_SYSCALL) &&
                   memcmp(&now.syscall, &before->syscall, sizeof now.syscall) == 0;
    for (size_t i = 0; i < sizeof compared / sizeof compared[0] && is_same; i++) {
        is_same = now.counters[compared[i]] == before->counters[compared[i]];
    }
    return is_same;
}
