#include "recorder/session_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Few names, used at open, close and recovery only. Rank: leaf, nothing is taken inside. */
static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct held_name {
    struct held_name *next;
    char name[256];
} * held_names;

bool bp_session_lock_claim(const char *name) {
    struct held_name *claimed = calloc(1, sizeof *claimed);
    if (claimed == NULL) {
        return false;
    }
    (void)snprintf(claimed->name, sizeof claimed->name, "%s", name);
    bool is_free = true;
    (void)pthread_mutex_lock(&held_mutex);
    for (const struct held_name *held = held_names; held != NULL; held = held->next) {
        is_free = is_free && strcmp(held->name, name) != 0;
    }
    if (is_free) {
        claimed->next = held_names;
        held_names = claimed;
    }
    (void)pthread_mutex_unlock(&held_mutex);
    if (!is_free) {
        free(claimed);
    }
    return is_free;
}

void bp_session_lock_release(const char *name) {
    (void)pthread_mutex_lock(&held_mutex);
    struct held_name **link = &held_names;
    while (*link != NULL && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    struct held_name *released = *link;
    if (released != NULL) {
        *link = released->next;
    }
    (void)pthread_mutex_unlock(&held_mutex);
    free(released);
}

bool bp_session_lock_take(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &whole) == 0;
}

int64_t bp_session_lock_holder(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool is_held = fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    return !is_held ? -1 : whole.l_pid > 0 ? whole.l_pid : 0;
}
