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

static bool is_there(int pid) {
    return mach_fake.is_alive && pid == getpid();
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
    struct proc_bsdinfo info = {.pbi_start_tvsec = mach_fake.start_secs,
                                .pbi_start_tvusec = mach_fake.start_usecs};
    memcpy(info.pbi_comm, mach_fake.command, sizeof info.pbi_comm);
    memcpy(info.pbi_name, mach_fake.name, sizeof info.pbi_name);
    return give(buffer, room, &info, sizeof info);
}

static int give_task(void *buffer, int room) {
    struct proc_taskinfo info = {.pti_faults = mach_fake.faults,
                                 .pti_pageins = mach_fake.pageins,
                                 .pti_threadnum = (int32_t)mach_fake.thread_count};
    return give(buffer, room, &info, sizeof info);
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

static int answer(int flavor, void *buffer, int room) {
    switch (flavor) {
    case PROC_PIDTBSDINFO:
        return give_bsd(buffer, room);
    case PROC_PIDTASKINFO:
        return give_task(buffer, room);
    case PROC_PIDLISTFDS:
        return give_fds(buffer, room);
    case PROC_PIDVNODEPATHINFO:
        return give_directory(buffer, room);
    default:
        return fail(EINVAL);
    }
}

static const char *name_flavor(int flavor) {
    switch (flavor) {
    case PROC_PIDTBSDINFO:
        return "proc_pidinfo(PROC_PIDTBSDINFO)";
    case PROC_PIDTASKINFO:
        return "counters";
    case PROC_PIDLISTFDS:
        return "open files";
    default:
        return "working directory";
    }
}

int proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int buffer_bytes) {
    int result;
    bool works = mach_fake_enter(name_flavor(flavor));
    (void)argument;
    if (!works) {
        result = fail(mach_fake_errno_code());
    } else if (!is_there(pid)) {
        result = fail(ESRCH);
    } else {
        result = answer(flavor, buffer, buffer_bytes);
    }
    mach_fake_leave();
    return result;
}

int proc_pid_rusage(int pid, int flavor, rusage_info_t *buffer) {
    /* Whoever asks for the old structure has no room for more. */
    struct rusage_info_v2 usage = {.ri_proc_start_abstime = mach_fake.started,
                                   .ri_diskio_bytesread = mach_fake.read_bytes,
                                   .ri_diskio_byteswritten = mach_fake.written_bytes};
    bool works = mach_fake_enter(flavor == RUSAGE_INFO_V2 ? "input and output" : "proc_pid_rusage");
    errno = works ? ESRCH : mach_fake_errno_code();
    works = works && is_there(pid);
    if (works) {
        memcpy(buffer, &usage,
               flavor == RUSAGE_INFO_V2 ? sizeof usage : sizeof(struct rusage_info_v0));
    }
    mach_fake_leave();
    return works ? 0 : -1;
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
