/*
 * The sampler on the process that it runs in: threads that burn, and bear hostile names.
 */
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/process_facts.h"
#include "platform/thread.h"
#include "stress/sampler_check.h"
#include "support/descriptors.h"

enum { THREADS = 40 };

typedef struct worker {
    pthread_t thread;
    _Atomic uint64_t tid;
    atomic_bool must_end;
    bool burns;
    char name[16];
} worker;

static worker workers[THREADS];

static void *work(void *argument) {
    worker *self = argument;
    (void)prctl(PR_SET_NAME, self->name, 0, 0, 0);
    atomic_store(&self->tid, bp_thread_id());
    while (!atomic_load(&self->must_end)) {
        if (!self->burns) {
            (void)usleep(1000);
        }
    }
    return NULL;
}

static void start_workers(void) {
    static const char *const hostile[] = {") R 1 1",      "a) (b",  "new\nline",
                                          "\xff\xfe\x80", "tab\t",  "",
                                          " lead",        "trail ", "fifteen-bytes-x"};
    const size_t hostile_count = sizeof hostile / sizeof hostile[0];
    for (size_t i = 0; i < THREADS; i++) {
        (void)snprintf(workers[i].name, sizeof workers[i].name, "%s",
                       i < hostile_count ? hostile[i] : "worker");
        workers[i].burns = i == THREADS - 1;
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        while (atomic_load(&workers[i].tid) == 0) {
            (void)usleep(1000);
        }
    }
}

static void end_workers(void) {
    for (size_t i = 0; i < THREADS; i++) {
        atomic_store(&workers[i].must_end, true);
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }
}

static const bp_thread_metrics *find_thread(const bp_metrics *metrics, uint64_t tid) {
    for (size_t i = 0; i < metrics->thread_count; i++) {
        if (metrics->threads[i].tid == tid) {
            return &metrics->threads[i];
        }
    }
    return NULL;
}

/* CPU time of the thread that burns, which on a busy machine comes late. */
static uint64_t burnt_cpu(const bp_task_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (snapshot->threads[i].tid == workers[THREADS - 1].tid) {
            return snapshot->threads[i].cpu;
        }
    }
    return 0;
}

static void wait_for_cpu_time(bp_task *task) {
    bp_task_snapshot first = {0}, now = {0};
    CHECK(bp_task_snapshot_take(task, false, &first, NULL) == BUGPACK_OK);
    do {
        (void)usleep(1000);
        bp_task_snapshot_release(&now);
        CHECK(bp_task_snapshot_take(task, false, &now, NULL) == BUGPACK_OK);
        CHECK(now.process_cpu >= first.process_cpu && now.uptime_ns >= first.uptime_ns);
    } while (now.process_cpu < first.process_cpu + 5000000 || burnt_cpu(&now) == burnt_cpu(&first));
    bp_task_snapshot_release(&now);
    bp_task_snapshot_release(&first);
}

static void every_thread_is_there_under_its_name(void) {
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_sampler_open(getpid(), false, &sampler, &error), BUGPACK_OK, error);
    CHECK(bp_sampler_end(sampler, &metrics, NULL) == BUGPACK_ERR_INVALID);
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    wait_for_cpu_time(bp_sampler_task(sampler));
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
    check_sane(&metrics);
    CHECK(metrics.cpu_percent > 0);
    CHECK(metrics.vanished_count == 0);
    for (size_t i = 0; i < THREADS; i++) {
        const bp_thread_metrics *thread = find_thread(&metrics, workers[i].tid);
        CHECK(thread != NULL);
        CHECK(strcmp(thread->name, workers[i].name) == 0);
        CHECK(!workers[i].burns || thread->cpu_percent > 0);
    }
    CHECK(find_thread(&metrics, (uint64_t)getpid()) != NULL);
    bp_metrics_release(&metrics);
    CHECK(bp_sampler_end(sampler, &metrics, NULL) == BUGPACK_ERR_INVALID);
    bp_sampler_close(sampler);
}

/* The name of a thread in a new snapshot by `task`. */
static void take_name(bp_task *task, uint64_t tid, char name[64]) {
    bp_task_snapshot snapshot = {0};
    CHECK(bp_task_snapshot_take(task, true, &snapshot, NULL) == BUGPACK_OK);
    (void)snprintf(name, 64, "(none)");
    for (size_t i = 0; i < snapshot.thread_count; i++) {
        CHECK(snapshot.threads[i].birth > 0);
        if (snapshot.threads[i].tid == tid) {
            (void)snprintf(name, 64, "%s", snapshot.threads[i].name);
        }
    }
    bp_task_snapshot_release(&snapshot);
}

static void rename_thread(uint64_t tid, const char *name) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%llu/comm", (unsigned long long)tid);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(name, file) >= 0 && fclose(file) == 0);
}

static void names_are_remembered_and_read_again_in_turn(void) {
    bp_task *task = NULL;
    char name[64];
    uint64_t tid = workers[20].tid;
    CHECK(bp_task_open(0, false, &task, NULL) == BUGPACK_OK);
    take_name(task, tid, name);
    CHECK(strcmp(name, "worker") == 0);
    rename_thread(tid, "early");
    take_name(task, tid, name);
    CHECK(strcmp(name, "early") == 0); /* a thread gets its name soon after its birth */
    rename_thread(tid, "late");
    take_name(task, tid, name);
    CHECK(strcmp(name, "early") == 0);
    for (unsigned i = 0; i < 10; i++) {
        bp_task_reread_names(task);
        take_name(task, tid, name);
    }
    CHECK(strcmp(name, "late") == 0);
    rename_thread(tid, "worker");
    bp_task_close(task);
}

