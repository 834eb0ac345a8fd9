#include "support/descriptors.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { fd_max = 1024 };

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
