/*
 * A file system with no room, or no inode, left: every step says so, nothing stays behind, and when
 * there is room again the next report is written; a ring that has its room loses nothing. Needs a
 * mount of its own, so root.
 */
#include "support/check.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"
#include "support/zip_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/temp_file.h"
#include "platform/staged_file.h"
#include "ring/ring.h"
#include "support/no_tmpfile.h"

enum { disk_bytes = 256 * 1024 };

static unsigned char noise[2 * disk_bytes];

/* A tmpfs that nobody else sees and that goes with this process. */
static void mount_small_disk(const temp_dir *dir) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir->path, "tmpfs", MS_NODEV | MS_NOSUID, "size=256k,nr_inodes=8") != 0) {
        (void)rmdir(dir->path);
        SKIP("a small file system cannot be mounted here");
    }
}

static bugpack_status write_zip(int dir_fd, int fd, size_t byte_count, bugpack_error *error) {
    const bp_archive_target target = {.fd = fd, .dir_fd = dir_fd, .name = "report.zip"};
    bp_archive *archive = NULL;
    uint64_t bytes;
    CHECK(bp_archive_new(&target, &archive, NULL) == BUGPACK_OK);
    CHECK(bp_archive_begin(archive, "noise", 0, NULL) == BUGPACK_OK);
    (void)bp_archive_write(archive, noise, byte_count);
    bugpack_status status = bp_archive_end(archive, &bytes, error);
    if (status == BUGPACK_OK) {
        status = bp_archive_finish(archive, &bytes, error);
    }
    bp_archive_free(archive);
    return status;
}

/* Writes a zip with `byte_count` bytes that do not shrink, and publishes it. */
static bugpack_status write_report(int dir_fd, size_t byte_count, bugpack_error *error) {
    bp_staged_file *file = NULL;
    char name[64];
    bugpack_status status = bp_staged_file_new(dir_fd, "/small", &file, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = write_zip(dir_fd, bp_staged_file_fd(file), byte_count, error);
    if (status == BUGPACK_OK) {
        status = bp_staged_file_sync(file, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_publish(file, "report", ".zip", name, sizeof name, error);
    }
    bp_staged_file_free(file);
    return status;
}

static void fill_temp_files(temp_dir *disk) {
    bp_temp_file temp_file;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_temp_file_open(&temp_file, disk->fd, sizeof noise, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_write(&temp_file, noise, sizeof noise) == BUGPACK_ERR_IO);
    CHECK(bp_temp_file_flush(&temp_file, &error) == BUGPACK_ERR_IO && error.system_errno == ENOSPC);
    bp_temp_file_release(&temp_file);
    CHECK(temp_dir_count(disk) == 0);
    CHECK(write_report(disk->fd, disk_bytes / 3, NULL) == BUGPACK_OK);
    CHECK(unlinkat(disk->fd, "report.zip", 0) == 0);
}

/* An entry for which there is no room is rolled back, and a smaller one fits in its place. */
static void go_on_after_a_large_entry(temp_dir *disk) {
    bp_staged_file *file = NULL;
    bp_archive *archive = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t bytes;
    char name[64], path[300];
    CHECK(bp_staged_file_new(disk->fd, "/small", &file, NULL) == BUGPACK_OK);
    const bp_archive_target target = {
        .fd = bp_staged_file_fd(file), .dir_fd = disk->fd, .name = "report.zip"};
    CHECK(bp_archive_new(&target, &archive, NULL) == BUGPACK_OK);
    CHECK(bp_archive_begin(archive, "large", 0, NULL) == BUGPACK_OK);
    (void)bp_archive_write(archive, noise, sizeof noise);
    CHECK(bp_archive_end(archive, &bytes, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC);
    CHECK(bp_archive_begin(archive, "noise", 0, NULL) == BUGPACK_OK);
    CHECK(bp_archive_write(archive, noise, disk_bytes / 3) == BUGPACK_OK);
    CHECK(bp_archive_end(archive, &bytes, NULL) == BUGPACK_OK);
    CHECK(bp_archive_finish(archive, &bytes, NULL) == BUGPACK_OK);
    CHECK(bp_staged_file_publish(file, "report", ".zip", name, sizeof name, NULL) == BUGPACK_OK);
    bp_archive_free(archive);
    bp_staged_file_free(file);
    (void)snprintf(path, sizeof path, "%s/report.zip", disk->path);
    CHECK(zip_holds(path, 1, "noise", noise, disk_bytes / 3));
    CHECK(unlink(path) == 0);
}

static void expect_no_space(temp_dir *disk, size_t byte_count) {
    size_t before = temp_dir_count(disk);
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(write_report(disk->fd, byte_count, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC);
    CHECK(strstr(error.message, "No space left on device") != NULL);
    CHECK(temp_dir_count(disk) == before);
}

static void fill_up(temp_dir *disk) {
    expect_no_space(disk, sizeof noise);
    expect_no_space(disk, disk_bytes - 20);
    /* The compressed bytes have room, and their copy in the zip has none. */
    expect_no_space(disk, disk_bytes * 2 / 3);
    CHECK(write_report(disk->fd, disk_bytes / 3, NULL) == BUGPACK_OK);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/report.zip", disk->path);
    CHECK(zip_holds(path, 1, "noise", noise, disk_bytes / 3));
    /* What stands there is not harmed by the next one, for which there is no room. */
    expect_no_space(disk, disk_bytes);
    CHECK(zip_holds(path, 1, "noise", noise, disk_bytes / 3));
    CHECK(unlink(path) == 0);
}

static void use_up_inodes(temp_dir *disk) {
    char name[8];
    unsigned made = 0;
    do {
        (void)snprintf(name, sizeof name, "%u", made);
    } while (temp_dir_write(disk, name, "", 0) && ++made < 100);
    CHECK(made > 0 && made < 100);
    expect_no_space(disk, 10);
    while (made > 0) {
        (void)snprintf(name, sizeof name, "%u", --made);
        CHECK(unlinkat(disk->fd, name, 0) == 0);
    }
    CHECK(write_report(disk->fd, 10, NULL) == BUGPACK_OK);
    CHECK(unlinkat(disk->fd, "report.zip", 0) == 0);
}

/* A ring with too little room is refused at once; one that fits is written over while the rest
 * fills up. */
static void record_beside_a_full_disk(temp_dir *disk) {
    int fd = openat(disk->fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bp_ring *ring = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_ring_new_mapped(fd, disk_bytes, &ring, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC && ring == NULL);
    CHECK(bp_ring_new_mapped(fd, disk_bytes / 2, &ring, &error) == BUGPACK_OK);
    CHECK(!temp_dir_write(disk, "filling", noise, sizeof noise));
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
}

int main(void) {
    temp_dir disk;
    CHECK(temp_dir_make(&disk));
    mount_small_disk(&disk);
    int other_fd = disk.fd; /* the directory below the mount */
    disk.fd = open(disk.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(disk.fd >= 0);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < sizeof noise; i++) {
        state = state * 1664525u + 1013904223u;
        noise[i] = (unsigned char)(state >> 24);
    }
    for (int i = 0; i < 2; i++) {
        has_no_tmpfile = i == 1;
        fill_up(&disk);
        use_up_inodes(&disk);
        CHECK(temp_dir_count(&disk) == 0);
    }
    fill_temp_files(&disk);
    go_on_after_a_large_entry(&disk);
    record_beside_a_full_disk(&disk);
    (void)close(other_fd);
    (void)close(disk.fd);
    disk.fd = -1;
    CHECK(umount2(disk.path, MNT_DETACH) == 0);
    temp_dir_remove(&disk);
    return 0;
}
