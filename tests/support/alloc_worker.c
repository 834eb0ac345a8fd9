/*
 * A process whose allocations are known: it allocates so many bytes in one block, holds them, and
 * says so in a file.
 *
 *   alloc_worker --bytes N --ready FILE [--churn]
 *
 * It has one thread. With --churn it starts and joins helper threads for ever, which allocate a
 * little. It ends with its parent, or when it is killed. Exit status for what it refuses: 2 N is 0;
 * 3 it has not exactly one thread; 4 the ready file cannot be written; 5 the command line is not
 * acceptable; 6 /proc/self/task cannot be read; 7 there is no memory, or no thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum worker_exit {
    WORKER_NO_BYTES = 2,
    WORKER_THREADS = 3,
    WORKER_READY = 4,
    WORKER_USAGE = 5,
    WORKER_TASKS = 6,
    WORKER_MEMORY = 7
};

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
                return WORKER_MEMORY;
            }
        }
        for (int i = 0; i < helper_count; i++) {
            (void)pthread_join(helpers[i], NULL);
        }
    }
}

static bool parse_bytes(const char *text, unsigned long long *ret_bytes) {
    char *end;
    errno = 0;
    *ret_bytes = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

int main(int argument_count, char **arguments) {
    unsigned long long bytes = 0;
    const char *ready_path = NULL;
    bool has_bytes = false;
    bool is_churning = false;
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "--churn") == 0) {
            is_churning = true;
        } else if (strcmp(arguments[i], "--bytes") == 0 && i + 1 < argument_count) {
            has_bytes = parse_bytes(arguments[++i], &bytes);
            if (!has_bytes) {
                return WORKER_USAGE;
            }
        } else if (strcmp(arguments[i], "--ready") == 0 && i + 1 < argument_count) {
            ready_path = arguments[++i];
        } else {
            return WORKER_USAGE;
        }
    }
    if (!has_bytes || ready_path == NULL) {
        return WORKER_USAGE;
    }
    if (bytes == 0) {
        return WORKER_NO_BYTES;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    char *volatile block = malloc(bytes);
    if (block == NULL) {
        return WORKER_MEMORY;
    }
    block[0] = 1;
    block[bytes - 1] = 1;
    int thread_count = count_threads();
    if (thread_count != 1) {
        return thread_count < 0 ? WORKER_TASKS : WORKER_THREADS;
    }
    if (!write_ready(ready_path)) {
        return WORKER_READY;
    }
    if (is_churning) {
        return churn();
    }
    for (;;) {
        (void)pause();
    }
}
