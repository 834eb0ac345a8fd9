#include "archive/bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool bp_bytes_read(const bp_bytes *bytes, uint64_t at, void *out, size_t byte_count,
                   bp_stop *stop) {
    if (byte_count == 0) {
        return true;
    }
    if (bytes->memory != NULL) {
        memcpy(out, (const char *)bytes->memory + at, byte_count);
        return true;
    }
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = pread(bytes->fd, (char *)out + done, byte_count - done,
                              (off_t)(bytes->offset + at + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            if (stop->system_errno == 0) {
                stop->system_errno = count == 0 ? EIO : errno;
            }
            return false;
        }
        done += (size_t)count;
    }
    return true;
}
