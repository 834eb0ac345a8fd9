/*
 * Naming a thread, the one call that differs between otherwise equal systems.
 */
#ifndef BP_PLATFORM_THREAD_NAME_H
#define BP_PLATFORM_THREAD_NAME_H

#include <pthread.h>

/* Names a thread that was just started; best effort. macOS can only name the calling thread. */
void bp_thread_set_name(pthread_t thread, const char *name);

#endif
