/*
 * Accepts the sampler on a real Mac: the six tests of docs/VERIFICATION.md and the soak, by itself.
 * Prints PASS or FAIL for each, with what it saw, and ends with 1 when one failed.
 *
 *     acceptance [SAMPLES]      SAMPLES of the soak; 2000
 *
 * What is compared comes from another way than the sampler's: getrusage, ps, the clock, and Mach's
 * own list of this task's rights.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "macos/ports.h"
#include "platform/machine.h"
#include "platform/thread.h"
#include "process/sampler.h"

enum { THREAD_COUNT = 12, SOAK_SAMPLES = 2000 };

static atomic_bool is_over;
static int failed_count;

static void verdict(bool is_passed, const char *what) {
    (void)printf("%s %s\n", is_passed ? "PASS" : "FAIL", what);
    failed_count += !is_passed;
}

/* The first one is busy for half of its time, the others sleep. */
static void *live(void *argument) {
    const size_t number = *(const size_t *)argument;
    char name[16];
    (void)snprintf(name, sizeof name, "accept-%zu", number);
    bp_thread_set_name(name);
    while (!atomic_load(&is_over)) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        while (number == 0 && bp_clock_monotonic_ns() < now_ns + 20 * BP_NS_PER_MS) {}
        bp_clock_sleep_until(now_ns + 40 * BP_NS_PER_MS);
    }
    return NULL;
}

static uint64_t used_cpu_ns(void) {
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * BP_NS_PER_SEC +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static bool is_near(double value, double other) {
    return value >= other * 0.5 && value <= other * 1.5;
}

/* What ps says of this process, in KiB; false when there is no ps. */
static bool ask_ps(double *ret_rss_kb, double *ret_size_kb) {
    char command[64];
    char line[128] = "";
    (void)snprintf(command, sizeof command, "/bin/ps -o rss=,vsz= -p %ld", (long)getpid());
    FILE *answer = popen(command, "r");
    if (answer == NULL) {
        return false;
    }
    bool has_line = fgets(line, sizeof line, answer) != NULL;
    (void)pclose(answer);
    char *rest = line;
    double rss_kb = strtod(line, &rest);
    double size_kb = strtod(rest, NULL);
    if (!has_line || rss_kb <= 0 || size_kb <= 0) {
        return false;
    }
    *ret_rss_kb = rss_kb;
    *ret_size_kb = size_kb;
    return true;
}

/* A window of `window_ms`, or the end of the program: nothing else can be said then. */
static bp_metrics sample(bp_sampler *sampler, unsigned window_ms) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_metrics metrics = {0};
    bugpack_status status = bp_sampler_begin(sampler, &error);
    if (status == BUGPACK_OK) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + window_ms * BP_NS_PER_MS);
        status = bp_sampler_end(sampler, &metrics, &error);
    }
    if (status != BUGPACK_OK) {
        (void)printf("     %s\n", error.message);
        verdict(false, "2: nothing says that it is unavailable");
        exit(1);
    }
    return metrics;
}

static void test_cpu(const bp_metrics *metrics, uint64_t cpu_ns, uint64_t elapsed_ns) {
    double expected = 100.0 * (double)cpu_ns / (double)elapsed_ns;
    (void)printf("     the sampler says %.1f %%, getrusage %.1f %%\n", metrics->cpu_percent,
                 expected);
    verdict(is_near(metrics->cpu_percent, expected) && metrics->cpu_percent > 5,
            "3: process.cpu_percent is plausible");
}

static void test_memory(const bp_metrics *metrics) {
    double rss_kb = 0;
    double size_kb = 0;
    if (!ask_ps(&rss_kb, &size_kb)) {
        verdict(false, "4: memory is plausible: ps does not answer");
        return;
    }
    (void)printf("     the sampler says %.0f and %.0f KiB, ps %.0f and %.0f\n",
                 (double)metrics->rss_kb, (double)metrics->vm_size_kb, rss_kb, size_kb);
    verdict(metrics->has_memory && is_near((double)metrics->rss_kb, rss_kb) &&
                is_near((double)metrics->vm_size_kb, size_kb) &&
                metrics->vm_size_kb >= metrics->rss_kb,
            "4: process.rss_kb and vm_size_kb are plausible");
}

/* `began_ns` is when main began, which is shortly after the process did. */
static void test_uptime(bp_sampler *sampler, const bp_metrics *first, uint64_t first_ns,
                        uint64_t began_ns) {
    bp_metrics second = sample(sampler, 1200);
    double between = (double)(bp_clock_monotonic_ns() - first_ns) / (double)BP_NS_PER_SEC;
    double since_main = (double)(first_ns - began_ns) / (double)BP_NS_PER_SEC;
    double grown = second.uptime_secs - first->uptime_secs;
    (void)printf("     %.2f s, then %.2f s; %.2f s between them, %.2f s since main began\n",
                 first->uptime_secs, second.uptime_secs, between, since_main);
    verdict(first->has_uptime && grown > between - 0.5 && grown < between + 0.5 &&
                first->uptime_secs > since_main - 0.5 && first->uptime_secs < since_main + 3,
            "5: process.uptime_secs advances, and starts where the process did");
    bp_metrics_release(&second);
}

