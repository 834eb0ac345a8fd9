/*
 * What libproc of the fake kernel answers about the process's descendants, and what each has used.
 */
#include <errno.h>
#include <libproc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/mach/fake_kernel.h"

enum { LIST_THREAD_IDS = 28, HANDLE = 0x100000 };

mach_fake_child *mach_fake_find_child(int pid) {
    for (size_t i = 0; i < MACH_FAKE_CHILDREN_MAX; i++) {
        if (mach_fake.children[i].pid == pid) {
            return &mach_fake.children[i];
        }
    }
    return NULL;
}

static int fail(int code) {
    errno = code;
    return 0;
}

static int give(void *buffer, int room, const void *answer, size_t bytes) {
    if (room < 0 || (size_t)room < bytes) {
        return fail(ENOMEM);
    }
    memcpy(buffer, answer, bytes);
    return (int)bytes;
}

static uint64_t ticks_of_us(uint64_t microseconds) {
    return microseconds * (mach_fake.kernel_hertz / 1000000);
}

int mach_fake_ask_child(const mach_fake_child *child, int flavor, uint64_t argument, void *buffer,
                        int room) {
    struct proc_bsdinfo bsd = {.pbi_status = child->is_zombie ? 5 : 2,
                               .pbi_xstatus = (uint32_t)child->wait_status,
                               .pbi_ppid = (uint32_t)child->parent_pid,
                               .pbi_start_tvsec = child->start_secs,
                               .pbi_comm = "child"};
    struct proc_taskinfo task = {.pti_virtual_size = (uint64_t)9 << 20,
                                 .pti_resident_size = (uint64_t)3 << 20,
                                 .pti_total_user = ticks_of_us(child->used_us),
                                 .pti_threadnum = 1};
    struct proc_threadinfo thread = {.pth_user_time = child->used_us * 1000, .pth_name = "only"};
    /* The main thread of every program has the same address; its id nobody else has. */
    uint64_t id = flavor == PROC_PIDLISTTHREADS ? HANDLE : (uint64_t)child->pid * 10;
    bool sees_zombies = flavor == PROC_PIDTBSDINFO && argument != 0;
    if (child->is_zombie && !sees_zombies) {
        return fail(ESRCH);
    }
    if (child->is_denied) {
        return fail(EPERM);
    }
    switch (flavor) {
    case PROC_PIDTBSDINFO:
        return give(buffer, room, &bsd, sizeof bsd);
    case PROC_PIDTASKINFO:
        return give(buffer, room, &task, sizeof task);
    case LIST_THREAD_IDS:
        return mach_fake.has_thread_ids ? give(buffer, room, &id, sizeof id) : fail(EINVAL);
    case PROC_PIDLISTTHREADS:
        return give(buffer, room, &id, sizeof id);
    case PROC_PIDTHREADID64INFO:
    case PROC_PIDTHREADINFO:
        return give(buffer, room, &thread, sizeof thread);
    default:
        return fail(EINVAL);
    }
}

/* A list is cut to the room that there is, and nothing says so. */
int proc_listpids(uint32_t type, uint32_t parent, void *buffer, int buffer_bytes) {
    int *pids = buffer;
    int count = 0;
    if (!mach_fake_enter("proc_listpids")) {
        count = fail(mach_fake_errno_code());
    } else if (type != PROC_PPID_ONLY) {
        count = fail(EINVAL);
    } else {
        uint32_t first = parent == (uint32_t)getpid() ? MACH_FAKE_PID : parent;
        int fit = buffer_bytes / (int)sizeof *pids;
        for (size_t i = 0; i < MACH_FAKE_CHILDREN_MAX && count < fit; i++) {
            const mach_fake_child *child = &mach_fake.children[i];
            if (child->pid != 0 && (uint32_t)child->parent_pid == first) {
                pids[count++] = child->pid;
            }
        }
    }
    mach_fake_leave();
    return count * (int)sizeof *pids;
}

/* The process itself: its threads, living and ended. */
static void use_own(struct rusage_info_v2 *usage) {
    uint64_t user_us = mach_fake.ended_us;
    uint64_t system_us = 0;
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        user_us += mach_fake.threads[i].user_us;
        system_us += mach_fake.threads[i].system_us;
    }
    *usage = (struct rusage_info_v2){.ri_user_time = ticks_of_us(user_us),
                                     .ri_system_time = ticks_of_us(system_us),
                                     .ri_proc_start_abstime = mach_fake.started,
                                     .ri_child_user_time = ticks_of_us(mach_fake.waited_us),
                                     .ri_diskio_bytesread = mach_fake.read_bytes,
                                     .ri_diskio_byteswritten = mach_fake.written_bytes};
}

/* 0, or an errno. Unlike the other calls this one answers for a zombie. */
static int use(int pid, struct rusage_info_v2 *usage) {
    const mach_fake_child *child = mach_fake_find_child(pid);
    if (child != NULL && child->is_denied) {
        return EPERM;
    }
    if (child != NULL) {
        *usage = (struct rusage_info_v2){.ri_system_time = ticks_of_us(child->used_us),
                                         .ri_proc_start_abstime = child->started,
                                         .ri_child_system_time = ticks_of_us(child->waited_us)};
        return 0;
    }
    if (!mach_fake.is_alive || (pid != MACH_FAKE_PID && pid != getpid())) {
        return ESRCH;
    }
    use_own(usage);
    return 0;
}

int proc_pid_rusage(int pid, int flavor, rusage_info_t *buffer) {
    /* Whoever asks for an old structure has no room for more. */
    static const size_t sizes[] = {sizeof(struct rusage_info_v0), sizeof(struct rusage_info_v1),
                                   sizeof(struct rusage_info_v2)};
    struct rusage_info_v2 usage;
    bool works = mach_fake_enter(flavor == RUSAGE_INFO_V2 ? "input and output" : "proc_pid_rusage");
    int result = works ? use(pid, &usage) : mach_fake_errno_code();
    if (works && result == 0) {
        memcpy(buffer, &usage, sizes[flavor]);
    } else {
        errno = result;
    }
    mach_fake_leave();
    return works && result == 0 ? 0 : -1;
}
