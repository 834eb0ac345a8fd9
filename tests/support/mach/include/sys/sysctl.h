#ifndef FAKE_SYS_SYSCTL_H
#define FAKE_SYS_SYSCTL_H

#include <stddef.h>

#define CTL_KERN 1
#define KERN_ARGMAX 8
#define KERN_PROCARGS2 49

int sysctl(int *name, unsigned name_count, void *old, size_t *old_bytes, void *new,
           size_t new_bytes);
int sysctlbyname(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);

#endif
