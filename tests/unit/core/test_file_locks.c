/*
 * Locks of files, as the kernel lists them.
 */
#include "platform/linux/file_locks.h"
#include "unit/unit.h"

/* Recorded from Linux 6.1. */
static const char recorded[] = "1: FLOCK  ADVISORY  WRITE 1512 fe:00:10959075 0 EOF\n"
                               "1: -> FLOCK  ADVISORY  WRITE 1831 fe:00:10959075 0 EOF\n"
                               "1:  -> FLOCK  ADVISORY  WRITE 5912 fe:00:10959075 0 EOF\n"
                               "2: POSIX  ADVISORY  READ 812 00:1a:77 128 128\n"
                               "2: -> POSIX  ADVISORY  WRITE 900 00:1a:77 0 EOF\n"
                               "3: OFDLCK ADVISORY  WRITE -1 fe:00:31 0 EOF\n"
                               "3: -> OFDLCK ADVISORY  WRITE -1 fe:00:31 0 EOF\n"
                               "4: LEASE  BREAKING  READ 4711 fe:00:12 0 EOF\n"
                               "5: LEASE  ACTIVE    WRITE 4712 fe:00:13 0 EOF\n"
                               "6: DELEG  ACTIVE    READ 0 fe:00:14 0 EOF\n";

/* The process that holds what is wanted; INT64_MAX: nobody is known to. */
static int64_t holder_of(bp_file_lock wanted) {
    bp_file_lock holder;
    bool is_found = bp_file_lock_find_holder(recorded, sizeof recorded - 1, &wanted, &holder);
    return is_found ? holder.pid : INT64_MAX;
}

Test(file_locks, finds_who_holds_what_is_waited_for) {
    cr_expect(eq(
        i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_FLOCK, .pid = 1831, .inode = 10959075}),
        1512));
    cr_expect(eq(
        i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_FLOCK, .pid = 5912, .inode = 10959075}),
        1512));
    cr_expect(eq(
        i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_POSIX, .pid = 900, .inode = 77}), 812));
    cr_expect(eq(
        i64,
        holder_of((bp_file_lock){.kind = BP_FILE_LOCK_OFD, .pid = 7, .major = 0xfe, .inode = 31}),
        -1));
}

Test(file_locks, finds_nobody_for_another_file_kind_or_process) {
    cr_expect(eq(i64,
                 holder_of((bp_file_lock){.kind = BP_FILE_LOCK_FLOCK, .pid = 1831, .inode = 77}),
                 INT64_MAX));
    cr_expect(eq(
        i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_POSIX, .pid = 1831, .inode = 10959075}),
        INT64_MAX));
    cr_expect(eq(
        i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_FLOCK, .pid = 1512, .inode = 10959075}),
        INT64_MAX));
    cr_expect(eq(i64, holder_of((bp_file_lock){.kind = BP_FILE_LOCK_OFD, .inode = 31}), INT64_MAX));
}

Test(file_locks, knows_the_only_lease_that_is_broken) {
    bp_file_lock lease;
    cr_assert(bp_file_lock_find_lease(recorded, sizeof recorded - 1, &lease));
    cr_expect(eq(i64, lease.pid, 4711));
    cr_expect(eq(u64, lease.inode, 12));
    static const char two[] = "1: LEASE  BREAKING  READ 1 fe:00:12 0 EOF\n"
                              "2: LEASE  BREAKING  READ 2 fe:00:13 0 EOF\n";
    cr_expect(not(bp_file_lock_find_lease(two, sizeof two - 1, &lease)));
}

Test(file_locks, rejects_what_is_malformed) {
    static const char *const lines[] = {"",
                                        "1:",
                                        "1: FLOCK",
                                        "1: FLOCK  ADVISORY  WRITE",
                                        "1: FLOCK  ADVISORY  WRITE x fe:00:1 0 EOF",
                                        "1: FLOCK  ADVISORY  WRITE 1 fe:00 0 EOF",
                                        "1: OTHER  ADVISORY  WRITE 1 fe:00:1 0 EOF",
                                        "1: FLOCK  ADVISORY  WRITE 99999999999 fe:00:1 0 EOF",
                                        "-> FLOCK  ADVISORY  WRITE 1 fe:00:1 0 EOF"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bp_file_lock lock = {.inode = 5};
        cr_expect(not(bp_file_lock_parse(lines[i], strlen(lines[i]), &lock)), "%s", lines[i]);
        cr_expect(eq(u64, lock.inode, 5));
    }
}

Test(file_locks, knows_the_calls_that_wait) {
    enum { FCNTL = 72, FLOCK = 73, SETLK = 6, SETLKW = 7, OFD_SETLKW = 38 };
    bp_thread_syscall syscall = {.place = BP_THREAD_IN_CALL, .number = FLOCK, .arguments = {4, 2}};
    bp_file_lock_kind kind;
    uint32_t fd;
    cr_assert(bp_file_lock_of_call(BP_SYSCALL_X86_64, &syscall, &fd, &kind));
    cr_expect(fd == 4 && kind == BP_FILE_LOCK_FLOCK);
    syscall =
        (bp_thread_syscall){.place = BP_THREAD_IN_CALL, .number = FCNTL, .arguments = {5, SETLKW}};
    cr_assert(bp_file_lock_of_call(BP_SYSCALL_X86_64, &syscall, &fd, &kind));
    cr_expect(fd == 5 && kind == BP_FILE_LOCK_POSIX);
    syscall.arguments[1] = OFD_SETLKW;
    cr_assert(bp_file_lock_of_call(BP_SYSCALL_X86_64, &syscall, &fd, &kind));
    cr_expect(kind == BP_FILE_LOCK_OFD);
    syscall.arguments[1] = SETLK;
    cr_expect(not(bp_file_lock_of_call(BP_SYSCALL_X86_64, &syscall, &fd, &kind)));
    cr_expect(not(bp_file_lock_of_call(BP_SYSCALL_UNKNOWN, &syscall, &fd, &kind)));
}
