#include "inspect/new_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/staged_file.h"

bugpack_status bp_new_file_write(const char *path, bp_new_file_fill *fill, void *context,
                                 char *ret_name, size_t name_bytes, bugpack_error *error) {
    bp_staged_file *file = NULL;
    int dir_fd = -1;
    const char *name = strrchr(path, '/') + 1;
    const char *dot = strrchr(name, '.');
    const char *ending = dot == NULL || dot == name ? name + strlen(name) : dot;
    char *stem = strndup(name, (size_t)(ending - name));
    char *dir = strndup(path, (size_t)(name - path));
    bugpack_status status = stem == NULL || dir == NULL
                                ? bp_fail_memory(error, "write a file")
                                : bp_file_open_directory(dir, false, &dir_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_staged_file_new(dir_fd, dir, &file, error);
    }
    if (status == BUGPACK_OK) {
        status = fill(context, dir_fd, bp_staged_file_fd(file), path, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_sync(file, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_publish(file, stem, ending, ret_name, name_bytes, error);
    }
    bp_staged_file_free(file);
    bp_file_close(dir_fd);
    free(stem);
    free(dir);
    return status;
}
