"""The errors of each system call's manual page that a caller can meet without a mistake of its own.

EFAULT is left out, and EBADF, EINVAL and EINTR where no valid call has them. EIO stands beside the
pages for whatever reads or writes a disk.
"""

import re

_OPEN = "EACCES EINTR ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOMEM ENOSPC EROFS EPERM EIO ENXIO"
_STAT = "EACCES ELOOP ENAMETOOLONG ENOENT ENOMEM ENOTDIR EIO"
_LINK = "EACCES EDQUOT EEXIST EIO ELOOP EMLINK ENOENT ENOMEM ENOSPC EPERM EROFS EXDEV"
_WRITE = "EAGAIN EDQUOT EFBIG EINTR EIO ENOSPC EPERM"
_CLONE = "EAGAIN ENOMEM EPERM"

ERRNOS = {call: names.split() for call, names in {
    "access": _STAT + " EROFS",
    "capset": "EPERM",
    "chdir": _STAT,
    "chmod": "EACCES EIO ELOOP ENAMETOOLONG ENOENT ENOMEM ENOTDIR EPERM EROFS",
    "clone": _CLONE,
    "clone3": _CLONE + " ENOSYS",
    "close": "EINTR EIO ENOSPC EDQUOT",
    "close_range": "EMFILE ENOMEM",
    "connect": "EACCES EAGAIN ECONNREFUSED EINTR",
    "dup": "EMFILE",
    "dup2": "EBUSY EINTR EMFILE",
    "dup3": "EBUSY EINTR EMFILE",
    "epoll_create1": "EMFILE ENFILE ENOMEM",
    "epoll_ctl": "ENOMEM ENOSPC EPERM",
    "epoll_wait": "EINTR",
    "eventfd2": "EMFILE ENFILE ENOMEM ENODEV",
    "execve": "E2BIG EACCES EAGAIN EIO EMFILE ENFILE ENOENT ENOEXEC ENOMEM EPERM ETXTBSY",
    "faccessat2": _STAT + " ENOSYS EPERM EROFS",
    "fallocate": "EFBIG EINTR EIO ENODEV ENOSPC ENOSYS EOPNOTSUPP EPERM",
    "fadvise64": "EINVAL",
    "fchdir": "EACCES EIO",
    "fchmod": "EIO EPERM EROFS",
    "fchown": "EIO EPERM EROFS",
    "fcntl": "EACCES EAGAIN EDEADLK EINTR EMFILE ENOLCK EPERM",
    "fdatasync": "EIO ENOSPC EROFS EDQUOT EINTR",
    "flock": "EINTR ENOLCK EWOULDBLOCK",
    "fstat": "EIO ENOMEM EOVERFLOW",
    "fstatfs": "EINTR EIO ENOMEM ENOSYS EOVERFLOW",
    "statfs": "EACCES EINTR EIO ENOMEM ENOSYS EOVERFLOW",
    "fsync": "EIO ENOSPC EROFS EDQUOT EINTR EINVAL",
    "ftruncate": "EFBIG EINTR EIO EPERM EROFS ETXTBSY",
    "getcwd": "EACCES ENAMETOOLONG ENOENT ENOMEM ERANGE",
    "getdents64": "EIO ENOENT ENOMEM",
    "getrandom": "EAGAIN EINTR ENOSYS",
    "gettid": "",
    "inotify_add_watch": "EACCES ENOENT ENOMEM ENOSPC",
    "inotify_init1": "EMFILE ENFILE ENOMEM",
    "ioctl": "ENOTTY EIO EPERM",
    "kill": "EPERM ESRCH",
    "linkat": _LINK,
    "lseek": "EIO ENXIO ESPIPE",
    "madvise": "EAGAIN EINVAL EIO ENOMEM EPERM",
    "memfd_create": "EMFILE ENFILE ENOMEM ENOSYS",
    "mkdirat": _LINK,
    "mkdir": _LINK,
    "mmap": "EACCES EAGAIN ENFILE ENODEV ENOMEM EPERM",
    "mprotect": "EACCES ENOMEM",
    "mremap": "EAGAIN ENOMEM",
    "msync": "EBUSY EIO ENOMEM",
    "munmap": "ENOMEM",
    "nanosleep": "EINTR",
    "clock_nanosleep": "EINTR",
    "newfstatat": _STAT,
    "open": _OPEN,
    "openat": _OPEN,
    "openat2": _OPEN + " E2BIG EAGAIN ENOSYS EXDEV",
    "pidfd_open": "EMFILE ENFILE ENODEV ENOMEM ENOSYS ESRCH",
    "pidfd_send_signal": "EPERM ESRCH ENOSYS",
    "pipe2": "EMFILE ENFILE",
    "poll": "EINTR ENOMEM",
    "ppoll": "EINTR ENOMEM",
    "prctl": "EACCES EINVAL EPERM",
    "pread64": "EINTR EIO EISDIR ENXIO EOVERFLOW ESRCH",
    "prlimit64": "EPERM ESRCH",
    "process_vm_readv": "ENOMEM EPERM ESRCH ENOSYS",
    "ptrace": "EBUSY EIO EPERM ESRCH",
    "pwrite64": _WRITE + " ENXIO EOVERFLOW ESPIPE",
    "pwritev": _WRITE,
    "read": "EAGAIN EINTR EIO EISDIR ESRCH",
    "readlink": _STAT + " EINVAL",
    "readlinkat": _STAT + " EINVAL",
    "readv": "EAGAIN EINTR EIO",
    "recvmsg": "EAGAIN ECONNREFUSED EINTR ENOMEM",
    "renameat2": _LINK + " EBUSY ENOTEMPTY ENOSYS EINVAL",
    "renameat": _LINK + " EBUSY ENOTEMPTY",
    "rmdir": "EACCES EBUSY ENOENT ENOMEM ENOTEMPTY EPERM EROFS",
    "sched_getaffinity": "ESRCH",
    "sched_setscheduler": "EPERM ESRCH EINVAL",
    "sendmsg": "EAGAIN ECONNRESET EINTR ENOBUFS ENOMEM EPIPE",
    "setgid": "EPERM",
    "setgroups": "ENOMEM EPERM",
    "setpgid": "EACCES EPERM ESRCH",
    "setresgid": "EAGAIN EPERM",
    "setresuid": "EAGAIN EPERM",
    "setrlimit": "EPERM",
    "setsid": "EPERM",
    "setuid": "EAGAIN EPERM",
    "socket": "EACCES EAFNOSUPPORT EMFILE ENFILE ENOBUFS ENOMEM",
    "socketpair": "EAFNOSUPPORT EMFILE ENFILE ENOMEM",
    "statfs": "EACCES EINTR EIO ELOOP ENAMETOOLONG ENOENT ENOMEM ENOSYS ENOTDIR EOVERFLOW",
    "statx": _STAT,
    "symlinkat": _LINK,
    "sysinfo": "",
    "tgkill": "EAGAIN ESRCH",
    "timerfd_create": "EMFILE ENFILE ENODEV ENOMEM",
    "umask": "",
    "uname": "",
    "unlink": "EACCES EBUSY EIO EISDIR ENOENT ENOMEM EPERM EROFS",
    "unlinkat": "EACCES EBUSY EIO EISDIR ENOENT ENOMEM ENOTEMPTY EPERM EROFS",
    "utimensat": "EACCES EPERM EROFS",
    "vfork": _CLONE,
    "wait4": "ECHILD EINTR",
    "waitid": "ECHILD EINTR",
    "write": _WRITE,
    "writev": _WRITE,
}.items()}

