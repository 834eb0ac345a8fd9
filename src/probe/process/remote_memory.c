#include "process/remote_memory.h"

#include <errno.h>
#include <sys/uio.h>

int bp_remote_read(pid_t pid, const bp_remote_piece *pieces, size_t piece_count) {
    struct iovec ours[BP_REMOTE_PIECE_MAX];
    struct iovec theirs[BP_REMOTE_PIECE_MAX];
    size_t total_bytes = 0;
    if (piece_count > BP_REMOTE_PIECE_MAX) {
        return EINVAL;
    }
    for (size_t i = 0; i < piece_count; i++) {
        ours[i] = (struct iovec){pieces[i].out, pieces[i].bytes};
        theirs[i] = (struct iovec){(void *)(uintptr_t)pieces[i].address, pieces[i].bytes};
        total_bytes += pieces[i].bytes;
    }
    ssize_t count = process_vm_readv(pid, ours, piece_count, theirs, piece_count, 0);
    if (count < 0) {
        return errno;
    }
    return (size_t)count == total_bytes ? 0 : EFAULT;
}

int bp_remote_read_one(pid_t pid, uint64_t address, void *out, size_t bytes) {
    const bp_remote_piece piece = {address, out, bytes};
    return bp_remote_read(pid, &piece, 1);
}
