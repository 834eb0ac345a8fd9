/* The build without libvterm. */
#include "run/screen.h"

#include "base/status.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bugpack_status bp_run_screen_new(int rows, int columns, bool is_bare, bp_run_screen **ret_screen,
                                 bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this bugpack was built without libvterm");
}

void bp_run_screen_free(bp_run_screen *screen) {
}

void bp_run_screen_feed(bp_run_screen *screen, const char *bytes, size_t byte_count) {
}

void bp_run_screen_resize(bp_run_screen *screen, int rows, int columns) {
}

bugpack_status bp_run_screen_print(bp_run_screen *screen, bp_buffer *out, bool *ret_is_partial,
                                   bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this bugpack was built without libvterm");
}
