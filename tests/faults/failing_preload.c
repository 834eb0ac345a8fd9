/*
 * Makes allocations of an unchanged program fail, its libraries' too: LD_PRELOAD it.
 *
 * FAULTS_MALLOC=FIRST,COUNT fails COUNT allocations from the FIRST (1-based) on; 0 counts only.
 * FAULTS_MALLOC_LIBRARY is part of the path of the only library whose allocations count.
 * FAULTS_MALLOC_TOLD names a file that gets the number of allocations that were tried.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/failing_malloc.h"

static char told_path[4096];

/* Programs that this one starts are left alone. */
__attribute__((constructor)) static void arm(void) {
    const char *numbers = getenv("FAULTS_MALLOC");
    const char *told = getenv("FAULTS_MALLOC_TOLD");
    char *end = NULL;
    if (numbers == NULL) {
        return;
    }
    unsigned long first = strtoul(numbers, &end, 10);
    unsigned long count = *end == ',' ? strtoul(end + 1, NULL, 10) : 1;
    (void)snprintf(told_path, sizeof told_path, "%s", told == NULL ? "" : told);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("FAULTS_MALLOC");
    failing_malloc_only_of(getenv("FAULTS_MALLOC_LIBRARY"));
    failing_malloc_arm_burst(first, count);
}

__attribute__((destructor)) static void tell(void) {
    unsigned long tried = failing_malloc_disarm();
    int fd = told_path[0] != '\0' ? open(told_path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0) {
        (void)dprintf(fd, "%lu\n", tried);
        (void)close(fd);
    }
}
