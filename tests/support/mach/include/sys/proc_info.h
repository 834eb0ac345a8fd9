/*
 * Structures of libproc with the members that are used; values as in Apple's header.
 */
#ifndef FAKE_SYS_PROC_INFO_H
#define FAKE_SYS_PROC_INFO_H

#include <stdint.h>

#define MAXCOMLEN 16
#define MAXPATHLEN 1024

#define PROC_PIDLISTFDS 1
#define PROC_PIDTBSDINFO 3
#define PROC_PIDTASKINFO 4
#define PROC_PIDVNODEPATHINFO 9
#define PROC_PIDPATHINFO_MAXSIZE (4 * MAXPATHLEN)

struct proc_fdinfo {
    int32_t proc_fd;
    uint32_t proc_fdtype;
};

struct proc_bsdinfo {
    char pbi_comm[MAXCOMLEN];
    char pbi_name[2 * MAXCOMLEN];
    uint64_t pbi_start_tvsec;
    uint64_t pbi_start_tvusec;
};

struct proc_taskinfo {
    int32_t pti_faults;
    int32_t pti_pageins;
    int32_t pti_threadnum;
};

struct vnode_info_path {
    char vip_path[MAXPATHLEN];
};

struct proc_vnodepathinfo {
    struct vnode_info_path pvi_cdir;
    struct vnode_info_path pvi_rdir;
};

#endif
