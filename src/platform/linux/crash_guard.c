#include "platform/linux/crash_guard.h"

#include <setjmp.h>
#include <stddef.h>

/* Of the one thread that writes a crash page. */
static sigjmp_buf *volatile innermost;

bool bp_guard_run(void (*run)(void *context), void *context) {
    sigjmp_buf place;
    sigjmp_buf *const volatile outer = innermost;
    /* The mask stays: the nested handler has blocked nothing that this one has not. */
    if (sigsetjmp(place, 0) != 0) {
        innermost = outer;
        return false;
    }
    innermost = &place;
    run(context);
    innermost = outer;
    return true;
}

void bp_guard_escape(void) {
    if (innermost != NULL) {
        siglongjmp(*innermost, 1);
    }
}
