/*
 * A ring on a file system with too little room is refused at once, and with no signal later. One
 * that fits is written over and over while the rest fills up. Needs a mount of its own, so root.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "ring/ring.h"
#include "support/check.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"

static void mount_small_disk(const temp_dir *dir) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir->path, "tmpfs", MS_NODEV | MS_NOSUID, "size=256k") != 0) {
        (void)rmdir(dir->path);
        SKIP("a small file system cannot be mounted here");
    }
}

int main(void) {
    temp_dir disk;
    CHECK(temp_dir_make(&disk));
    mount_small_disk(&disk);
    (void)close(disk.fd); /* the directory below the mount */
    disk.fd = open(disk.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(disk.fd >= 0);
    int fd = openat(disk.fd, "large", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bp_ring *ring = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_ring_new_mapped(fd, 256 * 1024, &ring, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC && ring == NULL);
    CHECK(close(fd) == 0 && unlinkat(disk.fd, "large", 0) == 0);

    fd = openat(disk.fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(bp_ring_new_mapped(fd, 128 * 1024, &ring, &error) == BUGPACK_OK);
    static const char filling[256 * 1024];
    CHECK(!temp_dir_write(&disk, "filling", filling, sizeof filling));
    for (uint64_t i = 1; i <= 5000; i++) {
        CHECK(append_number(ring, 0, i, (size_t)(i % 500)) == i);
    }
    bp_buffer out;
    bp_ring_view view;
    bp_buffer_init(&out, 1 << 20);
    CHECK(bp_ring_recover(fd, keep_in_buffer, &out, &view, NULL) == BUGPACK_OK);
    CHECK(view.last_sequence == 5000 && view.damaged_bytes == 0);
    bp_buffer_release(&out);
    bp_ring_free(ring);
    CHECK(close(fd) == 0);
    (void)close(disk.fd);
    disk.fd = -1;
    CHECK(umount2(disk.path, MNT_DETACH) == 0);
    temp_dir_remove(&disk);
    return 0;
}