/* Where we may choose the next id (CAP_CHECKPOINT_RESTORE), and nobody else gets it first. */
static bool start_with_tid(uint64_t tid, worker *born) {
    for (unsigned tries = 0; tries < 100; tries++) {
        FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (file == NULL) {
            return false;
        }
        bool is_set = fprintf(file, "%llu", (unsigned long long)tid - 1) > 0;
        if (fclose(file) != 0 || !is_set) {
            return false;
        }
        *born = (worker){.name = "newborn"};
        CHECK(pthread_create(&born->thread, NULL, work, born) == 0);
        while (atomic_load(&born->tid) == 0) {
            (void)usleep(1000);
        }
        if (atomic_load(&born->tid) == tid) {
            return true;
        }
        atomic_store(&born->must_end, true);
        CHECK(pthread_join(born->thread, NULL) == 0);
    }
    return false;
}

static void a_thread_with_the_id_of_another_has_its_own_name(void) {
    bp_task *task = NULL;
    char name[64];
    worker old = {.name = "old"};
    static worker born;
    CHECK(bp_task_open(0, false, &task, NULL) == BUGPACK_OK);
    CHECK(pthread_create(&old.thread, NULL, work, &old) == 0);
    while (atomic_load(&old.tid) == 0) {
        (void)usleep(1000);
    }
    for (unsigned i = 0; i < 3; i++) {
        take_name(task, old.tid, name);
        CHECK(strcmp(name, "old") == 0);
    }
    atomic_store(&old.must_end, true);
    CHECK(pthread_join(old.thread, NULL) == 0);
    if (start_with_tid(old.tid, &born)) {
        take_name(task, old.tid, name);
        CHECK(strcmp(name, "newborn") == 0);
        atomic_store(&born.must_end, true);
        CHECK(pthread_join(born.thread, NULL) == 0);
    } else {
        (void)puts("no thread could be given a used id");
    }
    bp_task_close(task);
}

/* The build id of a loaded object as it lies in memory: no file is involved. */
typedef struct memory_build_id {
    uint64_t lowest;
    char text[65];
} memory_build_id;

static int first_object(struct dl_phdr_info *info, size_t size, void *context) {
    memory_build_id *found = context;
    (void)size;
    found->lowest = UINT64_MAX;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_LOAD && (uintptr_t)at < found->lowest) {
            found->lowest = (uintptr_t)at & ~(uint64_t)4095;
        }
        const char *end = at + header->p_memsz;
        while (header->p_type == PT_NOTE && end - at > 12) {
            const ElfW(Nhdr) *note = (const void *)at;
            const unsigned char *id = (const void *)(at + 12 + (note->n_namesz + 3) / 4 * 4);
            for (size_t k = 0; note->n_type == NT_GNU_BUILD_ID && k < note->n_descsz; k++) {
                (void)snprintf(found->text + 2 * k, 3, "%02x", id[k]);
            }
            at = (const char *)id + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 1;
}

static void facts_of_our_own_are_whole(void) {
    bp_task *task = NULL;
    bp_process_facts facts = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    memory_build_id expected = {0};
    CHECK(dl_iterate_phdr(first_object, &expected) == 1 && expected.text[0] != '\0');
    unsigned before = count_descriptors();
    struct rusage usage_before, usage_after;
    CHECK(getrusage(RUSAGE_SELF, &usage_before) == 0);
    CHECK(bp_task_open(0, false, &task, NULL) == BUGPACK_OK);
    CHECK_STATUS(bp_process_facts_read(task, &facts, &error), BUGPACK_OK, error);
    CHECK(facts.pid == getpid() && facts.parent_pid.value == (uint64_t)getppid());
    CHECK(facts.uid.value == (uint64_t)geteuid() && facts.executable != NULL);
    CHECK(facts.fd_count.known && facts.limit_count >= 16 && facts.started_wall_ns.known);
    CHECK(facts.objects_known && facts.object_count > 2);
    /* Those of threads that have ended count too. */
    CHECK(getrusage(RUSAGE_SELF, &usage_after) == 0);
    CHECK(facts.voluntary_switches.value >= (uint64_t)usage_before.ru_nvcsw);
    CHECK(facts.voluntary_switches.value <= (uint64_t)usage_after.ru_nvcsw);
    CHECK(strcmp(facts.denied, "") == 0);
    bool is_found = false;
    for (size_t i = 0; i < facts.object_count; i++) {
        is_found = is_found || (facts.objects[i].address == expected.lowest &&
                                strcmp(facts.objects[i].build_id, expected.text) == 0);
    }
    CHECK(is_found);
    bp_process_facts_release(&facts);
    bp_task_close(task);
    CHECK(count_descriptors() == before);
}

int main(void) {
    start_workers();
    every_thread_is_there_under_its_name();
    names_are_remembered_and_read_again_in_turn();
    a_thread_with_the_id_of_another_has_its_own_name();
    facts_of_our_own_are_whole();
    end_workers();
    return 0;
}
