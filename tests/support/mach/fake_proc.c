/*
 * What libproc and sysctl of the fake kernel answer.
 */
#include <errno.h>
#include <libproc.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "support/mach/fake_kernel.h"

enum { LIST_THREAD_IDS = 28, HANDLES = 0x100000 };

static bool is_there(int pid) {
    return mach_fake.is_alive && (pid == MACH_FAKE_PID || pid == getpid());
}

static int fail(int code) {
    errno = code;
    return 0;
}

static int give(void *buffer, int room, const void *answer, size_t bytes) {
    if (room < 0 || (size_t)room < bytes) {
        return fail(ENOMEM);
    }
    size_t missing = mach_fake.short_by > 0 ? (size_t)mach_fake.short_by : 0;
    bytes -= missing < bytes ? missing : bytes;
    memcpy(buffer, answer, bytes);
    return (int)bytes;
}

static int give_bsd(void *buffer, int room) {
    struct proc_bsdinfo info = {.pbi_flags = mach_fake.flags,
                                .pbi_status = mach_fake.status,
                                .pbi_ppid = mach_fake.parent_pid,
                                .pbi_uid = mach_fake.uid,
                                .pbi_gid = mach_fake.gid,
                                .pbi_start_tvsec = mach_fake.start_secs,
                                .pbi_start_tvusec = mach_fake.start_usecs};
    memcpy(info.pbi_comm, mach_fake.command, sizeof info.pbi_comm);
    memcpy(info.pbi_name, mach_fake.name, sizeof info.pbi_name);
    return give(buffer, room, &info, sizeof info);
}

static int give_task(void *buffer, int room) {
    uint64_t per_us = mach_fake.kernel_hertz / 1000000;
    struct proc_taskinfo info = {.pti_virtual_size = mach_fake.virtual_bytes,
                                 .pti_resident_size = mach_fake.resident_bytes,
                                 .pti_total_user = mach_fake.ended_us * per_us,
                                 .pti_faults = mach_fake.faults,
                                 .pti_pageins = mach_fake.pageins,
                                 .pti_threadnum = (int32_t)mach_fake.thread_count,
                                 .pti_numrunning = mach_fake.running};
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        info.pti_total_user += mach_fake.threads[i].user_us * per_us;
        info.pti_total_system += mach_fake.threads[i].system_us * per_us;
    }
    return give(buffer, room, &info, sizeof info);
}

/* A list is cut to the room that there is, and nothing says so. */
static int give_threads(uint64_t *ids, int room, uint64_t offset) {
    if (room < (int)sizeof *ids) {
        return fail(ENOMEM);
    }
    size_t fit = (size_t)room / sizeof *ids;
    size_t count = mach_fake.thread_count < fit ? mach_fake.thread_count : fit;
    for (size_t i = 0; i < count; i++) {
        ids[i] = mach_fake.threads[i].id + offset;
    }
    return (int)(count * sizeof *ids);
}

static int give_thread(void *buffer, int room, uint64_t id) {
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        const mach_fake_thread *thread = &mach_fake.threads[i];
        if (thread->id == id) {
            struct proc_threadinfo info = {.pth_user_time = thread->user_us * 1000,
                                           .pth_system_time = thread->system_us * 1000};
            memcpy(info.pth_name, thread->name, sizeof info.pth_name);
            return give(buffer, room, &info, sizeof info);
        }
    }
    return fail(ESRCH);
}

static int give_fds(struct proc_fdinfo *list, int room) {
    size_t count = (size_t)mach_fake.fd_count;
    if (list == NULL) {
        return (int)((count + 20) * sizeof *list);
    }
    size_t fit = (size_t)room / sizeof *list;
    count = count < fit ? count : fit;
    memset(list, 0, count * sizeof *list);
    return (int)(count * sizeof *list);
}

static int give_directory(void *buffer, int room) {
    struct proc_vnodepathinfo info;
    memset(&info, 0, sizeof info);
    (void)snprintf(info.pvi_cdir.vip_path, sizeof info.pvi_cdir.vip_path, "%s",
                   mach_fake.directory);
    return give(buffer, room, &info, sizeof info);
}

