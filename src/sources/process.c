#include "sources/source.h"

/*
 * Under a time limit like a host's provider: the kernel can block a reader of /proc/<pid>/cmdline
 * or maps for as long as the process holds its memory map locked.
 */
int bp_source_process(bugpack_writer *writer, void *context) {
    const bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_subject_write_facts(source->subject, writer, &error);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}
