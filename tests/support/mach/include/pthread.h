/*
 * The system's own, and what macOS has in it besides.
 */
#ifndef FAKE_PTHREAD_H
#define FAKE_PTHREAD_H

#include_next <pthread.h>

#include <mach/mach.h>

pthread_t pthread_from_mach_thread_np(mach_port_t port);
#define pthread_getname_np mach_fake_getname
int mach_fake_getname(pthread_t thread, char *name, size_t name_bytes);

#endif
