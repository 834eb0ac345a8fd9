#include "support/descriptors.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "support/check.h"

enum { fd_max = 1024, own_pipe_max = 4, settle_turns = 60000 };

unsigned count_descriptors(void) {
    static _Thread_local struct {
        ino_t inode;
        unsigned fd_count;
    } pipes[fd_max];
    unsigned count = 0, pipe_count = 0;
    for (int fd = 0; fd < fd_max; fd++) {
        struct stat facts;
        if (fstat(fd, &facts) != 0) {
            continue;
        }
        if (!S_ISFIFO(facts.st_mode)) {
            count++;
            continue;
        }
        unsigned i = 0;
        while (i < pipe_count && pipes[i].inode != facts.st_ino) {
            i++;
        }
        if (i == pipe_count) {
            pipes[i].inode = facts.st_ino;
            pipes[i].fd_count = 0;
            pipe_count++;
        }
        pipes[i].fd_count++;
    }
    for (unsigned i = 0; i < pipe_count; i++) {
        count += pipes[i].fd_count <= own_pipe_max ? pipes[i].fd_count : 0;
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