static void test_threads(const bp_metrics *metrics) {
    bool is_sorted = true;
    unsigned found_count = 0;
    const bp_thread_metrics *busiest = NULL;
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        is_sorted = is_sorted && (i == 0 || metrics->threads[i - 1].tid < thread->tid);
        found_count += strncmp(thread->name, "accept-", strlen("accept-")) == 0;
        busiest = busiest == NULL || thread->cpu_percent > busiest->cpu_percent ? thread : busiest;
    }
    (void)printf("     %zu threads, %u of ours, the busiest is \"%s\"\n", metrics->thread_count,
                 found_count, busiest != NULL ? busiest->name : "");
    verdict(is_sorted && found_count == THREAD_COUNT && busiest != NULL &&
                strcmp(busiest->name, "accept-0") == 0,
            "6: threads are there, in order and named, and the busy one carries the load");
}

/* Every window is two lists of threads. A first one is left out: it settles what is lazy. */
static void soak(bp_sampler *sampler, unsigned sample_count) {
    macos_ports before = {0};
    macos_ports after = {0};
    bp_metrics metrics = sample(sampler, 0);
    uint64_t size_before_kb = metrics.vm_size_kb;
    bp_metrics_release(&metrics);
    bool is_counted = macos_ports_count(&before);
    for (unsigned i = 0; i < sample_count; i++) {
        metrics = sample(sampler, 0);
        bp_metrics_release(&metrics);
    }
    is_counted = is_counted && macos_ports_count(&after);
    metrics = sample(sampler, 0);
    double grown_kb = (double)metrics.vm_size_kb - (double)size_before_kb;
    (void)printf("     %u samples of %zu threads: names %zu to %zu, references %zu to %zu, "
                 "table %zu to %zu, size %+.0f KiB\n",
                 sample_count, metrics.thread_count, before.names, after.names, before.references,
                 after.references, before.table, after.table, grown_kb);
    bp_metrics_release(&metrics);
    /* A leak would be a reference a thread a sample; twenty may come from anywhere. */
    verdict(is_counted && after.names <= before.names + 20 &&
                after.references <= before.references + 20,
            "soak: no port right stays behind");
    /* A lost list is a page of the kernel's each, 4 KiB at least. */
    verdict(grown_kb < 1024 + 2.0 * sample_count, "soak: no list of threads stays behind");
}

static void run_tests(bp_sampler *sampler, unsigned sample_count, uint64_t began_ns) {
    uint64_t cpu_ns = used_cpu_ns();
    uint64_t start_ns = bp_clock_monotonic_ns();
    bp_metrics metrics = sample(sampler, 2000);
    uint64_t end_ns = bp_clock_monotonic_ns();
    cpu_ns = used_cpu_ns() - cpu_ns;
    (void)printf("     the platform is %s, with %zu threads\n", bp_machine_platform(),
                 metrics.thread_count);
    verdict(strcmp(bp_machine_platform(), "macos") == 0 && metrics.thread_count > 0,
            "1: the macOS variant is produced");
    verdict(true, "2: nothing says that it is unavailable");
    test_cpu(&metrics, cpu_ns, end_ns - start_ns);
    test_memory(&metrics);
    test_uptime(sampler, &metrics, end_ns, began_ns);
    test_threads(&metrics);
    bp_metrics_release(&metrics);
    soak(sampler, sample_count);
}

int main(int argc, char **argv) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    unsigned long sample_count = argc > 1 ? strtoul(argv[1], NULL, 10) : SOAK_SAMPLES;
    if (argc > 2 || sample_count == 0 || sample_count > 10000000) {
        (void)fprintf(stderr, "usage: acceptance [SAMPLES]\n");
        return 2;
    }
    pthread_t threads[THREAD_COUNT];
    size_t numbers[THREAD_COUNT];
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, live, &numbers[i]) != 0) {
            (void)fprintf(stderr, "acceptance: cannot start a thread\n");
            return 2;
        }
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_sampler *sampler = NULL;
    if (bp_sampler_open(0, false, &sampler, &error) != BUGPACK_OK) {
        (void)printf("     %s\n", error.message);
        verdict(false, "1: the macOS variant is produced");
    } else {
        run_tests(sampler, (unsigned)sample_count, began_ns);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    bp_sampler_close(sampler);
    return failed_count > 0;
}
