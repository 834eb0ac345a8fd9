/*
 * What the darwin sources beside the sampler call and Linux lacks, for compiling them here: put
 * before each of them with -include. Values are those of Apple's headers; the calls are answered by
 * darwin_calls.c, as a test tells them.
 */
#ifndef TESTS_SUPPORT_DARWIN_CALLS_H
#define TESTS_SUPPORT_DARWIN_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define F_FULLFSYNC 51
#define RENAME_EXCL 4
#define DARWIN_USER_TEMP_DIR 65537
#define _CS_DARWIN_USER_TEMP_DIR DARWIN_USER_TEMP_DIR

/* How the calls answer, and what they were asked. */
typedef struct darwin_calls {
    int full_sync_errors[4]; /* errno of the first calls; 0: it works */
    unsigned full_sync_count, sync_count;
    int sync_error;
    const char *user_temp_dir; /* NULL: confstr knows none */
    bool skips_waits;          /* a wait says at once that its time is over */
    uint64_t waited_ns;        /* the length of the last wait */
    const char *thread_name;   /* the last one that a thread gave itself */
} darwin_calls;
extern darwin_calls darwin;

int darwin_fcntl(int fd, int command);
int darwin_fsync(int fd);
size_t darwin_confstr(int name, char *out, size_t out_bytes);
int darwin_setname(const char *name);
int issetugid(void);
int renameatx_np(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int pthread_threadid_np(const pthread_t *thread, uint64_t *ret_id);
int pthread_cond_timedwait_relative_np(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                       const struct timespec *left);

#ifndef DARWIN_CALLS_THEMSELVES
#define fcntl darwin_fcntl
#define fsync darwin_fsync
#define confstr darwin_confstr
#define pthread_setname_np darwin_setname
#endif

#endif
