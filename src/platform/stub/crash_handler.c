#include "platform/crash_handler.h"

#include "base/status.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bugpack_status bp_crash_handler_install(bp_crash_page *page, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "no handler of fatal signals on this system");
}

bool bp_crash_handler_remove(const bp_crash_page *page) {
    return true;
}

void bp_crash_handler_check(bp_crash_page *page) {
}

bugpack_status bp_crash_thread_init(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "no handler of fatal signals on this system");
}
