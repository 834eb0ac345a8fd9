/*
 * A file system with no room, or no inode, left: every step says so, nothing stays behind, and when
 * there is room again the next report is written. Needs a mount of its own, so root.
 */
#include "support/check.h"
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
#include "platform/staged_method.h"

enum { disk_bytes = 256 * 1024 };

static unsigned char noise[2 * disk_bytes];

typedef bugpack_status new_staged_file(int, const char *, bp_staged_file **, bugpack_error *);

static new_staged_file *const methods[] = {bp_staged_file_new, bp_staged_file_new_named};

/* A tmpfs that nobody else sees and that goes with this process. */
static void mount_small_disk(const temp_dir *dir) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir->path, "tmpfs", MS_NODEV | MS_NOSUID, "size=256k,nr_inodes=8") != 0) {
        (void)rmdir(dir->path);
        SKIP("a small file system cannot be mounted here");
    }
}

/* Writes a zip with `byte_count` bytes that do not shrink, and publishes it. */
static bugpack_status write_report(int dir_fd, new_staged_file *start, size_t byte_count,
                                   bugpack_error *error) {
    bp_staged_file *file = NULL;
    bp_archive *archive = NULL;
    uint64_t bytes;
    char name[64];
    bugpack_status status = start(dir_fd, "/small", &file, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    CHECK(bp_archive_new(bp_staged_file_fd(file), "report.zip", NULL, NULL, &archive, NULL) ==
          BUGPACK_OK);
    CHECK(bp_archive_add(archive, "noise", noise, byte_count, 0, NULL) == BUGPACK_OK);
    status = bp_archive_finish(archive, &bytes, error);
    if (status == BUGPACK_OK) {
        status = bp_staged_file_sync(file, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_publish(file, "report", ".zip", name, sizeof name, error);
    }
    bp_archive_free(archive);
    bp_staged_file_free(file);
    return status;
}

/* A spool that lies elsewhere and fits; what is deflated of it has to lie on the small disk. */
static bugpack_status write_spooled(int dir_fd, const bp_temp_file *temp_file,
                                    bugpack_error *error) {
    bp_staged_file *file = NULL;
    bp_archive *archive = NULL;
    uint64_t bytes;
    CHECK(bp_staged_file_new(dir_fd, "/small", &file, NULL) == BUGPACK_OK);
    CHECK(bp_archive_new(bp_staged_file_fd(file), "report.zip", NULL, NULL, &archive, NULL) ==
          BUGPACK_OK);
    bp_archive_use_temp_dir(archive, dir_fd);
    CHECK(bp_archive_add_file(archive, "noise", temp_file->fd, temp_file->size, 0, NULL) ==
          BUGPACK_OK);
    bugpack_status status = bp_archive_finish(archive, &bytes, error);
    bp_archive_free(archive);
    bp_staged_file_free(file);
    return status;
}

static void fill_spools(temp_dir *disk, int other_fd) {
    bp_temp_file temp_file;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_temp_file_open(&temp_file, disk->fd, sizeof noise, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_write(&temp_file, noise, sizeof noise) == BUGPACK_ERR_IO);
    CHECK(bp_temp_file_flush(&temp_file, &error) == BUGPACK_ERR_IO && error.system_errno == ENOSPC);
    bp_temp_file_release(&temp_file);
    CHECK(temp_dir_count(disk) == 0);
    CHECK(bp_temp_file_open(&temp_file, other_fd, sizeof noise, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_write(&temp_file, noise, sizeof noise) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&temp_file, NULL) == BUGPACK_OK);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
    CHECK(write_spooled(disk->fd, &temp_file, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC);
    bp_temp_file_release(&temp_file);
    CHECK(temp_dir_count(disk) == 0);
    CHECK(write_report(disk->fd, bp_staged_file_new, disk_bytes / 2, NULL) == BUGPACK_OK);
    CHECK(unlinkat(disk->fd, "report.zip", 0) == 0);
}

static void expect_no_space(temp_dir *disk, new_staged_file *start, size_t byte_count) {
    size_t before = temp_dir_count(disk);
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(write_report(disk->fd, start, byte_count, &error) == BUGPACK_ERR_IO);
    CHECK(error.system_errno == ENOSPC);
    CHECK(strstr(error.message, "No space left on device") != NULL);
    CHECK(temp_dir_count(disk) == before);
}

static void fill_up(temp_dir *disk, new_staged_file *start) {
    expect_no_space(disk, start, sizeof noise);
    /* Just over, so that it is the directory of the zip that no longer fits. */
    expect_no_space(disk, start, disk_bytes - 20);
    CHECK(write_report(disk->fd, start, disk_bytes / 2, NULL) == BUGPACK_OK);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/report.zip", disk->path);
    CHECK(zip_holds(path, 1, "noise", noise, disk_bytes / 2));
    /* What stands there is not harmed by the next one, for which there is no room. */
    expect_no_space(disk, start, disk_bytes);
    CHECK(zip_holds(path, 1, "noise", noise, disk_bytes / 2));
    CHECK(unlink(path) == 0);
}

static void use_up_inodes(temp_dir *disk, new_staged_file *start) {
    char name[8];
    unsigned made = 0;
    do {
        (void)snprintf(name, sizeof name, "%u", made);
    } while (temp_dir_write(disk, name, "", 0) && ++made < 100);
    CHECK(made > 0 && made < 100);
    expect_no_space(disk, start, 10);
    while (made > 0) {
        (void)snprintf(name, sizeof name, "%u", --made);
        CHECK(unlinkat(disk->fd, name, 0) == 0);
    }
    CHECK(write_report(disk->fd, start, 10, NULL) == BUGPACK_OK);
    CHECK(unlinkat(disk->fd, "report.zip", 0) == 0);
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
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        fill_up(&disk, methods[i]);
        use_up_inodes(&disk, methods[i]);
        CHECK(temp_dir_count(&disk) == 0);
    }
    fill_spools(&disk, other_fd);
    (void)close(other_fd);
    (void)close(disk.fd);
    disk.fd = -1;
    CHECK(umount2(disk.path, MNT_DETACH) == 0);
    temp_dir_remove(&disk);
    return 0;
}
