#include "support/zip_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <zip.h>

int command_output(const char *command, char *out, size_t out_bytes) {
    FILE *stream = popen(command, "r");
    if (stream == NULL) {
        return -1;
    }
    size_t used = fread(out, 1, out_bytes - 1, stream);
    out[used] = '\0';
    char rest[256];
    while (fread(rest, 1, sizeof rest, stream) > 0) {}
    int status = pclose(stream);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool run_on(const char *program, const char *path, char *out, size_t out_bytes) {
    char command[1024];
    int length = snprintf(command, sizeof command, "%s '%s'", program, path);
    return length > 0 && (size_t)length < sizeof command &&
           command_output(command, out, out_bytes) == 0;
}

bool zip_list(const char *path, char *out, size_t out_bytes) {
    return run_on("python3 '" BUGPACK_SUPPORT "/list_zip.py'", path, out, out_bytes);
}

bool zip_passes_unzip(const char *path) {
    char output[4096];
    return run_on("unzip -tqq", path, output, sizeof output);
}

/* Whether the entry reads to its end without an error and is exactly these bytes. */
static bool entry_is(zip_t *zip, const char *name, const void *bytes, size_t byte_count) {
    zip_stat_t info;
    zip_stat_init(&info);
    char *read = malloc(byte_count + 1);
    zip_file_t *file = zip_fopen(zip, name, 0);
    bool is_same = file != NULL && read != NULL && zip_stat(zip, name, 0, &info) == 0 &&
                   info.size == byte_count &&
                   zip_fread(file, read, byte_count + 1) == (zip_int64_t)byte_count &&
                   (byte_count == 0 || memcmp(read, bytes, byte_count) == 0);
    if (file != NULL) {
        (void)zip_fclose(file);
    }
    free(read);
    return is_same;
}

bool zip_holds(const char *path, long count, const char *name, const void *bytes,
               size_t byte_count) {
    zip_t *zip = zip_open(path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
    if (zip == NULL) {
        return false;
    }
    bool is_same = zip_get_num_entries(zip, 0) == count && entry_is(zip, name, bytes, byte_count);
    zip_discard(zip);
    return is_same;
}
