#include "probe/calibration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "probe/tool.h"

static const int64_t far_bytes = 65536;

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

bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes) {
    char slot_text[24];
    char answer[BP_CALIBRATION_TEXT_BYTES];
    size_t length;
    char words[3][32] = {"bugpack", "calibrate-jemalloc", ""};
    char prefix_text[32];
    (void)snprintf(words[2], sizeof words[2], "%d", BP_TOOL_EXTRA_FD);
    (void)snprintf(slot_text, sizeof slot_text, "%" PRIx64, slot);
    (void)snprintf(prefix_text, sizeof prefix_text, "%s", prefix[0] != '\0' ? prefix : "-");
    char *arguments[] = {words[0], words[1], words[2], slot_text, prefix_text, NULL};
    char *environment[] = {tunables, NULL};
    const bp_tool helper = {.path = calibrator_path,
                            .arguments = arguments,
                            .environment = environment,
                            .extra_fd = library_fd,
                            .deadline_ns = bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS};
    int result = bp_tool_run(&helper, answer, sizeof answer, &length);
    if (result == 0 && bp_calibration_parse(answer, length, slot, ret_calibration)) {
        return true;
    }
    if (result == 0 || result == EPROTO || result == ETIMEDOUT) {
        (void)snprintf(reason, reason_bytes, "%s",
                       result == ETIMEDOUT
                           ? "the helper that loads it did not end in time"
                           : "the helper that loads it gave no answer that makes sense");
        errno = 0;
    } else {
        (void)snprintf(reason, reason_bytes, "the helper could not be started: %s",
                       strerror(result));
        errno = result;
    }
    return false;
}