static int answer(int flavor, uint64_t argument, void *buffer, int room) {
    switch (flavor) {
    case PROC_PIDTBSDINFO:
        return give_bsd(buffer, room);
    case PROC_PIDTASKINFO:
        return give_task(buffer, room);
    case PROC_PIDLISTFDS:
        return give_fds(buffer, room);
    case PROC_PIDVNODEPATHINFO:
        return give_directory(buffer, room);
    case LIST_THREAD_IDS:
        return mach_fake.has_thread_ids ? give_threads(buffer, room, 0) : fail(EINVAL);
    case PROC_PIDLISTTHREADS:
        return give_threads(buffer, room, HANDLES);
    case PROC_PIDTHREADID64INFO:
        return give_thread(buffer, room, argument);
    case PROC_PIDTHREADINFO:
        return give_thread(buffer, room, argument - HANDLES);
    default:
        return fail(EINVAL);
    }
}

static const char *name_flavor(int flavor) {
    switch (flavor) {
    case PROC_PIDTBSDINFO:
        return "proc_pidinfo(PROC_PIDTBSDINFO)";
    case PROC_PIDTASKINFO:
        return "proc_pidinfo(PROC_PIDTASKINFO)";
    case LIST_THREAD_IDS:
        return "proc_pidinfo(PROC_PIDLISTTHREADIDS)";
    case PROC_PIDLISTTHREADS:
        return "proc_pidinfo(PROC_PIDLISTTHREADS)";
    case PROC_PIDTHREADID64INFO:
        return "proc_pidinfo(PROC_PIDTHREADID64INFO)";
    case PROC_PIDTHREADINFO:
        return "proc_pidinfo(PROC_PIDTHREADINFO)";
    case PROC_PIDLISTFDS:
        return "open files";
    default:
        return "working directory";
    }
}

int proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int buffer_bytes) {
    int result;
    bool works = mach_fake_enter(name_flavor(flavor));
    const mach_fake_child *child = mach_fake_find_child(pid);
    if (!works) {
        result = fail(mach_fake_errno_code());
    } else if (child != NULL) {
        result = mach_fake_ask_child(child, flavor, argument, buffer, buffer_bytes);
    } else if (!is_there(pid)) {
        result = fail(ESRCH);
    } else {
        result = answer(flavor, argument, buffer, buffer_bytes);
    }
    mach_fake_leave();
    return result;
}

int proc_pidpath(int pid, void *buffer, uint32_t buffer_bytes) {
    bool works = mach_fake_enter("executable");
    int result = fail(works ? ESRCH : mach_fake_errno_code());
    if (works && is_there(pid)) {
        size_t length = strlen(mach_fake.path);
        result = give(buffer, (int)buffer_bytes, mach_fake.path, length);
    }
    mach_fake_leave();
    return result;
}

int sysctl(int *name, unsigned name_count, void *old, size_t *old_bytes, void *new,
           size_t new_bytes) {
    (void)new;
    (void)new_bytes;
    bool works = mach_fake_enter("command line");
    int result = -1;
    errno = works ? EINVAL : mach_fake_errno_code();
    if (works && name_count == 2 && name[1] == KERN_ARGMAX) {
        int limit = 1 << 20;
        memcpy(old, &limit, sizeof limit);
        result = 0;
    } else if (works && name_count == 3 && name[1] == KERN_PROCARGS2 && is_there(name[2]) &&
               *old_bytes >= mach_fake.arguments_bytes) {
        memcpy(old, mach_fake.arguments, mach_fake.arguments_bytes);
        *old_bytes = mach_fake.arguments_bytes;
        result = 0;
    }
    mach_fake_leave();
    return result;
}

int sysctlbyname(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes) {
    (void)new;
    (void)new_bytes;
    bool works = mach_fake_enter("hw.tbfrequency") && mach_fake.has_frequency &&
                 strcmp(name, "hw.tbfrequency") == 0 && *old_bytes == 8;
    if (works) {
        memcpy(old, &mach_fake.kernel_hertz, 8);
    }
    mach_fake_leave();
    return works ? 0 : -1;
}

/* posix/machine.c asks this one when it is compiled for the fake Mac. */
int mach_fake_uname(struct utsname *ret_identity);

int mach_fake_uname(struct utsname *ret_identity) {
    memset(ret_identity, 0, sizeof *ret_identity);
    (void)snprintf(ret_identity->sysname, sizeof ret_identity->sysname, "Darwin");
    (void)snprintf(ret_identity->release, sizeof ret_identity->release, "23.6.0");
    (void)snprintf(ret_identity->machine, sizeof ret_identity->machine, "arm64");
    return 0;
}
