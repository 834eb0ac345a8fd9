#include "support/descriptors.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "support/check.h"

enum { fd_max = 1024, settle_turns = 60000 };

unsigned count_descriptors(void) {
    static _Thread_local ino_t pipes[fd_max];
    unsigned count = 0, pipe_count = 0;
    for (int fd = 0; fd < fd_max; fd++) {
        struct stat facts;
        if (fstat(fd, &facts) != 0) {
            continue;
        }
        bool is_seen = false;
        for (unsigned i = 0; S_ISFIFO(facts.st_mode) && i < pipe_count; i++) {
            is_seen = is_seen || pipes[i] == facts.st_ino;
        }
        if (S_ISFIFO(facts.st_mode) && !is_seen) {
            pipes[pipe_count++] = facts.st_ino;
        }
        count += !is_seen;
    }
    return count;
}

unsigned count_entries(const char *path) {
    unsigned count = 0;
    DIR *listing = opendir(path);
    CHECK(listing != NULL);
    while (readdir(listing) != NULL) {
        count++;
    }
    (void)closedir(listing);
    return count;
}

void expect_threads(unsigned wanted) {
    for (unsigned i = 0; i < settle_turns && count_entries("/proc/self/task") != wanted; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(count_entries("/proc/self/task") == wanted);
}
