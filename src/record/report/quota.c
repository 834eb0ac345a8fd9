#include "report/quota.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

const char bp_quota_reason[] =
    "as many reports of it as limits.per_signature allows were taken that day";

static const uint64_t secs_per_day = 86400;

/* As it is in the file, which may hold anything. A row is written at once. */
struct row {
    uint64_t hash; /* of the bug */
    uint32_t day;  /* since 1970 */
    uint32_t count, suppressed_count;
    uint32_t padding;
};

/* -1 where there is none that can be used. */
static int open_table(int dir_fd) {
    enum { try_count = 10 };
    const uint64_t pause_ns = 10 * BP_NS_PER_MS;
    struct stat info;
    int fd = openat(dir_fd, BP_QUOTA_NAME,
                    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    S_IRUSR | S_IWUSR);
    bool is_locked = false;
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) {
        for (int i = 0; i < try_count && !is_locked; i++) {
            if (i > 0) {
                bp_clock_sleep_until(bp_clock_monotonic_ns() + pause_ns);
            }
            is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        }
    }
    if (!is_locked) {
        bp_file_close(fd);
        return -1;
    }
    return fd;
}

/* A table that is locked, and the row of the bug. */
struct opened {
    int fd;
    struct row rows[BP_QUOTA_ROW_MAX], *row;
};

/* A bug without a row takes an empty one, or that of the oldest day. */
static void find_row(struct opened *opened, uint64_t hash, uint32_t today) {
    struct row *end = opened->rows + BP_QUOTA_ROW_MAX, *oldest = opened->rows;
    opened->row = opened->rows;
    while (opened->row < end && opened->row->hash != hash) {
        oldest = opened->row->day < oldest->day ? opened->row : oldest;
        opened->row++;
    }
    if (opened->row == end) {
        opened->row = oldest;
        *oldest = (struct row){.hash = hash};
    }
    if (opened->row->day != today) {
        opened->row->day = today;
        opened->row->count = 0;
    }
}

static bool open_row(const bp_quota *quota, struct opened *opened) {
    const char *app = quota->app != NULL ? quota->app : "";
    opened->fd = open_table(quota->dir_fd);
    if (opened->fd < 0) {
        return false;
    }
    memset(opened->rows, 0, sizeof opened->rows); /* a new file is shorter */
    (void)bp_file_read_range(opened->fd, opened->rows, sizeof opened->rows, 0);
    uint64_t hash = XXH3_64bits_withSeed(quota->key, strlen(quota->key),
                                         XXH3_64bits(app, strlen(app)) + (uint64_t)quota->kind);
    find_row(opened, hash, (uint32_t)(quota->wall_ns / BP_NS_PER_SEC / secs_per_day));
    return true;
}

static bool close_row(const struct opened *opened) {
    const off_t at = (const char *)opened->row - (const char *)opened->rows;
    bool is_written =
        pwrite(opened->fd, opened->row, sizeof *opened->row, at) == sizeof *opened->row;
    bp_file_close(opened->fd);
    return is_written;
}

bool bp_quota_take(const bp_quota *quota, uint32_t max_count, uint64_t *ret_suppressed_count) {
    struct opened opened;
    if (!open_row(quota, &opened)) {
        return true;
    }
    struct row *row = opened.row;
    bool is_taken = row->count < max_count;
    if (is_taken) {
        row->count++;
        *ret_suppressed_count = row->suppressed_count;
        row->suppressed_count = 0;
    } else if (row->suppressed_count < UINT32_MAX) {
        row->suppressed_count++;
    }
    return !close_row(&opened) || is_taken;
}

void bp_quota_give_back(const bp_quota *quota, uint64_t suppressed_count) {
    struct opened opened;
    if (open_row(quota, &opened)) {
        struct row *row = opened.row;
        row->count -= row->count > 0;
        row->suppressed_count += (uint32_t)suppressed_count;
        (void)close_row(&opened);
    }
}
