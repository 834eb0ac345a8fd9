/*
 * A process that becomes what it is told to: it reads words from the FIFO or file of its argument.
 *
 *     spin      a thread uses a processor        rest      it ends
 *     hold N    N MiB more are resident          threads N N more threads sleep
 *     open N    N more descriptors               stop      SIGSTOP
 *     fork      vfork, until the child is ended: state D
 *     say TEXT  a line of standard output        part TEXT the same without a newline
 *     end       exit
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool is_spinning;
static char *volatile held; /* the last of them; the others stay, too */

static void *spin(void *unused) {
    while (atomic_load(&is_spinning)) {}
    return unused;
}

static void *sleep_on(void *unused) {
    for (;;) {
        (void)pause();
    }
    return unused;
}

static void start(void *(*run)(void *)) {
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 64 * 1024);
    if (pthread_create(&thread, &attributes, run, NULL) != 0) {
        _exit(3);
    }
    (void)pthread_attr_destroy(&attributes);
    (void)pthread_detach(thread);
}

static void hold(size_t mib) {
    char *bytes = malloc(mib << 20);
    if (bytes == NULL) {
        _exit(3);
    }
    memset(bytes, 'x', mib << 20);
    held = bytes;
}

static void obey(const char *word, const char *value) {
    int count = value[0] >= '0' && value[0] <= '9' ? (int)strtol(value, NULL, 10) : 0;
    if (strcmp(word, "spin") == 0) {
        atomic_store(&is_spinning, true);
        start(spin);
    } else if (strcmp(word, "rest") == 0) {
        atomic_store(&is_spinning, false);
    } else if (strcmp(word, "hold") == 0) {
        hold((size_t)count);
    } else if (strcmp(word, "stop") == 0) {
        (void)raise(SIGSTOP);
    } else if (strcmp(word, "say") == 0 || strcmp(word, "part") == 0) {
        (void)printf("%s%s", value, word[0] == 's' ? "\n" : "");
        (void)fflush(stdout);
    } else if (strcmp(word, "fork") == 0) {
        if (vfork() == 0) {
            (void)pause();
            _exit(0);
        }
    } else if (strcmp(word, "end") == 0) {
        exit(0);
    }
    for (int i = 0; i < count && strcmp(word, "threads") == 0; i++) {
        start(sleep_on);
    }
    for (int i = 0; i < count && strcmp(word, "open") == 0; i++) {
        if (open("/dev/null", O_RDONLY) < 0) {
            _exit(3);
        }
    }
}

int main(int argument_count, char **arguments) {
    char line[256];
    /* For writing too: the end of one writer is not the end. */
    int fd = argument_count > 1 ? open(arguments[1], O_RDWR) : -1;
    FILE *orders = fd < 0 ? NULL : fdopen(fd, "r");
    while (orders != NULL && fgets(line, sizeof line, orders) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, ' ');
        if (value != NULL) {
            *value++ = '\0';
        }
        obey(line, value != NULL ? value : "");
    }
    return 2;
}
