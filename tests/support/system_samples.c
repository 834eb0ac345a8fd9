#include "support/system_samples.h"

#define KNOWN(number)                                                                              \
    { .known = true, .value = number }

static const bp_system full_sample = {
    .distribution_id = "debian",
    .distribution_version = "12",
    .distribution_name = "Debian GNU/Linux 12 \xff",
    .kernel_name = "Linux",
    .kernel_release = "6.1.0",
    .kernel_version = "#1 SMP",
    .architecture = "x86_64",
    .hostname = "vm",
    .cpu_model = "AMD EPYC",
    .cpu_count = KNOWN(4),
    .cpu_online_count = KNOWN(2),
    .cpu_usable_count = KNOWN(1),
    .memory = {[BP_SYSTEM_TOTAL] = KNOWN(24684092), [BP_SYSTEM_SWAP_FREE] = KNOWN(0)},
    .has_load = true,
    .load = {.centi = {1410, 1031, 924}, .runnable_count = 15, .thread_count = 189},
    .pressure = {{.some = {.is_known = true, .avg10_centi = 9948, .total_us = 7}}},
    .boot_wall_ns = UINT64_C(1800000000000000000),
    .uptime_ns = UINT64_C(39497552000000),
    .has_process = true,
    .container = "docker",
    .cgroups = {{.path = (char[]){"/a"},
                 .figures = {[BP_CGROUP_MEMORY_MAX] = {.is_known = true, .is_unlimited = true},
                             [BP_CGROUP_CPU_PERIODS] = {.is_known = true, .value = 900},
                             [BP_CGROUP_CPU_SESSION_PERIODS] = {.is_known = true, .value = 21},
                             [BP_CGROUP_CPU_SESSION_THROTTLED] = {.is_known = true, .value = 7}}},
                {.path = (char[]){"/"},
                 .figures = {[BP_CGROUP_PIDS_MAX] = {.is_known = true, .value = 100}}}},
    .cgroup_count = 2,
    .filesystems = {{.is_of = {[BP_SYSTEM_PLACE_ROOT] = true, [BP_SYSTEM_PLACE_TMP] = true},
                     .total_bytes = 1000,
                     .used_bytes = 600,
                     .available_bytes = 200,
                     .inode_count = 10},
                    {.is_of = {[BP_SYSTEM_PLACE_WORKING_DIRECTORY] = true},
                     .total_bytes = 1,
                     .is_read_only = true},
                    {.file = (char[]){"/mnt/spool"}, .total_bytes = 1, .used_bytes = 1}},
    .filesystem_count = 3,
    .executable = (char[]){"/usr/bin/viewer"}};

bugpack_status sample_system_print(bool full, bp_buffer *out, bugpack_error *error) {
    static const bp_system bare = {.has_load = false};
    return bp_system_print(full ? &full_sample : &bare, out, error);
}
