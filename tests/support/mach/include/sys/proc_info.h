/*
 * Structures of libproc with the members that are used; values as in Apple's header.
 */
#ifndef FAKE_SYS_PROC_INFO_H
#define FAKE_SYS_PROC_INFO_H

#include <stdint.h>

#define MAXCOMLEN 16
#define MAXTHREADNAMESIZE 64
#define MAXPATHLEN 1024

#define PROC_FLAG_INEXIT 4

#define PROC_PPID_ONLY 6

#define PROC_PIDLISTFDS 1
#define PROC_PIDTBSDINFO 3
#define PROC_PIDTASKINFO 4
#define PROC_PIDTHREADINFO 5
#define PROC_PIDLISTTHREADS 6
#define PROC_PIDVNODEPATHINFO 9
#define PROC_PIDPATHINFO_MAXSIZE (4 * MAXPATHLEN)
#define PROC_PIDTHREADID64INFO 15

struct proc_fdinfo {
    int32_t proc_fd;
    uint32_t proc_fdtype;
};

struct proc_bsdinfo {
    uint32_t pbi_flags;
    uint32_t pbi_status;
    uint32_t pbi_xstatus;
    uint32_t pbi_ppid;
    uint32_t pbi_uid;
    uint32_t pbi_gid;
    char pbi_comm[MAXCOMLEN];
    char pbi_name[2 * MAXCOMLEN];
    uint64_t pbi_start_tvsec;
    uint64_t pbi_start_tvusec;
};

struct proc_taskinfo {
    uint64_t pti_virtual_size;
    uint64_t pti_resident_size;
    uint64_t pti_total_user;
    uint64_t pti_total_system;
    int32_t pti_faults;
    int32_t pti_pageins;
    int32_t pti_threadnum;
    int32_t pti_numrunning;
};

struct proc_threadinfo {
    uint64_t pth_user_time;
    uint64_t pth_system_time;
    char pth_name[MAXTHREADNAMESIZE];
};

struct vnode_info_path {
    char vip_path[MAXPATHLEN];
};

struct proc_vnodepathinfo {
    struct vnode_info_path pvi_cdir;
    struct vnode_info_path pvi_rdir;
};

#endif
