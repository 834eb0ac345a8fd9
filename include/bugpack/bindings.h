/*
 * For bindings of other languages: what C and C++ have by a macro or by variable arguments, as
 * functions. bugpack/bugpack.h does not include this header.
 */
#ifndef BUGPACK_BINDINGS_H
#define BUGPACK_BINDINGS_H

#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>

BUGPACK_BEGIN_DECLS

/*
 * Set a struct to its initialiser, BUGPACK_OPTIONS_INIT and so on. `struct_size` is the size of the
 * host's struct, also of one from an older or newer header: no more is written. Nothing is written
 * if it is no size of a struct. Any thread.
 */
BUGPACK_API void bugpack_channel_options_init(bugpack_channel_options *fresh, size_t struct_size);
BUGPACK_API void bugpack_disconnect_details_init(bugpack_disconnect_details *fresh,
                                                 size_t struct_size);
BUGPACK_API void bugpack_event_init(bugpack_event *fresh, size_t struct_size);
BUGPACK_API void bugpack_heap_state_init(bugpack_heap_state *fresh, size_t struct_size);
BUGPACK_API void bugpack_options_init(bugpack_options *fresh, size_t struct_size);
BUGPACK_API void bugpack_pedantic_state_init(bugpack_pedantic_state *fresh, size_t struct_size);
BUGPACK_API void bugpack_recorder_location_init(bugpack_recorder_location *fresh,
                                                size_t struct_size);
BUGPACK_API void bugpack_recover_options_init(bugpack_recover_options *fresh, size_t struct_size);
BUGPACK_API void bugpack_report_request_init(bugpack_report_request *fresh, size_t struct_size);
BUGPACK_API void bugpack_report_result_init(bugpack_report_result *fresh, size_t struct_size);

/* bugpack_fail, bugpack_omit, bugpack_truncate and bugpack_notify with a finished text, in which
 * '%' means nothing. NULL: "". */
BUGPACK_API int bugpack_fail_text(bugpack_writer *writer, const char *text);
BUGPACK_API int bugpack_omit_text(bugpack_writer *writer, const char *text);
BUGPACK_API void bugpack_truncate_text(bugpack_writer *writer, bool is_missing, const char *text);
BUGPACK_API void bugpack_notify_text(bugpack_session *session, bugpack_level level,
                                     const char *source, uint64_t *ret_retained, const char *text);

BUGPACK_END_DECLS

#endif
