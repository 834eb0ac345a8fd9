/*
 * What is read of this machine and of this process, beside what system calls say.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "machine/system.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static bp_system read_system(bool with_process, bool with_hostname) {
    const bp_system_plan plan = {.with_process = with_process, .with_hostname = with_hostname};
    bp_system system;
    cr_assert(eq(int, bp_system_read(&plan, &system, &failure), BUGPACK_OK));
    return system;
}

Test(system, is_what_system_calls_say) {
    struct utsname names;
    struct sysinfo info;
    struct statvfs root;
    cpu_set_t usable;
    struct timespec before, after;
    (void)clock_gettime(CLOCK_BOOTTIME, &before);
    CLEANUP(bp_system_release) bp_system system = read_system(true, true);
    (void)clock_gettime(CLOCK_BOOTTIME, &after);
    cr_assert(uname(&names) == 0 && sysinfo(&info) == 0);
    cr_expect(eq(str, system.kernel_release, names.release));
    cr_expect(eq(str, system.hostname, names.nodename));
    cr_expect(eq(u64, system.memory[BP_SYSTEM_TOTAL].value,
                 (uint64_t)info.totalram * info.mem_unit / 1024));
    cr_expect(eq(u64, system.memory[BP_SYSTEM_SWAP_TOTAL].value,
                 (uint64_t)info.totalswap * info.mem_unit / 1024));
    cr_assert(zero(int, sched_getaffinity(0, sizeof usable, &usable)));
    cr_expect(eq(u64, system.cpu_usable_count.value, (uint64_t)CPU_COUNT(&usable)));
    cr_expect(eq(u64, system.cpu_online_count.value, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)));
    cr_expect(system.uptime_ns / BP_NS_PER_SEC >= (uint64_t)before.tv_sec &&
              system.uptime_ns / BP_NS_PER_SEC <= (uint64_t)after.tv_sec);
    cr_expect(system.executable != NULL && strstr(system.executable, "unit_probe") != NULL);
    cr_assert(system.filesystem_count > 0 && statvfs("/", &root) == 0);
    cr_expect(system.filesystems[0].is_of[BP_SYSTEM_PLACE_ROOT]);
    cr_expect(eq(u64, system.filesystems[0].total_bytes, (uint64_t)root.f_blocks * root.f_frsize));
}

/* Where there is a memory file system of another device, as on any Linux. */
Test(system, has_the_file_system_of_a_file_that_is_open_for_writing) {
    char path[] = "/dev/shm/test-system-XXXXXX";
    struct statvfs info;
    size_t at = 0;
    int fd = mkstemp(path);
    if (fd < 0 || fstatvfs(fd, &info) != 0 || info.f_blocks == 0) {
        cr_skip("no /dev/shm");
    }
    bp_system system = read_system(true, false);
    (void)unlink(path);
    while (at < system.filesystem_count && (system.filesystems[at].file == NULL ||
                                            strcmp(system.filesystems[at].file, path) != 0)) {
        at++;
    }
    cr_assert(at < system.filesystem_count);
    cr_expect(eq(u64, system.filesystems[at].total_bytes, (uint64_t)info.f_blocks * info.f_frsize));
    cr_expect(not(system.filesystems[at].is_read_only));
    (void)close(fd);
    bp_system_release(&system);
}

Test(system, names_neither_host_nor_process_where_nobody_asked) {
    CLEANUP(bp_system_release) bp_system system = read_system(false, false);
    cr_expect(eq(str, system.hostname, ""));
    cr_expect(not(system.has_process || system.executable != NULL));
    cr_expect(eq(sz, system.cgroup_count, 0));
    cr_expect(eq(sz, system.filesystem_count, 0));
    cr_expect(system.memory[BP_SYSTEM_AVAILABLE].known);
}

static void *wait_for_end(void *unused) {
    (void)pause();
    return unused;
}

