/* Skips in Criterion's programs that count. */
#ifndef TESTS_SUPPORT_NOT_TRIED_H
#define TESTS_SUPPORT_NOT_TRIED_H

#include <criterion/criterion.h>
#include <stdio.h>

/* Ends a Test() that cannot run on this machine. Criterion prints no reason of its own;
 * tests/support/count-tests counts this line. */
#define not_tried(reason)                                                                          \
    do {                                                                                           \
        (void)printf("not tried: %s\n", reason);                                                   \
        (void)fflush(stdout);                                                                      \
        cr_skip_test(reason);                                                                      \
    } while (0)

#endif
