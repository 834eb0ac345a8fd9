#include "recorder/history_record.h"

#include <math.h>
#include <string.h>

/* Printed as 0.00: not busy. */
static const double least_percent = 0.005;

/* The order of threads: by CPU, then by id. */
static bool is_busier(const bp_thread_metrics *a, const bp_thread_metrics *b) {
    return a->cpu_percent > b->cpu_percent || (a->cpu_percent == b->cpu_percent && a->tid < b->tid);
}

/* Keeps `busiest` sorted and drops the last one when it is full. */
static void insert(const bp_thread_metrics **busiest, uint32_t *count,
                   const bp_thread_metrics *thread) {
    uint32_t at = *count < BP_HISTORY_BUSIEST ? (*count)++ : BP_HISTORY_BUSIEST - 1;
    for (; at > 0 && is_busier(thread, busiest[at - 1]); at--) {
        busiest[at] = busiest[at - 1];
    }
    busiest[at] = thread;
}

void bp_history_record_make(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                            bp_history_record *ret_record) {
    const bp_thread_metrics *busiest[BP_HISTORY_BUSIEST];
    uint32_t count = 0;
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        bool is_full = count == BP_HISTORY_BUSIEST;
        if (thread->cpu_percent >= least_percent &&
            (!is_full || is_busier(thread, busiest[BP_HISTORY_BUSIEST - 1]))) {
            insert(busiest, &count, thread);
        }
    }
    *ret_record = (bp_history_record){.ended_ns = ended_ns,
                                      .interval_ns = ended_ns - began_ns,
                                      .cpu_percent = metrics->cpu_percent,
                                      .rss_kb = metrics->rss_kb,
                                      .vm_size_kb = metrics->vm_size_kb,
                                      .thread_count = metrics->thread_count,
                                      .busy_count = count,
                                      .has_memory = metrics->has_memory};
    for (uint32_t i = 0; i < count; i++) {
        ret_record->threads[i].tid = busiest[i]->tid;
        ret_record->threads[i].cpu_percent = busiest[i]->cpu_percent;
        memcpy(ret_record->threads[i].name, busiest[i]->name, sizeof busiest[i]->name);
    }
}

size_t bp_history_record_bytes(const bp_history_record *record) {
    return offsetof(bp_history_record, threads) + record->busy_count * sizeof record->threads[0];
}

static bool is_percent(double value) {
    return isfinite(value) && value >= 0.0;
}

bool bp_history_record_read(uint32_t tag, const void *payload, size_t payload_bytes,
                            bp_history_record *ret_record) {
    const size_t header_bytes = offsetof(bp_history_record, threads);
    bp_history_record record = {0};
    if (tag != BP_HISTORY_TAG || payload_bytes < header_bytes || payload_bytes > sizeof record) {
        return false;
    }
    memcpy(&record, payload, payload_bytes);
    if (record.busy_count > BP_HISTORY_BUSIEST || record.has_memory > 1 ||
        bp_history_record_bytes(&record) != payload_bytes || !is_percent(record.cpu_percent)) {
        return false;
    }
    for (uint32_t i = 0; i < record.busy_count; i++) {
        const bp_history_thread *thread = &record.threads[i];
        if (!is_percent(thread->cpu_percent) ||
            memchr(thread->name, '\0', sizeof thread->name) == NULL) {
            return false;
        }
    }
    *ret_record = record;
    return true;
}
