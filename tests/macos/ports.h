/*
 * What this task holds of Mach's rights, by Mach's own account.
 */
#ifndef TESTS_MACOS_PORTS_H
#define TESTS_MACOS_PORTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * `names` are rights that the task has, `table` is the size of the kernel's table of them, free
 * places included; 0 where the kernel does not tell. A right that is given once more to a task that
 * has it gets no new name, only another reference: a sampler that keeps the rights of threads that
 * live on shows in `references` alone.
 */
typedef struct macos_ports {
    size_t names, table, references;
} macos_ports;

/* False, after a line on standard output, when Mach does not answer. */
bool macos_ports_count(macos_ports *ret_ports);

#endif
