/*
 * A process whose allocations are known: it allocates so many bytes in one block, holds them, and
 * says so in a file.
 *
 *   alloc_worker --bytes N --ready FILE [--churn]
 *
 * It has one thread. With --churn it starts and joins helper threads for ever, which allocate a
 * little. It ends with its parent, or when it is killed, or with 1 where it cannot do so.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { helper_count = 4, helper_bytes = 4096 };

static int count_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return -1;
    }
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return count;
}

static bool write_ready(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write(fd, "ready\n", 6) == 6;
    return fd >= 0 && close(fd) == 0 && is_written;
}

/* Through a volatile pointer, so that no compiler leaves out what is never read. */
static void *help(void *argument) {
    void *volatile block = malloc(helper_bytes);
    free(block);
    return argument;
}

static int churn(void) {
    for (;;) {
        pthread_t helpers[helper_count];
        for (int i = 0; i < helper_count; i++) {
            if (pthread_create(&helpers[i], NULL, help, NULL) != 0) {
                return 1;
            }
        }
        for (int i = 0; i < helper_count; i++) {
            (void)pthread_join(helpers[i], NULL);
        }
    }
}

int main(int argument_count, char **arguments) {
    size_t bytes = 0;
    const char *ready_path = NULL;
    bool is_churning = false;
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "--churn") == 0) {
            is_churning = true;
        } else if (strcmp(arguments[i], "--bytes") == 0 && i + 1 < argument_count) {
            bytes = strtoul(arguments[++i], NULL, 10);
        } else if (strcmp(arguments[i], "--ready") == 0 && i + 1 < argument_count) {
            ready_path = arguments[++i];
        }
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    char *volatile block = bytes > 0 && ready_path != NULL ? malloc(bytes) : NULL;
    if (block == NULL) {
        return 1;
    }
    block[0] = 1;
    block[bytes - 1] = 1;
    if (count_threads() != 1 || !write_ready(ready_path)) {
        return 1;
    }
    if (is_churning) {
        return churn();
    }
    for (;;) {
        (void)pause();
    }
}
