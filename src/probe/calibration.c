#include "probe/calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

static const int64_t far_bytes = 65536;

/* Where the helper finds the library, whatever number it has here. */
enum { helper_library_fd = 3 };

bool bp_calibration_is_plausible(const bp_calibration *calibration) {
    int64_t one = calibration->allocated_place;
    int64_t other = calibration->deallocated_place;
    return one != other && one > -far_bytes && one < far_bytes && other > -far_bytes &&
           other < far_bytes && one % 8 == 0 && other % 8 == 0;
}

const char *bp_calibration_refusal(const bp_calibration_facts *facts) {
    const struct stat *mapped = facts->mapped;
    const struct stat *named = facts->named;
    if (!facts->has_own_root) {
        return "the process has another root directory than we have: it is a container's";
    }
    if (named == NULL) {
        return "its path names no file here: it is a container's, or was deleted";
    }
    if (!S_ISREG(mapped->st_mode) || mapped->st_dev != named->st_dev ||
        mapped->st_ino != named->st_ino) {
        return "its path names another file here: it is a container's, or was replaced";
    }
    if (mapped->st_uid != 0 && mapped->st_uid != facts->user) {
        return "it belongs to another user";
    }
    if ((mapped->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "others may write to it";
    }
    if (!facts->owners_count) {
        return "it is on a file system that is mounted nosuid, where anybody can be the owner";
    }
    return NULL;
}

bool bp_calibration_owners_count(int fd) {
    struct statvfs file_system;
    struct stat file, root;
    if (fstatvfs(fd, &file_system) != 0 || fstat(fd, &file) != 0) {
        return false;
    }
    return (file_system.f_flag & ST_NOSUID) == 0 ||
           (stat("/", &root) == 0 && root.st_dev == file.st_dev);
}

void bp_calibration_format(uint64_t slot, const bp_calibration *calibration,
                           char out[BP_CALIBRATION_TEXT_BYTES]) {
    (void)snprintf(out, BP_CALIBRATION_TEXT_BYTES,
                   "bugpack-jemalloc 1\nslot %" PRIx64 "\nallocated %" PRId64
                   "\ndeallocated %" PRId64 "\n",
                   slot, calibration->allocated_place, calibration->deallocated_place);
}

bool bp_calibration_parse(const char *text, size_t text_bytes, uint64_t slot,
                          bp_calibration *ret_calibration) {
    char copy[BP_CALIBRATION_TEXT_BYTES];
    char again[BP_CALIBRATION_TEXT_BYTES];
    bp_calibration calibration;
    uint64_t found_slot;
    if (text_bytes >= sizeof copy || memchr(text, '\0', text_bytes) != NULL) {
        return false;
    }
    memcpy(copy, text, text_bytes);
    copy[text_bytes] = '\0';
    if (sscanf(copy,
               "bugpack-jemalloc 1\nslot %16" SCNx64 "\nallocated %7" SCNd64
               "\ndeallocated %7" SCNd64 "\n",
               &found_slot, &calibration.allocated_place, &calibration.deallocated_place) != 3 ||
        found_slot != slot || !bp_calibration_is_plausible(&calibration)) {
        return false;
    }
    /* Reject any other text that sscanf accepts. */
    bp_calibration_format(slot, &calibration, again);
    if (strcmp(copy, again) != 0) {
        return false;
    }
    *ret_calibration = calibration;
    return true;
}

/*
 * glibc reserves little space for thread-local blocks of libraries loaded late; jemalloc's 2.6 KB
 * fit only with this tunable.
 */
static char tunables[] = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536";

static int start_helper(const char *path, int library_fd, int out_fd, char *const *arguments,
                        pid_t *ret_pid) {
    char *environment[] = {tunables, NULL};
    bp_spawn spawn;
    int result = bp_spawn_init(&spawn, 0);
    if (result != 0) {
        return result;
    }
    /* Both numbers are 4 or more: the copies cannot overwrite each other, and are not close-on-
     * exec. */
    (void)posix_spawn_file_actions_addopen(&spawn.actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&spawn.actions, out_fd, 1);
    (void)posix_spawn_file_actions_addopen(&spawn.actions, 2, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&spawn.actions, library_fd, helper_library_fd);
    result = posix_spawn(ret_pid, path, &spawn.actions, &spawn.attributes, arguments, environment);
    bp_spawn_release(&spawn);
    return result;
}

/* Reads until the end of file, the deadline, or too much. Returns the length, or -1 for the two. */
static ssize_t read_answer(int fd, char *out, size_t out_bytes, uint64_t deadline_ns) {
    size_t length = 0;
    while (length < out_bytes) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        struct pollfd waited = {fd, POLLIN, 0};
        if (now_ns >= deadline_ns) {
            return -1;
        }
        (void)poll(&waited, 1, (int)((deadline_ns - now_ns) / BP_NS_PER_MS) + 1);
        ssize_t count = waited.revents != 0 ? read(fd, out + length, out_bytes - length) : -1;
        if (count == 0) {
            return (ssize_t)length;
        }
        length += count > 0 ? (size_t)count : 0;
    }
    return -1;
}

static void end_helper(pid_t pid) {
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes) {
    char slot_text[24];
    char answer[BP_CALIBRATION_TEXT_BYTES];
    int answer_pipe[2];
    pid_t pid = 0;
    char words[3][32] = {"bugpack", "calibrate-jemalloc", "3"};
    char prefix_text[32];
    (void)snprintf(slot_text, sizeof slot_text, "%" PRIx64, slot);
    (void)snprintf(prefix_text, sizeof prefix_text, "%s", prefix[0] != '\0' ? prefix : "-");
    char *arguments[] = {words[0], words[1], words[2], slot_text, prefix_text, NULL};
    if (pipe2(answer_pipe, O_CLOEXEC) != 0) {
        int pipe_errno = errno;
        (void)snprintf(reason, reason_bytes, "no pipe could be made: %s", strerror(pipe_errno));
        errno = pipe_errno;
        return false;
    }
    int high_out = fcntl(answer_pipe[1], F_DUPFD_CLOEXEC, helper_library_fd + 1);
    int high_library = fcntl(library_fd, F_DUPFD_CLOEXEC, helper_library_fd + 1);
    int failure = high_out < 0 || high_library < 0
                      ? errno
                      : start_helper(calibrator_path, high_library, high_out, arguments, &pid);
    const int ours[] = {answer_pipe[1], high_out, high_library};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        bp_file_close(ours[i]);
    }
    ssize_t length = -1;
    if (failure == 0) {
        uint64_t deadline_ns = bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS;
        length = read_answer(answer_pipe[0], answer, sizeof answer, deadline_ns);
        end_helper(pid);
    }
    (void)close(answer_pipe[0]);
    if (failure != 0) {
        (void)snprintf(reason, reason_bytes, "the helper could not be started: %s",
                       strerror(failure));
        errno = failure;
        return false;
    }
    if (length < 0 || !bp_calibration_parse(answer, (size_t)length, slot, ret_calibration)) {
        (void)snprintf(reason, reason_bytes, "%s",
                       length < 0 ? "the helper that loads it did not end in time"
                                  : "the helper that loads it gave no answer that makes sense");
        errno = 0;
        return false;
    }
    return true;
}
