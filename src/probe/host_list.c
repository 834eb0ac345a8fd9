/*
 * Lists of ids, and sums of what readers count.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/linux/proc_scan.h"
#include "probe/host_private.h"

/* The most ids that Linux can give (PID_MAX_LIMIT in include/linux/threads.h). */
static const size_t number_max = (size_t)4 << 20;

typedef struct number_list {
    uint32_t *numbers;
    size_t count, capacity;
} number_list;

static bool push_number(number_list *list, uint64_t number) {
    if (number > UINT32_MAX || list->count == number_max) {
        return true; /* no id of a process or thread */
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        uint32_t *numbers = realloc(list->numbers, capacity * sizeof *numbers);
        if (numbers == NULL) {
            return false;
        }
        list->numbers = numbers;
        list->capacity = capacity;
    }
    list->numbers[list->count++] = (uint32_t)number;
    return true;
}

static bool push_entries(number_list *list, const char *entries, size_t entries_bytes) {
    for (size_t at = 0; at < entries_bytes;) {
        const struct dirent64 *entry = (const void *)(entries + at);
        bp_proc_scan name = {entry->d_name, entry->d_name + strlen(entry->d_name)};
        uint64_t number;
        if (bp_proc_take_number(&name, 10, &number) && name.next == name.end &&
            !push_number(list, number)) {
            return false;
        }
        at += entry->d_reclen;
    }
    return true;
}

static int compare_numbers(const void *one, const void *other) {
    uint32_t left = *(const uint32_t *)one;
    uint32_t right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}

int bp_host_list_numbers(int directory_fd, uint32_t **ret_numbers, size_t *ret_count) {
    /* Large pieces: between two of them an entry that ends can make the kernel miss another. */
    static const size_t entries_bytes = (size_t)256 * 1024;
    number_list list = {0};
    int result = 0;
    char *entries = malloc(entries_bytes);
    for (;;) {
        ssize_t count =
            entries == NULL ? -1 : syscall(SYS_getdents64, directory_fd, entries, entries_bytes);
        if (count <= 0) {
            result = entries == NULL ? ENOMEM : count < 0 ? errno : 0;
            break;
        }
        if (!push_entries(&list, entries, (size_t)count)) {
            result = ENOMEM;
            break;
        }
    }
    free(entries);
    if (list.count > 0) {
        qsort(list.numbers, list.count, sizeof *list.numbers, compare_numbers);
    }
    *ret_numbers = list.numbers;
    *ret_count = list.count;
    return result;
}

void bp_host_process_release(bp_host_process *process) {
    free(process->tids);
    free(process->heap);
    process->tids = NULL;
    process->heap = NULL;
}

void bp_host_summary_add(bp_host_summary *sum, const bp_host_summary *part) {
    sum->denied_process_count += part->denied_process_count;
    sum->vanished_process_count += part->vanished_process_count;
    sum->process_count += part->process_count;
    sum->thread_count += part->thread_count;
    sum->vanished_thread_count += part->vanished_thread_count;
    sum->kernel_thread_count += part->kernel_thread_count;
    sum->heap_absent_count += part->heap_absent_count;
    sum->heap_thread_count += part->heap_thread_count;
    for (size_t group = 0; group < BP_HOST_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_HOST_CAUSE_COUNT; cause++) {
            sum->unread[group][cause] += part->unread[group][cause];
        }
    }
    for (size_t i = 0; i < BP_HEAP_FAILURE_COUNT; i++) {
        sum->heap_processes[i] += part->heap_processes[i];
        if (sum->heap_reasons[i][0] == '\0') {
            memcpy(sum->heap_reasons[i], part->heap_reasons[i], sizeof sum->heap_reasons[i]);
        }
    }
}
