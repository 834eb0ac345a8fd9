#ifndef FAKE_LIBPROC_H
#define FAKE_LIBPROC_H

#include <sys/proc_info.h>
#include <sys/resource.h>
#include <sys/types.h>

#define RUSAGE_INFO_V0 0
#define RUSAGE_INFO_V2 2

typedef void *rusage_info_t;

struct rusage_info_v0 {
    uint8_t ri_uuid[16];
    uint64_t ri_user_time, ri_system_time;
    uint64_t ri_proc_start_abstime;
};

struct rusage_info_v2 {
    uint8_t ri_uuid[16];
    uint64_t ri_user_time, ri_system_time;
    uint64_t ri_proc_start_abstime;
    uint64_t ri_child_user_time, ri_child_system_time;
    uint64_t ri_diskio_bytesread;
    uint64_t ri_diskio_byteswritten;
};

int proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int buffer_bytes);
int proc_pidpath(int pid, void *buffer, uint32_t buffer_bytes);
int proc_pid_rusage(int pid, int flavor, rusage_info_t *buffer);

#endif