# No error of these reaches a caller. brk returns no error (allocations fails it by other means), and
# libc ends a process whose futex does what it cannot.
NEVER_FAIL = set("""arch_prctl brk futex exit exit_group getegid geteuid getgid getpgid getpid getppid gettid
getuid getpgrp restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend
rt_sigtimedwait sched_get_priority_max sched_get_priority_min sched_yield set_robust_list
set_tid_address sigaltstack sysinfo umask uname clock_gettime gettimeofday alarm getrusage
setitimer rt_tgsigqueueinfo getsid capget""".split())

# What a call can meet depends on its arguments, as strace prints them: the first that matches.
_NARROWER = [(re.compile(pattern), names.split()) for pattern, names in (
    (r"fcntl\(.*F_(OFD_)?(SET|GET)LKW?", "EACCES EAGAIN EDEADLK EINTR EIO ENOLCK"),
    (r"fcntl\(.*F_DUPFD", "EMFILE"),
    (r"fcntl\(.*F_SETLEASE", "EACCES EAGAIN ENOMEM"),
    (r"fcntl\(", ""),
    (r"newfstatat\(\d+.*, \"\",.*AT_EMPTY_PATH", "ENOMEM EOVERFLOW"),  # fstat, which asks no disk
    (r"wait(4|id)\(.*WNOHANG", "ECHILD"),
    # A pipe between threads, or a wake: it never waits, and has no disk that could be full.
    (r"write\((?![12]<)\d+<(pipe|anon_inode)", ""),
    (r"(unlink|rmdir).*\.ring", "EIO EPERM EROFS"),
)]


def errnos_of(call, line):
    """The errors that this call can meet."""
    for pattern, names in _NARROWER:
        if pattern.match(line):
            return names
    return ERRNOS.get(call, []) if call not in NEVER_FAIL else []
