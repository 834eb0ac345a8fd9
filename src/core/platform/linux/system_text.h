/*
 * Texts that say what machine this is. Pure; the bytes may be anything. False leaves the outputs
 * alone.
 */
#ifndef BP_PLATFORM_LINUX_SYSTEM_TEXT_H
#define BP_PLATFORM_LINUX_SYSTEM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a variable in os-release(5), without its quotes; a longer one is cut. */
bool bp_os_release_find(const char *text, size_t text_bytes, const char *key, char *out,
                        size_t out_bytes);

/* /proc/loadavg: three averages in hundredths, and how many threads of how many may run. */
typedef struct bp_load {
    uint64_t centi[3]; /* over 1, 5 and 15 minutes */
    uint64_t runnable_count, thread_count;
} bp_load;
bool bp_load_parse(const char *text, size_t text_bytes, bp_load *ret_load);

/* The first "model name" of /proc/cpuinfo, which ARM does not have; a longer one is cut. */
bool bp_cpu_model_find(const char *text, size_t text_bytes, char *out, size_t out_bytes);

/*
 * True if the file system of a device became read-only, from the options behind " - " in its line
 * of mountinfo (proc_pid_mountinfo(5)): "ro", or what ext4 has there after an error since Linux
 * 6.15, "emergency_ro", where statfs(2) does not say so.
 */
bool bp_mount_is_read_only(const char *text, size_t text_bytes, unsigned major, unsigned minor);

/* The file system of a path, by mountinfo: the last one of the longest mount point. A longer name
 * is cut. False for none. */
typedef struct bp_mount {
    char point[256], type[32], source[128];
    uint64_t minor; /* of its device; of FUSE the number of the connection */
} bp_mount;
bool bp_mount_find(const char *text, size_t text_bytes, const char *path, bp_mount *ret_mount);

#endif