Test(system, has_the_executable_and_file_systems_of_a_process_whose_first_thread_has_ended) {
    char path[64], target[16];
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        (void)alarm(60);
        if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0) {
            _exit(1);
        }
        pthread_exit(NULL);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)child);
    while (readlink(path, target, sizeof target) >= 0) {
        (void)sched_yield();
    }
    const bp_system_plan plan = {.with_process = true, .pid = child};
    bp_system system;
    cr_assert(eq(int, bp_system_read(&plan, &system, NULL), BUGPACK_OK));
    (void)kill(child, SIGKILL);
    cr_assert(system.executable != NULL && system.filesystem_count > 0);
    cr_expect(strstr(system.executable, "unit_probe") != NULL);
    bp_system_release(&system);
    (void)waitpid(child, NULL, 0);
}

/* In version 1 a zombie is said to be in "/". */
Test(system, has_the_groups_that_a_process_was_in_before_it_ended) {
    bp_system before, system, again = {.cgroup_count = 0};
    bp_system_read_groups(getpid(), &before);
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t end;
    cr_assert(zero(int, waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT)));
    const bp_system_plan plan = {.with_process = true, .pid = child, .groups_before = &before};
    cr_assert(zero(int, bp_system_read(&plan, &system, NULL)));
    (void)waitpid(child, NULL, 0);
    cr_assert(bp_system_read_groups_again(&before, &again));
    cr_expect(eq(sz, system.cgroup_count, before.cgroup_count));
    cr_expect(eq(sz, again.cgroup_count, before.cgroup_count));
    for (size_t i = 0; i < before.cgroup_count; i++) {
        const bp_machine_figure *figures = again.cgroups[i].figures;
        cr_expect(eq(str, system.cgroups[i].path, before.cgroups[i].path));
        cr_expect(eq(str, again.cgroups[i].path, before.cgroups[i].path));
        cr_expect(eq(int, figures[BP_CGROUP_MEMORY_CURRENT].is_known,
                     before.cgroups[i].figures[BP_CGROUP_MEMORY_CURRENT].is_known));
        cr_expect(eq(int, figures[BP_CGROUP_MEMORY_SESSION_OOM_KILLS].is_known,
                     figures[BP_CGROUP_MEMORY_OOM_KILLS].is_known));
    }
    bp_system_release(&before);
    bp_system_release(&system);
    bp_system_release(&again);
}

/* As the first process of a container: in a root and a namespace of its own. */
static pid_t start_contained(const char *root) {
    int ready[2];
    char is_in = 0;
    cr_assert(zero(int, pipe(ready)));
    pid_t pid = fork();
    if (pid == 0) {
        is_in = unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0 && chroot(root) == 0;
        (void)!write(ready[1], &is_in, 1);
        (void)pause();
    }
    cr_assert(eq(sz, (size_t)read(ready[0], &is_in, 1), 1));
    (void)close(ready[0]);
    (void)close(ready[1]);
    if (!is_in) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        cr_skip("namespaces are not allowed here");
    }
    return pid;
}

Test(system, knows_a_container_by_the_file_that_it_leaves) {
    static const char *const rows[][2] = {
        {"run/.containerenv", "podman"},
        {".dockerenv", "docker"},
        {"var/run/secrets/kubernetes.io/serviceaccount/namespace", "kubernetes"},
        {"run/other", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(temp_dir_remove) temp_dir dir;
        char path[128];
        cr_assert(temp_dir_make(&dir));
        (void)snprintf(path, sizeof path, "%s", rows[i][0]);
        for (char *at = path; (at = strchr(at, '/')) != NULL; *at++ = '/') {
            *at = '\0';
            cr_assert(zero(int, mkdirat(dir.fd, path, 0700)));
        }
        cr_assert(temp_dir_write(&dir, path, "lxc\nrest", 8));
        pid_t pid = start_contained(dir.path);
        const bp_system_plan plan = {.with_process = true, .pid = pid};
        bp_system system;
        cr_assert(zero(int, bp_system_read(&plan, &system, NULL)));
        const char *name = system.container != NULL ? system.container : "none";
        cr_expect(eq(str, name, (char *)(rows[i][1] != NULL ? rows[i][1] : "none")));
        bp_system_release(&system);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}
