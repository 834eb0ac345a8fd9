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

/* As it is in the file, which may hold anything. */
struct row {
    uint64_t hash; /* of the bug */
    uint32_t day;  /* since 1970 */
    uint32_t count, suppressed_count;
    uint32_t padding;
};

struct table {
    char magic[8];
    struct row rows[BP_QUOTA_ROW_MAX];
};

static const char magic[8] = "bpquota1";

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
        is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        for (int i = 1; i < try_count && !is_locked; i++) {
            bp_clock_sleep_until(bp_clock_monotonic_ns() + pause_ns);
            is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        }
    }
    if (!is_locked) {
        bp_file_close(fd);
        return -1;
    }
    return fd;
}

/* The row of a bug, or the one whose place it takes. */
static struct row *find_row(struct table *table, uint64_t hash) {
    struct row *oldest = table->rows;
    for (struct row *row = table->rows; row < table->rows + BP_QUOTA_ROW_MAX; row++) {
        if (row->hash == hash) {
            return row;
        }
        oldest = row->day < oldest->day ? row : oldest;
    }
    *oldest = (struct row){.hash = hash};
    return oldest;
}

static uint64_t hash_bug(const char *app, bp_report_kind kind, const char *key) {
    uint64_t hash = XXH3_64bits(app != NULL ? app : "", app != NULL ? strlen(app) : 0);
    return XXH3_64bits_withSeed(key, strlen(key), hash + (uint64_t)kind);
}

/* A table that is locked, and the row of the bug, of this day. */
struct opened {
    int fd;
    bool is_new;
    struct table table;
    struct row *row;
};

static bool open_row(const bp_quota *quota, struct opened *opened) {
    const uint32_t today = (uint32_t)(quota->wall_ns / BP_NS_PER_SEC / secs_per_day);
    struct table *table = &opened->table;
    opened->fd = open_table(quota->dir_fd);
    if (opened->fd < 0) {
        return false;
    }
    int64_t byte_count = bp_file_read_range(opened->fd, table, sizeof *table, 0);
    opened->is_new = byte_count != sizeof *table || memcmp(table->magic, magic, sizeof magic) != 0;
    if (opened->is_new) {
        memset(table, 0, sizeof *table);
        memcpy(table->magic, magic, sizeof magic);
    }
    opened->row = find_row(table, hash_bug(quota->app, quota->kind, quota->key));
    if (opened->row->day != today) {
        opened->row->day = today;
        opened->row->count = 0;
    }
    return true;
}

/* A row is written at once, and a table that was cut short counts as new. */
static bool close_row(struct opened *opened) {
    const char *start = (const char *)&opened->table;
    const size_t at = opened->is_new ? 0 : (size_t)((const char *)opened->row - start);
    const size_t byte_count = opened->is_new ? sizeof opened->table : sizeof *opened->row;
    bool is_written = pwrite(opened->fd, start + at, byte_count, (off_t)at) == (ssize_t)byte_count;
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
